"""`whimbrel acp` with the official Python client of the Agent Client Protocol."""

import asyncio
import contextlib
import json
import signal
import subprocess

import acp
import pytest
from acp_editor import open_editor, run
from harness import TIMEOUT, tool_call, wait_until

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_reply_streams_and_the_session_remembers(harness):
    async def journey():
        async with open_editor(harness, "Hello, Ann.", {"expect": "I am Ann", "content": ["Ann."]}) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "I am Ann.") == "end_turn"
            assert editor.text(session) == "Hello, Ann."
            assert await editor.prompt(session, "Who am I?") == "end_turn"
            assert editor.text(session) == "Hello, Ann.Ann."
            ids = {update["messageId"] for update in editor.updates(session, "agent_message_chunk")}
            assert len(ids) == 2

    run(journey())


def test_call_is_asked_about_runs_and_shows_its_output(harness):
    command = tool_call("Bash", command="echo made > made.txt; echo shown")

    async def journey():
        async with open_editor(harness, command, command, "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "reject_once"
            assert await editor.prompt(session, "go") == "end_turn"
            assert not (harness.workspace / "made.txt").exists()

        async with open_editor(harness, command, "Done.", capabilities={"_meta": {"terminal_output": True}}) as editor:
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            assert (harness.workspace / "made.txt").read_text() == "made\n"
            (call,) = editor.calls(session)
            assert (call["title"], call["kind"]) == ("echo made > made.txt; echo shown", "execute")
            assert call["statuses"] == ["in_progress", "completed"]
            assert call["_meta"]["terminal_output"]["data"] == "shown\n"
            assert call["_meta"]["terminal_exit"]["exit_code"] == 0
            (request,) = editor.window.requests
            kinds = [option["kind"] for option in request["options"]]
            assert (kinds[0], kinds[-1]) == ("allow_once", "reject_once")

    run(journey())


def test_question_that_was_open_at_a_kill_is_asked_again(harness):
    command = tool_call("Bash", command="echo made > made.txt")

    async def journey():
        # The client still writes to the agent that is gone.
        with contextlib.suppress(ConnectionError):
            async with open_editor(harness, command, exit_code=-signal.SIGKILL) as editor:
                session = await editor.new_session()
                editor.window.choice = "wait"
                turn = asyncio.create_task(editor.prompt(session, "go"))
                await editor.wait_for(lambda: editor.window.requests, "the question")
                (asked,) = editor.window.requests
                editor.process.kill()
                turn.cancel()
                editor.window.choice = "cancelled"

        async with open_editor(harness, "It is made.") as editor:
            folder = str(editor.folder)
            await editor.connection.load_session(session_id=session, cwd=folder, mcp_servers=[])
            await editor.wait_for(lambda: "It is made." in editor.text(session), "the end of the turn")
            (again,) = editor.window.requests
            assert again["call"]["toolCallId"] == asked["call"]["toolCallId"]
            assert (harness.workspace / "made.txt").read_text() == "made\n"

    run(journey())


def test_output_arrives_while_a_command_runs(harness):
    command = tool_call("Bash", command="mkfifo gate; echo before; cat gate")

    async def journey():
        async with open_editor(harness, command, "Done.") as editor:
            session = await editor.new_session()
            turn = asyncio.create_task(editor.prompt(session, "go"))
            shown = lambda: [call["contents"] for call in editor.calls(session)]
            await editor.wait_for(lambda: "before" in json.dumps(shown()), "output")
            assert editor.calls(session)[0]["statuses"] == ["in_progress"]
            await asyncio.to_thread((harness.workspace / "gate").write_text, "after\n")
            assert await turn == "end_turn"
            assert "before\nafter" in editor.calls(session)[0]["contents"][-1]["content"]["text"]

    run(journey())


def test_edit_is_a_diff_in_the_question_and_in_the_result(harness):
    file = harness.workspace / "code.py"
    file.write_text("first = 1\nsecond = 2\n")
    replies = [
        tool_call("Read", file_path=str(file)),
        tool_call("Edit", file_path=str(file), old_string="second = 2", new_string="second = 3"),
        "Done.",
    ]

    async def journey():
        async with open_editor(harness, *replies) as editor:
            session = await editor.new_session()
            await editor.prompt(session, "go")
            (request,) = editor.window.requests
            (asked,) = request["call"]["content"]
            assert (asked["oldText"], asked["newText"]) == ("second = 2", "second = 3")
            call = editor.calls(session)[1]
            assert call["contents"][-1]["newText"] == "first = 1\nsecond = 3"
            assert call["locations"] == [{"path": str(file), "line": 2}]

    run(journey())


@pytest.mark.parametrize("busy_with", ["a command", "a question", "a reply"])
def test_cancel_ends_the_turn_and_the_next_one_works(harness, busy_with):
    first = {
        "a command": tool_call("Bash", command="sleep 600"),
        "a question": tool_call("Bash", command="touch never.txt"),
        "a reply": ["a long story " * 500],
    }[busy_with]

    async def journey():
        async with open_editor(harness, first, "Again.", pace_ms=20) as editor:
            session = await editor.new_session()
            if busy_with == "a question":
                editor.window.choice = "wait"
            turn = asyncio.create_task(editor.prompt(session, "go"))
            queued = asyncio.create_task(editor.prompt(session, "and then"))
            if busy_with == "a command":
                ready = lambda: "in_progress" in json.dumps(editor.calls(session))
                await editor.wait_for(ready, "the command")
            elif busy_with == "a question":
                await editor.wait_for(lambda: editor.window.requests, "the question")
            else:
                await editor.wait_for(lambda: editor.text(session), "the beginning of the reply")
            await editor.connection.cancel(session_id=session)
            editor.window.choice = "cancelled"
            assert [await turn, await queued] == ["cancelled", "cancelled"]
            assert all(call["statuses"][-1] == "failed" for call in editor.calls(session))
            assert not (harness.workspace / "never.txt").exists()
            editor.window.choice = "allow_once"
            assert await editor.prompt(session, "again") == "end_turn"

    run(journey())


def test_modes_and_options_are_kept_in_step(harness):
    async def journey():
        async with open_editor(harness, "Hello.") as editor:
            made = await editor.connection.new_session(cwd=str(harness.workspace), mcp_servers=[])
            session = made.session_id
            assert [option.id for option in made.config_options][:2] == ["mode", "model"]
            answer = await editor.connection.set_config_option(config_id="mode", session_id=session, value="plan")
            assert answer.config_options[0].current_value == "plan"
            (changed,) = editor.updates(session, "current_mode_update")
            assert changed["currentModeId"] == "plan"
            await editor.connection.set_session_mode(session_id=session, mode_id="acceptEdits")
            assert editor.updates(session, "config_option_update")[-1]["configOptions"][0]["currentValue"] == "acceptEdits"
            with pytest.raises(acp.RequestError) as wrong:
                await editor.connection.set_session_mode(session_id=session, mode_id="yolo")
            assert wrong.value.code == -32602

    run(journey())


def test_plan_is_accepted_and_the_mode_follows(harness):
    async def journey():
        async with open_editor(harness, tool_call("ExitPlanMode", plan="# Plan"), "Done.") as editor:
            session = await editor.new_session()
            await editor.connection.set_session_mode(session_id=session, mode_id="plan")
            editor.window.choice = "allow_always"
            await editor.prompt(session, "go")
            (request,) = editor.window.requests
            assert request["call"]["content"][0]["content"]["text"] == "# Plan"
            assert editor.updates(session, "current_mode_update")[-1]["currentModeId"] == "acceptEdits"

    run(journey())


def test_questions_of_the_model_are_a_form(harness):
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"question": "Which color?", "header": "Color", "options": options, "multiSelect": False}
    replies = [tool_call("AskUserQuestion", questions=[question]), {"expect": "Blue", "content": ["Blue it is."]}]

    async def journey():
        async with open_editor(harness, *replies, capabilities={"elicitation": {"form": {}}}) as editor:
            editor.window.fill_form = lambda fields: {next(iter(fields)): "Blue"}
            session = await editor.new_session()
            assert await editor.prompt(session, "go") == "end_turn"
            assert editor.text(session) == "Blue it is."

    run(journey())


