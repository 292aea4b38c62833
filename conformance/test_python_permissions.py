"""The permission callback of the PyPI SDK: its requests, and the effect of each response."""

import asyncio
import json
import os
import signal
from contextlib import suppress

import pytest
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)
from claude_agent_sdk.types import PermissionRuleValue

from harness import tool_call, wait_until
from python_sdk import (
    only_result,
    run_query,
    run_query_until_error,
    run_turn,
    run_with_timeout,
    system_data,
    tool_results,
)

TOUCH = tool_call("Bash", command="touch made.txt")
WRITE = tool_call("Write", file_path="made.txt", content="x")
READ_OUTSIDE = tool_call("Read", file_path="/etc/hostname")


class Callback:
    """A permission callback that returns a fixed response, or awaits a function for it, and records its requests."""

    def __init__(self, response):
        self.response, self.requests = response, []

    async def __call__(self, tool, arguments, context):
        self.requests.append((tool, arguments, context))
        return await self.response() if callable(self.response) else self.response


def run_with_callback(harness, response, *replies, **more):
    """Runs a prompt with a permission callback; returns the callback, the messages, and the error or None."""
    callback = Callback(response)
    messages, error = run_query_until_error(
        "go", harness.options(*(replies or (TOUCH, "Done.")), can_use_tool=callback, **more)
    )
    return callback, messages, error


def test_allowed_call_runs_unchanged(harness):
    callback, messages, error = run_with_callback(harness, PermissionResultAllow())
    ((tool, arguments, context),) = callback.requests
    (outcome,) = tool_results(messages)
    assert (tool, arguments, context.tool_use_id, context.agent_id) == (
        "Bash",
        {"command": "touch made.txt"},
        outcome.id,
        None,
    )
    assert not outcome.failed
    assert (harness.workspace / "made.txt").exists()
    assert error is None
    assert only_result(messages).permission_denials == []


def test_allow_can_change_the_input(harness):
    _, messages, _ = run_with_callback(harness, PermissionResultAllow(updated_input={"command": "touch other.txt"}))
    assert not tool_results(messages)[0].failed
    assert [path.name for path in harness.workspace.iterdir()] == ["other.txt"]


def test_denied_call_reports_the_reason_to_the_model(harness):
    _, messages, error = run_with_callback(
        harness,
        PermissionResultDeny(message="not on a Friday"),
        TOUCH,
        {"expect": "not on a Friday", "content": ["I see."]},
    )
    (denied,) = tool_results(messages)
    assert (denied.failed, denied.text, denied.meta) == (True, "not on a Friday", "Error: not on a Friday")
    assert not (harness.workspace / "made.txt").exists()
    result = only_result(messages)
    assert (result.result, result.is_error, error) == ("I see.", False, None)
    assert result.permission_denials == [
        {"tool_name": "Bash", "tool_use_id": denied.id, "tool_input": {"command": "touch made.txt"}}
    ]


def test_denial_with_interrupt_ends_the_turn(harness):
    _, messages, error = run_with_callback(
        harness, PermissionResultDeny(message="stop it", interrupt=True), TOUCH + TOUCH, "never said"
    )
    result = only_result(messages)
    assert (result.subtype, result.is_error, result.terminal_reason) == (
        "error_during_execution",
        True,
        "aborted_tools",
    )
    assert len(tool_results(messages)) == 2
    assert all(outcome.failed for outcome in tool_results(messages))
    assert error is not None
    assert not (harness.workspace / "made.txt").exists()


def test_raising_callback_denies_the_call(harness):
    async def fail():
        raise RuntimeError("the dialog failed")

    _, messages, error = run_with_callback(harness, fail)
    (denied,) = tool_results(messages)
    assert denied.failed
    assert "the dialog failed" in denied.text
    assert not (harness.workspace / "made.txt").exists()
    assert (only_result(messages).result, error) == ("Done.", None)


