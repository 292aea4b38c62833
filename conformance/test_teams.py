"""Teams behind a plain string prompt, which closes the engine's input long before the team is done."""

import json
import os
import time

import pytest

from caller import ask, results
from node import Node
from stage import call, wait_until
from test_wire import PROMPT, Wire

MATES = ("ann", "bob")
# How many seconds each teammate works on after the first result of the lead.
WORKS = float(os.environ.get("WHIMBREL_TEST_MATE_SECONDS", "2.5"))
BYPASS = {"permissionMode": "bypassPermissions", "allowDangerouslySkipPermissions": True}


def last_text(request):
    """What stands in the last message of a request, as one text."""
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def whose(request):
    """The teammate that asks; none if it is the lead."""
    system = "\n".join(block["text"] for block in request.get("system", []))
    return next((name for name in MATES if f"You are {name}," in system), None)


def team(request):
    """The lead founds a team, sends two off and ends its turn; each works for a while and writes what it found."""
    name, text = whose(request), last_text(request)
    if name and "Delivered" in text:
        return "I am done."
    if name:
        time.sleep(WORKS)
        found = f"Found by {name}."
        return call("SendMessage", type="message", recipient="team-lead", content=found, summary="found")
    if "is founded" in text:
        errands = [call("Agent", description="look", prompt="Look.", name=mate, team_name="crew") for mate in MATES]
        return [block for errand in errands for block in errand]
    if "has joined" in text:
        return "Dispatched."
    found = [mate for mate in MATES if f"Found by {mate}." in text]
    if found:
        return f"Heard of {' and '.join(found)}."
    return "Noted." if "teammate-message" in text else call("TeamCreate", team_name="crew", description="looks")


@pytest.fixture
def engine_with_a_witness(stage):
    """The engine, and beside it a file that says with what code it has ended by itself."""
    code = stage.root / "exit-code"
    witness = stage.root / "engine-with-a-witness"
    witness.write_text(f'#!/bin/sh\n"{stage.engine}" "$@"\necho $? > "{code}.new" && mv "{code}.new" "{code}"\n')
    witness.chmod(0o755)
    stage.engine = witness
    return code


def by_python(stage, installed):
    messages = ask("Look around.", stage.options(model="claude-haiku-4-5", permission_mode="bypassPermissions"))
    return [result.result for result in results(messages)]


def by_node(version):
    def run(stage, installed):
        node = Node(version, installed, stage)
        played = node.play("one", prompts=["Look around."], options={"model": "claude-haiku-4-5", **BYPASS})
        assert played.thrown is None
        return [result["result"] for result in played.results]

    return run


CALLERS = {
    "python": by_python,
    "typescript 0.2.50": by_node("0.2.50"),
    "typescript 0.3.325": by_node("0.3.325"),
}


@pytest.mark.parametrize("run", CALLERS.values(), ids=CALLERS)
def test_a_team_behind_a_string_prompt_finishes_its_work(
    run, stage, installed, provider, engine_with_a_witness, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    provider.answer = team
    began = time.monotonic()
    texts = run(stage, installed)
    took = time.monotonic() - began
    assert texts[0] == "Dispatched.", "the lead's first result comes at once"
    heard = " ".join(texts[1:])
    assert all(f"{name}" in heard for name in MATES), texts
    assert took >= WORKS, "nobody was cut short"
    done = [whose(request) for request in provider.requests if "Delivered" in last_text(request)]
    assert sorted(name for name in done if name) == sorted(MATES), "both came to their end"
    code = wait_until(
        lambda: engine_with_a_witness.exists() and engine_with_a_witness.read_text(), "the engine to end"
    )
    assert code.strip() == "0"


def test_an_engine_that_is_killed_takes_the_commands_of_its_team_with_it(stage, provider):
    def busy(request):
        text = last_text(request)
        if name := whose(request):
            return call("Bash", command=f"touch {name}; sleep 600")
        if "is founded" in text:
            errands = [call("Agent", description="look", prompt="Look.", name=mate) for mate in MATES]
            return [block for errand in errands for block in errand]
        return "Away." if "has joined" in text else call("TeamCreate", team_name="crew")

    provider.answer = busy
    teams = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
    api = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "key"}
    with Wire(stage, "--permission-mode", "bypassPermissions", **teams, **api) as wire:
        wire.send(PROMPT)
        wire.until("result")
        wait_until(lambda: all((stage.workspace / mate).exists() for mate in MATES), "both to be at work")
        wire.child.kill()
        wait_until(lambda: not stage.processes(), "everything to be gone")
