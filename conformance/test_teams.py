"""Teams started by a string prompt, which closes the engine's input long before the team is done."""

import json
import os
import time

import pytest

from harness import tool_call, wait_until
from python_sdk import result_messages, run_query
from test_wire_protocol import PROMPT, WireClient
from typescript_sdk import ScriptRunner

TEAMMATES = ("ann", "bob")
# Seconds that each teammate works after the first result of the lead.
WORK_SECONDS = float(os.environ.get("WHIMBREL_TEST_MATE_SECONDS", "2.5"))
BYPASS = {"permissionMode": "bypassPermissions", "allowDangerouslySkipPermissions": True}


def last_text(request):
    """The content of the last message of a request, as one text."""
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def requesting_teammate(request):
    """Name of the teammate that sent a request; None for the lead."""
    system = "\n".join(block["text"] for block in request.get("system", []))
    return next((name for name in TEAMMATES if f"You are {name}," in system), None)


def team_reply(request):
    """The lead creates a team, starts two teammates and ends its turn; each works for a while and reports back."""
    name, text = requesting_teammate(request), last_text(request)
    if name and "Delivered" in text:
        return "I am done."
    if name:
        time.sleep(WORK_SECONDS)
        found = f"Found by {name}."
        return tool_call("SendMessage", type="message", recipient="team-lead", content=found, summary="found")
    if "Created the team" in text:
        calls = [
            tool_call("Agent", description="look", prompt="Look.", name=teammate, team_name="readers")
            for teammate in TEAMMATES
        ]
        return [block for call in calls for block in call]
    if "has joined" in text:
        return "Dispatched."
    found = [teammate for teammate in TEAMMATES if f"Found by {teammate}." in text]
    if found:
        return f"Received from {' and '.join(found)}."
    return "Noted." if "teammate-message" in text else tool_call("TeamCreate", team_name="readers", description="looks")


@pytest.fixture
def exit_code_file(harness):
    """Wraps the engine so that it writes its exit code to this file."""
    code = harness.root / "exit-code"
    wrapper = harness.root / "engine-wrapper"
    wrapper.write_text(f'#!/bin/sh\n"{harness.engine}" "$@"\necho $? > "{code}.new" && mv "{code}.new" "{code}"\n')
    wrapper.chmod(0o755)
    harness.engine = wrapper
    return code


def run_with_python(harness, sdk_dir):
    messages = run_query("Look around.", harness.options(model="claude-haiku-4-5", permission_mode="bypassPermissions"))
    return [result.result for result in result_messages(messages)]


def run_with_node(version):
    def run(harness, sdk_dir):
        node = ScriptRunner(version, sdk_dir, harness)
        output = node.run("single_prompt", prompts=["Look around."], options={"model": "claude-haiku-4-5", **BYPASS})
        assert output.error is None
        return [result["result"] for result in output.results]

    return run


CALLERS = {
    "python": run_with_python,
    "typescript 0.2.50": run_with_node("0.2.50"),
    "typescript 0.3.325": run_with_node("0.3.325"),
}


@pytest.mark.parametrize("run", CALLERS.values(), ids=CALLERS)
def test_team_of_a_string_prompt_finishes_its_work(run, harness, sdk_dir, provider, exit_code_file, monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    provider.respond = team_reply
    began = time.monotonic()
    texts = run(harness, sdk_dir)
    took = time.monotonic() - began
    assert texts[0] == "Dispatched.", "the lead reports first"
    reports = " ".join(texts[1:])
    assert all(name in reports for name in TEAMMATES), texts
    assert took >= WORK_SECONDS, "the session waits for the teammates"
    done = [requesting_teammate(request) for request in provider.requests if "Delivered" in last_text(request)]
    assert sorted(name for name in done if name) == sorted(TEAMMATES), "both teammates finish"
    code = wait_until(lambda: exit_code_file.exists() and exit_code_file.read_text(), "the engine to exit")
    assert code.strip() == "0"


def test_killed_engine_leaves_no_team_processes(harness, provider):
    def respond(request):
        text = last_text(request)
        if name := requesting_teammate(request):
            return tool_call("Bash", command=f"touch {name}; sleep 600")
        if "Created the team" in text:
            calls = [tool_call("Agent", description="look", prompt="Look.", name=teammate) for teammate in TEAMMATES]
            return [block for call in calls for block in call]
        return "Started." if "has joined" in text else tool_call("TeamCreate", team_name="readers")

    provider.respond = respond
    teams = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
    api = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "key"}
    with WireClient(harness, "--permission-mode", "bypassPermissions", **teams, **api) as client:
        client.send(PROMPT)
        client.read_until("result")
        wait_until(
            lambda: all((harness.workspace / teammate).exists() for teammate in TEAMMATES), "both commands to start"
        )
        client.child.kill()
        wait_until(lambda: not harness.running_processes(), "all processes to exit")
