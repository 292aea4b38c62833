"""Session stores: ours under the official suite for stores, and the SDKs' own fed and resumed by our engine."""

import json
import shutil

import pytest
from claude_agent_sdk import (
    InMemorySessionStore,
    fold_session_summary,
    fork_session,
    get_session_messages,
    get_session_messages_from_store,
    list_sessions,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.testing import run_session_store_conformance

from caller import ask, in_time, notices, said, the_result
from node import Node
from stage import call
from stores import RemoteStore
from test_sessions import sessions

KINDS = ["memory", "file", "sqlite"]


class Shop:
    """Makes stores of one kind, each of them fresh, and ends them all."""

    def __init__(self, program, kind, folder):
        self.program, self.kind, self.folder, self.made = program, kind, folder, []

    async def fresh(self):
        words = [self.kind] if self.kind == "memory" else [self.kind, self.folder / f"store-{len(self.made)}"]
        self.made.append(await RemoteStore(self.program, *words).start())
        return self.made[-1]

    async def close(self):
        for store in self.made:
            await store.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_our_stores_keep_the_contracts_of_the_official_suite(kind, stage, store_path):
    async def check():
        shop = Shop(store_path, kind, stage.root)
        try:
            await run_session_store_conformance(shop.fresh)
        finally:
            await shop.close()

    in_time(check())


LINES = [
    {"type": "user", "uuid": "a", "timestamp": "2026-11-16T03:00:00.123Z", "cwd": "/w", "gitBranch": "main",
     "message": {"content": "<command-name>/init</command-name>"}},
    {"type": "user", "uuid": "b", "isMeta": True, "message": {"content": "not this"}},
    {"type": "user", "uuid": "c", "message": {"content": [{"type": "tool_result", "content": "nor this"}]}},
    {"type": "user", "uuid": "d", "message": {"content": [{"type": "text", "text": "é" * 300}]}},
    {"type": "tag", "tag": "one"},
    {"type": "ai-title", "aiTitle": "By a model", "gitBranch": ""},
    {"type": "last-prompt", "lastPrompt": "Latest"},
    {"type": "summary", "summary": "Sum"},
    {"type": "tag", "tag": ""},
    {"type": "custom-title", "customTitle": "By a person"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_our_stores_say_of_a_session_is_what_the_sdk_would_say(kind, stage, store_path):
    async def check():
        shop = Shop(store_path, kind, stage.root)
        try:
            store = await shop.fresh()
            key = {"project_key": "p", "session_id": "s"}
            for count in range(len(LINES)):
                await store.append(key, [LINES[count]])
                (found,) = await store.list_session_summaries("p")
                assert found["data"] == fold_session_summary(None, key, LINES[: count + 1])["data"], count
        finally:
            await shop.close()

    in_time(check())


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_goes_on_from_our_store_through_the_sdk(kind, stage, store_path):
    async def check():
        shop = Shop(store_path, kind, stage.root)
        try:
            store = await shop.fresh()
            await talk(stage, store)
        finally:
            await shop.close()

    in_time(check())


async def talk(stage, store):
    """Two turns in two processes; the second has nothing but the store."""

    async def heard(prompt, options):
        return [message async for message in query(prompt=prompt, options=options)]

    first = the_result(await heard("I am Ann.", stage.options("Hello, Ann.", session_store=store)))
    forget(stage)
    knows = {"expect": "I am Ann", "content": ["You are Ann."]}
    options = stage.options(knows, session_store=store, resume=first.session_id)
    messages = await heard("Who am I?", options)
    assert said(messages) == "You are Ann."
    project = project_key_for_directory(stage.workspace)
    entries = await store.load({"project_key": project, "session_id": first.session_id})
    spoken = [entry["type"] for entry in entries if entry["type"] in ("user", "assistant")]
    assert spoken == ["user", "assistant", "user", "assistant"]


def forget(stage):
    """Leaves nothing of any session on the disk."""
    shutil.rmtree(stage.home / ".claude", ignore_errors=True)


def test_the_sdks_store_is_fed_in_the_order_of_the_transcript_subagents_too(stage):
    store = InMemorySessionStore()
    errand = call("Agent", description="look", prompt="Look.", subagent_type="general-purpose")
    replies = (call("Bash", command="echo hi"), errand, "I looked.", "Done.")
    options = stage.options(*replies, session_store=store, permission_mode="bypassPermissions")
    session = the_result(ask("Go.", options)).session_id
    project = project_key_for_directory(stage.workspace)
    key = {"project_key": project, "session_id": session}
    folder = stage.home / ".claude" / "projects" / project
    assert in_time(store.load(key)) == read(folder / f"{session}.jsonl") != []
    (subkey,) = in_time(store.list_subkeys(key))
    mirrored = in_time(store.load({**key, "subpath": subkey}))
    kept = read(folder / session / f"{subkey}.jsonl")
    assert [entry for entry in mirrored if entry["type"] != "agent_metadata"] == kept != []
    (info,) = in_time(list_sessions_from_store(store, str(stage.workspace)))
    (own,) = list_sessions(str(stage.workspace))
    assert (info.session_id, info.summary, info.first_prompt) == (own.session_id, own.summary, own.first_prompt)
    from_store = in_time(get_session_messages_from_store(store, session, str(stage.workspace)))
    assert [m.uuid for m in from_store] == [m.uuid for m in get_session_messages(session)]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_session_goes_on_from_the_sdks_store_with_an_empty_home(stage):
    store = InMemorySessionStore()
    in_time(talk(stage, store))
    knows = {"expect": "Who am I", "content": ["Still Ann."]}
    forget(stage)
    messages = ask("And now?", stage.options(knows, session_store=store, continue_conversation=True))
    assert said(messages) == "Still Ann."


def test_the_sdks_store_has_every_line_whole_also_of_much_at_once(stage):
    store = InMemorySessionStore()
    for number in range(12):
        (stage.workspace / f"{number}.txt").write_text("a line of words\n" * 5_000)
    reads = [block for number in range(12) for block in call("Read", file_path=f"{number}.txt")]
    session = the_result(ask("Read.", stage.options(reads, "Done.", session_store=store))).session_id
    project = project_key_for_directory(stage.workspace)
    kept = read(stage.home / ".claude" / "projects" / project / f"{session}.jsonl")
    assert in_time(store.load({"project_key": project, "session_id": session})) == kept
    assert sum(len(json.dumps(line)) for line in kept) > 1_000_000


def test_what_python_cannot_read_is_shortened_in_its_store_and_said(stage):
    store = InMemorySessionStore()
    messages = ask("BEGIN " + "x " * 700_000, stage.options("hello", session_store=store))
    told = [notice["content"] for notice in notices(messages, "informational")]
    assert [text for text in told if "session store lacks a part" in text], told
    session = the_result(messages).session_id
    key = {"project_key": project_key_for_directory(stage.workspace), "session_id": session}
    (prompt,) = [entry for entry in in_time(store.load(key)) if entry["type"] == "user"]
    assert "BEGIN" in str(prompt["message"]["content"]) and "bytes left out" in str(prompt["message"]["content"])


def test_a_store_of_the_sdk_that_fails_does_not_stop_the_session(stage):
    class Broken(InMemorySessionStore):
        async def append(self, key, entries):
            raise OSError("the bucket is gone")

    messages = ask("hi", stage.options("hello", session_store=Broken()))
    assert the_result(messages).result == "hello"
    assert [m for m in messages if getattr(m, "subtype", None) == "mirror_error"]


@pytest.fixture
def node(installed, stage):
    """The TypeScript SDK that knows stores."""
    return Node("0.3.325", installed, stage)


def test_the_typescript_sdk_feeds_its_store_and_goes_on_from_it(node):
    knows = {"expect": "I am Ann", "content": ["You are Ann."]}
    played = node.play("store", "Hello, Ann.", prompts=["I am Ann.", "Who am I?"], second=node.stage.script(knows))
    assert played.thrown is None
    assert [result["result"] for result in played.results] == ["Hello, Ann.", "You are Ann."]
    assert len({result["session_id"] for result in played.results}) == 1
    (stored,) = played.notes["stored"]
    spoken = [entry["type"] for entry in stored if entry["type"] in ("user", "assistant")]
    assert spoken == ["user", "assistant", "user", "assistant"]
    uuids = [entry["uuid"] for entry in stored if "uuid" in entry]
    assert len(uuids) == len(set(uuids))


def test_the_typescript_sdk_has_lines_of_any_length_in_its_store(node):
    long = "x " * 700_000
    played = node.play("store", long, prompts=["Much.", "And?"], second=node.stage.script("Yes."))
    (stored,) = played.notes["stored"]
    said = [entry["message"]["content"][0]["text"] for entry in stored if entry["type"] == "assistant"]
    assert said == [long, "Yes."]


def test_a_copy_that_we_make_the_sdk_reads_and_the_other_way_round(stage):
    session = the_result(ask("How many curlews?", stage.options("Two."))).session_id
    sessions(stage, "fork", session[:8], "--title", "Mine")
    copy = next(info for info in list_sessions() if info.custom_title == "Mine").session_id
    texts = lambda id: [m.message["content"] for m in get_session_messages(id)]  # noqa: E731
    assert texts(copy) == texts(session) and copy != session
    first = get_session_messages(session)[0].uuid
    sessions(stage, "fork", session, "--at", first)
    part = next(info for info in list_sessions() if info.summary == "How many curlews? (fork)").session_id
    assert len(texts(part)) == 1
    theirs = fork_session(session).session_id
    assert "How many curlews?" in sessions(stage, "show", theirs)
    knows = {"expect": "How many curlews", "content": ["Still two."]}
    for forked in (copy, theirs):
        assert said(ask("Now?", stage.options(knows, resume=forked))) == "Still two."
    sessions(stage, "fork", "ffffffff", code=1)
    sessions(stage, "fork", session, "--at", "nobody", code=1)
    sessions(stage, "fork", session, "--title", " ", code=1)
