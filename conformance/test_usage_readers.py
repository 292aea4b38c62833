"""Programs that read our transcripts: ccusage counts tokens and dollars, claude-code-log renders conversations."""

import json
from collections import Counter

import pytest
from claude_agent_sdk import AgentDefinition

from harness import tool_call
from mock_provider import Reply
from python_sdk import only_result, run_query

MODEL, SUBAGENT_MODEL = "claude-sonnet-4-5", "claude-haiku-4-5"
# What ccusage calls the counts of the API.
COUNTS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_creation_input_tokens": "cacheCreationTokens",
    "cache_read_input_tokens": "cacheReadTokens",
}
# Prices per token in units of 0.00000001 dollars, in the order of the counts.
PRICES = {MODEL: (300, 1500, 375, 30), SUBAGENT_MODEL: (100, 500, 125, 10)}

# Every text of the conversation that a reader of its log wants to see, in this order.
TEXTS = [
    "please look around",
    "I look myself and delegate.",
    "echo from-the-command",
    "from-the-command",
    "count the files",
    "Counting now.",
    "ls -a",
    "There are two files.",
    "All is counted.",
    "and once more?",
    "Still two.",
]


def usage(*counts):
    return dict(zip(COUNTS, counts, strict=True))


def reply_to_request(request):
    """The replies of main agent and subagent, each with counts of its own."""
    text = json.dumps(request["messages"])
    results = text.count('"tool_result"')
    if request["model"] == SUBAGENT_MODEL:
        if results == 0:
            return Reply(["Counting now.", *tool_call("Bash", command="ls -a")], usage(301, 87, 12, 13))
        return Reply(["There are two files."], usage(311, 97, 11, 1234))
    if "and once more?" in text:
        return Reply(["Still two."], usage(5, 17, 19, 5000))
    if results == 0:
        calls = [
            *tool_call("Bash", command="echo from-the-command"),
            *tool_call("Agent", description="count", prompt="count the files", subagent_type="counter"),
        ]
        return Reply(["I look myself and delegate.", *calls], usage(1001, 2616, 2048, 0))
    return Reply(["All is counted."], usage(3, 55, 0, 4096))


@pytest.fixture
def run(harness, provider):
    """Runs a prompt; returns its result."""
    provider.respond = reply_to_request
    counter = AgentDefinition(description="counts", prompt="You count.", model=SUBAGENT_MODEL)
    options = {"model": MODEL, "agents": {"counter": counter}, "permission_mode": "bypassPermissions"}
    return lambda prompt, **more: only_result(run_query(prompt, harness.options(**options, **more)))


@pytest.fixture
def session(run):
    """Two results of one session: of a turn with a subagent, and of a turn in a new process."""
    first = run("please look around")
    return first, run("and once more?", resume=first.session_id)


def reported_counts(provider):
    """The sums of what the provider reported, by model."""
    sums = {}
    for model, counts in provider.reported:
        sums.setdefault(model, Counter()).update(counts)
    return sums


def price(counts, model):
    return sum(counts[name] * each for name, each in zip(COUNTS, PRICES[model], strict=True))


def to_units(dollars):
    return round(dollars * 1e8)


def run_ccusage(programs, *arguments):
    program = programs.dir / "ccusage" / "node_modules" / ".bin" / "ccusage"
    return json.loads(programs.run(program, "claude", *arguments, "--json", "--offline"))


@pytest.mark.parametrize("report", ["daily", "session"])
def test_ccusage_counts_what_the_provider_reported(programs, provider, run, session, report):
    # A fork copies the messages so far, which must not be counted twice.
    run("and once more?", resume=session[0].session_id, fork_session=True)
    totals = run_ccusage(programs, report)["totals"]
    sums = reported_counts(provider)
    expected = {key: sum(counts[name] for counts in sums.values()) for name, key in COUNTS.items()}
    assert {key: totals[key] for key in expected} == expected
    assert to_units(totals["totalCost"]) == sum(price(counts, model) for model, counts in sums.items())


def test_ccusage_counts_each_model_as_our_result_does(programs, provider, session):
    (day,) = run_ccusage(programs, "daily", "--breakdown")["daily"]
    sums = reported_counts(provider)
    found = {item["modelName"]: item for item in day["modelBreakdowns"]}
    assert set(found) == set(sums) == set(PRICES)
    for model, counts in sums.items():
        assert {name: found[model][key] for name, key in COUNTS.items()} == dict(counts), model
        assert to_units(found[model]["cost"]) == to_units(session[1].model_usage[model]["costUSD"])
        assert to_units(found[model]["cost"]) == price(counts, model)
    assert to_units(day["totalCost"]) == to_units(session[1].total_cost_usd)


@pytest.mark.parametrize("output_format", ["md", "html"])
def test_claude_code_log_renders_all_messages(programs, session, output_format):
    program, out = programs.dir / "python" / "bin" / "claude-code-log", programs.harness.root / "log"
    programs.run(program, "--format", output_format, "--output", out, "--combined", "no", "--depth", "tool")
    (page,) = out.rglob(f"session-{session[0].session_id}.{output_format}")
    page = page.read_text()
    assert [text for text in TEXTS if text not in page] == []
    if output_format == "html":
        assert page.count("Input: 1001 | Output: 2616 | Cache Creation: 2048") == 1
    # The texts of the conversation itself are in order; the subagent is shown beside its call.
    places = [page.rindex(text) for text in (TEXTS[0], TEXTS[1], TEXTS[-3], TEXTS[-2], TEXTS[-1])]
    assert places == sorted(places)
