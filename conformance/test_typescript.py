"""The npm SDK in both its generations, through the node scripts of `typescript/`."""

import pytest

from node import Node
from stage import call, wait_until

OLD, NEW = "0.2.50", "0.3.325"
MODEL, OTHER_MODEL = "claude-haiku-4-5", "claude-opus-4-5"
BYPASS = {"permissionMode": "bypassPermissions", "allowDangerouslySkipPermissions": True}
TOUCH = call("Bash", command="touch made.txt")


@pytest.fixture(params=[OLD, NEW])
def node(request, installed, stage):
    """Plays node scripts with one version of the SDK."""
    return Node(request.param, installed, stage)


def test_a_string_prompt_gives_the_start_the_answer_and_one_result(node, stage):
    played = node.play("one", "Good morning.")
    start, answer, end = played.messages
    assert (start["subtype"], start["cwd"], start["permissionMode"]) == (
        "init",
        str(stage.workspace),
        "default",
    )
    assert answer["message"]["content"] == [{"type": "text", "text": "Good morning."}]
    assert (end["subtype"], end["is_error"], end["result"], end["num_turns"]) == (
        "success",
        False,
        "Good morning.",
        1,
    )
    assert len({message["session_id"] for message in played.messages}) == 1
    assert played.thrown is None


def test_streaming_input_has_two_turns_in_one_session_and_the_model_remembers(node):
    played = node.play(
        "turns",
        "one",
        {"expect": "the first question", "content": ["two"]},
        prompts=["the first question", "the second question"],
    )
    assert [end["result"] for end in played.results] == ["one", "two"]
    assert played.thrown is None
    assert len({end["session_id"] for end in played.results}) == 1


def test_an_iterable_prompt_that_ends_at_once_still_has_its_answer(node):
    played = node.play("one", call("Glob", pattern="*"), "Good morning.", as_iterable=True)
    assert played.the_result["result"] == "Good morning."
    assert played.thrown is None


def test_partial_messages_add_up_to_the_answer(node):
    text = "A sentence that is longer than one delta."
    played = node.play("one", text, options={"includePartialMessages": True})
    events = [message["event"] for message in played.of("stream_event")]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == text == played.the_result["result"]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")


def test_the_tool_loop_writes_reads_edits_and_runs_and_says_what_each_did(node, stage):
    path = stage.workspace / "poem.txt"
    played = node.play(
        "one",
        call("Write", file_path=str(path), content="one\ntwo\n"),
        call("Read", file_path=str(path)),
        call("Edit", file_path=str(path), old_string="two", new_string="zwei"),
        call("Bash", command="cat poem.txt"),
        "Done.",
        options=BYPASS,
    )
    written, read, edited, ran = played.tool_results
    assert path.read_text() == "one\nzwei\n"
    assert played.the_result["num_turns"] == 5
    assert (written.meta["type"], read.meta["type"], read.meta["file"]["numLines"]) == ("create", "text", 3)
    assert edited.meta["structuredPatch"][0]["lines"] == [" one", "-two", "+zwei"]
    assert (ran.meta["stdout"], ran.meta["interrupted"]) == ("one\nzwei", False)


ANSWERS = {
    "allowed without a word on the input": ({"behavior": "allow"}, ["made.txt"]),
    "allowed as it is": ({"behavior": "allow", "updatedInput": {"command": "touch made.txt"}}, ["made.txt"]),
    "allowed with a change": (
        {"behavior": "allow", "updatedInput": {"command": "touch other.txt"}},
        ["other.txt"],
    ),
    "denied": ({"behavior": "deny", "message": "not on a Friday"}, []),
    "denied by an error": ("the dialog fell over", []),
}


@pytest.mark.parametrize("answer, made", ANSWERS.values(), ids=ANSWERS)
def test_the_answer_of_the_callback_is_what_happens(node, stage, answer, made):
    played = node.play("permission", TOUCH, "Done.", answer=answer)
    (question,) = played.notes["question"]
    (result,) = played.tool_results
    assert (question["tool"], question["input"], question["signal"]) == (
        "Bash",
        {"command": "touch made.txt"},
        True,
    )
    assert question["about"]["toolUseID"] == result.id
    assert sorted(path.name for path in stage.workspace.iterdir()) == made
    assert result.failed == (not made)
    assert played.the_result["result"] == "Done."
    assert played.thrown is None
    if not made:
        why = answer if isinstance(answer, str) else answer["message"]
        assert why in result.text
        assert len(played.the_result["permission_denials"]) == 1