def test_session_goes_on_in_the_terminal_and_back(harness):
    def ask_in_terminal(reply, *flags):
        command = [harness.engine, "-p", "--model", harness.write_script(reply), "--output-format", "json", *flags, "hi"]
        done = subprocess.run(command, cwd=harness.workspace, env=harness.env(), capture_output=True, timeout=TIMEOUT)
        return json.loads(done.stdout)

    async def journey():
        file = harness.workspace / "notes.txt"
        file.write_text("beta\n")
        async with open_editor(harness, tool_call("Read", file_path=str(file)), "From the editor.") as editor:
            session = await editor.new_session()
            await editor.prompt(session, "first")
            live = editor.calls(session)
        reply = {"expect": "From the editor.", "content": ["From the terminal."]}
        assert ask_in_terminal(reply, "--resume", session)["result"] == "From the terminal."
        async with open_editor(harness, {"expect": "From the terminal.", "content": ["Both."]}) as editor:
            listed = await editor.connection.list_sessions(cwd=str(harness.workspace))
            assert [found.session_id for found in listed.sessions] == [session]
            for _ in range(10):
                await editor.load(session)
                assert editor.text(session) == "From the editor.From the terminal."
                assert editor.text(session, "user_message_chunk") == "firsthi"
                (call,) = editor.calls(session)
                assert (call["title"], call["status"]) == ("Read notes.txt", "completed")
                assert call["content"] == live[0]["content"]
            assert await editor.prompt(session, "and?") == "end_turn"

    run(journey())


