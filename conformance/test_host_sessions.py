"""Sessions of `whimbrel serve` over HTTP: events, messages, control requests, fork, rewind, export."""

import json
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from harness import tool_call, wait_until
from host_client import Host, is_host, kinds, new_key, quote


@pytest.fixture
def host(harness):
    """Starts hosts with a script; all are stopped in the end."""
    started = []

    def start(*replies, pace_ms=0, **more):
        model = harness.write_script(*replies, pace_ms=pace_ms) if replies else None
        started.append(Host(harness, model=model, **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_conversation_has_gapless_events_in_order(host):
    host = host("Hello.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    events = host.events(session)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    order = ["host/queued", "host/given", "user", "assistant", "result"]
    found = kinds(events)
    assert [kind for kind in found if kind in order] == order
    assert found[-1] == "host/state" and events[-1]["frame"]["state"] == "resting"
    uuid = events[0]["frame"]["uuid"]
    assert next(event["frame"]["uuid"] for event in events if event["frame"]["type"] == "user") == uuid
    listed = host.call("GET", "/v1/sessions")["sessions"]
    assert [(one["id"], one["title"], one["state"], one["head"]) for one in listed] == [(session, "hi", "resting", len(events))]


def test_same_key_is_the_same_message(host):
    host = host("One.", "Two.")
    session = host.create()
    message = {"key": "k", "text": "hi"}
    first = host.call("POST", f"/v1/sessions/{session}/messages", message, status=202)
    again = host.call("POST", f"/v1/sessions/{session}/messages", message, status=200)
    assert (first["replayed"], again["replayed"], again["uuid"]) == (False, True, first["uuid"])
    other = host.fails("POST", f"/v1/sessions/{session}/messages", {"key": "k", "text": "else"})
    assert other == (409, "key_reused")
    host.wait_for_state(session, "resting")
    assert kinds(host.events(session)).count("result") == 1


def test_same_key_is_the_same_session(host):
    host = host("One.")
    body = {"folder": str(host.harness.workspace), "key": "k"}
    first = host.call("POST", "/v1/sessions", body, status=201)
    assert host.call("POST", "/v1/sessions", body, status=200)["id"] == first["id"]
    assert host.fails("POST", "/v1/sessions", {**body, "title": "t"}) == (409, "key_reused")


def test_same_key_at_once_makes_one_session(host):
    host = host(*["One."] * 8)
    body = {"folder": str(host.harness.workspace), "key": "k", "message": {"key": "m", "text": "hi"}}
    replies, barrier = [], threading.Barrier(8)

    def create():
        barrier.wait()
        replies.append(host.request("POST", "/v1/sessions", body))

    threads = [threading.Thread(target=create) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(status for status, _, _ in replies) == [200] * 7 + [201]
    assert len({json.loads(text)["id"] for _, _, text in replies}) == 1
    session = json.loads(replies[0][2])["id"]
    host.wait_for_state(session, "resting")
    assert kinds(host.events(session)).count("host/queued") == 1


def test_held_answer_has_the_next_event(host):
    host = host("Hello.")
    session = host.create()
    host.send(session, "hi")
    page = host.call("GET", f"/v1/sessions/{session}/events?after=0&wait=20")
    assert page["events"] and page["open"] == []
    assert host.fails("GET", f"/v1/sessions/{session}/events?wait=31") == (400, "bad_request")
    assert host.fails("GET", f"/v1/sessions/{session}/events?limit=201") == (400, "bad_request")


def test_events_before_a_number_are_the_last_ones(host):
    host = host("Hello.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    page = host.call("GET", f"/v1/sessions/{session}/events?before=5&limit=2")["events"]
    assert [event["seq"] for event in page] == [3, 4]


def test_waiting_messages_are_given_in_order_and_can_be_taken_back(host):
    gate = "mkfifo gate && cat gate"
    host = host(tool_call("Bash", command=gate), "First.", "Third.")
    session = host.create("go", mode="default")
    request = host.wait_for_request(session)
    taken, kept = host.send(session, "second"), host.send(session, "third")
    assert host.session(session)["queued"] == 2
    status, _, _ = host.request("DELETE", f"/v1/sessions/{session}/messages/{taken['uuid']}")
    assert status == 204
    host.answer(request, "allow")
    wait_until((host.harness.workspace / "gate").exists, "the command")
    (host.harness.workspace / "gate").write_text("x")
    last = host.wait_for(session, lambda frame: is_host(frame, "given") and frame["uuid"] == kept["uuid"])
    host.wait_for_state(session, "resting", after=last["seq"])
    late = host.fails("DELETE", f"/v1/sessions/{session}/messages/{kept['uuid']}")
    assert late == (409, "already_given")
    prompts = [event["frame"] for event in host.events(session) if event["frame"]["type"] == "user"]
    texts = [frame["message"]["content"] for frame in prompts if isinstance(frame["message"]["content"], str)]
    assert texts == ["go", "third"]


def test_urgent_message_joins_the_running_turn(host):
    host = host(tool_call("Bash", command="touch made"), "Both.")
    session = host.create("go")
    request = host.wait_for_request(session)
    urgent = host.send(session, "and this", priority="next")
    assert urgent["state"] == "queued"
    host.answer(request, "allow")
    host.wait_for_state(session, "resting", after=urgent["seq"])
    events = host.events(session)
    assert kinds(events).count("result") == 1
    given = [event["frame"]["uuid"] for event in events if is_host(event["frame"], "given")]
    assert urgent["uuid"] in given


def test_interrupt_ends_the_turn_and_its_command(host):
    host = host(tool_call("Bash", command="sleep 600"), "After.")
    session = host.create("go")
    wait_until(lambda: any("sleep 600" in line for line in host.harness.running_processes().values()), "the command")
    assert host.call("POST", f"/v1/sessions/{session}/control", {"subtype": "interrupt"}) is not None
    result = host.wait_for(session, lambda frame: frame["type"] == "result")
    host.wait_for_state(session, "resting", after=result["seq"])
    wait_until(lambda: not any("sleep 600" in line for line in host.harness.running_processes().values()), "its end")
    assert host.fails("POST", f"/v1/sessions/{session}/control", {"subtype": "interrupt"}) == (409, "not_running")
    again = host.send(session, "again")
    host.wait_for_state(session, "resting", after=again["seq"])


def test_control_requests_are_those_of_the_wire(host):
    host = host("Hello.")
    session = host.create()
    control = f"/v1/sessions/{session}/control"
    assert "models" in host.call("POST", control, {"subtype": "list_models"})
    host.call("POST", control, {"subtype": "set_permission_mode", "mode": "acceptEdits"})
    host.wait_for(session, lambda frame: is_host(frame, "settings") and frame["mode"] == "acceptEdits")
    assert host.session(session)["mode"] == "acceptEdits"
    assert host.fails("POST", control, {"subtype": "initialize"}) == (403, "not_allowed")
    assert host.fails("POST", control, {"subtype": "read_file", "path": "../key"}) == (403, "outside_roots")
    (host.harness.workspace / "out").symlink_to(host.data)
    assert host.fails("POST", control, {"subtype": "read_file", "path": "out/lock"}) == (403, "outside_roots")
    (host.harness.workspace / "note.txt").write_text("inside")
    assert host.call("POST", control, {"subtype": "read_file", "path": "note.txt"})["contents"] == "inside"


def test_fork_copies_the_conversation(host):
    host = host("One.", "Two.")
    session = host.create("first")
    host.wait_for_state(session, "resting")
    body = {"key": new_key(), "title": "Copy"}
    fork = host.call("POST", f"/v1/sessions/{session}/fork", body, status=201)
    assert (fork["parent"], fork["title"], fork["state"]) == (session, "Copy", "resting")
    assert host.call("POST", f"/v1/sessions/{session}/fork", body, status=200)["id"] == fork["id"]
    assert kinds(host.events(fork["id"])) == ["user", "assistant"]
    sent = host.send(fork["id"], "second")
    host.wait_for_state(fork["id"], "resting", after=sent["seq"])
    assert kinds(host.events(session)).count("result") == 1


def test_rewind_restores_files_and_undo_brings_them_back(host):
    write = tool_call("Write", file_path="made.txt", content="new")
    host = host(write, "Written.")
    session = host.create("write it", mode="acceptEdits")
    host.wait_for_state(session, "resting")
    made = host.harness.workspace / "made.txt"
    assert made.read_text() == "new"
    prompt = host.events(session)[0]["frame"]["uuid"]
    rewind = {"to": prompt, "files": True, "conversation": True}
    plan = host.call("POST", f"/v1/sessions/{session}/rewind", {**rewind, "dry_run": True})
    assert made.exists() and [file["path"] for file in plan["files"]] == [str(made)]
    done = host.call("POST", f"/v1/sessions/{session}/rewind", rewind)
    assert [file["change"] for file in done["files"]] == ["removed"]
    assert not made.exists() and done["session"]["id"] == session
    host.call("POST", f"/v1/sessions/{session}/rewind", {**rewind, "to": done["undo"]})
    assert made.read_text() == "new"


def test_export_has_every_format(host):
    host = host("A <b>bold</b> answer.")
    session = host.create("<script>alert(1)</script>")
    host.wait_for_state(session, "resting")
    _, headers, page = host.request("GET", f"/v1/sessions/{session}/export?format=html")
    assert "attachment" in headers["content-disposition"] and b"<script" not in page and b"<b>" not in page
    _, _, lines = host.request("GET", f"/v1/sessions/{session}/export?format=jsonl")
    assert [json.loads(line) for line in lines.splitlines()] == [event["frame"] for event in host.events(session)]
    _, _, text = host.request("GET", f"/v1/sessions/{session}/export?format=md")
    assert "A <b>bold</b> answer." in text.decode()


def test_deleted_session_leaves_nothing(host):
    host = host("Hello.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    transcripts = lambda: list(host.harness.home.glob(".claude/projects/*/*.jsonl"))
    assert len(transcripts()) == 1
    assert host.request("DELETE", f"/v1/sessions/{session}")[0] == 204
    assert transcripts() == [] and host.call("GET", "/v1/sessions")["sessions"] == []
    assert host.fails("GET", f"/v1/sessions/{session}") == (404, "not_found")


def test_deleted_session_leaves_no_files_and_closes_its_cards(host):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    note = host.call("POST", "/v1/uploads?name=note.txt", raw=b"hello", status=201)
    session = host.create()
    host.send(session, "go", uploads=[note["id"]])
    request = host.wait_for_request(session)
    socket = host.socket()
    try:
        socket.call("watch", what="requests")
        assert host.request("DELETE", f"/v1/sessions/{session}")[0] == 204
        closed = socket.next(lambda message: message["op"] == "request")["request"]
        assert (closed["id"], closed["state"]) == (request["id"], "withdrawn")
    finally:
        socket.close()
    left = [path for folder in ("uploads", "attachments") for path in (host.data / folder).glob("*")]
    assert left == []
    metrics = host.request("GET", "/metrics")[2].decode()
    assert "whimbrel_requests_open 0" in metrics.splitlines()


def test_agent_reads_attachments_without_asking(host, provider):
    def respond(request):
        """Reads the file that the last message names, then is done."""
        text = json.dumps(request["messages"][-1]["content"])
        path = re.search(r"- (/[^\\\"]+note.txt)", text)
        if path and "tool_result" not in text:
            return [{"type": "tool_use", "name": "Read", "input": {"file_path": path.group(1)}}]
        return "Done."

    provider.respond = respond
    host = host(environment={name: os.environ[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")})
    session = host.create("hello")
    host.wait_for_state(session, "resting")

    def send_file(session, words):
        note = host.call("POST", "/v1/uploads?name=note.txt", raw=words.encode(), status=201)
        sent = host.send(session, "look", uploads=[note["id"]])
        host.wait_for_state(session, "resting", after=sent["seq"])
        assert words in json.dumps([event["frame"] for event in host.events(session)])

    send_file(session, "sent to an open session")
    fork = host.call("POST", f"/v1/sessions/{session}/fork", {"key": new_key()}, status=201)["id"]
    texts = json.dumps([event["frame"] for event in host.events(session)])
    path = re.search(r"- (/[^\\\"]+note.txt)", texts).group(1)
    sent = host.send(fork, f"again\n- {path}")
    host.wait_for_state(fork, "resting", after=sent["seq"])
    assert host.call("GET", "/v1/requests?limit=200")["requests"] == []


def test_titles_archive_and_search(host):
    host = host("The word is heron.", "Other.")
    first, second = host.create("one"), None
    host.wait_for_state(first, "resting")
    second = host.create("two")
    host.wait_for_state(second, "resting")
    host.call("PATCH", f"/v1/sessions/{first}", {"title": "Birds"})
    found = host.call("GET", "/v1/sessions?words=heron")["sessions"]
    assert [(one["id"], one["title"]) for one in found] == [(first, "Birds")]
    assert "heron" in found[0]["hits"][0]["text"] and found[0]["hits"][0]["seq"] > 0
    assert [one["id"] for one in host.call("GET", "/v1/sessions?words=birds")["sessions"]] == [first]
    host.call("PATCH", f"/v1/sessions/{first}", {"archived": True})
    assert [one["id"] for one in host.call("GET", "/v1/sessions")["sessions"]] == [second]
    assert [one["id"] for one in host.call("GET", "/v1/sessions?archived=true")["sessions"]] == [first]


def test_uploads_become_blocks_or_files(host):
    host = host("Seen.")
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
    image = host.call("POST", "/v1/uploads?name=..%2Fa.png", raw=picture, status=201)
    note = host.call("POST", "/v1/uploads?name=note.txt", raw=b"hello", status=201)
    assert (image["name"], image["type"], note["type"]) == ("a.png", "image/png", "text/plain")
    session = host.create()
    host.send(session, "look", uploads=[image["id"], note["id"]])
    host.wait_for_state(session, "resting")
    content = host.events(session)[0]["frame"]["content"]
    assert [block["type"] for block in content] == ["text", "image"]
    path = content[0]["text"].rsplit("- ", 1)[1]
    assert Path(path).read_text() == "hello"
    assert host.fails("POST", "/v1/uploads?name=x", raw=b"x" * (33 * 1024 * 1024)) == (413, "too_large")


def test_export_of_a_session_that_was_never_opened(host, harness):
    model = harness.write_script("From the terminal.")
    words = [harness.engine, "-p", "hello from there", "--model", model]
    assert subprocess.run(words, cwd=harness.workspace, env=harness.env(), capture_output=True).returncode == 0
    host = host("x")
    session = host.call("GET", "/v1/sessions")["sessions"][0]["id"]
    _, _, text = host.request("GET", f"/v1/sessions/{session}/export?format=md")
    assert "From the terminal." in text.decode()


def test_events_of_the_terminal_appear_with_each_list(host, harness):
    host = host("Hello.", limits={"idle_s": 0})
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    words = [harness.engine, "-p", "from there", "--resume", session, "--model", harness.write_script("From the terminal.")]
    run = lambda: subprocess.run(words, cwd=harness.workspace, env=harness.env(), capture_output=True).returncode == 0
    wait_until(run, "the release of the session")
    host.call("GET", "/v1/sessions")
    assert "From the terminal." in json.dumps([event["frame"] for event in host.events(session)])
    assert kinds(host.events(session)).count("host/recovered") == 1


def test_search_needs_all_words_in_any_case(host):
    host = host("One.", "Two.")
    for text in ("Ärger mit Bäumen", "Ärger im Wald"):
        host.wait_for_state(host.create(text), "resting")
    search = lambda words: [one["title"] for one in host.call("GET", f"/v1/sessions?words={quote(words)}")["sessions"]]
    assert search("ÄRGER bäumen") == ["Ärger mit Bäumen"]
    assert sorted(search("ärger")) == ["Ärger im Wald", "Ärger mit Bäumen"]
    assert search("ärger meer") == []


def test_usage_adds_up(host):
    host = host("One.", "Two.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    sent = host.send(session, "more")
    host.wait_for_state(session, "resting", after=sent["seq"])
    results = [event["frame"] for event in host.events(session) if event["frame"]["type"] == "result"]
    tokens = sum(frame["usage"]["output_tokens"] for frame in results)
    for by in ("day", "model", "session"):
        rows = host.call("GET", f"/v1/usage?by={by}")["rows"]
        assert (len(rows), rows[0]["turns"], rows[0]["output"]) == (1, 2, tokens), by
    _, headers, table = host.request("GET", "/v1/usage", headers={"Accept": "text/csv"})
    assert headers["content-type"].startswith("text/csv") and len(table.splitlines()) == 2


def test_sessions_of_the_terminal_are_listed(host, harness):
    model = harness.write_script("From the terminal.")
    run = subprocess.run(
        [harness.engine, "-p", "hello from there", "--model", model], cwd=harness.workspace, env=harness.env(), capture_output=True
    )
    assert run.returncode == 0
    host = host("And from here.")
    listed = host.call("GET", "/v1/sessions")["sessions"]
    assert [(one["origin"], one["title"], one["state"]) for one in listed] == [("terminal", "hello from there", "resting")]
    session = listed[0]["id"]
    assert kinds(host.events(session)) == ["user", "assistant"]
    sent = host.send(session, "go on")
    host.wait_for_state(session, "resting", after=sent["seq"])


def test_folders_stay_below_the_roots(host, harness):
    (harness.workspace / "inner").mkdir()
    (harness.workspace / "leaves").symlink_to("/")
    host = host("x")
    roots = host.call("GET", "/v1/folders")["folders"]
    assert [folder["path"] for folder in roots] == [str(harness.workspace)]
    inner = host.call("GET", f"/v1/folders?under={harness.workspace}")["folders"]
    assert [(folder["name"], folder["trusted"]) for folder in inner] == [("inner", False)]
    for outside in ("/", str(harness.root), f"{harness.workspace}/..", f"{harness.workspace}/leaves"):
        assert host.fails("POST", "/v1/sessions", {"folder": outside, "key": new_key()}) == (403, "outside_roots"), outside
    assert host.fails("GET", "/v1/folders?under=/") == (403, "outside_roots")
    trusted = host.call("PUT", "/v1/folders/trust", {"folder": str(harness.workspace / "inner"), "trusted": True})
    assert trusted["trusted"] is True


def test_session_that_a_terminal_holds_is_elsewhere(host, harness):
    host = host("Hello.", "Again.", limits={"idle_s": 0})
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    host.stop()
    words = [harness.engine, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    words += ["--resume", session, "--model", harness.write_script("From the terminal.")]
    terminal = subprocess.Popen(
        words, cwd=harness.workspace, env=harness.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with terminal:
        prompt = {"type": "user", "message": {"role": "user", "content": "from there"}}
        terminal.stdin.write(json.dumps(prompt) + "\n")
        terminal.stdin.flush()
        while '"type":"result"' not in terminal.stdout.readline():
            pass
        host.start()
        assert host.session(session)["state"] == "elsewhere"
        message = {"key": new_key(), "text": "hello?"}
        assert host.fails("POST", f"/v1/sessions/{session}/messages", message) == (409, "session_elsewhere")
        assert host.fails("DELETE", f"/v1/sessions/{session}") == (409, "session_elsewhere")
        terminal.stdin.close()
        terminal.wait(30)
    wait_until(lambda: host.session(session)["state"] == "resting", "the release of the session")
    assert kinds(host.events(session)).count("assistant") == 2
    host.call("POST", f"/v1/sessions/{session}/messages", message, status=202)
    host.wait_for_state(session, "running")