def test_a_denial_may_end_the_turn(node, stage):
    played = node.play(
        "permission",
        TOUCH,
        "never said",
        answer={"behavior": "deny", "message": "stop it", "interrupt": True},
    )
    end = played.the_result
    assert (end["subtype"], end["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert not list(stage.workspace.iterdir())
    # The older SDK would throw after any exit code but 0, and its own engine leaves with 0 here.
    assert (played.thrown is None) == (node.version == OLD)


def test_an_interrupt_in_the_middle_of_a_reply_ends_the_turn_and_not_the_session(node, stage):
    model = stage.script(
        "word " * 500, {"expect": "[Request interrupted by user]", "content": ["next"]}, pace_ms=10
    )
    played = node.play(
        "interrupt", prompts=["go", "and now?"], options={"model": model, "includePartialMessages": True}
    )
    first, second = played.results
    assert (first["subtype"], first["terminal_reason"], second["result"]) == (
        "error_during_execution",
        "aborted_streaming",
        "next",
    )
    assert "interrupted" in played.notes
    assert played.thrown is None


def test_an_interrupt_in_the_middle_of_a_command_kills_it(node, stage):
    played = node.play(
        "interrupt",
        call("Bash", command="touch begun; sleep 600"),
        "next",
        prompts=["go", "and now?"],
        options=BYPASS,
    )
    first, second = played.results
    assert (first["terminal_reason"], second["result"]) == ("aborted_tools", "next")
    assert played.tool_results[0].failed


def test_the_session_answers_questions_and_takes_switches(node, provider):
    provider.replies = ["one", "two", "three"]
    played = node.play(
        "control",
        prompts=["first", "second", "third"],
        options={"model": MODEL},
        switches=[
            [["setModel", OTHER_MODEL], ["setPermissionMode", "acceptEdits"], ["setMaxThinkingTokens", 3000]],
            [["setModel"], ["setPermissionMode", "bypassPermissions"], ["setMaxThinkingTokens", 0]],
        ],
    )
    assert all(command["name"] and command["description"] for command in played.notes["supportedCommands"][0])
    assert played.notes["mcpServerStatus"] == [[]]
    assert played.notes["accountInfo"][0]["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert all(model["value"] and model["displayName"] for model in played.notes["supportedModels"][0])
    assert [request["model"] for request in provider.requests] == [MODEL, OTHER_MODEL, MODEL]
    assert provider.requests[1]["thinking"]["budget_tokens"] == 3000
    assert provider.requests[2].get("thinking", {}).get("type") in (None, "disabled")
    assert [start["permissionMode"] for start in played.of("system", "init")] == [
        "default",
        "acceptEdits",
        "acceptEdits",
    ]
    allowed, refused = played.notes["setPermissionMode"]
    assert allowed == "done"
    assert "--allow-dangerously-skip-permissions" in refused


def test_a_command_is_let_go_and_stopped(installed, stage):
    node = Node(NEW, installed, stage)
    played = node.play("tasks", call("Bash", command="sleep 600"), "It goes on.", options=BYPASS)
    assert played.the_result["result"] == "It goes on."
    assert played.notes["of another"] == [False] and played.notes["let go"] == [True]
    assert played.notes["stopped"] == [None]
    (end,) = played.of("system", "task_notification")
    assert end["status"] == "stopped"
    assert played.thrown is None


def test_a_turn_limit_gives_a_result_and_only_the_newer_sdk_throws(node):
    played = node.play("one", call("Glob", pattern="*"), "never said", options={"maxTurns": 1})
    assert (played.the_result["subtype"], played.the_result["errors"]) == (
        "error_max_turns",
        ["Reached the maximum number of turns (1)."],
    )
    if node.version == OLD:
        assert played.thrown is None
    else:
        assert "Reached the maximum number of turns (1)." in played.thrown


def test_a_refusal_of_the_provider_is_the_result_and_then_an_error(node, provider):
    provider.replies = [(400, "this prompt is not to our taste")]
    played = node.play("one", options={"model": MODEL})
    end = played.the_result
    assert (end["subtype"], end["is_error"]) == ("success", True)
    assert "not to our taste" in end["result"] == played.said
    assert ("exited with code 1" if node.version == OLD else "not to our taste") in played.thrown


def test_the_system_prompt_reaches_the_model(node, provider):
    preset = {"type": "preset", "preset": "claude_code"}
    rows = [
        ("nothing is nothing", {}, set(), {"Whimbrel", "TEAPOT"}),
        ("a text replaces", {"systemPrompt": "You are a TEAPOT."}, {"TEAPOT"}, {"Whimbrel"}),
        ("the preset", {"systemPrompt": preset}, {"Whimbrel"}, {"TEAPOT"}),
        (
            "the preset and more",
            {"systemPrompt": {**preset, "append": "You like TEAPOTs."}},
            {"Whimbrel", "TEAPOT"},
            set(),
        ),
    ]
    provider.replies = ["hi"] * len(rows)
    node.play("each", each=[{"model": MODEL, **choice} for _, choice, _, _ in rows])
    for number, (name, _, there, absent) in enumerate(rows):
        system = provider.system(number)
        assert {word for word in there | absent if word in system} == there, name


def test_folders_tools_and_variables_are_those_of_the_options(node, stage):
    (stage.home / "notes.txt").write_text("remember the milk")
    options = {
        "additionalDirectories": [str(stage.home)],
        "tools": ["Read", "Bash", "Write"],
        "disallowedTools": ["Write"],
        "allowedTools": ["Bash"],
        "env": {**stage.env(), "COLOUR": "green"},
    }
    replies = (
        call("Read", file_path=str(stage.home / "notes.txt")),
        call("Bash", command="echo $COLOUR"),
        call("Write", file_path="a", content="x"),
        "Done.",
    )
    played = node.play("one", *replies, options=options)
    read, ran, written = played.tool_results
    assert played.of("system", "init")[0]["tools"] == ["Bash", "Read"]
    assert "remember the milk" in read.text
    assert ran.text == "green"
    assert written.failed


def test_a_variable_that_may_come_from_elsewhere_is_asked_about(node, stage):
    (stage.workspace / "secret.txt").write_text("tell nobody")
    options = {
        "allowedTools": ["Bash"],
        "disallowedTools": ["Read(./secret.txt)"],
        "env": {**stage.env(), "FILE": "secret.txt"},
    }
    replies = (call("Bash", command="(FILE=notes.txt); cat $FILE"), "Done.")
    answer = {"behavior": "deny", "message": "no"}
    played = node.play("permission", *replies, options=options, answer=answer)
    (made,) = played.tool_results
    assert (len(played.notes["question"]), made.failed) == (1, True)
    assert "tell nobody" not in made.text


def test_notes_on_stderr_reach_the_callback(node):
    played = node.play("notes", "hi", options={"extraArgs": {"brand-new-thing": None}})
    assert any("--brand-new-thing" in text for text in played.notes["stderr"])
    assert played.the_result["result"] == "hi"


def test_output_of_megabytes_and_every_script_of_the_world_go_through(node, stage):
    text = 'naïve 漢字 🦤👩‍👩‍👧 \u2028\u2029 " \\ עברית'
    replies = (
        call("Bash", command="yes 'a line of text' | head -c 4000000"),
        call("Write", file_path="смех.txt", content=text),
        {"expect": "ünï", "content": [text]},
    )
    played = node.play("one", *replies, prompts=["ünï 🦤"], options=BYPASS)
    assert played.tool_results[0].meta["persistedOutputSize"] == 4_000_000
    assert (stage.workspace / "смех.txt").read_text() == text == played.the_result["result"]


def test_the_end_of_background_work_gives_an_open_session_a_second_result(node):
    background = call("Bash", command="echo finished", run_in_background=True)
    played = node.play(
        "turns",
        background,
        "It runs.",
        {"expect": "<task-notification>", "content": ["It has ended."]},
        results=2,
        options=BYPASS,
    )
    assert [end["result"] for end in played.results] == ["It runs.", "It has ended."]
    assert played.results[1]["origin"]["kind"] == "task-notification"
    assert [notice["status"] for notice in played.of("system", "task_notification")] == ["completed"]
    # Frames about the state are between the engine and the SDK.
    assert played.of("system", "session_state_changed") == []


@pytest.mark.parametrize("way", ["abort", "close", "break", "die"])
def test_a_caller_that_leaves_in_the_middle_takes_everything_with_it(node, stage, way):
    command = call("Bash", command="touch begun; sleep 600")
    played = node.play(
        "leave", command, "never said", way=way, options=BYPASS, code=-9 if way == "die" else 0
    )
    assert played.said == ""
    assert way != "abort" or "abort" in played.thrown.lower()
    wait_until(lambda: not stage.processes(), "everything to be gone")


MISSING = {
    "an unknown session": "No conversation found",
}


@pytest.mark.parametrize("feature", MISSING)
@pytest.mark.parametrize("node", [OLD, NEW], indirect=True)
def test_what_is_not_there_yet_is_refused_and_nothing_is_done(node, feature):
    played = node.play("absent", "never said", feature=feature)
    assert played.said == ""
    assert played.thrown is not None
    assert MISSING[feature] in str(played.the_result["errors"])


@pytest.mark.parametrize("node", [OLD], indirect=True)
def test_the_older_session_interface_takes_turns(node):
    replies = ("one", {"expect": "the first question", "content": ["two"]})
    played = node.play("session", *replies, prompts=["the first question", "the second question"])
    assert [end["result"] for end in played.results] == ["one", "two"]
    assert played.thrown is None
    assert set(played.notes["session"]) == {played.results[0]["session_id"]}


@pytest.mark.parametrize("node", [OLD], indirect=True)
def test_the_older_session_interface_goes_on_with_a_session(node):
    before = node.play("session", "one", prompts=["the first question"])
    (session,) = before.notes["session"]
    again = {"expect": "the first question", "content": ["two"]}
    played = node.play("session", again, prompts=["the second question"], resume=session)
    assert (played.the_result["result"], played.notes["session"]) == ("two", [session])


@pytest.mark.parametrize("node", [OLD], indirect=True)
def test_the_older_session_interface_asks_its_callbacks(node, stage):
    path = stage.workspace / "made.txt"
    replies = (call("Write", file_path=str(path), content="x"), "done")
    played = node.play("session", *replies, answer={"behavior": "allow"})
    assert (played.the_result["result"], path.read_text()) == ("done", "x")
    assert (played.notes["question"], played.notes["hook"]) == (["Write"], ["Write"])


@pytest.mark.parametrize("node", [OLD], indirect=True)
def test_the_older_prompt_has_its_result(node):
    played = node.play("prompt", call("Glob", pattern="*"), "Good morning.")
    assert played.the_result["result"] == "Good morning."
    assert played.thrown is None
