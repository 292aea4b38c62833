"""`whimbrel sessions` and the Python SDK look at the same stored sessions and agree."""

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

from caller import ask, the_result
from node import Node
from stage import PATIENCE, call

# How the fields of a listed session are named on the two sides.
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


def sessions(stage, *words, code=0):
    """What `whimbrel sessions` prints."""
    done = subprocess.run(
        [stage.engine, "sessions", *words],
        env=stage.env(),
        cwd=stage.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def listed(stage):
    """Our list in the SDK's words."""
    found = json.loads(sessions(stage, "list", "--json"))
    return [{name: item.get(key) for name, key in FIELDS.items()} for item in found]


def listed_by_sdk():
    return [{name: getattr(info, name) for name in FIELDS} for info in list_sessions()]


def shown(stage, session):
    """What was said, by us."""
    found = json.loads(sessions(stage, "show", session, "--json"))
    return [(item["type"], item["uuid"], item["session_id"], item["message"]) for item in found]


def shown_by_sdk(session):
    return [(m.type, m.uuid, m.session_id, m.message) for m in get_session_messages(session)]


def test_a_session_is_listed_and_shown_alike(stage):
    (stage.workspace / "a.txt").write_text("two curlews\n")
    replies = (call("Read", file_path="a.txt"), "There are two.")
    session = the_result(ask("How many curlews?", stage.options(*replies))).session_id
    assert listed(stage) == listed_by_sdk() != []
    assert shown(stage, session) == shown_by_sdk(session) != []
    assert "How many curlews?" in sessions(stage)
    assert "> How many curlews?" in sessions(stage, "show", session[:8])
    assert "two curlews" in sessions(stage, "search", "TWO CURLEWS")
    assert sessions(stage, "search", "godwits", code=1) == ""


def test_names_that_one_side_gives_the_other_side_reads(stage):
    session = the_result(ask("hi", stage.options("hello"))).session_id
    sessions(stage, "rename", "last", "Waders of the coast")
    sessions(stage, "tag", session, "birds")
    assert [(info.custom_title, info.tag) for info in list_sessions()] == [("Waders of the coast", "birds")]
    rename_session(session, "Waders 🐦 of the shore")
    tag_session(session, None)
    assert listed(stage) == listed_by_sdk()
    assert "Waders 🐦 of the shore" in sessions(stage)


def test_a_session_that_begins_with_much_is_listed_by_what_was_asked_last(stage):
    ask("x " * 100_000, stage.options("hello"))
    assert [info.summary for info in list_sessions()] == ["x " * 99 + "x…"]
    assert listed(stage) == listed_by_sdk()
    ask("How many curlews?", stage.options("Two.", continue_conversation=True))
    assert [info.summary for info in list_sessions()] == ["How many curlews?"]
    assert listed(stage) == listed_by_sdk()


def test_names_last_however_much_is_said_after_them(stage):
    session = the_result(ask("hi", stage.options("hello"))).session_id
    rename_session(session, "Waders")
    tag_session(session, "birds")
    ask("Tell me more.", stage.options("more " * 20_000, resume=session))
    ask("And more.", stage.options("more " * 20_000, resume=session))
    assert [(info.custom_title, info.tag) for info in list_sessions()] == [("Waders", "birds")]
    assert listed(stage) == listed_by_sdk()


def test_the_sdk_reads_what_our_agents_said(stage):
    errand = call("Agent", description="count", prompt="Count the curlews.")
    session = the_result(ask("How many?", stage.options(errand, "Two of them.", "Two."))).session_id
    (agent,) = list_subagents(session)
    said = [json.dumps(message.message) for message in get_subagent_messages(session, agent)]
    assert "Count the curlews." in said[0] and "Two of them." in said[-1]


def test_the_typescript_sdk_reads_the_same(stage, installed):
    errand = call("Agent", description="count", prompt="Count the curlews.")
    played = Node("0.3.325", installed, stage).play("kept", errand, "Two of them.", "Two.", prompts=["How many?"])
    (info,), (messages,), ((agent,),) = (played.notes[name] for name in ("info", "messages", "agents"))
    assert info["summary"] == "How many?"
    own = shown_by_sdk(played.the_result["session_id"])
    assert [(m["type"], m["uuid"]) for m in messages] == [(kind, uuid) for kind, uuid, *_ in own] != []
    assert "Two of them." in json.dumps(agent[-1])


def test_a_copy_that_the_sdk_makes_up_to_a_message_goes_on(stage):
    session = the_result(ask("one", stage.options("first"))).session_id
    ask("two", stage.options("second", resume=session))
    answer = shown_by_sdk(session)[1][1]
    copy = fork_session(session, up_to_message_id=answer).session_id
    ask("three", stage.options("third", resume=copy))
    said = json.dumps([message for *_, message in shown_by_sdk(copy)])
    assert "first" in said and "third" in said and "second" not in said


@pytest.mark.parametrize("remove", ["ours", "sdk"])
def test_a_session_that_one_side_removes_is_gone_for_both(stage, remove):
    session = the_result(ask("hi", stage.options("hello"))).session_id
    if remove == "ours":
        sessions(stage, "delete", session, code=1)
        sessions(stage, "delete", session, "--yes")
    else:
        delete_session(session)
    assert listed(stage) == listed_by_sdk() == []
    sessions(stage, "show", session, code=1)


def line(kind, uuid, parent, content, **more):
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


def use(number):
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "ls"}}]


