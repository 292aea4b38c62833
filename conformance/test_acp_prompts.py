"""`whimbrel acp` and prompts: what the model gets, cancelling, steering, and prompts that wait."""

import asyncio
import base64
import json

import acp
import pytest
from acp import schema
from acp_client import AcpClient
from acp_editor import open_editor, run, with_provider
from harness import tool_call
from mock_provider import Reply

CANCEL_ROUNDS = 20
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()


def conversation_requests(provider):
    """The requests with tools: others are small jobs beside the conversation."""
    return [request for request in provider.requests if request.get("tools")]


def user_blocks(request):
    return [block for message in request["messages"] if message["role"] == "user" for block in message["content"]]


def raw_client(harness, *replies, pace_ms=0):
    model = harness.write_script(*replies, pace_ms=pace_ms)
    return AcpClient([harness.engine, "acp"], harness.workspace, harness.env() | {"ANTHROPIC_MODEL": model})


def test_files_and_links_reach_the_model(harness, provider):
    provider.respond = lambda request: "Seen."
    resource = schema.TextResourceContents(uri="file:///w/unsaved.py", text="x = 1")

    async def journey():
        async with open_editor(harness, **with_provider(provider)) as editor:
            session = await editor.new_session()
            blocks = [
                acp.resource_block(schema.EmbeddedResource(type="resource", resource=resource).resource),
                acp.text_block("explain "),
                acp.resource_link_block("other.py", "file:///w/other.py"),
            ]
            assert await editor.prompt(session, *blocks) == "end_turn"
            texts = [block["text"] for block in user_blocks(conversation_requests(provider)[0]) if "text" in block]
            assert '<context ref="file:///w/unsaved.py">\nx = 1\n</context>' in texts
            assert "explain [other.py](/w/other.py)" in texts
            listed = await editor.connection.list_sessions(cwd=str(harness.workspace))
            assert listed.sessions[0].title == "explain [other.py](/w/other.py)"
            await editor.load(session)
            assert editor.text(session, "user_message_chunk") == "explain [other.py](/w/other.py)"

    run(journey())


def test_command_behind_a_picture_is_a_command(harness, provider):
    provider.respond = lambda request: "Hello."
    commands = harness.workspace / ".claude/commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("---\ndescription: Greets\nargument-hint: \"[name]\"\n---\nGREET $ARGUMENTS")

    async def journey():
        async with open_editor(harness, **with_provider(provider)) as editor:
            session = await editor.new_session()
            offered = lambda: editor.updates(session, "available_commands_update")
            await editor.wait_for(offered, "the commands")
            commands = {command["name"]: command for command in offered()[-1]["availableCommands"]}
            assert commands["greet"]["input"]["hint"] == "[name]" and "clear" not in commands
            picture = acp.image_block(PICTURE, "image/png")
            assert await editor.prompt(session, picture, "/greet Ada") == "end_turn"
            assert "GREET Ada" in json.dumps(conversation_requests(provider)[0]["messages"])

    run(journey())


def test_clear_is_refused_and_the_session_goes_on(harness):
    async def journey():
        async with open_editor(harness, "One.", {"expect": "first", "content": ["Two."]}) as editor:
            session = await editor.new_session()
            await editor.prompt(session, "first")
            with pytest.raises(acp.RequestError, match="new thread"):
                await editor.prompt(session, "/clear")
            assert await editor.prompt(session, "second") == "end_turn"
            await editor.load(session)
            assert editor.text(session) == "One.Two."

    run(journey())


def test_steering_comes_into_the_running_turn(harness):
    command = tool_call("Bash", command="mkfifo gate; cat gate")

    async def journey():
        async with open_editor(harness, command, {"expect": "be brief", "content": ["Brief."]}) as editor:
            session = await editor.new_session()
            turn = asyncio.create_task(editor.prompt(session, "go"))
            gate = harness.workspace / "gate"
            await editor.wait_for(gate.exists, "the command")
            block = {"type": "text", "text": "be brief"}
            await editor.request("_session/steering", sessionId=session, prompt=[block])
            await asyncio.to_thread(gate.write_text, "open\n")
            assert await turn == "end_turn"
            assert editor.text(session) == "Brief."
            with pytest.raises(acp.RequestError):
                await editor.request("_session/steering", sessionId=session, prompt=[block])

    run(journey())


