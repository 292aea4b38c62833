"""Both generations of the npm SDK, through the node scripts of `typescript/`."""

import pytest

from harness import tool_call, wait_until
from typescript_sdk import ScriptRunner

OLD_SDK, NEW_SDK = "0.2.50", "0.3.325"
MODEL, OTHER_MODEL = "claude-haiku-4-5", "claude-opus-4-5"
BYPASS = {"permissionMode": "bypassPermissions", "allowDangerouslySkipPermissions": True}
TOUCH = tool_call("Bash", command="touch made.txt")


@pytest.fixture(params=[OLD_SDK, NEW_SDK])
def node(request, sdk_dir, harness):
    """Runs node scripts with one version of the SDK."""
    return ScriptRunner(request.param, sdk_dir, harness)


def test_string_prompt_yields_init_reply_and_result(node, harness):
    output = node.run("single_prompt", "Good morning.")
    init, reply, result = output.messages
    assert (init["subtype"], init["cwd"], init["permissionMode"]) == (
        "init",
        str(harness.workspace),
        "default",
    )
    assert reply["message"]["content"] == [{"type": "text", "text": "Good morning."}]
    assert (result["subtype"], result["is_error"], result["result"], result["num_turns"]) == (
        "success",
        False,
        "Good morning.",
        1,
    )
    assert len({message["session_id"] for message in output.messages}) == 1
    assert output.error is None


def test_streaming_input_keeps_history_across_turns(node):
    output = node.run(
        "turns",
        "one",
        {"expect": "the first question", "content": ["two"]},
        prompts=["the first question", "the second question"],
    )
    assert [result["result"] for result in output.results] == ["one", "two"]
    assert output.error is None
    assert len({result["session_id"] for result in output.results}) == 1


def test_closed_iterable_prompt_still_gets_a_result(node):
    output = node.run("single_prompt", tool_call("Glob", pattern="*"), "Good morning.", as_iterable=True)
    assert output.only_result["result"] == "Good morning."
    assert output.error is None


def test_partial_messages_add_up_to_the_reply(node):
    text = "A sentence that is longer than one delta."
    output = node.run("single_prompt", text, options={"includePartialMessages": True})
    events = [message["event"] for message in output.of_type("stream_event")]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == text == output.only_result["result"]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")


def test_tool_loop_reports_every_result(node, harness):
    path = harness.workspace / "poem.txt"
    output = node.run(
        "single_prompt",
        tool_call("Write", file_path=str(path), content="one\ntwo\n"),
        tool_call("Read", file_path=str(path)),
        tool_call("Edit", file_path=str(path), old_string="two", new_string="zwei"),
        tool_call("Bash", command="cat poem.txt"),
        "Done.",
        options=BYPASS,
    )
    written, read, edited, ran = output.tool_results
    assert path.read_text() == "one\nzwei\n"
    assert output.only_result["num_turns"] == 5
    assert (written.meta["type"], read.meta["type"], read.meta["file"]["numLines"]) == ("create", "text", 3)
    assert edited.meta["structuredPatch"][0]["lines"] == [" one", "-two", "+zwei"]
    assert (ran.meta["stdout"], ran.meta["interrupted"]) == ("one\nzwei", False)


ANSWERS = {
    "allowed without an input": ({"behavior": "allow"}, ["made.txt"]),
    "allowed unchanged": ({"behavior": "allow", "updatedInput": {"command": "touch made.txt"}}, ["made.txt"]),
    "allowed with a change": (
        {"behavior": "allow", "updatedInput": {"command": "touch other.txt"}},
        ["other.txt"],
    ),
    "denied": ({"behavior": "deny", "message": "not on a Friday"}, []),
    "denied by an error": ("the dialog failed", []),
}


