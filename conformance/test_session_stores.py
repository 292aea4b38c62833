"""Session stores: ours under the official conformance suite, and those of the SDKs filled and resumed by our engine."""

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

from harness import tool_call
from python_sdk import assistant_text, only_result, run_query, run_with_timeout, system_data
from remote_store import RemoteStore
from test_sessions import run_sessions_command
from typescript_sdk import ScriptRunner

STORE_KINDS = ["memory", "file", "sqlite"]


class StoreFactory:
    """Creates empty stores of one kind, and stops them all."""

    def __init__(self, program, kind, directory):
        self.program, self.kind, self.directory, self.stores = program, kind, directory, []

    async def create(self):
        arguments = [self.kind] if self.kind == "memory" else [self.kind, self.directory / f"store-{len(self.stores)}"]
        self.stores.append(await RemoteStore(self.program, *arguments).start())
        return self.stores[-1]

    async def close(self):
        for store in self.stores:
            await store.stop()


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_our_stores_pass_the_official_suite(kind, harness, store_program):
    async def check():
        factory = StoreFactory(store_program, kind, harness.root)
        try:
            await run_session_store_conformance(factory.create)
        finally:
            await factory.close()

    run_with_timeout(check())


LINES = [
    {
        "type": "user",
        "uuid": "a",
        "timestamp": "2026-11-16T03:00:00.123Z",
        "cwd": "/w",
        "gitBranch": "main",
        "message": {"content": "<command-name>/init</command-name>"},
    },
    {"type": "user", "uuid": "b", "isMeta": True, "message": {"content": "not this"}},
    {"type": "user", "uuid": "c", "message": {"content": [{"type": "tool_result", "content": "nor this"}]}},
    {"type": "user", "uuid": "d", "message": {"content": [{"type": "text", "text": "é" * 300}]}},
    {"type": "tag", "tag": "one"},
    {"type": "ai-title", "aiTitle": "By a model", "gitBranch": ""},
    {"type": "last-prompt", "lastPrompt": "Latest"},
    {"type": "summary", "summary": "Sum"},
    {"type": "tag", "tag": ""},
    {"type": "custom-title", "customTitle": "By the user"},
]


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_store_summaries_equal_those_of_the_sdk(kind, harness, store_program):
    async def check():
        factory = StoreFactory(store_program, kind, harness.root)
        try:
            store = await factory.create()
            key = {"project_key": "p", "session_id": "s"}
            for count in range(len(LINES)):
                await store.append(key, [LINES[count]])
                (found,) = await store.list_session_summaries("p")
                assert found["data"] == fold_session_summary(None, key, LINES[: count + 1])["data"], count
        finally:
            await factory.close()

    run_with_timeout(check())


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_session_resumes_from_our_store(kind, harness, store_program):
    async def check():
        factory = StoreFactory(store_program, kind, harness.root)
        try:
            store = await factory.create()
            await run_in_two_processes(harness, store)
        finally:
            await factory.close()

    run_with_timeout(check())


async def run_in_two_processes(harness, store):
    """Runs two turns in two processes; the second has only the store to resume from."""

    async def collect(prompt, options):
        return [message async for message in query(prompt=prompt, options=options)]

    first = only_result(await collect("I am Ann.", harness.options("Hello, Ann.", session_store=store)))
    delete_local_sessions(harness)
    knows = {"expect": "I am Ann", "content": ["You are Ann."]}
    options = harness.options(knows, session_store=store, resume=first.session_id)
    messages = await collect("Who am I?", options)
    assert assistant_text(messages) == "You are Ann."
    project = project_key_for_directory(harness.workspace)
    entries = await store.load({"project_key": project, "session_id": first.session_id})
    types = [entry["type"] for entry in entries if entry["type"] in ("user", "assistant")]
    assert types == ["user", "assistant", "user", "assistant"]


def delete_local_sessions(harness):
    """Deletes all sessions on disk."""
    shutil.rmtree(harness.home / ".claude", ignore_errors=True)


def test_sdk_store_receives_transcripts_in_order(harness):
    store = InMemorySessionStore()
    call = tool_call("Agent", description="look", prompt="Look.", subagent_type="general-purpose")
    replies = (tool_call("Bash", command="echo hi"), call, "I looked.", "Done.")
    options = harness.options(*replies, session_store=store, permission_mode="bypassPermissions")
    session = only_result(run_query("Go.", options)).session_id
    project = project_key_for_directory(harness.workspace)
    key = {"project_key": project, "session_id": session}
    directory = harness.home / ".claude" / "projects" / project
    assert run_with_timeout(store.load(key)) == read_jsonl(directory / f"{session}.jsonl") != []
    (subkey,) = run_with_timeout(store.list_subkeys(key))
    mirrored = run_with_timeout(store.load({**key, "subpath": subkey}))
    stored = read_jsonl(directory / session / f"{subkey}.jsonl")
    assert [entry for entry in mirrored if entry["type"] != "agent_metadata"] == stored != []
    (info,) = run_with_timeout(list_sessions_from_store(store, str(harness.workspace)))
    (own,) = list_sessions(str(harness.workspace))
    assert (info.session_id, info.summary, info.first_prompt) == (own.session_id, own.summary, own.first_prompt)
    from_store = run_with_timeout(get_session_messages_from_store(store, session, str(harness.workspace)))
    assert [m.uuid for m in from_store] == [m.uuid for m in get_session_messages(session)]


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_session_resumes_from_the_sdk_store_alone(harness):
    store = InMemorySessionStore()
    run_with_timeout(run_in_two_processes(harness, store))
    knows = {"expect": "Who am I", "content": ["Still Ann."]}
    delete_local_sessions(harness)
    messages = run_query("And now?", harness.options(knows, session_store=store, continue_conversation=True))
    assert assistant_text(messages) == "Still Ann."


