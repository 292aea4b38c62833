"""`whimbrel sessions` and the official SDKs read the same stored sessions and agree."""

import json
import subprocess

import pytest
from claude_agent_sdk import (
    delete_session,
    fork_session,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    rename_session,
    tag_session,
)

from harness import TIMEOUT, tool_call
from python_sdk import only_result, run_query
from typescript_sdk import ScriptRunner

# Fields of a listed session: name in the Python SDK, key in our JSON.
FIELDS = {
    "session_id": "sessionId",
    "summary": "summary",
    "last_modified": "lastModified",
    "file_size": "fileSize",
    "custom_title": "customTitle",
    "first_prompt": "firstPrompt",
    "git_branch": "gitBranch",
    "cwd": "cwd",
    "tag": "tag",
    "created_at": "createdAt",
}
SESSION = "aaaaaaaa-2222-4333-8444-555555555555"


def run_sessions_command(harness, *arguments, code=0):
    """Output of `whimbrel sessions`, which must exit with `code`."""
    process = subprocess.run(
        [harness.engine, "sessions", *arguments],
        env=harness.env(),
        cwd=harness.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert process.returncode == code, process.stderr
    return process.stdout


def list_with_program(harness):
    """Our list with the field names of the SDK."""
    found = json.loads(run_sessions_command(harness, "list", "--json"))
    return [{name: item.get(key) for name, key in FIELDS.items()} for item in found]


def list_with_sdk():
    return [{name: getattr(info, name) for name in FIELDS} for info in list_sessions()]


def show_with_program(harness, session):
    found = json.loads(run_sessions_command(harness, "show", session, "--json"))
    return [(item["type"], item["uuid"], item["session_id"], item["message"]) for item in found]


def show_with_sdk(session):
    return [(m.type, m.uuid, m.session_id, m.message) for m in get_session_messages(session)]


def test_program_and_sdk_list_and_show_the_same(harness):
    (harness.workspace / "a.txt").write_text("two curlews\n")
    replies = (tool_call("Read", file_path="a.txt"), "There are two.")
    session = only_result(run_query("How many curlews?", harness.options(*replies))).session_id
    assert list_with_program(harness) == list_with_sdk() != []
    assert show_with_program(harness, session) == show_with_sdk(session) != []
    assert "How many curlews?" in run_sessions_command(harness)
    assert "> How many curlews?" in run_sessions_command(harness, "show", session[:8])
    assert "two curlews" in run_sessions_command(harness, "search", "TWO CURLEWS")
    assert run_sessions_command(harness, "search", "godwits", code=1) == ""


def test_titles_and_tags_are_shared(harness):
    session = only_result(run_query("hi", harness.options("hello"))).session_id
    run_sessions_command(harness, "rename", "last", "Waders of the coast")
    run_sessions_command(harness, "tag", session, "birds")
    assert [(info.custom_title, info.tag) for info in list_sessions()] == [("Waders of the coast", "birds")]
    rename_session(session, "Waders 🐦 of the shore")
    tag_session(session, None)
    assert list_with_program(harness) == list_with_sdk()
    assert "Waders 🐦 of the shore" in run_sessions_command(harness)


def test_session_with_long_first_prompt_shows_the_last(harness):
    run_query("x " * 100_000, harness.options("hello"))
    assert [info.summary for info in list_sessions()] == ["x " * 99 + "x…"]
    assert list_with_program(harness) == list_with_sdk()
    run_query("How many curlews?", harness.options("Two.", continue_conversation=True))
    assert [info.summary for info in list_sessions()] == ["How many curlews?"]
    assert list_with_program(harness) == list_with_sdk()


def test_titles_survive_long_transcripts(harness):
    session = only_result(run_query("hi", harness.options("hello"))).session_id
    rename_session(session, "Waders")
    tag_session(session, "birds")
    run_query("Tell me more.", harness.options("more " * 20_000, resume=session))
    run_query("And more.", harness.options("more " * 20_000, resume=session))
    assert [(info.custom_title, info.tag) for info in list_sessions()] == [("Waders", "birds")]
    assert list_with_program(harness) == list_with_sdk()


def test_sdk_reads_subagent_transcripts(harness):
    call = tool_call("Agent", description="count", prompt="Count the curlews.")
    session = only_result(run_query("How many?", harness.options(call, "Two of them.", "Two."))).session_id
    (agent,) = list_subagents(session)
    texts = [json.dumps(message.message) for message in get_subagent_messages(session, agent)]
    assert "Count the curlews." in texts[0] and "Two of them." in texts[-1]


def test_typescript_sdk_reads_the_same(harness, sdk_dir):
    call = tool_call("Agent", description="count", prompt="Count the curlews.")
    node = ScriptRunner("0.3.325", sdk_dir, harness)
    output = node.run("stored_session", call, "Two of them.", "Two.", prompts=["How many?"])
    (info,), (messages,), ((agent,),) = (output.notes[name] for name in ("info", "messages", "agents"))
    assert info["summary"] == "How many?"
    shown = show_with_sdk(output.only_result["session_id"])
    assert [(m["type"], m["uuid"]) for m in messages] == [(kind, uuid) for kind, uuid, *_ in shown] != []
    assert "Two of them." in json.dumps(agent[-1])


def test_sdk_fork_up_to_a_message_can_be_resumed(harness):
    session = only_result(run_query("one", harness.options("first"))).session_id
    run_query("two", harness.options("second", resume=session))
    reply = show_with_sdk(session)[1][1]
    fork = fork_session(session, up_to_message_id=reply).session_id
    run_query("three", harness.options("third", resume=fork))
    text = json.dumps([message for *_, message in show_with_sdk(fork)])
    assert "first" in text and "third" in text and "second" not in text


@pytest.mark.parametrize("remove", ["ours", "sdk"])
def test_deleted_session_is_gone_for_both(harness, remove):
    session = only_result(run_query("hi", harness.options("hello"))).session_id
    if remove == "ours":
        run_sessions_command(harness, "delete", session, code=1)
        run_sessions_command(harness, "delete", session, "--yes")
    else:
        delete_session(session)
    assert list_with_program(harness) == list_with_sdk() == []
    run_sessions_command(harness, "show", session, code=1)


def transcript_line(kind, uuid, parent, content, **more):
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": SESSION,
        "timestamp": f"2026-11-16T03:00:0{len(uuid)}.000Z",
        "message": message,
        **more,
    }


