"""The PyPI SDK, in process: prompts, the tool loop, options, endings."""

import asyncio
import base64

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
    get_session_messages,
    list_sessions,
    query,
)

from caller import ask, ask_until_error, in_time, notices, results, said, the_result, tool_results, turn
from stage import call, wait_until

BYPASS = {"permission_mode": "bypassPermissions"}
# A picture of one red dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def test_a_string_prompt_gives_the_start_the_answer_and_one_result(stage):
    start, answer, end = ask("hi", stage.options("Good morning."))
    assert (start.subtype, start.data["cwd"], start.data["permissionMode"]) == (
        "init",
        str(stage.workspace),
        "default",
    )
    assert start.data["claude_code_version"].count(".") == 2
    assert answer.content == [TextBlock("Good morning.")]
    assert (end.subtype, end.is_error, end.result, end.num_turns, end.stop_reason) == (
        "success",
        False,
        "Good morning.",
        1,
        "end_turn",
    )
    assert end.usage["output_tokens"] > 0
    assert end.permission_denials == []
    assert {start.data["session_id"], answer.session_id} == {end.session_id}


def test_an_iterable_prompt_may_wait_for_one_result_before_it_asks_again(stage):
    async def talk():
        answered = asyncio.Event()

        async def prompts():
            for text in ("first", "second"):
                yield {
                    "type": "user",
                    "message": {"role": "user", "content": text},
                    "parent_tool_use_id": None,
                }
                await answered.wait()
                answered.clear()

        messages = []
        async for message in query(
            prompt=prompts(), options=stage.options("one", {"expect": "first", "content": ["two"]})
        ):
            messages.append(message)
            if isinstance(message, ResultMessage):
                answered.set()
        return messages

    messages = in_time(talk())
    assert [end.result for end in results(messages)] == ["one", "two"]


def test_a_client_has_two_turns_in_one_session_and_the_model_remembers(stage):
    async def talk():
        async with ClaudeSDKClient(
            stage.options("one", {"expect": "the first question", "content": ["two"]})
        ) as client:
            return [
                (await turn(client, prompt))[-1] for prompt in ("the first question", "the second question")
            ]

    first, second = in_time(talk())
    assert (first.result, second.result) == ("one", "two")
    assert first.session_id == second.session_id


def test_a_prompt_during_a_turn_is_answered_in_the_next(stage):
    async def talk():
        replies = ({"delay_ms": 100, "content": ["one"]}, {"expect": "second", "content": ["two"]})
        async with ClaudeSDKClient(stage.options(*replies)) as client:
            await client.query("first")
            messages = []
            async for message in client.receive_messages():
                messages.append(message)
                if len(messages) == 1:
                    await client.query("second")
                if len(results(messages)) == 2:
                    return messages

    assert [end.result for end in results(in_time(talk()))] == ["one", "two"]


def test_a_picture_in_a_prompt_and_one_that_is_read_reach_the_model_and_the_caller(stage):
    (stage.workspace / "dot.png").write_bytes(base64.b64decode(DOT))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}

    async def prompt():
        yield {"type": "user", "message": {"role": "user", "content": [picture]}, "parent_tool_use_id": None}

    replies = ({"expect": DOT, "content": call("Read", file_path="dot.png")}, "A dot.")
    messages = ask(prompt(), stage.options(*replies))
    (read,) = tool_results(messages)
    assert [block["type"] for block in read.text] == ["image"]
    assert (read.meta["type"], read.meta["file"]["type"], read.meta["file"]["base64"]) == (
        "image",
        "image/png",
        DOT,
    )
    assert the_result(messages).result == "A dot."


@pytest.mark.parametrize("signature", [{"signature": "signed"}, {}], ids=["signed", "unsigned"])
def test_thoughts_reach_the_caller(stage, signature):
    messages = ask("hi", stage.options([{"type": "thinking", "thinking": "Hm.", **signature}, "Hello."]))
    (thought,), (text,) = (m.content for m in messages if isinstance(m, AssistantMessage))
    assert (thought.thinking, thought.signature, text.text) == (
        "Hm.",
        signature.get("signature", ""),
        "Hello.",
    )


def test_partial_messages_add_up_to_the_answer_and_come_before_it(stage):
    text = "A sentence that is longer than one delta."
    messages = ask("hi", stage.options(text, include_partial_messages=True))
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == text
    place = [type(m) is AssistantMessage or getattr(m, "event", {}).get("type") for m in messages]
    assert place.index("content_block_delta") < place.index(True) < place.index("content_block_stop")


def test_without_partial_messages_no_events_are_seen(stage):
    assert not [m for m in ask("hi", stage.options("Good morning.")) if isinstance(m, StreamEvent)]


