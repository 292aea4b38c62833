"""`whimbrel acp` and sessions: several at a time, resumed, loaded while they work, and their servers and processes."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from acp import schema
from acp_client import AcpClient, AcpError
from acp_editor import open_editor, run
from harness import TIMEOUT, tool_call, wait_until

SERVER = Path(__file__).with_name("acp_mcp_server.py")


def server(name, **variables):
    variables = [schema.EnvVariable(name=variable, value=value) for variable, value in variables.items()]
    return schema.McpServerStdio(name=name, command=sys.executable, args=[str(SERVER), name], env=variables)


def test_sessions_work_side_by_side(harness):
    async def journey():
        command = tool_call("Bash", command="mkfifo gate; cat gate")
        async with open_editor(harness, command, "Two.", "One.") as editor:
            first, second = [await editor.new_session() for _ in range(2)]
            waiting = asyncio.create_task(editor.prompt(first, "go"))
            gate = harness.workspace / "gate"
            await editor.wait_for(gate.exists, "the command")
            assert await editor.prompt(second, "go") == "end_turn"
            assert (editor.text(first), editor.text(second)) == ("", "Two.")
            await asyncio.to_thread(gate.write_text, "open\n")
            assert await waiting == "end_turn" and editor.text(first) == "One."

    run(journey())


def test_resumed_session_remembers_and_is_not_shown(harness):
    async def journey():
        async with open_editor(harness, "One.") as editor:
            session = await editor.new_session()
            await editor.prompt(session, "I am Ann.")
        async with open_editor(harness, {"expect": "I am Ann.", "content": ["Ann."]}) as editor:
            folder = str(harness.workspace)
            await editor.connection.resume_session(session_id=session, cwd=folder, mcp_servers=[])
            assert await editor.prompt(session, "Who am I?") == "end_turn"
            assert (editor.text(session, "user_message_chunk"), editor.text(session)) == ("", "Ann.")

    run(journey())


def test_load_during_a_turn_shows_what_runs(harness):
    call = ["I look.", *tool_call("Bash", command="mkfifo gate; printf 'be%s\\n' fore; cat gate")]

    async def journey():
        async with open_editor(harness, call, "Done.") as editor:
            session = await editor.new_session()
            turn = asyncio.create_task(editor.prompt(session, "go"))
            shown = lambda: [call["contents"] for call in editor.calls(session)]
            await editor.wait_for(lambda: "before" in json.dumps(shown()), "output")
            await editor.load(session)
            (running,) = editor.calls(session)
            assert running["statuses"] == ["in_progress"] and "before" in json.dumps(running["contents"])
            assert editor.text(session) == "I look."
            await asyncio.to_thread((harness.workspace / "gate").write_text, "after\n")
            assert await turn == "end_turn"
            assert editor.calls(session)[0]["status"] == "completed"
            assert editor.text(session) == "I look.Done."

    run(journey())


def test_background_command_ends_in_a_loaded_session(harness):
    command = tool_call("Bash", command="sleep 600", run_in_background=True)
    capabilities = {"_meta": {"terminal_output": True}}

    async def journey():
        async with open_editor(harness, command, "It runs.", capabilities=capabilities) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            await editor.load(session)
            assert "terminal_exit" not in editor.calls(session)[0]["_meta"], "it runs"
        async with open_editor(harness, "unused", capabilities=capabilities) as editor:
            await editor.load(session)
            (call,) = editor.calls(session)
            assert "terminal_exit" in call["_meta"] and call["_meta"]["terminal_output"]["data"]

    run(journey())


def test_background_work_is_reported_without_a_prompt(harness):
    command = tool_call("Bash", command="mkfifo gate; cat gate", run_in_background=True)
    followed = tool_call("Bash", command="touch followed")

    async def journey():
        async with open_editor(harness, command, "It runs.", followed, "It has ended.") as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            assert editor.text(session) == "It runs."
            gate = harness.workspace / "gate"
            await editor.wait_for(gate.exists, "the command")
            await asyncio.to_thread(gate.write_text, "open\n")
            await editor.wait_for(lambda: editor.text(session) == "It runs.It has ended.", "the turn of the engine")
            assert [request["call"]["title"] for request in editor.window.requests][-1] == "touch followed"
            assert (harness.workspace / "followed").exists()

    run(journey())


def test_calls_of_subagents_are_replayed(harness):
    file = harness.workspace / "notes.txt"
    file.write_text("beta\n")
    replies = [
        tool_call("Agent", description="look around", prompt="Look.", subagent_type="general-purpose"),
        tool_call("Read", file_path=str(file)),
        "Found it.",
        "Done.",
    ]

    def shown(editor, session):
        calls = editor.calls(session)
        parent = lambda call: call["_meta"]["claudeCode"].get("parentToolUseId")
        return [(call["title"], call["status"], parent(call)) for call in calls]

    async def journey():
        async with open_editor(harness, *replies) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            live = shown(editor, session)
        agent = editor.calls(session)[0]["toolCallId"]
        assert live == [("look around", "completed", None), ("Read notes.txt", "completed", agent)]
        async with open_editor(harness, "unused") as editor:
            await editor.load(session)
            assert shown(editor, session) == live
            assert editor.text(session) == "Done.", "the text of a subagent is not that of the session"

    run(journey())


def raw_client(harness, *replies):
    """A client that sends and gets what the official one does not know."""
    environment = harness.env() | {"ANTHROPIC_MODEL": harness.write_script(*replies)}
    return AcpClient([harness.engine, "acp"], harness.workspace, environment)


def raw_server(name, **variables):
    env = [{"name": variable, "value": value} for variable, value in variables.items()]
    return {"name": name, "command": sys.executable, "args": [str(SERVER), name], "env": env}


def test_server_of_the_editor_replaces_a_configured_one(harness):
    configured = {"command": sys.executable, "args": [str(SERVER), "configured"]}
    (harness.home / ".claude.json").write_text(json.dumps({"mcpServers": {"notes": configured}}))

    async def journey():
        async with raw_client(harness, tool_call("mcp__notes__who"), "Done.") as client:
            client.choice = "allow_once"
            await client.initialize(session={"notices": {}})
            servers = [raw_server("notes", SERVER_SECRET="hush")]
            made = await client.send("session/new", cwd=str(harness.workspace), mcpServers=servers)
            assert (await client.prompt(made["sessionId"], "go"))["stopReason"] == "end_turn"
            assert "notes with hush" in json.dumps(client.tool_calls())
            titles = [notice["title"] for notice in client.updates_of_kind("notice")]
            assert any("replace" in title and "notes" in title for title in titles), titles

    run(journey())


def test_question_of_a_server_is_a_form(harness):
    async def journey():
        capabilities = {"elicitation": {"form": {}}}
        async with open_editor(harness, tool_call("mcp__asker__ask"), "Done.", capabilities=capabilities) as editor:
            editor.window.fill_form = lambda fields: {next(iter(fields)): "green"}
            session = await editor.new_session(mcp_servers=[server("asker")])
            assert await editor.prompt(session, "go") == "end_turn"
            assert "green" in json.dumps(editor.calls(session)[0]["contents"])

    run(journey())


def processes_left(harness):
    return [line for line in harness.running_processes().values() if "sleep 600" in line or SERVER.name in line]


def test_closed_session_leaves_nothing(harness):
    command = tool_call("Bash", command="touch begun; sleep 600")

    async def journey():
        async with open_editor(harness, command) as editor:
            session = await editor.new_session(mcp_servers=[server("notes")])
            turn = asyncio.create_task(editor.prompt(session, "go"))
            await editor.wait_for((harness.workspace / "begun").exists, "the command")
            assert len(processes_left(harness)) >= 2
            await editor.connection.close_session(session_id=session)
            assert await turn == "cancelled"
            await editor.wait_for(lambda: not processes_left(harness), "the processes of the session to end")

    run(journey())


def test_killed_agent_leaves_nothing(harness):
    async def journey():
        client = raw_client(harness, tool_call("Bash", command="touch begun; sleep 600"))
        client.choice = "allow_once"
        await client.__aenter__()
        await client.initialize()
        servers = [raw_server("notes")]
        made = await client.send("session/new", cwd=str(harness.workspace), mcpServers=servers)
        turn = client.prompt(made["sessionId"], "go")
        while not (harness.workspace / "begun").exists():
            await asyncio.sleep(0.01)
        assert len(processes_left(harness)) >= 2
        client.process.kill()
        with pytest.raises(AcpError):
            await turn
        await client.process.wait()

    run(journey())
    wait_until(lambda: not processes_left(harness), "everything to end")


def test_bad_line_and_other_version_are_answered(harness):
    async def journey():
        pipe = asyncio.subprocess.PIPE
        env = harness.env() | {"ANTHROPIC_MODEL": harness.write_script("unused")}
        process = await asyncio.create_subprocess_exec(
            harness.engine, "acp", cwd=harness.workspace, env=env, stdin=pipe, stdout=pipe
        )

        async def ask(line):
            process.stdin.write(line + b"\n")
            return json.loads(await asyncio.wait_for(process.stdout.readline(), TIMEOUT))

        for bad in (b"no JSON", b"\xff", b'{"jsonrpc": "2.0"'):
            answer = await ask(bad)
            assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        params = {"protocolVersion": 99, "clientCapabilities": {}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await ask(json.dumps(request).encode())
        assert answer["result"]["protocolVersion"] == 1, "our newest"
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), TIMEOUT) == 0

    run(journey())