def tool_use(number):
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "ls"}}]


def tool_result(number):
    return [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}]


REPLY = {"message": {"id": "msg_1"}}
UNUSUAL_TRANSCRIPTS = {
    "parallel calls": [
        transcript_line("user", "a", None, "go"),
        transcript_line("assistant", "c1", "a", tool_use(1), **REPLY),
        transcript_line("assistant", "c2", "c1", tool_use(2), **REPLY),
        transcript_line("user", "r1", "c1", tool_result(1), sourceToolAssistantUUID="c1"),
        transcript_line("user", "r2", "c2", tool_result(2), sourceToolAssistantUUID="c2"),
        transcript_line("assistant", "e", "r1", "done", message={"id": "msg_2"}),
    ],
    "an older branch": [
        transcript_line("user", "a", None, "go"),
        transcript_line("assistant", "b", "a", "one"),
        transcript_line("user", "c", "b", "abandoned"),
        transcript_line("user", "d", "b", "active"),
        {"type": "attachment", "uuid": "n", "parentUuid": "d"},
        transcript_line("assistant", "e", "n", "two"),
    ],
    "a compaction": [
        transcript_line("user", "a", None, "go"),
        transcript_line("assistant", "b", "a", "one"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "s", "parentUuid": None, "logicalParentUuid": "b"},
        transcript_line("user", "c", "s", "summary", isCompactSummary=True),
        transcript_line("assistant", "d", "c", "two"),
    ],
    "hidden entries": [
        transcript_line("user", "m", None, "environment", isMeta=True),
        transcript_line("user", "a", "m", "go"),
        transcript_line("assistant", "b", "a", "one"),
        transcript_line("assistant", "s", "b", "aside", isSidechain=True),
        transcript_line("user", "t", "b", "team", teamName="x"),
    ],
    "a cycle of parents": [
        transcript_line("user", "x", "y", "1"),
        transcript_line("user", "y", "x", "2"),
        transcript_line("user", "z", "y", "3"),
    ],
    "titles": [
        transcript_line("user", "a", None, "<command-name>/init</command-name>"),
        transcript_line("user", "b", "a", "x" * 300),
        {"type": "ai-title", "aiTitle": "By a model"},
        {"type": "last-prompt", "lastPrompt": 'Latest "words"'},
        {"type": "summary", "summary": "Sum"},
    ],
    "only a last prompt": [transcript_line("user", "a", None, "go"), {"type": "last-prompt", "lastPrompt": "Latest"}],
    "no messages": [{"type": "queue-operation", "operation": "enqueue"}],
}


@pytest.mark.parametrize("lines", UNUSUAL_TRANSCRIPTS.values(), ids=UNUSUAL_TRANSCRIPTS.keys())
@pytest.mark.parametrize("end", ["", '{"type":"assistant","uuid":"torn', "\0\0\0\n"], ids=["whole", "torn", "zeros"])
def test_unusual_transcripts_are_read_alike(harness, lines, end):
    directory = harness.home / ".claude" / "projects" / "-somewhere"
    directory.mkdir(parents=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (directory / f"{SESSION}.jsonl").write_text(text + end)
    assert list_with_program(harness) == list_with_sdk()
    assert show_with_program(harness, SESSION) == show_with_sdk(SESSION)