def test_the_tool_loop_writes_reads_edits_and_runs_and_says_what_each_did(stage):
    path = stage.workspace / "poem.txt"
    options = stage.options(
        call("Write", file_path=str(path), content="one\ntwo\n"),
        call("Read", file_path=str(path)),
        call("Edit", file_path=str(path), old_string="two", new_string="zwei"),
        call("Bash", command="cat poem.txt; echo oops >&2"),
        "Done.",
        **BYPASS,
    )
    messages = ask("go", options)
    written, read, edited, ran = tool_results(messages)
    assert path.read_text() == "one\nzwei\n"
    assert written.meta == {
        "type": "create",
        "filePath": str(path),
        "content": "one\ntwo\n",
        "structuredPatch": [],
        "originalFile": None,
    }
    assert read.meta == {
        "type": "text",
        "file": {
            "filePath": str(path),
            "content": "one\ntwo\n",
            "numLines": 3,
            "startLine": 1,
            "totalLines": 3,
        },
    }
    patch = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+zwei"]}
    assert edited.meta == {
        "filePath": str(path),
        "oldString": "two",
        "newString": "zwei",
        "originalFile": "one\ntwo\n",
        "structuredPatch": [patch],
        "userModified": False,
        "replaceAll": False,
    }
    assert {key: ran.meta[key] for key in ("stderr", "interrupted", "isImage")} == {
        "stderr": "",
        "interrupted": False,
        "isImage": False,
    }
    assert ran.meta["stdout"] == "one\nzwei\noops"
    assert ran.text == "one\nzwei\noops"
    assert not any(one.failed for one in (written, read, edited, ran))
    assert the_result(messages).num_turns == 5


def test_a_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(stage):
    replies = (
        call("Bash", command="echo before; exit 3"),
        call("Nonsense"),
        call("Read"),
        {"expect": "Exit code 3", "content": ["I see."]},
    )
    messages = ask("go", stage.options(*replies, **BYPASS))
    exited, unknown, incomplete = tool_results(messages)
    assert exited.failed
    assert exited.meta == "Error: Exit code 3\nbefore"
    assert unknown.failed
    assert "Nonsense" in unknown.text
    assert incomplete.failed
    assert "file_path" in incomplete.text
    assert the_result(messages).result == "I see."


def test_calls_of_one_reply_each_have_their_result(stage):
    (stage.workspace / "a.txt").write_text("alpha")
    both = call("Read", file_path="a.txt") + call("Bash", command="echo beta") + call("Glob", pattern="*.txt")
    messages = ask("go", stage.options(both, "Done.", **BYPASS))
    blocks = [
        block for message in messages if isinstance(message, AssistantMessage) for block in message.content
    ]
    calls = [block.id for block in blocks if isinstance(block, ToolUseBlock)]
    answers = {one.id: one.text for one in tool_results(messages)}
    assert len(answers) == 3
    for asked, word in zip(calls, ("alpha", "beta", "a.txt"), strict=True):
        assert word in answers[asked]


def test_a_turn_limit_gives_a_result_and_then_an_error_with_its_reason(stage):
    options = stage.options(call("Glob", pattern="*"), call("Glob", pattern="*"), "never said", max_turns=1)
    messages, error = ask_until_error("go", options)
    end = the_result(messages)
    assert (end.subtype, end.is_error, end.result, end.terminal_reason) == (
        "error_max_turns",
        True,
        None,
        "max_turns",
    )
    assert isinstance(error, ResultError)
    assert error.exit_code == 1
    assert end.errors
    assert end.errors[0] in str(error)
    assert "turns (1)" in str(error)


def test_a_turn_limit_does_not_end_a_client(stage):
    async def talk():
        async with ClaudeSDKClient(
            stage.options(call("Glob", pattern="*"), "still here", max_turns=1)
        ) as client:
            return [(await turn(client, prompt))[-1] for prompt in ("go", "and now?")]

    first, second = in_time(talk())
    assert (first.subtype, second.result) == ("error_max_turns", "still here")


def test_a_refusal_of_the_provider_is_the_result_and_then_an_error(stage, provider):
    provider.replies = [(400, "this prompt is not to our taste")]
    messages, error = ask_until_error("go", stage.options(model="claude-haiku-4-5"))
    answer, end = messages[-2:]
    assert isinstance(answer, AssistantMessage)
    assert (answer.model, answer.error) == ("<synthetic>", "invalid_request")
    assert (end.subtype, end.is_error, end.api_error_status, end.terminal_reason) == (
        "success",
        True,
        400,
        "api_error",
    )
    assert "not to our taste" in end.result == said([answer])
    assert isinstance(error, ResultError)
    assert "not to our taste" in str(error)


