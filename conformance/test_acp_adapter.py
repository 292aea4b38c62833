"""The ACP adapter for editors, `@agentclientprotocol/claude-agent-acp`."""

import asyncio
import json
import os
import threading

import pytest

from acp_client import AcpClient, AcpError
from harness import tool_call, wait_until
from mock_provider import Reply
from python_sdk import run_with_timeout

ADAPTER = "acp-adapter/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"
# Cancelled prompts in a row.
CANCEL_COUNT = 40


@pytest.fixture
def connect(programs, harness, provider):
    """Starts the adapter with our engine."""

    def start():
        env = dict(os.environ, CLAUDE_CODE_EXECUTABLE=str(harness.engine), ANTHROPIC_MODEL="claude-sonnet-4-5")
        return AcpClient(["node", programs.dir / ADAPTER], harness.workspace, env)

    return start


def reply_in_order(provider, *replies):
    """Serves these replies in the conversation. Beside it the adapter asks for a title, in a request without tools."""
    remaining = iter(replies)
    provider.respond = lambda request: next(remaining) if request.get("tools") else "A title"


def conversation_requests(provider):
    return [request for request in provider.requests if request.get("tools")]


def run_session(connect, script):
    """Runs a coroutine with an initialized client and a new session."""

    async def run():
        async with connect() as client:
            await client.initialize()
            return await script(client, await client.new_session())

    return run_with_timeout(run(), 50)


def test_reply_is_streamed_in_order(connect, provider):
    text = "A sentence that is longer than one delta."
    reply_in_order(provider, text)

    async def script(client, session):
        result = await client.prompt(session, "hi")
        assert result["stopReason"] == "end_turn"
        return client

    client = run_session(connect, script)
    assert client.text() == text
    assert len(client.updates_of_kind("agent_message_chunk")) > 1


def test_session_keeps_its_history(connect, provider):
    reply_in_order(provider, "one", "two")

    async def script(client, session):
        for prompt in ("the first question", "the second question"):
            await client.prompt(session, prompt)
        return client

    assert run_session(connect, script).text() == "onetwo"
    assert "the first question" in json.dumps(conversation_requests(provider)[1]["messages"])


@pytest.mark.parametrize(
    "choice, status, files", [("allow_once", "completed", ["made.txt"]), ("reject_once", "failed", [])]
)
def test_permission_request_decides(connect, provider, harness, choice, status, files):
    reply_in_order(provider, tool_call("Bash", command="touch made.txt"), "Done.")

    async def script(client, session):
        client.choice = choice
        result = await client.prompt(session, "go")
        assert result["stopReason"] in ("end_turn", "cancelled")
        return client

    client = run_session(connect, script)
    (request,) = client.permission_requests
    ((call_id, call),) = client.tool_calls().items()
    assert (request["toolCall"]["toolCallId"], call["status"]) == (call_id, status)
    assert request["toolCall"]["rawInput"] == {"command": "touch made.txt"}
    assert [path.name for path in harness.workspace.iterdir()] == files


def test_cancel_right_behind_a_prompt_is_never_an_error(connect, provider):
    gate = threading.Event()
    provider.respond = lambda request: Reply(["never complete"], gate=gate) if request.get("tools") else "A title"

    async def script(client, session):
        reasons = []
        for number in range(CANCEL_COUNT):
            running = client.prompt(session, f"prompt {number}")
            # Lets the engine proceed to another point each time.
            for _ in range(number % 8):
                await asyncio.sleep(0.002)
            client.notify("session/cancel", sessionId=session)
            reasons.append((await running)["stopReason"])
        # The same for every request: that of the last cancelled prompt may still be on its way.
        provider.respond = lambda request: "still here"
        seen = len(client.updates)
        last = await client.prompt(session, "and now?")
        return reasons, last["stopReason"], client.text(since=seen)

    try:
        reasons, last, text = run_session(connect, script)
    finally:
        gate.set()
    assert reasons == ["cancelled"] * CANCEL_COUNT
    assert (last, text) == ("end_turn", "still here")


def test_cancel_during_a_command_kills_it(connect, provider, harness):
    reply_in_order(provider, tool_call("Bash", command="touch begun; sleep 600"), "again")

    def has_ended():
        return not any("sleep 600" in line for line in harness.running_processes().values())

    async def script(client, session):
        client.choice = "allow_once"
        running = client.prompt(session, "go")
        await asyncio.to_thread(wait_until, (harness.workspace / "begun").exists, "the command to begin")
        client.notify("session/cancel", sessionId=session)
        result = await running
        await asyncio.to_thread(wait_until, has_ended, "the command to end")
        (call,) = client.tool_calls().values()
        last = await client.prompt(session, "and now?")
        return result["stopReason"], call["status"], last["stopReason"]

    assert run_session(connect, script) == ("cancelled", "failed", "end_turn")


def test_mode_switch_applies_to_the_next_call(connect, provider, harness):
    write = {"file_path": str(harness.workspace / "made.txt"), "content": "x"}
    reply_in_order(provider, tool_call("Write", **write), "Denied.", tool_call("Write", **write), "Done.")

    async def script(client, session):
        await client.prompt(session, "go")
        asked = len(client.permission_requests)
        await client.send("session/set_mode", sessionId=session, modeId="acceptEdits")
        await client.prompt(session, "again")
        return asked, len(client.permission_requests)

    assert run_session(connect, script) == (1, 1)
    assert (harness.workspace / "made.txt").read_text() == "x"


def test_unknown_mode_is_rejected(connect):
    async def script(client, session):
        with pytest.raises(AcpError, match="yolo"):
            await client.send("session/set_mode", sessionId=session, modeId="yolo")

    run_session(connect, script)


def test_loaded_session_is_replayed_and_continued(connect, provider):
    look = ["I look.", *tool_call("Bash", command="echo from the command")]
    reply_in_order(provider, look, "There it is.", "Yes.")

    async def before(client, session):
        client.choice = "allow_once"
        await client.prompt(session, "the first question")
        return session

    session = run_session(connect, before)

    async def load():
        async with connect() as client:
            await client.initialize()
            await client.send("session/load", sessionId=session, cwd=str(client.cwd), mcpServers=[])
            replayed = client.text("user_message_chunk"), client.text(), list(client.tool_calls().values())
            await client.prompt(session, "the second question")
            return replayed

    prompts, replies, calls = run_with_timeout(load())
    assert (prompts, replies) == ("the first question", "I look.There it is.")
    assert [call["status"] for call in calls] == ["completed"]
    assert "from the command" in json.dumps(calls)
    sent = json.dumps(conversation_requests(provider)[2]["messages"])
    assert all(text in sent for text in ("the first question", "from the command", "There it is."))