def test_read_only_and_allowed_calls_are_not_asked(harness):
    (harness.workspace / "a.txt").write_text("alpha")
    replies = (tool_call("Read", file_path="a.txt"), tool_call("Glob", pattern="*"), TOUCH, "Done.")
    settings = json.dumps({"permissions": {"allow": ["Bash"]}})
    callback, messages, error = run_with_callback(
        harness, PermissionResultDeny(message="no"), *replies, settings=settings
    )
    assert (callback.requests, error) == ([], None)
    assert [outcome.failed for outcome in tool_results(messages)] == [False] * 3


def test_path_outside_asks_unless_its_directory_was_added(harness):
    (harness.home / "notes.txt").write_text("secret")
    read = tool_call("Read", file_path=str(harness.home / "notes.txt"))
    callback, messages, _ = run_with_callback(harness, PermissionResultDeny(message="private"), read, "Done.")
    assert [context.blocked_path for _, _, context in callback.requests] == [str(harness.home / "notes.txt")]
    assert tool_results(messages)[0].text == "private"
    callback, messages, _ = run_with_callback(
        harness, PermissionResultDeny(message="private"), read, "Done.", add_dirs=[harness.home]
    )
    assert callback.requests == []
    assert "secret" in tool_results(messages)[0].text


def test_accept_edits_mode_still_asks_for_commands(harness):
    replies = (tool_call("Write", file_path="a.txt", content="x"), tool_call("Bash", command="make all"), "Done.")
    callback, _, _ = run_with_callback(
        harness, PermissionResultDeny(message="no"), *replies, permission_mode="acceptEdits"
    )
    assert [tool for tool, _, _ in callback.requests] == ["Bash"]
    assert (harness.workspace / "a.txt").exists()


@pytest.mark.parametrize("mode", ["default", "dontAsk", "plan"])
def test_call_is_denied_without_a_callback(harness, mode):
    messages = run_query("go", harness.options(TOUCH, "Done.", permission_mode=mode))
    (denied,) = tool_results(messages)
    assert denied.failed
    assert not (harness.workspace / "made.txt").exists()
    (denial,) = system_data(messages, "permission_denied")
    assert (denial["tool_name"], denial["tool_use_id"], denial["message"]) == ("Bash", denied.id, denied.text)
    assert [item["tool_use_id"] for item in only_result(messages).permission_denials] == [denied.id]


def test_large_allowed_call_runs_untruncated(harness):
    content = "z" * 2_000_000
    _, messages, error = run_with_callback(
        harness, PermissionResultAllow(), tool_call("Write", file_path="big.txt", content=content), "Done."
    )
    assert error is None
    assert only_result(messages).result == "Done."
    written = harness.workspace / "big.txt"
    assert not written.exists() or written.read_text() == content, "the input is written without truncation"


BASH = [PermissionRuleValue("Bash")]
UPDATES = {
    "a rule": (PermissionUpdate("addRules", BASH, "allow", destination="session"), TOUCH),
    "a mode": (PermissionUpdate("setMode", mode="acceptEdits", destination="session"), WRITE),
    "a directory": (
        PermissionUpdate("addDirectories", directories=["/etc"], destination="session"),
        READ_OUTSIDE,
    ),
}


@pytest.mark.parametrize("update, call", UPDATES.values(), ids=UPDATES)
def test_permission_update_avoids_the_next_request(harness, update, call):
    callback, _, _ = run_with_callback(
        harness, PermissionResultAllow(updated_permissions=[update]), call, call, "Done."
    )
    assert len(callback.requests) == 1


RULES = {
    "a prefix": ({"allowed_tools": ["Bash(touch:*)"]}, "touch made.txt", True),
    "another prefix": ({"allowed_tools": ["Bash(mkdir:*)"]}, "touch made.txt", False),
    "a part that no rule covers": ({"allowed_tools": ["Bash(touch:*)"]}, "touch made.txt && make all", False),
    "a denied part": (
        {"allowed_tools": ["Bash"], "disallowed_tools": ["Bash(rm:*)"]},
        "touch made.txt; (env rm -f x)",
        False,
    ),
}


@pytest.mark.parametrize("rules, command, runs", RULES.values(), ids=RULES)
def test_rules_apply_to_every_part_of_a_command(harness, rules, command, runs):
    run_query("go", harness.options(tool_call("Bash", command=command), "Done.", **rules))
    assert (harness.workspace / "made.txt").exists() == runs


