"""The PyPI SDK: prompts, the tool loop, options, exits."""

import asyncio
import base64
import os
import subprocess

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

from harness import tool_call, wait_until
from python_sdk import (
    assistant_text,
    only_result,
    result_messages,
    run_query,
    run_query_until_error,
    run_turn,
    run_with_timeout,
    system_data,
    tool_results,
)

BYPASS = {"permission_mode": "bypassPermissions"}
# A PNG image of one red pixel.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def test_string_prompt_yields_init_reply_and_result(harness):
    init, reply, result = run_query("hi", harness.options("Good morning."))
    assert (init.subtype, init.data["cwd"], init.data["permissionMode"]) == (
        "init",
        str(harness.workspace),
        "default",
    )
    assert init.data["claude_code_version"].count(".") == 2
    assert reply.content == [TextBlock("Good morning.")]
    assert (result.subtype, result.is_error, result.result, result.num_turns, result.stop_reason) == (
        "success",
        False,
        "Good morning.",
        1,
        "end_turn",
    )
    assert result.usage["output_tokens"] > 0
    assert result.permission_denials == []
    assert {init.data["session_id"], reply.session_id} == {result.session_id}


def test_iterable_prompt_can_wait_for_results(harness):
    async def run_session():
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
            prompt=prompts(), options=harness.options("one", {"expect": "first", "content": ["two"]})
        ):
            messages.append(message)
            if isinstance(message, ResultMessage):
                answered.set()
        return messages

    messages = run_with_timeout(run_session())
    assert [result.result for result in result_messages(messages)] == ["one", "two"]


def test_client_keeps_history_across_turns(harness):
    async def run_session():
        async with ClaudeSDKClient(
            harness.options("one", {"expect": "the first question", "content": ["two"]})
        ) as client:
            return [(await run_turn(client, prompt))[-1] for prompt in ("the first question", "the second question")]

    first, second = run_with_timeout(run_session())
    assert (first.result, second.result) == ("one", "two")
    assert first.session_id == second.session_id


def test_prompt_during_a_turn_runs_next(harness):
    async def run_session():
        replies = ({"delay_ms": 100, "content": ["one"]}, {"expect": "second", "content": ["two"]})
        async with ClaudeSDKClient(harness.options(*replies)) as client:
            await client.query("first")
            messages = []
            async for message in client.receive_messages():
                messages.append(message)
                if len(messages) == 1:
                    await client.query("second")
                if len(result_messages(messages)) == 2:
                    return messages

    assert [result.result for result in result_messages(run_with_timeout(run_session()))] == ["one", "two"]


def test_images_reach_model_and_caller(harness):
    (harness.workspace / "dot.png").write_bytes(base64.b64decode(DOT))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}

    async def prompt():
        yield {"type": "user", "message": {"role": "user", "content": [picture]}, "parent_tool_use_id": None}

    replies = ({"expect": DOT, "content": tool_call("Read", file_path="dot.png")}, "A dot.")
    messages = run_query(prompt(), harness.options(*replies))
    (read,) = tool_results(messages)
    assert [block["type"] for block in read.text] == ["image"]
    assert (read.meta["type"], read.meta["file"]["type"], read.meta["file"]["base64"]) == (
        "image",
        "image/png",
        DOT,
    )
    assert only_result(messages).result == "A dot."


@pytest.mark.parametrize("signature", [{"signature": "signed"}, {}], ids=["signed", "unsigned"])
def test_thinking_blocks_reach_the_caller(harness, signature):
    messages = run_query("hi", harness.options([{"type": "thinking", "thinking": "Hm.", **signature}, "Hello."]))
    (thought,), (text,) = (m.content for m in messages if isinstance(m, AssistantMessage))
    assert (thought.thinking, thought.signature, text.text) == (
        "Hm.",
        signature.get("signature", ""),
        "Hello.",
    )


def test_partial_messages_precede_and_add_up_to_the_reply(harness):
    text = "A sentence that is longer than one delta."
    messages = run_query("hi", harness.options(text, include_partial_messages=True))
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == text
    order = [type(m) is AssistantMessage or getattr(m, "event", {}).get("type") for m in messages]
    assert order.index("content_block_delta") < order.index(True) < order.index("content_block_stop")


def test_no_stream_events_by_default(harness):
    assert not [m for m in run_query("hi", harness.options("Good morning.")) if isinstance(m, StreamEvent)]