def test_a_provider_that_is_busy_is_asked_again_and_the_caller_is_told(stage):
    busy = {"fault": {"kind": "overloaded", "status": 529, "message": "busy", "retry_after_ms": 1}}
    messages = ask("go", stage.options(busy, "at last"))
    (retry,) = notices(messages, "api_retry")
    assert (retry["attempt"], retry["error_status"], retry["error"]) == (1, 529, "overloaded")
    assert the_result(messages).result == "at last"


SYSTEM_PROMPTS = {
    "nothing is nothing": (None, set(), {"Whimbrel", "TEAPOT"}),
    "a text replaces": ("You are a TEAPOT.", {"TEAPOT"}, {"Whimbrel"}),
    "the preset": ({"type": "preset", "preset": "claude_code"}, {"Whimbrel"}, {"TEAPOT"}),
    "the preset and more": (
        {"type": "preset", "preset": "claude_code", "append": "You like TEAPOTs."},
        {"Whimbrel", "TEAPOT"},
        set(),
    ),
}


@pytest.mark.parametrize("choice, there, absent", SYSTEM_PROMPTS.values(), ids=SYSTEM_PROMPTS)
def test_the_system_prompt_reaches_the_model(stage, provider, choice, there, absent):
    provider.replies = ["hi"]
    ask("hi", stage.options(model="claude-haiku-4-5", system_prompt=choice))
    system = provider.system()
    assert {word for word in there | absent if word in system} == there


def test_a_system_prompt_from_a_file_reaches_the_model(stage, provider):
    (stage.home / "prompt.md").write_text("You are a TEAPOT.")
    provider.replies = ["hi"]
    ask(
        "hi",
        stage.options(
            model="claude-haiku-4-5", system_prompt={"type": "file", "path": str(stage.home / "prompt.md")}
        ),
    )
    assert provider.system() == "You are a TEAPOT."


def test_the_model_and_its_thinking_are_what_was_asked_for(stage, provider):
    provider.replies = ["hi"]
    ask("hi", stage.options(model="claude-haiku-4-5", thinking={"type": "enabled", "budget_tokens": 2048}))
    asked = provider.requests[0]
    assert (asked["model"], asked["thinking"]["type"], asked["thinking"]["budget_tokens"]) == (
        "claude-haiku-4-5",
        "enabled",
        2048,
    )


def test_the_tools_are_those_that_were_named_less_those_that_were_forbidden(stage, provider):
    rows = [
        ({"tools": ["Read", "Bash"]}, {"Read", "Bash"}),
        ({"tools": ["Read", "Bash"], "disallowed_tools": ["Bash"]}, {"Read"}),
        ({"tools": []}, set()),
    ]
    for number, (more, names) in enumerate(rows):
        provider.replies.append("hi")
        start = ask("hi", stage.options(model="claude-haiku-4-5", **more))[0]
        assert set(start.data["tools"]) == names
        assert {tool["name"] for tool in provider.requests[number].get("tools", [])} == names
    everything = ask(
        "hi",
        stage.options("hi", tools={"type": "preset", "preset": "claude_code"}, disallowed_tools=["Bash"]),
    )[0]
    assert {"Read", "Write", "Edit", "Glob", "Grep"} <= set(everything.data["tools"])
    assert "Bash" not in everything.data["tools"]


def test_variables_and_the_working_directory_of_the_options_reach_commands(stage):
    options = stage.options(
        call("Bash", command="echo $COLOUR in $PWD"), "Done.", env={"COLOUR": "green"}, **BYPASS
    )
    (ran,) = tool_results(ask("go", options))
    assert ran.text == f"green in {stage.workspace}"


def test_notes_on_stderr_reach_the_callback(stage):
    notes = []
    ask("hi", stage.options("hi", stderr=notes.append, extra_args={"brand-new-thing": None}))
    assert any("--brand-new-thing" in note for note in notes)


def test_output_of_megabytes_does_not_break_the_reader(stage):
    (stage.workspace / "long.txt").write_text("x" * 99 + "\n" + "y" * 3_000_000)
    replies = (
        call("Bash", command="yes 'a line of text' | head -c 4000000"),
        call("Read", file_path="long.txt"),
        call("Write", file_path="copy.txt", content="z" * 2_000_000),
        "Done.",
    )
    messages = ask("go", stage.options(*replies, **BYPASS))
    ran, _, written = tool_results(messages)
    assert the_result(messages).result == "Done."
    assert ran.meta["persistedOutputSize"] == 4_000_000
    assert not written.failed
    assert (stage.workspace / "copy.txt").stat().st_size == 2_000_000