VARIABLES = {
    "set in a subshell": ("(FILE=notes.txt); cat $FILE", 1),
    "set before use": ("FILE=notes.txt; cat $FILE", 0),
    "set in every branch": ("[ -d src ] && FILE=notes.txt || FILE=notes.txt; cat $FILE", 0),
    "one of several values": ("for FILE in notes.txt secret.txt; do cat < $FILE; done", 0),
    "unset": ("cat sec${NONE}ret.txt", 0),
}


@pytest.mark.parametrize("command, requests", VARIABLES.values(), ids=VARIABLES)
def test_denied_file_cannot_be_read_through_a_variable(harness, command, requests):
    (harness.workspace / "secret.txt").write_text("keep this private")
    (harness.workspace / "notes.txt").write_text("remember the milk")
    # As settings, because the SDK warns about allow rules beside a callback.
    rules = {"allow": ["Bash"], "deny": ["Read(./secret.txt)"]}
    callback, messages, error = run_with_callback(
        harness,
        PermissionResultDeny(message="no"),
        tool_call("Bash", command=command),
        "Done.",
        env={"FILE": "secret.txt"},
        settings=json.dumps({"permissions": rules}),
    )
    assert error is None
    (outcome,) = tool_results(messages)
    assert "keep this private" not in outcome.text
    assert len(callback.requests) == requests
    assert ("remember the milk" in outcome.text) == (command.endswith("cat $FILE") and requests == 0)


def test_request_suggests_a_rule(harness):
    callback, _, _ = run_with_callback(
        harness, PermissionResultDeny(message="no"), tool_call("Bash", command="npm run build"), "Done."
    )
    ((_, _, context),) = callback.requests
    (update,) = context.suggestions
    assert (update.type, update.destination, update.behavior) == ("addRules", "localSettings", "allow")
    assert [(rule.tool_name, rule.rule_content) for rule in update.rules] == [("Bash", "npm run *")]


@pytest.mark.parametrize("rule", ["Bash()", "Bash(*)"])
def test_wildcard_rule_allows_the_whole_tool(harness, rule):
    run_query("go", harness.options(TOUCH, "Done.", allowed_tools=[rule]))
    assert (harness.workspace / "made.txt").exists()


def test_interrupt_cancels_the_pending_request(harness):
    cancelled = []

    async def never_respond():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def run_session():
        callback = Callback(never_respond)
        async with ClaudeSDKClient(harness.options(TOUCH, "next", can_use_tool=callback)) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, lambda: callback.requests, "the permission request")
            await client.interrupt()
            first = [message async for message in client.receive_response()]
            return first, await run_turn(client, "and now?")

    first, second = run_with_timeout(run_session())
    assert only_result(first).subtype == "error_during_execution"
    assert cancelled == [True]
    assert only_result(second).result == "next"
    assert not (harness.workspace / "made.txt").exists()


def test_prompt_after_a_kill_asks_no_old_question(harness):
    """An engine is killed while it waits for permission. The session resumes with a prompt: the call does not run."""

    async def run_until_killed():
        asked = asyncio.Event()

        async def never_answer():
            asked.set()
            await asyncio.Event().wait()

        client = ClaudeSDKClient(harness.options(TOUCH, can_use_tool=Callback(never_answer)))
        await client.connect()
        await client.query("go")
        session = None
        async for message in client.receive_messages():
            (init,) = system_data([message], "init") or [None]
            if init:
                session = init["session_id"]
                break
        await asked.wait()
        for pid in harness.running_processes():
            os.kill(pid, signal.SIGKILL)
        with suppress(Exception):
            await client.disconnect()
        return session

    session = run_with_timeout(run_until_killed())
    reply = {"expect": "It changed nothing", "content": ["I see."]}
    callback, messages, error = run_with_callback(harness, PermissionResultAllow(), reply, resume=session)
    assert error is None
    assert only_result(messages).result == "I see."
    assert callback.requests == []
    assert not (harness.workspace / "made.txt").exists()