def test_tool_loop_reports_every_result(harness):
    path = harness.workspace / "poem.txt"
    options = harness.options(
        tool_call("Write", file_path=str(path), content="one\ntwo\n"),
        tool_call("Read", file_path=str(path)),
        tool_call("Edit", file_path=str(path), old_string="two", new_string="zwei"),
        tool_call("Bash", command="cat poem.txt; echo oops >&2"),
        "Done.",
        **BYPASS,
    )
    messages = run_query("go", options)
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
    assert not any(outcome.failed for outcome in (written, read, edited, ran))
    assert only_result(messages).num_turns == 5


def test_failed_tool_is_reported_and_the_turn_continues(harness):
    replies = (
        tool_call("Bash", command="echo before; exit 3"),
        tool_call("Nonsense"),
        tool_call("Read"),
        {"expect": "Exit code 3", "content": ["I see."]},
    )
    messages = run_query("go", harness.options(*replies, **BYPASS))
    exited, unknown, incomplete = tool_results(messages)
    assert exited.failed
    assert exited.meta == "Error: Exit code 3\nbefore"
    assert unknown.failed
    assert "Nonsense" in unknown.text
    assert incomplete.failed
    assert "file_path" in incomplete.text
    assert only_result(messages).result == "I see."


def test_parallel_calls_each_have_a_result(harness):
    (harness.workspace / "a.txt").write_text("alpha")
    calls = (
        tool_call("Read", file_path="a.txt")
        + tool_call("Bash", command="echo beta")
        + tool_call("Glob", pattern="*.txt")
    )
    messages = run_query("go", harness.options(calls, "Done.", **BYPASS))
    blocks = [block for message in messages if isinstance(message, AssistantMessage) for block in message.content]
    call_ids = [block.id for block in blocks if isinstance(block, ToolUseBlock)]
    texts = {outcome.id: outcome.text for outcome in tool_results(messages)}
    assert len(texts) == 3
    for call_id, word in zip(call_ids, ("alpha", "beta", "a.txt"), strict=True):
        assert word in texts[call_id]


def test_turn_limit_yields_result_and_error(harness):
    options = harness.options(tool_call("Glob", pattern="*"), tool_call("Glob", pattern="*"), "never said", max_turns=1)
    messages, error = run_query_until_error("go", options)
    result = only_result(messages)
    assert (result.subtype, result.is_error, result.result, result.terminal_reason) == (
        "error_max_turns",
        True,
        None,
        "max_turns",
    )
    assert isinstance(error, ResultError)
    assert error.exit_code == 1
    assert result.errors
    assert result.errors[0] in str(error)
    assert "turns (1)" in str(error)


def test_turn_limit_keeps_the_client_usable(harness):
    async def run_session():
        async with ClaudeSDKClient(
            harness.options(tool_call("Glob", pattern="*"), "still here", max_turns=1)
        ) as client:
            return [(await run_turn(client, prompt))[-1] for prompt in ("go", "and now?")]

    first, second = run_with_timeout(run_session())
    assert (first.subtype, second.result) == ("error_max_turns", "still here")


def test_provider_error_is_result_and_exception(harness, provider):
    provider.replies = [(400, "this prompt is not acceptable")]
    messages, error = run_query_until_error("go", harness.options(model="claude-haiku-4-5"))
    reply, result = messages[-2:]
    assert isinstance(reply, AssistantMessage)
    assert (reply.model, reply.error) == ("<synthetic>", "invalid_request")
    assert (result.subtype, result.is_error, result.api_error_status, result.terminal_reason) == (
        "success",
        True,
        400,
        "api_error",
    )
    assert "not acceptable" in result.result == assistant_text([reply])
    assert isinstance(error, ResultError)
    assert "not acceptable" in str(error)


def test_overloaded_provider_is_retried_and_reported(harness):
    overloaded = {"fault": {"kind": "overloaded", "status": 529, "message": "busy", "retry_after_ms": 1}}
    messages = run_query("go", harness.options(overloaded, "at last"))
    (retry,) = system_data(messages, "api_retry")
    assert (retry["attempt"], retry["error_status"], retry["error"]) == (1, 529, "overloaded")
    assert only_result(messages).result == "at last"


SYSTEM_PROMPTS = {
    "default is empty": (None, set(), {"Whimbrel", "TEAPOT"}),
    "text replaces": ("You are a TEAPOT.", {"TEAPOT"}, {"Whimbrel"}),
    "preset": ({"type": "preset", "preset": "claude_code"}, {"Whimbrel"}, {"TEAPOT"}),
    "preset with append": (
        {"type": "preset", "preset": "claude_code", "append": "You like TEAPOTs."},
        {"Whimbrel", "TEAPOT"},
        set(),
    ),
}