def test_sdk_store_receives_large_batches_completely(harness):
    store = InMemorySessionStore()
    for number in range(12):
        (harness.workspace / f"{number}.txt").write_text("a line of words\n" * 5_000)
    reads = [block for number in range(12) for block in tool_call("Read", file_path=f"{number}.txt")]
    session = only_result(run_query("Read.", harness.options(reads, "Done.", session_store=store))).session_id
    project = project_key_for_directory(harness.workspace)
    stored = read_jsonl(harness.home / ".claude" / "projects" / project / f"{session}.jsonl")
    assert run_with_timeout(store.load({"project_key": project, "session_id": session})) == stored
    assert sum(len(json.dumps(line)) for line in stored) > 1_000_000


def test_oversized_line_is_truncated_with_a_warning(harness):
    store = InMemorySessionStore()
    messages = run_query("BEGIN " + "x " * 700_000, harness.options("hello", session_store=store))
    notices = [data["content"] for data in system_data(messages, "informational")]
    assert [text for text in notices if "session store is truncated" in text], notices
    session = only_result(messages).session_id
    key = {"project_key": project_key_for_directory(harness.workspace), "session_id": session}
    (prompt,) = [entry for entry in run_with_timeout(store.load(key)) if entry["type"] == "user"]
    assert "BEGIN" in str(prompt["message"]["content"]) and "bytes left out" in str(prompt["message"]["content"])


def test_failing_sdk_store_does_not_stop_the_session(harness):
    class FailingStore(InMemorySessionStore):
        async def append(self, key, entries):
            raise OSError("the bucket is gone")

    messages = run_query("hi", harness.options("hello", session_store=FailingStore()))
    assert only_result(messages).result == "hello"
    assert [m for m in messages if getattr(m, "subtype", None) == "mirror_error"]


@pytest.fixture
def node(sdk_dir, harness):
    """The TypeScript SDK version that supports stores."""
    return ScriptRunner("0.3.325", sdk_dir, harness)


def test_typescript_store_is_filled_and_resumed(node):
    knows = {"expect": "I am Ann", "content": ["You are Ann."]}
    second = node.harness.write_script(knows)
    output = node.run("session_store", "Hello, Ann.", prompts=["I am Ann.", "Who am I?"], second=second)
    assert output.error is None
    assert [result["result"] for result in output.results] == ["Hello, Ann.", "You are Ann."]
    assert len({result["session_id"] for result in output.results}) == 1
    (stored,) = output.notes["stored"]
    types = [entry["type"] for entry in stored if entry["type"] in ("user", "assistant")]
    assert types == ["user", "assistant", "user", "assistant"]
    uuids = [entry["uuid"] for entry in stored if "uuid" in entry]
    assert len(uuids) == len(set(uuids))


def test_typescript_store_accepts_long_lines(node):
    long = "x " * 700_000
    output = node.run("session_store", long, prompts=["Much.", "And?"], second=node.harness.write_script("Yes."))
    (stored,) = output.notes["stored"]
    texts = [entry["message"]["content"][0]["text"] for entry in stored if entry["type"] == "assistant"]
    assert texts == [long, "Yes."]


def test_forks_are_readable_by_both_sides(harness):
    session = only_result(run_query("How many curlews?", harness.options("Two."))).session_id
    run_sessions_command(harness, "fork", session[:8], "--title", "Mine")
    ours = next(info for info in list_sessions() if info.custom_title == "Mine").session_id
    texts = lambda id: [m.message["content"] for m in get_session_messages(id)]  # noqa: E731
    assert texts(ours) == texts(session) and ours != session
    first = get_session_messages(session)[0].uuid
    run_sessions_command(harness, "fork", session, "--at", first)
    part = next(info for info in list_sessions() if info.summary == "How many curlews? (fork)").session_id
    assert len(texts(part)) == 1
    theirs = fork_session(session).session_id
    assert "How many curlews?" in run_sessions_command(harness, "show", theirs)
    knows = {"expect": "How many curlews", "content": ["Still two."]}
    for forked in (ours, theirs):
        assert assistant_text(run_query("Now?", harness.options(knows, resume=forked))) == "Still two."
    run_sessions_command(harness, "fork", "ffffffff", code=1)
    run_sessions_command(harness, "fork", session, "--at", "unknown", code=1)
    run_sessions_command(harness, "fork", session, "--title", " ", code=1)