def result(number):
    return [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}]


REPLY = {"message": {"id": "msg_1"}}
ODD = {
    "calls side by side": [
        line("user", "a", None, "go"),
        line("assistant", "c1", "a", use(1), **REPLY),
        line("assistant", "c2", "c1", use(2), **REPLY),
        line("user", "r1", "c1", result(1), sourceToolAssistantUUID="c1"),
        line("user", "r2", "c2", result(2), sourceToolAssistantUUID="c2"),
        line("assistant", "e", "r1", "done", message={"id": "msg_2"}),
    ],
    "an older branch": [
        line("user", "a", None, "go"),
        line("assistant", "b", "a", "one"),
        line("user", "c", "b", "left"),
        line("user", "d", "b", "taken"),
        {"type": "attachment", "uuid": "n", "parentUuid": "d"},
        line("assistant", "e", "n", "two"),
    ],
    "a summary, after which the tree begins anew": [
        line("user", "a", None, "go"),
        line("assistant", "b", "a", "one"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "s", "parentUuid": None, "logicalParentUuid": "b"},
        line("user", "c", "s", "in short", isCompactSummary=True),
        line("assistant", "d", "c", "two"),
    ],
    "what is not for people": [
        line("user", "m", None, "surroundings", isMeta=True),
        line("user", "a", "m", "go"),
        line("assistant", "b", "a", "one"),
        line("assistant", "s", "b", "aside", isSidechain=True),
        line("user", "t", "b", "team", teamName="x"),
    ],
    "a circle": [line("user", "x", "y", "1"), line("user", "y", "x", "2"), line("user", "z", "y", "3")],
    "titles": [
        line("user", "a", None, "<command-name>/init</command-name>"),
        line("user", "b", "a", "x" * 300),
        {"type": "ai-title", "aiTitle": "By a model"},
        {"type": "last-prompt", "lastPrompt": "Latest \"words\""},
        {"type": "summary", "summary": "Sum"},
    ],
    "only a last prompt": [line("user", "a", None, "go"), {"type": "last-prompt", "lastPrompt": "Latest"}],
    "nothing to tell": [{"type": "queue-operation", "operation": "enqueue"}],
}


@pytest.mark.parametrize("lines", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("end", ["", '{"type":"assistant","uuid":"torn', "\0\0\0\n"], ids=["whole", "torn", "zeros"])
def test_odd_transcripts_are_read_alike(stage, lines, end):
    folder = stage.home / ".claude" / "projects" / "-somewhere"
    folder.mkdir(parents=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (folder / f"{SESSION}.jsonl").write_text(text + end)
    assert listed(stage) == listed_by_sdk()
    assert shown(stage, SESSION) == shown_by_sdk(SESSION)
