"""Methods of the PyPI SDK on a running session: interrupt, changes, queries."""

import asyncio

import pytest
from claude_agent_sdk import ClaudeSDKClient, StreamEvent, UserMessage

from harness import tool_call, wait_until
from python_sdk import assistant_text, only_result, run_turn, run_with_timeout, system_data, tool_results

MODEL, OTHER_MODEL = "claude-haiku-4-5", "claude-opus-4-5"


def test_interrupt_during_reply_keeps_the_session(harness):
    async def run_session():
        model = harness.write_script(
            "word " * 500, {"expect": "[Request interrupted by user]", "content": ["next"]}, pace_ms=10
        )
        async with ClaudeSDKClient(harness.options(model=model, include_partial_messages=True)) as client:
            await client.query("go")
            first, interrupted = [], False
            async for message in client.receive_response():
                first.append(message)
                if (
                    isinstance(message, StreamEvent)
                    and message.event["type"] == "content_block_delta"
                    and not interrupted
                ):
                    interrupted = True
                    await client.interrupt()
            return first, await run_turn(client, "and now?")

    first, second = run_with_timeout(run_session())
    result = only_result(first)
    assert (result.subtype, result.is_error, result.terminal_reason) == (
        "error_during_execution",
        True,
        "aborted_streaming",
    )
    assert "word" in assistant_text(first)
    assert len(assistant_text(first)) < 2500
    assert only_result(second).result == "next"


def test_interrupt_kills_the_running_command(harness):
    async def run_session():
        replies = (tool_call("Bash", command="touch begun; sleep 600"), "next")
        async with ClaudeSDKClient(harness.options(*replies, permission_mode="bypassPermissions")) as client:
            await client.query("go")
            await asyncio.to_thread(wait_until, (harness.workspace / "begun").exists, "the command to begin")
            await client.interrupt()
            first = [message async for message in client.receive_response()]
            await asyncio.to_thread(
                wait_until,
                lambda: not any("sleep 600" in line for line in harness.running_processes().values()),
                "the command to exit",
            )
            return first, await run_turn(client, "and now?")

    first, second = run_with_timeout(run_session())
    (outcome,) = tool_results(first)
    assert outcome.failed
    assert only_result(first).terminal_reason == "aborted_tools"
    assert only_result(second).result == "next"


def test_interrupt_without_a_turn_is_no_error(harness):
    async def run_session():
        async with ClaudeSDKClient(harness.options("hi")) as client:
            await client.interrupt()
            return await run_turn(client, "hello")

    assert only_result(run_with_timeout(run_session())).result == "hi"


def test_set_model_applies_from_the_next_turn(harness, provider):
    provider.replies = ["one", "two", "three"]

    async def run_session():
        async with ClaudeSDKClient(harness.options(model=MODEL)) as client:
            turns = [await run_turn(client, "first")]
            await client.set_model(OTHER_MODEL)
            turns.append(await run_turn(client, "second"))
            await client.set_model(None)
            return [*turns, await run_turn(client, "third")]

    turns = run_with_timeout(run_session())
    assert [request["model"] for request in provider.requests] == [MODEL, OTHER_MODEL, MODEL]
    assert [system_data(messages, "init")[0]["model"] for messages in turns] == [MODEL, OTHER_MODEL, MODEL]
    assert set(only_result(turns[1]).model_usage) == {MODEL, OTHER_MODEL}


def test_set_permission_mode_applies_and_bypass_needs_its_flag(harness):
    write = tool_call("Write", file_path="a.txt", content="x")

    async def run_session():
        async with ClaudeSDKClient(harness.options(write, "denied", write, "done")) as client:
            before = await run_turn(client, "go")
            with pytest.raises(Exception, match="--allow-dangerously-skip-permissions"):
                await client.set_permission_mode("bypassPermissions")
            await client.set_permission_mode("acceptEdits")
            return before, await run_turn(client, "again")

    before, after = run_with_timeout(run_session())
    assert tool_results(before)[0].failed
    assert not tool_results(after)[0].failed
    assert system_data(after, "init")[0]["permissionMode"] == "acceptEdits"


def test_server_info_and_mcp_status_are_reported(harness, provider):
    async def run_session():
        async with ClaudeSDKClient(harness.options(model=MODEL)) as client:
            return await client.get_server_info(), await client.get_mcp_status()

    info, servers = run_with_timeout(run_session())
    assert info["account"]["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert info["output_style"] == "default"
    assert all(model["value"] and model["displayName"] for model in info["models"])
    assert info["models"]
    assert servers == {"mcpServers": []}


def test_context_usage_and_unknown_server_error(harness):
    async def run_session():
        async with ClaudeSDKClient(harness.options("hi")) as client:
            usage = await client.get_context_usage()
            assert usage["totalTokens"] > 0 and usage["categories"]
            with pytest.raises(Exception, match="Server not found: nowhere"):
                await client.reconnect_mcp_server("nowhere")
            return await run_turn(client, "hello")

    assert only_result(run_with_timeout(run_session())).result == "hi"


def test_rewind_restores_files(harness):
    path = harness.workspace / "a.txt"
    path.write_text("before\n")

    async def run_session():
        replies = (
            tool_call("Read", file_path="a.txt"),
            tool_call("Edit", file_path="a.txt", old_string="before", new_string="after"),
            "Done.",
        )
        options = harness.options(
            *replies,
            permission_mode="acceptEdits",
            enable_file_checkpointing=True,
            extra_args={"replay-user-messages": None},
        )
        async with ClaudeSDKClient(options) as client:
            messages = await run_turn(client, "go")
            changed = path.read_text()
            prompt = next(m.uuid for m in messages if isinstance(m, UserMessage) and m.content == "go")
            await client.rewind_files(prompt)
            with pytest.raises(Exception, match="No file checkpoint"):
                await client.rewind_files("00000000-0000-4000-8000-000000000000")
            return changed

    assert run_with_timeout(run_session()) == "after\n"
    assert path.read_text() == "before\n"
