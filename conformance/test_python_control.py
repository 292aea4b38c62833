"""The PyPI SDK's methods on a running session: interrupt, switches, questions."""

import asyncio

import pytest
from claude_agent_sdk import ClaudeSDKClient, StreamEvent, UserMessage

from caller import in_time, notices, said, the_result, tool_results, turn
from stage import call, wait_until

MODEL, OTHER_MODEL = "claude-haiku-4-5", "claude-opus-4-5"


def test_an_interrupt_in_the_middle_of_a_reply_ends_the_turn_and_not_the_session(stage):
    async def talk():
        model = stage.script(
            "word " * 500, {"expect": "[Request interrupted by user]", "content": ["next"]}, pace_ms=10
        )
        async with ClaudeSDKClient(stage.options(model=model, include_partial_messages=True)) as client:
            await client.query("go")
            first, asked = [], False
            async for message in client.receive_response():
                first.append(message)
                if (
                    isinstance(message, StreamEvent)
                    and message.event["type"] == "content_block_delta"
                    and not asked
                ):
                    asked = True
                    await client.interrupt()
            return first, await turn(client, "and now?")

    first, second = in_time(talk())
    end = the_result(first)
    assert (end.subtype, end.is_error, end.terminal_reason) == (
        "error_during_execution",
        True,
        "aborted_streaming",
    )
    assert "word" in said(first)
    assert len(said(first)) < 2500
    assert the_result(second).result == "next"


def test_an_interrupt_in_the_middle_of_a_command_kills_it(stage):
    async def talk():
        replies = (call("Bash", command="touch begun; sleep 600"), "next")
        async with ClaudeSDKClient(stage.options(*replies, permission_mode="bypassPermissions")) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, (stage.workspace / "begun").exists, "the command to begin")
            await client.interrupt()
            first = [message async for message in client.receive_response()]
            await asyncio.to_thread(
                wait_until,
                lambda: not any("sleep 600" in line for line in stage.processes().values()),
                "the command to be gone",
            )
            return first, await turn(client, "and now?")

    first, second = in_time(talk())
    (cut_off,) = tool_results(first)
    assert cut_off.failed
    assert the_result(first).terminal_reason == "aborted_tools"
    assert the_result(second).result == "next"


def test_an_interrupt_with_nothing_to_interrupt_is_no_error(stage):
    async def talk():
        async with ClaudeSDKClient(stage.options("hi")) as client:
            await client.interrupt()
            return await turn(client, "hello")

    assert the_result(in_time(talk())).result == "hi"


def test_a_switched_model_is_asked_from_the_next_turn_on(stage, provider):
    provider.replies = ["one", "two", "three"]

    async def talk():
        async with ClaudeSDKClient(stage.options(model=MODEL)) as client:
            turns = [await turn(client, "first")]
            await client.set_model(OTHER_MODEL)
            turns.append(await turn(client, "second"))
            await client.set_model(None)
            return [*turns, await turn(client, "third")]

    turns = in_time(talk())
    assert [request["model"] for request in provider.requests] == [MODEL, OTHER_MODEL, MODEL]
    assert [notices(messages, "init")[0]["model"] for messages in turns] == [MODEL, OTHER_MODEL, MODEL]
    assert set(the_result(turns[1]).model_usage) == {MODEL, OTHER_MODEL}


def test_a_switched_mode_counts_from_then_on_and_bypassing_needs_its_flag(stage):
    write = call("Write", file_path="a.txt", content="x")

    async def talk():
        async with ClaudeSDKClient(stage.options(write, "refused", write, "done")) as client:
            before = await turn(client, "go")
            with pytest.raises(Exception, match="--allow-dangerously-skip-permissions"):
                await client.set_permission_mode("bypassPermissions")
            await client.set_permission_mode("acceptEdits")
            return before, await turn(client, "again")

    before, after = in_time(talk())
    assert tool_results(before)[0].failed
    assert not tool_results(after)[0].failed
    assert notices(after, "init")[0]["permissionMode"] == "acceptEdits"


def test_the_session_tells_what_it_is_and_what_it_has(stage, provider):
    async def talk():
        async with ClaudeSDKClient(stage.options(model=MODEL)) as client:
            return await client.get_server_info(), await client.get_mcp_status()

    info, servers = in_time(talk())
    assert info["account"]["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert info["output_style"] == "default"
    assert all(model["value"] and model["displayName"] for model in info["models"])
    assert info["models"]
    assert servers == {"mcpServers": []}


def test_the_context_is_shown_and_an_unknown_server_is_refused_by_name(stage):
    async def talk():
        async with ClaudeSDKClient(stage.options("hi")) as client:
            usage = await client.get_context_usage()
            assert usage["totalTokens"] > 0 and usage["categories"]
            with pytest.raises(Exception, match="Server not found: nowhere"):
                await client.reconnect_mcp_server("nowhere")
            return await turn(client, "hello")

    assert the_result(in_time(talk())).result == "hi"


def test_files_go_back_to_how_they_were_at_a_prompt(stage):
    path = stage.workspace / "a.txt"
    path.write_text("before\n")

    async def talk():
        replies = (
            call("Read", file_path="a.txt"),
            call("Edit", file_path="a.txt", old_string="before", new_string="after"),
            "Done.",
        )
        options = stage.options(
            *replies,
            permission_mode="acceptEdits",
            enable_file_checkpointing=True,
            extra_args={"replay-user-messages": None},
        )
        async with ClaudeSDKClient(options) as client:
            messages = await turn(client, "go")
            changed = path.read_text()
            prompt = next(m.uuid for m in messages if isinstance(m, UserMessage) and m.content == "go")
            await client.rewind_files(prompt)
            with pytest.raises(Exception, match="No file checkpoint"):
                await client.rewind_files("00000000-0000-4000-8000-000000000000")
            return changed

    assert in_time(talk()) == "after\n"
    assert path.read_text() == "before\n"