@pytest.mark.parametrize("answer, files", ANSWERS.values(), ids=ANSWERS)
def test_permission_callback_decides(node, harness, answer, files):
    output = node.run("permission", TOUCH, "Done.", answer=answer)
    (request,) = output.notes["request"]
    (result,) = output.tool_results
    assert (request["tool"], request["input"], request["signal"]) == (
        "Bash",
        {"command": "touch made.txt"},
        True,
    )
    assert request["context"]["toolUseID"] == result.id
    assert sorted(path.name for path in harness.workspace.iterdir()) == files
    assert result.failed == (not files)
    assert output.only_result["result"] == "Done."
    assert output.error is None
    if not files:
        reason = answer if isinstance(answer, str) else answer["message"]
        assert reason in result.text
        assert len(output.only_result["permission_denials"]) == 1


def test_denial_with_interrupt_ends_the_turn(node, harness):
    output = node.run(
        "permission",
        TOUCH,
        "never said",
        answer={"behavior": "deny", "message": "stop it", "interrupt": True},
    )
    result = output.only_result
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert not list(harness.workspace.iterdir())
    # The older SDK throws after any exit code but 0; the engine exits with 0 here.
    assert (output.error is None) == (node.version == OLD_SDK)


def test_interrupt_during_reply_keeps_the_session(node, harness):
    model = harness.write_script(
        "word " * 500, {"expect": "[Request interrupted by user]", "content": ["next"]}, pace_ms=10
    )
    output = node.run("interrupt", prompts=["go", "and now?"], options={"model": model, "includePartialMessages": True})
    first, second = output.results
    assert (first["subtype"], first["terminal_reason"], second["result"]) == (
        "error_during_execution",
        "aborted_streaming",
        "next",
    )
    assert "interrupted" in output.notes
    assert output.error is None


def test_interrupt_kills_the_running_command(node, harness):
    output = node.run(
        "interrupt",
        tool_call("Bash", command="touch begun; sleep 600"),
        "next",
        prompts=["go", "and now?"],
        options=BYPASS,
    )
    first, second = output.results
    assert (first["terminal_reason"], second["result"]) == ("aborted_tools", "next")
    assert output.tool_results[0].failed