def test_session_is_copied_closed_and_deleted(harness):
    async def journey():
        async with open_editor(harness, "One.", {"expect": "One.", "content": ["Two."]}) as editor:
            folder = str(harness.workspace)
            session = await editor.new_session()
            await editor.prompt(session, "first")
            copy = (await editor.connection.fork_session(session_id=session, cwd=folder, mcp_servers=[])).session_id
            assert await editor.prompt(copy, "second") == "end_turn"
            assert editor.text(copy) == "Two."
            await editor.connection.close_session(session_id=session)
            with pytest.raises(acp.RequestError) as gone:
                await editor.prompt(session, "third")
            assert gone.value.code == -32002
            request = editor.connection._conn.send_request
            for _ in range(2):
                await request("session/delete", {"sessionId": session})
            listed = await editor.connection.list_sessions(cwd=folder)
            assert [found.session_id for found in listed.sessions] == [copy]

    run(journey())


def test_bad_input_is_answered_and_the_connection_goes_on(harness):
    async def journey():
        async with open_editor(harness, "Still here.") as editor:
            request = editor.connection._conn.send_request
            rows = [
                ("no/such", {}, -32601),
                ("session/new", {}, -32602),
                ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
                ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, -32602),
                ("session/prompt", {"sessionId": UNKNOWN, "prompt": [{"type": "text", "text": "x"}]}, -32002),
                ("session/load", {"sessionId": UNKNOWN, "cwd": str(harness.workspace), "mcpServers": []}, -32002),
                ("session/list", {"cursor": "x"}, -32602),
                ("authenticate", {"methodId": "x"}, -32602),
            ]
            for method, params, code in rows:
                with pytest.raises(acp.RequestError) as wrong:
                    await request(method, params)
                assert wrong.value.code == code, method
            await editor.connection.cancel(session_id=UNKNOWN)
            session = await editor.new_session()
            assert await editor.prompt(session, "still there?") == "end_turn"

    run(journey())


@pytest.mark.parametrize("end", ["input", "signal"])
def test_everything_ends_with_the_connection(harness, end):
    async def journey():
        script = tool_call("Bash", command="sleep 600")
        async with open_editor(harness, script) as editor:
            session = await editor.new_session()
            turn = asyncio.create_task(editor.prompt(session, "go"))
            await editor.wait_for(lambda: "in_progress" in json.dumps(editor.calls(session)), "the command")
            if end == "signal":
                editor.process.send_signal(signal.SIGTERM)
            else:
                editor.process.stdin.close()
            assert await asyncio.wait_for(editor.process.wait(), TIMEOUT) == 0
            turn.cancel()

    run(journey())
    wait_until(lambda: not harness.running_processes(), "the command to end")


def test_missing_key_is_an_error_of_its_own(harness):
    async def journey():
        async with open_editor(harness, "unused", ANTHROPIC_MODEL="sonnet") as editor:
            session = await editor.new_session()
            with pytest.raises(acp.RequestError) as missing:
                await editor.prompt(session, "hi")
            assert missing.value.code == -32000 and "ANTHROPIC_API_KEY" in str(missing.value)

    run(journey())