def test_every_script_of_the_world_goes_through_unharmed(stage):
    text = 'naïve 漢字 🦤👩‍👩‍👧 \u2028\u2029 " \\ עברית'
    name = "смех 🦤.txt"
    replies = (
        call("Write", file_path=name, content=text),
        call("Bash", command=r"cat смех*; printf '\xff\xfe'"),
        {"expect": "ünï", "content": [text]},
    )
    messages = ask("ünï 🦤", stage.options(*replies, **BYPASS))
    assert (stage.workspace / name).read_text() == text
    assert tool_results(messages)[1].meta["stdout"].startswith(text)
    assert the_result(messages).result == text


def test_frames_about_the_state_are_for_the_sdk_unless_the_caller_asks(stage):
    hidden = ask("hi", stage.options("hi"))
    assert notices(hidden, "session_state_changed") == []
    shown = ask("hi", stage.options("hi", env={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}))
    assert [notice["state"] for notice in notices(shown, "session_state_changed")] == ["running", "idle"]


def test_the_end_of_background_work_gives_an_open_session_a_second_result(stage):
    gate = stage.workspace / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.02; done; echo finished"
    replies = (
        call("Bash", command=wait, run_in_background=True, description="wait for the gate"),
        "It runs.",
        {"expect": "<task-notification>", "content": ["It has ended."]},
    )

    async def talk():
        messages = []
        async with ClaudeSDKClient(stage.options(*replies, **BYPASS)) as client:
            await client.query("go")
            async for message in client.receive_messages():
                messages.append(message)
                if len(results(messages)) == 1:
                    gate.touch()
                if len(results(messages)) == 2:
                    return messages

    messages = in_time(talk())
    first, second = results(messages)
    assert (first.result, second.result) == ("It runs.", "It has ended.")
    assert first.origin is None
    assert second.origin["kind"] == "task-notification"
    (begun,) = notices(messages, "task_started")
    (over,) = notices(messages, "task_notification")
    assert begun["task_id"] == over["task_id"] == tool_results(messages)[0].meta["backgroundTaskId"]
    assert (begun["description"], over["status"]) == ("wait for the gate", "completed")


def test_the_start_of_background_work_is_told_before_the_result(stage):
    messages = ask(
        "go",
        stage.options(
            call("Bash", command="true", run_in_background=True), "It runs.", "It has ended.", **BYPASS
        ),
    )
    kinds = [getattr(message, "subtype", None) for message in messages]
    assert kinds.index("task_started") < kinds.index("success")


def test_background_work_is_stopped_when_the_client_says_so(stage):
    async def talk():
        async with ClaudeSDKClient(
            stage.options(call("Bash", command="sleep 600", run_in_background=True), "It runs.", **BYPASS)
        ) as client:
            (begun,) = tool_results(await turn(client, "go"))
            await client.stop_task(begun.meta["backgroundTaskId"])
            async for message in client.receive_messages():
                if isinstance(message, SystemMessage) and message.subtype == "task_notification":
                    return message.data

    assert in_time(talk())["status"] == "stopped"
    assert not any("sleep 600" in line for line in stage.processes().values())


def test_a_client_that_leaves_in_the_middle_takes_everything_with_it(stage):
    begun = stage.workspace / "begun"

    async def leave():
        async with ClaudeSDKClient(
            stage.options(call("Bash", command="touch begun; sleep 600"), "never said", **BYPASS)
        ) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, begun.exists, "the command to begin")

    in_time(leave())
    wait_until(lambda: not stage.processes(), "everything to be gone")


def test_a_caller_that_stops_listening_takes_everything_with_it(stage):
    async def listen():
        async for message in query(
            prompt="go", options=stage.options({"delay_ms": 600_000, "content": ["never said"]})
        ):
            assert message.subtype == "init"
            break
        # The SDK ends the program in a task of its own.
        await asyncio.to_thread(wait_until, lambda: not stage.processes(), "everything to be gone")

    in_time(listen())


def test_sessions_side_by_side_do_not_mix(stage):
    async def all_at_once():
        async def one(name):
            return [
                m
                async for m in query(
                    prompt=name, options=stage.options({"expect": name, "content": [name.upper()]})
                )
            ][-1]

        return await asyncio.gather(*(one(name) for name in ("ann", "bob", "cid")))

    ends = in_time(all_at_once())
    assert [end.result for end in ends] == ["ANN", "BOB", "CID"]
    assert len({end.session_id for end in ends}) == 3


def test_the_sdk_finds_and_reads_what_the_engine_has_stored(stage):
    chosen = "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"
    end = the_result(
        ask("remember this", stage.options(call("Glob", pattern="*"), "I will.", session_id=chosen))
    )
    assert end.session_id == chosen
    (found,) = list_sessions(directory=str(stage.workspace))
    assert (found.session_id, found.first_prompt) == (chosen, "remember this")
    kinds = [message.type for message in get_session_messages(chosen, directory=str(stage.workspace))]
    assert kinds == ["user", "assistant", "user", "assistant"]
