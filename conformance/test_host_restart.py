"""What survives when `whimbrel serve` is stopped or killed."""

import json
import os
import random
import re

import pytest

from harness import tool_call, wait_until
from host_client import Host, is_host, kinds, new_key

# Instants at which the drill kills the host. The whole drill has 500: the command is
# WHIMBREL_DRILL_POINTS=500 cargo xtask sdk -k killed_host --timeout=3600
DRILL_POINTS = int(os.environ.get("WHIMBREL_DRILL_POINTS", "9"))


@pytest.fixture
def host(harness):
    """Starts a host with a script; it is stopped in the end."""
    started = []

    def start(*replies, flags=(), pace_ms=0, **more):
        started.append(Host(harness, *flags, model=harness.write_script(*replies, pace_ms=pace_ms), **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_card_survives_a_crash_and_is_asked_once_more(host):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create("go")
    request = host.wait_for_request(session)
    before = host.events(session)
    host.kill()
    host.write_script("Done.")
    host.start()
    assert host.session(session)["state"] == "interrupted"
    assert host.events(session)[: len(before)] == before
    assert host.call("GET", f"/v1/requests/{request['id']}")["state"] == "lost"
    assert host.fails("POST", f"/v1/requests/{request['id']}/answer", {"decision": "allow"}) == (409, "already_answered")
    assert host.request("POST", f"/v1/sessions/{session}/continue", raw=b"")[0] == 202
    newer = host.wait_for_request(session)
    replaced = host.call("GET", f"/v1/requests/{request['id']}")
    assert (replaced["state"], replaced["by_request"]) == ("replaced", newer["id"])
    assert newer["request"]["input"] == request["request"]["input"]
    host.answer(newer, "allow")
    host.wait_for_state(session, "resting", after=len(before))
    assert (host.harness.workspace / "made").exists()
    found = kinds(host.events(session))
    assert found.count("host/interrupted") == 1 and found.count("host/queued") == 1


def test_card_survives_an_orderly_stop_by_itself(host):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create("go")
    request = host.wait_for_request(session)
    assert host.stop() == 0
    host.write_script("Done.")
    host.start()
    newer = wait_until(
        lambda: next((one for one in host.call("GET", "/v1/requests?state=open")["requests"] if one["id"] != request["id"]), None),
        "the request of the resumed turn",
    )
    assert newer["session"] == session
    host.answer(newer, "allow")
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists()
    assert "host/interrupted" not in kinds(host.events(session))


def test_waiting_messages_survive_and_follow_the_turn(host):
    host = host(tool_call("Bash", command="touch made"), "Second.")
    session = host.create("go")
    host.wait_for_request(session)
    waiting = host.send(session, "later")
    host.kill()
    host.write_script("First.", "Second.")
    host.start()
    assert host.session(session)["queued"] == 1
    host.request("POST", f"/v1/sessions/{session}/continue", raw=b"")
    host.answer(host.wait_for_request(session), "deny")
    given = host.wait_for(session, lambda frame: is_host(frame, "given") and frame["uuid"] == waiting["uuid"])
    host.wait_for_state(session, "resting", after=given["seq"])
    assert host.session(session)["queued"] == 0


def test_running_turn_may_end_before_the_stop(host):
    host = host("word " * 30, flags=["--drain", "60s"], pace_ms=20)
    session = host.create("go")
    host.wait_for(session, lambda frame: frame["type"] == "user")
    assert host.stop() == 0
    host.start()
    assert "result" in kinds(host.events(session))
    assert host.session(session)["state"] == "resting"


def test_log_that_was_cut_is_completed_from_the_transcript(host):
    import sqlite3

    host = host("Hello.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    whole = [kind for kind in kinds(host.events(session)) if kind in ("user", "assistant")]
    host.stop()
    with sqlite3.connect(host.data / "host.sqlite") as database:
        database.execute("DELETE FROM events WHERE seq > 3")
        database.execute("UPDATE sessions SET head = 3")
    host.start()
    events = host.events(session)
    assert [kind for kind in kinds(events) if kind in ("user", "assistant")] == whole
    recovered = next(event["frame"] for event in events if is_host(event["frame"], "recovered"))
    assert recovered["count"] == 2
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_session_without_transcript_starts_afresh(host):
    host = host("One.", "Two.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    host.stop()
    for path in host.harness.home.glob(".claude/projects/*/*.jsonl"):
        path.unlink()
    host.start()
    sent = host.send(session, "still there?")
    host.wait_for_state(session, "resting", after=sent["seq"])
    errors = [event["frame"]["code"] for event in host.events(session) if is_host(event["frame"], "error")]
    assert errors == ["transcript_gone"]
    row = host.session(session)
    assert row["engine_session"] != row["id"] == session


def test_newer_database_is_refused(host):
    import sqlite3

    host = host("x")
    host.stop()
    with sqlite3.connect(host.data / "host.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(AssertionError, match="use a newer program"):
        host.start()
    assert host.process.returncode == 3


def texts_of(message):
    """The texts of a message of the model's request, and whether it has a tool result."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return " ".join(block.get("text", "") for block in blocks), any(block["type"] == "tool_result" for block in blocks)


def drill_reply(request):
    """Runs a command once for each question, then answers."""
    number, has_result = None, False
    for message in request["messages"]:
        text, is_result = texts_of(message)
        if found := re.findall(r"question (\d+)", text):
            number, has_result = found[-1], False
        has_result |= is_result
    return f"Answer {number}." if has_result else tool_call("Bash", command=f"echo {number} >> ran")


# Stages of a turn at which the host is killed: what the log has then.
STAGES = {
    "sent": lambda frame: is_host(frame, "queued"),
    "given": lambda frame: is_host(frame, "given"),
    "prompt": lambda frame: frame["type"] == "user",
    "call": lambda frame: frame["type"] == "assistant",
    "card": lambda frame: frame["type"] == "control_request",
    "answer": lambda frame: is_host(frame, "answered"),
    "result of the tool": lambda frame: frame["type"] == "user" and "tool_result" in str(frame["message"]["content"]),
    "text": lambda frame: frame["type"] == "assistant" and "Answer" in str(frame["message"]["content"]),
    "result": lambda frame: frame["type"] == "result",
}


def transcript_uuids(home, session):
    """Uuids of the messages in the transcript."""
    path = next(home.glob(f".claude/projects/*/{session}.jsonl"))
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return {entry["uuid"] for entry in entries if entry["type"] in ("user", "assistant")}


def test_killed_host_answers_each_message_once_or_fails_openly(provider, harness):
    generator = random.Random(20)
    provider.respond = drill_reply
    host = Host(harness, environment={name: os.environ[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")})
    session, sent, seen = host.create(), [], []

    def answer_cards():
        for request in host.call("GET", f"/v1/requests?state=open&session={session}")["requests"]:
            host.request("POST", f"/v1/requests/{request['id']}/answer", {"decision": "allow"})

    def is_over():
        answer_cards()
        row = host.session(session)
        return row["state"] == "resting" and row["queued"] == 0

    def reaches(is_stage, after):
        answer_cards()
        return any(is_stage(event["frame"]) for event in host.events(session, after))

    for number in range(DRILL_POINTS):
        stage = generator.choice([*STAGES])
        head = host.session(session)["head"]
        sent.append(host.send(session, f"question {number}")["uuid"])
        wait_until(lambda: reaches(STAGES[stage], head), f"stage {stage}")
        seen = host.events(session)
        host.kill()
        host.start()
        assert host.events(session)[: len(seen)] == seen, stage
        if host.session(session)["state"] == "interrupted":
            host.request("POST", f"/v1/sessions/{session}/continue", raw=b"")
        wait_until(is_over, f"the end of the turn that was killed at {stage}")
    events = host.events(session)
    host.close()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    frames = [event["frame"] for event in events]
    prompts = [frame["uuid"] for frame in frames if frame["type"] == "user" and frame.get("uuid") in sent]
    assert prompts == sent
    assert sorted(frame["uuid"] for frame in frames if is_host(frame, "given")) == sorted(sent)
    logged = {frame["uuid"] for frame in frames if frame["type"] in ("user", "assistant")}
    assert transcript_uuids(harness.home, session) == logged
    ran = (harness.workspace / "ran").read_text().split()
    assert sorted(ran, key=int) == [str(number) for number in range(DRILL_POINTS)]


def test_urgent_message_survives_a_crash_and_is_given_once(host):
    host = host(tool_call("Bash", command="touch made"), "First.", "Second.")
    session = host.create("go")
    host.wait_for_request(session)
    urgent = host.send(session, "stop and do this", priority="now")
    host.kill()
    host.write_script("First.", "Second.", "Third.")
    host.start()
    host.request("POST", f"/v1/sessions/{session}/continue", raw=b"")
    open_requests = lambda: host.call("GET", f"/v1/requests?state=open&session={session}")["requests"]
    given = lambda frame: is_host(frame, "given") and frame["uuid"] == urgent["uuid"]

    def is_given():
        for request in open_requests():
            host.request("POST", f"/v1/requests/{request['id']}/answer", {"decision": "deny"})
        return any(given(event["frame"]) for event in host.events(session))

    wait_until(is_given, "the urgent message")
    wait_until(lambda: (row := host.session(session))["state"] == "resting" and row["queued"] == 0, "the end")
    frames = [event["frame"] for event in host.events(session)]
    assert len([frame for frame in frames if given(frame)]) == 1
    prompts = [frame["uuid"] for frame in frames if frame["type"] == "user" and frame.get("uuid") == urgent["uuid"]]
    assert prompts == [urgent["uuid"]]


def test_message_that_the_transcript_has_is_not_sent_again(host):
    import sqlite3

    host = host("One.", "Two.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    uuid = host.events(session)[0]["frame"]["uuid"]
    host.stop()
    with sqlite3.connect(host.data / "host.sqlite") as database:
        # As if the host had ended before it was told that the engine has the message.
        database.execute("UPDATE messages SET state = 'queued', turn = NULL")
        database.execute("DELETE FROM events WHERE seq > 1")
        database.execute("UPDATE sessions SET head = 1")
    host.start()
    wait_until(lambda: host.session(session)["queued"] == 0, "the end of the recovery")
    frames = [event["frame"] for event in host.events(session)]
    assert [frame["uuid"] for frame in frames if is_host(frame, "given")] == [uuid]
    assert [frame["type"] for frame in frames].count("assistant") == 1
    sent = host.send(session, "again")
    host.wait_for_state(session, "resting", after=sent["seq"])


def test_context_is_given_without_a_turn(host):
    host = host("Answer.")
    session = host.create()
    context = host.send(session, "by the way", context_only=True)
    host.wait_for(session, lambda frame: is_host(frame, "given") and frame["uuid"] == context["uuid"])
    sent = host.send(session, "hi")
    host.wait_for_state(session, "resting", after=sent["seq"])
    prompts = [event["frame"]["uuid"] for event in host.events(session) if event["frame"]["type"] == "user"]
    assert prompts == [context["uuid"], sent["uuid"]]
    assert host.session(session)["queued"] == 0


def fail_writes(host, table, condition="1"):
    """Lets writes to a table fail."""
    import sqlite3

    with sqlite3.connect(host.data / "host.sqlite") as database:
        database.execute(
            f"CREATE TRIGGER broken BEFORE INSERT ON {table} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'broken disk'); END"
        )


def mend_writes(host):
    import sqlite3

    with sqlite3.connect(host.data / "host.sqlite") as database:
        database.execute("DROP TRIGGER broken")


def test_events_of_a_failed_write_are_stored_later(host):
    host = host("Hello.")
    session = host.create()
    fail_writes(host, "events", "NEW.kind = 'assistant'")
    sent = host.send(session, "hi")
    assert "broken disk" in host.process.stderr.readline()
    assert "result" not in kinds(host.events(session))
    mend_writes(host)
    host.wait_for_state(session, "resting", after=sent["seq"])
    events = host.events(session)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    found = kinds(events)
    assert (found.count("user"), found.count("assistant"), found.count("result")) == (1, 1, 1)


def test_card_of_a_failed_write_is_shown_later(host):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create()
    fail_writes(host, "requests")
    host.send(session, "go")
    assert "broken disk" in host.process.stderr.readline()
    mend_writes(host)
    host.answer(host.wait_for_request(session), "allow")
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists()


def test_message_that_cannot_be_stored_is_refused(host):
    host = host("Hello.")
    session = host.create()
    fail_writes(host, "messages")
    message = {"key": new_key(), "text": "hi"}
    assert host.fails("POST", f"/v1/sessions/{session}/messages", message) == (503, "store_unavailable")
    mend_writes(host)
    sent = host.call("POST", f"/v1/sessions/{session}/messages", message, status=202)
    host.wait_for_state(session, "resting", after=sent["seq"])
    assert kinds(host.events(session)).count("host/queued") == 1


def test_plan_with_bypass_ends_with_the_process(host):
    host = host(tool_call("ExitPlanMode", plan="1. touch made"), "Working.")
    session = host.create("plan it", mode="plan")
    host.answer(host.wait_for_request(session), "allow", mode="bypassPermissions")
    host.wait_for_state(session, "resting")
    assert host.session(session)["mode"] == "bypassPermissions"
    assert "bypass" in [entry["what"] for entry in host.call("GET", "/v1/audit")["audit"]]
    host.stop()
    host.start()
    assert host.session(session)["mode"] == "default"