@pytest.mark.parametrize("choice, present, absent", SYSTEM_PROMPTS.values(), ids=SYSTEM_PROMPTS)
def test_system_prompt_reaches_the_model(harness, provider, choice, present, absent):
    provider.replies = ["hi"]
    run_query("hi", harness.options(model="claude-haiku-4-5", system_prompt=choice))
    system = provider.system_prompt()
    assert {word for word in present | absent if word in system} == present


def test_system_prompt_file_reaches_the_model(harness, provider):
    (harness.home / "prompt.md").write_text("You are a TEAPOT.")
    provider.replies = ["hi"]
    run_query(
        "hi",
        harness.options(
            model="claude-haiku-4-5", system_prompt={"type": "file", "path": str(harness.home / "prompt.md")}
        ),
    )
    assert provider.system_prompt() == "You are a TEAPOT."


def test_model_and_thinking_options_apply(harness, provider):
    provider.replies = ["hi"]
    run_query("hi", harness.options(model="claude-haiku-4-5", thinking={"type": "enabled", "budget_tokens": 2048}))
    request = provider.requests[0]
    assert (request["model"], request["thinking"]["type"], request["thinking"]["budget_tokens"]) == (
        "claude-haiku-4-5",
        "enabled",
        2048,
    )


def test_tools_are_the_listed_minus_the_denied(harness, provider):
    rows = [
        ({"tools": ["Read", "Bash"]}, {"Read", "Bash"}),
        ({"tools": ["Read", "Bash"], "disallowed_tools": ["Bash"]}, {"Read"}),
        ({"tools": []}, set()),
    ]
    for number, (more, names) in enumerate(rows):
        provider.replies.append("hi")
        init = run_query("hi", harness.options(model="claude-haiku-4-5", **more))[0]
        assert set(init.data["tools"]) == names
        assert {tool["name"] for tool in provider.requests[number].get("tools", [])} == names
    init = run_query(
        "hi",
        harness.options("hi", tools={"type": "preset", "preset": "claude_code"}, disallowed_tools=["Bash"]),
    )[0]
    assert {"Read", "Write", "Edit", "Glob", "Grep"} <= set(init.data["tools"])
    assert "Bash" not in init.data["tools"]


def test_env_and_cwd_options_reach_commands(harness):
    options = harness.options(
        tool_call("Bash", command="echo $COLOR in $PWD"), "Done.", env={"COLOR": "green"}, **BYPASS
    )
    (ran,) = tool_results(run_query("go", options))
    assert ran.text == f"green in {harness.workspace}"


@pytest.mark.parametrize("name", ["fix", None])
def test_session_works_in_a_worktree(harness, name):
    git = ["git", "-C", str(harness.workspace), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True, env=harness.env())
    options = harness.options(
        tool_call("Bash", command="pwd"), "Done.", extra_args={"worktree": name}, **BYPASS
    )
    (ran,) = tool_results(run_query("go", options))
    directory, found = os.path.split(ran.text)
    assert directory == str(harness.workspace / ".claude" / "worktrees") and found == (name or found)


def test_stderr_reaches_the_callback(harness):
    lines = []
    run_query("hi", harness.options("hi", stderr=lines.append, extra_args={"brand-new-thing": None}))
    assert any("--brand-new-thing" in line for line in lines)


def test_large_output_passes(harness):
    (harness.workspace / "long.txt").write_text("x" * 99 + "\n" + "y" * 3_000_000)
    replies = (
        tool_call("Bash", command="yes 'a line of text' | head -c 4000000"),
        tool_call("Read", file_path="long.txt"),
        tool_call("Write", file_path="copy.txt", content="z" * 2_000_000),
        "Done.",
    )
    messages = run_query("go", harness.options(*replies, **BYPASS))
    ran, _, written = tool_results(messages)
    assert only_result(messages).result == "Done."
    assert ran.meta["persistedOutputSize"] == 4_000_000
    assert not written.failed
    assert (harness.workspace / "copy.txt").stat().st_size == 2_000_000


def test_unicode_passes_unchanged(harness):
    text = 'naïve 漢字 🦤👩‍👩‍👧 \u2028\u2029 " \\ עברית'
    name = "смех 🦤.txt"
    replies = (
        tool_call("Write", file_path=name, content=text),
        tool_call("Bash", command=r"cat смех*; printf '\xff\xfe'"),
        {"expect": "ünï", "content": [text]},
    )
    messages = run_query("ünï 🦤", harness.options(*replies, **BYPASS))
    assert (harness.workspace / name).read_text() == text
    assert tool_results(messages)[1].meta["stdout"].startswith(text)
    assert only_result(messages).result == text