def test_queued_prompts_have_answers_of_their_own(harness, provider):
    replies = iter([tool_call("Bash", command="mkfifo gate; cat gate")])
    provider.respond = lambda request: next(replies, "Said.") if request.get("tools") else "A title"

    async def journey():
        async with open_editor(harness, **with_provider(provider)) as editor:
            session = await editor.new_session()
            first = asyncio.create_task(editor.prompt(session, "the first"))
            gate = harness.workspace / "gate"
            await editor.wait_for(gate.exists, "the command")
            queued = [asyncio.create_task(editor.prompt(session, text)) for text in ("the second", "the third")]
            await asyncio.to_thread(gate.write_text, "open\n")
            assert [await turn for turn in (first, *queued)] == ["end_turn"] * 3
            # The engine takes prompts that wait together into one turn.
            texts = [block.get("text") for block in user_blocks(conversation_requests(provider)[-1])]
            assert [text for text in texts if text in ("the second", "the third")] == ["the second", "the third"]

    run(journey())


def test_cancel_right_behind_a_prompt(harness):
    async def journey():
        replies = [["a long story " * 500]] * CANCEL_ROUNDS
        async with raw_client(harness, *replies, "Still here.", pace_ms=20) as client:
            await client.initialize()
            session = await client.new_session()
            for _ in range(CANCEL_ROUNDS):
                turn = client.prompt(session, "go")
                client.notify("session/cancel", sessionId=session)
                assert (await turn)["stopReason"] == "cancelled"

    run(journey())


def test_withdrawn_request_cancels_its_prompt_only(harness):
    command = tool_call("Bash", command="touch begun; sleep 600")

    async def journey():
        async with raw_client(harness, command, "Two.") as client:
            client.choice = "allow_once"
            await client.initialize()
            session = await client.new_session()
            first = client.prompt(session, "one")
            number = next(number for number, future in client.pending.items() if future is first)
            while not (harness.workspace / "begun").exists():
                await asyncio.sleep(0.01)
            second = client.prompt(session, "two")
            client.notify("$/cancel_request", requestId=number)
            assert [(await turn)["stopReason"] for turn in (first, second)] == ["cancelled", "end_turn"]

    run(journey())


def test_model_and_effort_reach_the_model(harness, provider):
    provider.respond = lambda request: "Yes."

    async def journey():
        async with open_editor(harness, **with_provider(provider)) as editor:
            session = await editor.new_session()
            await editor.prompt(session, "one")
            set_option = editor.connection.set_config_option
            answer = await set_option(config_id="model", session_id=session, value="opus")
            levels = [option for option in answer.config_options if option.id == "effort"]
            assert levels, "the model has levels"
            await set_option(config_id="effort", session_id=session, value="low")
            await editor.prompt(session, "two")
            first, last = conversation_requests(provider)[0], conversation_requests(provider)[-1]
            assert "sonnet" in first["model"] and "opus" in last["model"]
            assert last["output_config"]["effort"] == "low"

    run(journey())


def test_usage_and_plan_are_shown(harness, provider):
    todos = [{"content": "Build", "activeForm": "Building", "status": "in_progress"}]
    replies = [
        Reply([{"name": "TodoWrite", "input": {"todos": todos}}], {"input_tokens": 1000, "output_tokens": 10}),
        Reply(["Done."], {"input_tokens": 2000, "output_tokens": 20}),
    ]
    waiting = iter(replies)
    provider.respond = lambda request: next(waiting) if request.get("tools") else "A title"

    async def journey():
        variables = with_provider(provider) | {"CLAUDE_CODE_ENABLE_TASKS": "0"}
        async with open_editor(harness, **variables) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            usage = editor.updates(session, "usage_update")
            assert usage[-1]["used"] == 2020 and usage[-1]["size"] > 2020
            assert usage[-1]["cost"]["currency"] == "USD" and usage[-1]["cost"]["amount"] > 0
            (plan,) = editor.updates(session, "plan")
            assert [(entry["content"], entry["status"]) for entry in plan["entries"]] == [("Building", "in_progress")]
            assert editor.calls(session) == [], "the list is shown as the plan"

    run(journey())


def test_variables_of_the_editor_win_over_settings(harness, provider):
    provider.respond = lambda request: "Reached."
    settings = harness.home / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "no"}}))

    async def journey():
        async with open_editor(harness, **with_provider(provider)) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            assert editor.text(session) == "Reached."

    run(journey())
