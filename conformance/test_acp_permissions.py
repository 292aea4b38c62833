"""`whimbrel acp` and permissions: what "always" allows, and which other questions it answers."""

import asyncio
import json
import os

from acp_editor import open_editor, run
from harness import tool_call


def kinds(request):
    return [option["kind"] for option in request["options"]]


def test_always_answers_only_the_questions_that_it_covers(harness):
    first, second = harness.root / "first", harness.root / "second"
    for folder in (first, second):
        folder.mkdir()
    files = [first / "a.txt", first / "b.txt", second / "link"]
    for file in files[:2]:
        file.write_text("text")
    # To read it for good, both folders have to be allowed.
    files[2].symlink_to(files[0])
    reads = [block for file in files for block in tool_call("Read", file_path=str(file))]

    async def journey():
        async with open_editor(harness, reads, "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "wait"
            turn = asyncio.create_task(editor.prompt(session, "go"))
            await editor.wait_for(lambda: len(editor.window.requests) == 3, "three questions")
            editor.window.choices[f"Read {files[0]}"] = "allow_always"
            ended = lambda: [call["title"] for call in editor.calls(session) if call.get("status") == "completed"]
            await editor.wait_for(lambda: len(ended()) == 2, "the calls that are covered")
            assert sorted(ended()) == [f"Read {file}" for file in files[:2]]
            editor.window.choices[f"Read {files[2]}"] = "reject_once"
            assert await turn == "end_turn"
            assert editor.calls(session)[2]["status"] == "failed", "a part of what it needs is not enough"

    run(journey())


def test_always_for_an_edit_outside_does_not_ask_again(harness):
    folder = harness.root / "outside"
    folder.mkdir()
    writes = [tool_call("Write", file_path=str(folder / name), content="x") for name in ("one", "two")]

    async def journey():
        async with open_editor(harness, *writes, "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "allow_always"
            assert await editor.prompt(session, "go") == "end_turn"
            (request,) = editor.window.requests
            (always,) = [option["name"] for option in request["options"] if option["kind"] == "allow_always"]
            assert str(folder) in always and "edits" in always
            assert sorted(file.name for file in folder.iterdir()) == ["one", "two"]

    run(journey())


def test_always_is_kept_for_the_project(harness):
    commands = [tool_call("Bash", command=f"touch {name}") for name in ("one", "two")]

    async def journey():
        async with open_editor(harness, commands[0], "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "allow_always"
            assert await editor.prompt(session, "go") == "end_turn"
        rules = json.loads((harness.workspace / ".claude/settings.local.json").read_text())
        assert rules["permissions"]["allow"], "the rule is in the settings"

    run(journey())


def test_dangerous_command_begins_with_no_and_says_why(harness):
    async def journey():
        async with open_editor(harness, tool_call("Bash", command="sleep 600 &"), "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "reject_once"
            assert await editor.prompt(session, "go") == "end_turn"
            (request,) = editor.window.requests
            assert kinds(request)[0] == "reject_once" and "allow_always" not in kinds(request)
            assert request["call"]["_meta"]["claudeCode"]["decisionReason"]

    run(journey())


def test_question_about_a_write_reads_regular_files_only(harness):
    pipe = harness.workspace / "pipe"
    os.mkfifo(pipe)
    writes = [tool_call("Write", file_path=path, content="x") for path in (str(pipe), "/dev/zero")]

    async def journey():
        async with open_editor(harness, *writes, "Done.") as editor:
            session = await editor.new_session()
            editor.window.choice = "reject_once"
            assert await editor.prompt(session, "go") == "end_turn"
            assert all(not request["call"].get("content") for request in editor.window.requests)
            assert editor.text(session) == "Done."

    run(journey())