def test_session_state_frames_are_hidden_by_default(harness):
    hidden = run_query("hi", harness.options("hi"))
    assert system_data(hidden, "session_state_changed") == []
    shown = run_query("hi", harness.options("hi", env={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}))
    assert [data["state"] for data in system_data(shown, "session_state_changed")] == ["running", "idle"]


def test_background_completion_starts_a_second_turn(harness):
    gate = harness.workspace / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.02; done; echo finished"
    replies = (
        tool_call("Bash", command=command, run_in_background=True, description="wait for the gate"),
        "It runs.",
        {"expect": "<task-notification>", "content": ["It has ended."]},
    )

    async def run_session():
        messages = []
        async with ClaudeSDKClient(harness.options(*replies, **BYPASS)) as client:
            await client.query("go")
            async for message in client.receive_messages():
                messages.append(message)
                if len(result_messages(messages)) == 1:
                    gate.touch()
                if len(result_messages(messages)) == 2:
                    return messages

    messages = run_with_timeout(run_session())
    first, second = result_messages(messages)
    assert (first.result, second.result) == ("It runs.", "It has ended.")
    assert first.origin is None
    assert second.origin["kind"] == "task-notification"
    (started,) = system_data(messages, "task_started")
    (ended,) = system_data(messages, "task_notification")
    assert started["task_id"] == ended["task_id"] == tool_results(messages)[0].meta["backgroundTaskId"]
    assert (started["description"], ended["status"]) == ("wait for the gate", "completed")


def test_task_started_precedes_the_result(harness):
    messages = run_query(
        "go",
        harness.options(
            tool_call("Bash", command="true", run_in_background=True), "It runs.", "It has ended.", **BYPASS
        ),
    )
    kinds = [getattr(message, "subtype", None) for message in messages]
    assert kinds.index("task_started") < kinds.index("success")


def test_client_stops_a_background_task(harness):
    async def run_session():
        async with ClaudeSDKClient(
            harness.options(tool_call("Bash", command="sleep 600", run_in_background=True), "It runs.", **BYPASS)
        ) as client:
            (started,) = tool_results(await run_turn(client, "go"))
            await client.stop_task(started.meta["backgroundTaskId"])
            async for message in client.receive_messages():
                if isinstance(message, SystemMessage) and message.subtype == "task_notification":
                    return message.data

    assert run_with_timeout(run_session())["status"] == "stopped"
    assert not any("sleep 600" in line for line in harness.running_processes().values())


def test_closed_client_leaves_no_processes(harness):
    begun = harness.workspace / "begun"

    async def abandon():
        async with ClaudeSDKClient(
            harness.options(tool_call("Bash", command="touch begun; sleep 600"), "never said", **BYPASS)
        ) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, begun.exists, "the command to begin")

    run_with_timeout(abandon())
    wait_until(lambda: not harness.running_processes(), "all processes to exit")


def test_abandoned_query_leaves_no_processes(harness):
    async def abandon():
        async for message in query(
            prompt="go", options=harness.options({"delay_ms": 600_000, "content": ["never said"]})
        ):
            assert message.subtype == "init"
            break
        # The SDK ends the engine in a task of its own.
        await asyncio.to_thread(wait_until, lambda: not harness.running_processes(), "all processes to exit")

    run_with_timeout(abandon())


def test_parallel_sessions_are_independent(harness):
    async def run_all():
        async def run_session(name):
            return [
                m
                async for m in query(prompt=name, options=harness.options({"expect": name, "content": [name.upper()]}))
            ][-1]

        return await asyncio.gather(*(run_session(name) for name in ("ann", "bob", "cid")))

    results = run_with_timeout(run_all())
    assert [result.result for result in results] == ["ANN", "BOB", "CID"]
    assert len({result.session_id for result in results}) == 3


def test_sdk_reads_stored_sessions(harness):
    chosen = "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"
    result = only_result(
        run_query("remember this", harness.options(tool_call("Glob", pattern="*"), "I will.", session_id=chosen))
    )
    assert result.session_id == chosen
    (found,) = list_sessions(directory=str(harness.workspace))
    assert (found.session_id, found.first_prompt) == (chosen, "remember this")
    kinds = [message.type for message in get_session_messages(chosen, directory=str(harness.workspace))]
    assert kinds == ["user", "assistant", "user", "assistant"]