def test_control_methods_query_and_change_the_session(node, provider):
    provider.replies = ["one", "two", "three"]
    output = node.run(
        "control",
        prompts=["first", "second", "third"],
        options={"model": MODEL},
        changes=[
            [["setModel", OTHER_MODEL], ["setPermissionMode", "acceptEdits"], ["setMaxThinkingTokens", 3000]],
            [["setModel"], ["setPermissionMode", "bypassPermissions"], ["setMaxThinkingTokens", 0]],
        ],
    )
    assert all(command["name"] and command["description"] for command in output.notes["supportedCommands"][0])
    assert output.notes["mcpServerStatus"] == [[]]
    assert output.notes["accountInfo"][0]["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert all(model["value"] and model["displayName"] for model in output.notes["supportedModels"][0])
    assert [request["model"] for request in provider.requests] == [MODEL, OTHER_MODEL, MODEL]
    assert provider.requests[1]["thinking"]["budget_tokens"] == 3000
    assert provider.requests[2].get("thinking", {}).get("type") in (None, "disabled")
    assert [init["permissionMode"] for init in output.of_type("system", "init")] == [
        "default",
        "acceptEdits",
        "acceptEdits",
    ]
    allowed, rejected = output.notes["setPermissionMode"]
    assert allowed == "done"
    assert "--allow-dangerously-skip-permissions" in rejected


def test_command_is_backgrounded_and_stopped(sdk_dir, harness):
    node = ScriptRunner(NEW_SDK, sdk_dir, harness)
    output = node.run("background_tasks", tool_call("Bash", command="sleep 600"), "It runs.", options=BYPASS)
    assert output.only_result["result"] == "It runs."
    assert output.notes["unknown call"] == [False] and output.notes["backgrounded"] == [True]
    assert output.notes["stopped"] == [None]
    (notification,) = output.of_type("system", "task_notification")
    assert notification["status"] == "stopped"
    assert output.error is None


def test_turn_limit_throws_only_in_the_newer_sdk(node):
    output = node.run("single_prompt", tool_call("Glob", pattern="*"), "never said", options={"maxTurns": 1})
    assert (output.only_result["subtype"], output.only_result["errors"]) == (
        "error_max_turns",
        ["Reached the maximum number of turns (1)."],
    )
    if node.version == OLD_SDK:
        assert output.error is None
    else:
        assert "Reached the maximum number of turns (1)." in output.error


def test_provider_error_is_result_and_exception(node, provider):
    provider.replies = [(400, "this prompt is not acceptable")]
    output = node.run("single_prompt", options={"model": MODEL})
    result = output.only_result
    assert (result["subtype"], result["is_error"]) == ("success", True)
    assert "not acceptable" in result["result"] == output.assistant_text
    assert ("exited with code 1" if node.version == OLD_SDK else "not acceptable") in output.error


def test_system_prompt_reaches_the_model(node, provider):
    preset = {"type": "preset", "preset": "claude_code"}
    rows = [
        ("default is empty", {}, set(), {"Whimbrel", "TEAPOT"}),
        ("text replaces", {"systemPrompt": "You are a TEAPOT."}, {"TEAPOT"}, {"Whimbrel"}),
        ("preset", {"systemPrompt": preset}, {"Whimbrel"}, {"TEAPOT"}),
        (
            "preset with append",
            {"systemPrompt": {**preset, "append": "You like TEAPOTs."}},
            {"Whimbrel", "TEAPOT"},
            set(),
        ),
    ]
    provider.replies = ["hi"] * len(rows)
    node.run("query_each", each=[{"model": MODEL, **choice} for _, choice, _, _ in rows])
    for number, (name, _, present, absent) in enumerate(rows):
        system = provider.system_prompt(number)
        assert {word for word in present | absent if word in system} == present, name


def test_directories_tools_and_env_options_apply(node, harness):
    (harness.home / "notes.txt").write_text("remember the milk")
    options = {
        "additionalDirectories": [str(harness.home)],
        "tools": ["Read", "Bash", "Write"],
        "disallowedTools": ["Write"],
        "allowedTools": ["Bash"],
        "env": {**harness.env(), "COLOR": "green"},
    }
    replies = (
        tool_call("Read", file_path=str(harness.home / "notes.txt")),
        tool_call("Bash", command="echo $COLOR"),
        tool_call("Write", file_path="a", content="x"),
        "Done.",
    )
    output = node.run("single_prompt", *replies, options=options)
    read, ran, written = output.tool_results
    assert output.of_type("system", "init")[0]["tools"] == ["Bash", "Read"]
    assert "remember the milk" in read.text
    assert ran.text == "green"
    assert written.failed


def test_variable_with_unknown_value_asks(node, harness):
    (harness.workspace / "secret.txt").write_text("keep this private")
    options = {
        "allowedTools": ["Bash"],
        "disallowedTools": ["Read(./secret.txt)"],
        "env": {**harness.env(), "FILE": "secret.txt"},
    }
    replies = (tool_call("Bash", command="(FILE=notes.txt); cat $FILE"), "Done.")
    answer = {"behavior": "deny", "message": "no"}
    output = node.run("permission", *replies, options=options, answer=answer)
    (outcome,) = output.tool_results
    assert (len(output.notes["request"]), outcome.failed) == (1, True)
    assert "keep this private" not in outcome.text


def test_stderr_reaches_the_callback(node):
    output = node.run("stderr_callback", "hi", options={"extraArgs": {"brand-new-thing": None}})
    assert any("--brand-new-thing" in text for text in output.notes["stderr"])
    assert output.only_result["result"] == "hi"


def test_large_output_and_unicode_pass_unchanged(node, harness):
    text = 'naïve 漢字 🦤👩‍👩‍👧 \u2028\u2029 " \\ עברית'
    replies = (
        tool_call("Bash", command="yes 'a line of text' | head -c 4000000"),
        tool_call("Write", file_path="смех.txt", content=text),
        {"expect": "ünï", "content": [text]},
    )
    output = node.run("single_prompt", *replies, prompts=["ünï 🦤"], options=BYPASS)
    assert output.tool_results[0].meta["persistedOutputSize"] == 4_000_000
    assert (harness.workspace / "смех.txt").read_text() == text == output.only_result["result"]


def test_background_completion_starts_a_second_turn(node):
    background = tool_call("Bash", command="echo finished", run_in_background=True)
    output = node.run(
        "turns",
        background,
        "It runs.",
        {"expect": "<task-notification>", "content": ["It has ended."]},
        results=2,
        options=BYPASS,
    )
    assert [result["result"] for result in output.results] == ["It runs.", "It has ended."]
    assert output.results[1]["origin"]["kind"] == "task-notification"
    assert [message["status"] for message in output.of_type("system", "task_notification")] == ["completed"]
    # The SDK keeps state frames to itself.
    assert output.of_type("system", "session_state_changed") == []


@pytest.mark.parametrize("method", ["abort", "close", "break", "die"])
def test_abandoned_session_leaves_no_processes(node, harness, method):
    command = tool_call("Bash", command="touch begun; sleep 600")
    output = node.run(
        "abandon_session", command, "never said", method=method, options=BYPASS, code=-9 if method == "die" else 0
    )
    assert output.assistant_text == ""
    assert method != "abort" or "abort" in output.error.lower()
    wait_until(lambda: not harness.running_processes(), "all processes to exit")


REJECTED = {
    "an unknown session": "No conversation found",
}


@pytest.mark.parametrize("feature", REJECTED)
@pytest.mark.parametrize("node", [OLD_SDK, NEW_SDK], indirect=True)
def test_rejected_options_fail_before_any_turn(node, feature):
    output = node.run("rejected_options", "never said", feature=feature)
    assert output.assistant_text == ""
    assert output.error is not None
    assert REJECTED[feature] in str(output.only_result["errors"])


@pytest.mark.parametrize("node", [OLD_SDK], indirect=True)
def test_v2_session_runs_several_turns(node):
    replies = ("one", {"expect": "the first question", "content": ["two"]})
    output = node.run("v2_session", *replies, prompts=["the first question", "the second question"])
    assert [result["result"] for result in output.results] == ["one", "two"]
    assert output.error is None
    assert set(output.notes["session"]) == {output.results[0]["session_id"]}


@pytest.mark.parametrize("node", [OLD_SDK], indirect=True)
def test_v2_session_can_be_resumed(node):
    before = node.run("v2_session", "one", prompts=["the first question"])
    (session,) = before.notes["session"]
    again = {"expect": "the first question", "content": ["two"]}
    output = node.run("v2_session", again, prompts=["the second question"], resume=session)
    assert (output.only_result["result"], output.notes["session"]) == ("two", [session])


@pytest.mark.parametrize("node", [OLD_SDK], indirect=True)
def test_v2_session_calls_hooks_and_permission_callback(node, harness):
    path = harness.workspace / "made.txt"
    replies = (tool_call("Write", file_path=str(path), content="x"), "done")
    output = node.run("v2_session", *replies, answer={"behavior": "allow"})
    assert (output.only_result["result"], path.read_text()) == ("done", "x")
    assert (output.notes["request"], output.notes["hook"]) == (["Write"], ["Write"])


@pytest.mark.parametrize("node", [OLD_SDK], indirect=True)
def test_v2_prompt_returns_a_result(node):
    output = node.run("v2_prompt", tool_call("Glob", pattern="*"), "Good morning.")
    assert output.only_result["result"] == "Good morning."
    assert output.error is None
