"""The package `claude-code-sdk` 0.0.25, the name of the Python SDK before it was renamed."""

import json
import os

import pytest

from harness import tool_call
from mock_provider import Reply

MODEL = "claude-sonnet-4-5"
BYPASS = {"permission_mode": "bypassPermissions"}


@pytest.fixture
def drive(programs, harness):
    """Runs the script in one of its ways; returns its events."""
    # This SDK starts what it finds as `claude`.
    directory = harness.root / "engine"
    directory.mkdir()
    (directory / "claude").symlink_to(harness.engine)

    def run(way, model=MODEL, **options):
        env = {"PATH": f"{directory}:{os.environ['PATH']}"}
        options = json.dumps({"model": model, "cwd": str(harness.workspace), **options})
        return programs.run_python_script("drive_claude_code_sdk.py", way, options, env=env)

    return run


def events_of(events, name, field):
    return [event[field] for event in events if event["event"] == name]


def test_query_yields_init_reply_and_result(drive, provider):
    provider.replies = [Reply(["Good morning."], {"input_tokens": 1000, "output_tokens": 100})]
    init, reply, result = drive("query")
    assert (init["subtype"], reply["text"]) == ("init", "Good morning.")
    assert (result["subtype"], result["result"], result["turns"]) == ("success", "Good morning.", 1)
    assert round(result["cost"] * 1e8) == 1000 * 300 + 100 * 1500


def test_query_runs_tools(drive, provider):
    provider.replies = [tool_call("Bash", command="echo hello"), "Done."]
    events = drive("query", **BYPASS)
    assert events_of(events, "tool result", "content") == ["hello"]
    assert events_of(events, "result", "result") == ["Done."]


def test_client_keeps_history(drive, provider):
    provider.replies = ["one", "two"]
    events = drive("conversation")
    assert events_of(events, "result", "result") == ["one", "two"]
    assert events_of(events, "server info", "commands") > [0]
    assert "the first question" in json.dumps(provider.requests[1]["messages"])


def test_interrupt_ends_the_turn_and_keeps_the_session(drive, provider, harness):
    provider.replies = [tool_call("Bash", command="touch begun; sleep 600"), "still here"]
    events = drive("interrupt", **BYPASS)
    assert {"event": "interrupted"} in events
    assert events_of(events, "result", "subtype") == ["error_during_execution", "success"]
    assert events_of(events, "result", "result")[1] == "still here"
    assert events_of(events, "tool result", "failed") == [True]


def test_permission_callback_allows_changes_and_denies(drive, provider, harness):
    commands = ["touch plain.txt", "touch before.txt", "touch denied.txt"]
    provider.replies = [*(tool_call("Bash", command=command) for command in commands), "Done."]
    events = drive("permissions")
    assert events_of(events, "request", "input") == [{"command": command} for command in commands]
    assert sorted(path.name for path in harness.workspace.iterdir()) == ["after.txt", "plain.txt"]
    assert events_of(events, "tool result", "failed") == [False, False, True]
    assert "not here" in events_of(events, "tool result", "content")[2]
    assert events_of(events, "result", "result") == ["Done."]


def test_hook_callback_denies_a_call(drive, provider, harness):
    provider.replies = [tool_call("Bash", command="touch made.txt"), "Done."]
    events = drive("hook", **BYPASS)
    assert events_of(events, "hook", "tool") == ["Bash"] and events_of(events, "hook", "has_id") == [True]
    assert "by a hook" in events_of(events, "tool result", "content")[0]
    assert not list(harness.workspace.iterdir())


def test_tool_of_the_caller_runs_in_process(drive, provider):
    provider.replies = [tool_call("mcp__calculator__add", a=2, b=3), "Five."]
    events = drive("tool")
    assert "sum: 5" in json.dumps(events_of(events, "tool result", "content"))
    assert events_of(events, "result", "result") == ["Five."]
