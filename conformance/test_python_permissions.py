"""The PyPI SDK's permission callback: what it is asked, and what each of its answers does."""

import asyncio
import json

import pytest
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)
from claude_agent_sdk.types import PermissionRuleValue

from caller import ask, ask_until_error, in_time, notices, the_result, tool_results, turn
from stage import call, wait_until

TOUCH = call("Bash", command="touch made.txt")
WRITE = call("Write", file_path="made.txt", content="x")
READ_OUTSIDE = call("Read", file_path="/etc/hostname")


class Callback:
    """A permission callback that gives one answer, or does one thing, and keeps what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def __call__(self, tool, arguments, context):
        self.asked.append((tool, arguments, context))
        return await self.answer() if callable(self.answer) else self.answer


def play(stage, answer, *replies, **more):
    """Asks with a callback; gives the callback, the messages, and the error if there was one."""
    callback = Callback(answer)
    messages, error = ask_until_error(
        "go", stage.options(*(replies or (TOUCH, "Done.")), can_use_tool=callback, **more)
    )
    return callback, messages, error


def test_an_allowed_call_is_made_as_it_was_asked(stage):
    callback, messages, error = play(stage, PermissionResultAllow())
    ((tool, arguments, context),) = callback.asked
    (made,) = tool_results(messages)
    assert (tool, arguments, context.tool_use_id, context.agent_id) == (
        "Bash",
        {"command": "touch made.txt"},
        made.id,
        None,
    )
    assert not made.failed
    assert (stage.workspace / "made.txt").exists()
    assert error is None
    assert the_result(messages).permission_denials == []


def test_an_allowed_call_may_be_changed(stage):
    _, messages, _ = play(stage, PermissionResultAllow(updated_input={"command": "touch other.txt"}))
    assert not tool_results(messages)[0].failed
    assert [path.name for path in stage.workspace.iterdir()] == ["other.txt"]


def test_a_denied_call_is_not_made_and_the_model_reads_why(stage):
    _, messages, error = play(
        stage,
        PermissionResultDeny(message="not on a Friday"),
        TOUCH,
        {"expect": "not on a Friday", "content": ["I see."]},
    )
    (denied,) = tool_results(messages)
    assert (denied.failed, denied.text, denied.meta) == (True, "not on a Friday", "Error: not on a Friday")
    assert not (stage.workspace / "made.txt").exists()
    end = the_result(messages)
    assert (end.result, end.is_error, error) == ("I see.", False, None)
    assert end.permission_denials == [
        {"tool_name": "Bash", "tool_use_id": denied.id, "tool_input": {"command": "touch made.txt"}}
    ]


def test_a_denial_may_end_the_turn(stage):
    _, messages, error = play(
        stage, PermissionResultDeny(message="stop it", interrupt=True), TOUCH + TOUCH, "never said"
    )
    end = the_result(messages)
    assert (end.subtype, end.is_error, end.terminal_reason) == (
        "error_during_execution",
        True,
        "aborted_tools",
    )
    assert len(tool_results(messages)) == 2
    assert all(one.failed for one in tool_results(messages))
    assert error is not None
    assert not (stage.workspace / "made.txt").exists()


def test_a_callback_that_raises_denies_and_the_turn_goes_on(stage):
    async def explode():
        raise RuntimeError("the dialog fell over")

    _, messages, error = play(stage, explode)
    (denied,) = tool_results(messages)
    assert denied.failed
    assert "the dialog fell over" in denied.text
    assert not (stage.workspace / "made.txt").exists()
    assert (the_result(messages).result, error) == ("Done.", None)


def test_what_is_harmless_or_allowed_by_name_is_not_asked_about(stage):
    (stage.workspace / "a.txt").write_text("alpha")
    replies = (call("Read", file_path="a.txt"), call("Glob", pattern="*"), TOUCH, "Done.")
    settings = json.dumps({"permissions": {"allow": ["Bash"]}})
    callback, messages, error = play(stage, PermissionResultDeny(message="no"), *replies, settings=settings)
    assert (callback.asked, error) == ([], None)
    assert [one.failed for one in tool_results(messages)] == [False] * 3


def test_a_path_outside_is_asked_about_and_named_unless_its_folder_was_added(stage):
    (stage.home / "notes.txt").write_text("secret")
    read = call("Read", file_path=str(stage.home / "notes.txt"))
    callback, messages, _ = play(stage, PermissionResultDeny(message="private"), read, "Done.")
    assert [context.blocked_path for _, _, context in callback.asked] == [str(stage.home / "notes.txt")]
    assert tool_results(messages)[0].text == "private"
    callback, messages, _ = play(
        stage, PermissionResultDeny(message="private"), read, "Done.", add_dirs=[stage.home]
    )
    assert callback.asked == []
    assert "secret" in tool_results(messages)[0].text


def test_edits_inside_are_accepted_in_their_mode_and_commands_still_asked_about(stage):
    replies = (call("Write", file_path="a.txt", content="x"), call("Bash", command="make all"), "Done.")
    callback, _, _ = play(stage, PermissionResultDeny(message="no"), *replies, permission_mode="acceptEdits")
    assert [tool for tool, _, _ in callback.asked] == ["Bash"]
    assert (stage.workspace / "a.txt").exists()


@pytest.mark.parametrize("mode", ["default", "dontAsk", "plan"])
def test_with_nobody_to_ask_a_call_is_denied_and_the_caller_is_told(stage, mode):
    messages = ask("go", stage.options(TOUCH, "Done.", permission_mode=mode))
    (denied,) = tool_results(messages)
    assert denied.failed
    assert not (stage.workspace / "made.txt").exists()
    (notice,) = notices(messages, "permission_denied")
    assert (notice["tool_name"], notice["tool_use_id"], notice["message"]) == ("Bash", denied.id, denied.text)
    assert [one["tool_use_id"] for one in the_result(messages).permission_denials] == [denied.id]


def test_a_large_call_that_was_allowed_unchanged_is_made_whole(stage):
    content = "z" * 2_000_000
    _, messages, error = play(
        stage, PermissionResultAllow(), call("Write", file_path="big.txt", content=content), "Done."
    )
    assert error is None
    assert the_result(messages).result == "Done."
    written = stage.workspace / "big.txt"
    assert not written.exists() or written.read_text() == content, (
        "the file holds what was shown, not what was meant"
    )


BASH = [PermissionRuleValue("Bash")]
UPDATES = {
    "a rule": (PermissionUpdate("addRules", BASH, "allow", destination="session"), TOUCH),
    "a mode": (PermissionUpdate("setMode", mode="acceptEdits", destination="session"), WRITE),
    "a folder": (
        PermissionUpdate("addDirectories", directories=["/etc"], destination="session"),
        READ_OUTSIDE,
    ),
}


@pytest.mark.parametrize("update, again", UPDATES.values(), ids=UPDATES)
def test_an_update_that_comes_with_an_answer_spares_the_next_question(stage, update, again):
    callback, _, _ = play(stage, PermissionResultAllow(updated_permissions=[update]), again, again, "Done.")
    assert len(callback.asked) == 1


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


@pytest.mark.parametrize("rules, command, made", RULES.values(), ids=RULES)
def test_rules_with_patterns_judge_every_part_of_a_command(stage, rules, command, made):
    ask("go", stage.options(call("Bash", command=command), "Done.", **rules))
    assert (stage.workspace / "made.txt").exists() == made


VARIABLES = {
    "given in another shell": ("(FILE=notes.txt); cat $FILE", 1),
    "given here": ("FILE=notes.txt; cat $FILE", 0),
    "given by every way": ("[ -d src ] && FILE=notes.txt || FILE=notes.txt; cat $FILE", 0),
    "among others": ("for FILE in notes.txt secret.txt; do cat < $FILE; done", 0),
    "nothing": ("cat sec${NONE}ret.txt", 0),
}


@pytest.mark.parametrize("command, questions", VARIABLES.values(), ids=VARIABLES)
def test_a_refused_file_is_not_read_by_way_of_a_variable(stage, command, questions):
    (stage.workspace / "secret.txt").write_text("tell nobody")
    (stage.workspace / "notes.txt").write_text("remember the milk")
    # As settings: the SDK itself would warn of a grant that leaves the callback few questions.
    rules = {"allow": ["Bash"], "deny": ["Read(./secret.txt)"]}
    callback, messages, error = play(
        stage,
        PermissionResultDeny(message="no"),
        call("Bash", command=command),
        "Done.",
        env={"FILE": "secret.txt"},
        settings=json.dumps({"permissions": rules}),
    )
    assert error is None
    (made,) = tool_results(messages)
    assert "tell nobody" not in made.text
    assert len(callback.asked) == questions
    assert ("remember the milk" in made.text) == (command.endswith("cat $FILE") and questions == 0)


def test_a_question_comes_with_what_would_spare_the_next_one(stage):
    callback, _, _ = play(stage, PermissionResultDeny(message="no"), call("Bash", command="npm run build"), "Done.")
    ((_, _, context),) = callback.asked
    (update,) = context.suggestions
    assert (update.type, update.destination, update.behavior) == ("addRules", "localSettings", "allow")
    assert [(rule.tool_name, rule.rule_content) for rule in update.rules] == [("Bash", "npm run *")]


@pytest.mark.parametrize("rule", ["Bash()", "Bash(*)"])
def test_a_rule_for_everything_of_a_tool_allows_the_tool(stage, rule):
    ask("go", stage.options(TOUCH, "Done.", allowed_tools=[rule]))
    assert (stage.workspace / "made.txt").exists()


def test_an_interrupt_takes_the_open_question_back(stage):
    cancelled = []

    async def ponder():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def talk():
        callback = Callback(ponder)
        async with ClaudeSDKClient(stage.options(TOUCH, "next", can_use_tool=callback)) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, lambda: callback.asked, "the question")
            await client.interrupt()
            first = [message async for message in client.receive_response()]
            return first, await turn(client, "and now?")

    first, second = in_time(talk())
    assert the_result(first).subtype == "error_during_execution"
    assert cancelled == [True]
    assert the_result(second).result == "next"
    assert not (stage.workspace / "made.txt").exists()
