"""The WebSocket of `whimbrel serve`, and the one with Nexia's names."""

import json
import os
import random
import threading
from socket import create_connection

import pytest
from websockets.exceptions import InvalidStatus

from harness import tool_call
from host_client import Host, is_host, kinds, new_key
from mock_provider import Reply


@pytest.fixture
def host(harness):
    """Starts a host with a script; it is stopped in the end."""
    started = []

    def start(*replies, pace_ms=0, **more):
        model = harness.write_script(*replies, pace_ms=pace_ms) if replies else None
        started.append(Host(harness, model=model, **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def connect():
    """Opens sockets; all are closed in the end."""
    opened = []

    def open_socket(host, *path, **more):
        opened.append(host.socket(*path, **more))
        return opened[-1]

    yield open_socket
    for socket in opened:
        socket.close()


def is_event(message, subtype=None):
    return message["op"] == "event" and (subtype is None or message["frame"].get("subtype") == subtype)


def until_resting(socket):
    """Messages up to the end of the turn."""
    found = []
    while True:
        found.append(socket.receive())
        frame = found[-1].get("frame", {})
        if is_event(found[-1], "state") and frame["state"] == "resting":
            return found


def test_subscription_replays_and_goes_on_live(host, connect):
    host = host("Hello there.", "Again.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    socket = connect(host)
    hello = socket.receive()
    assert (hello["op"], hello["api"], hello["beat_s"]) == ("hello", 1, 15)
    reply = socket.call("subscribe", session=session, after=2)
    head = reply["result"]["head"]
    assert reply["ok"] and reply["result"]["session"]["id"] == session and reply["result"]["open"] == []
    replayed = [socket.next(is_event) for _ in range(head - 2)]
    assert [message["seq"] for message in replayed] == list(range(3, head + 1))
    sent = socket.call("send", session=session, key=new_key(), text="more")
    assert sent["result"]["replayed"] is False
    messages = socket.waiting + until_resting(socket)
    events = [message for message in messages if message["op"] == "event"]
    assert [event["seq"] for event in events] == list(range(head + 1, head + 1 + len(events)))
    deltas = [message["frame"]["event"]["delta"]["text"] for message in messages
              if message["op"] == "live" and message["frame"]["type"] == "stream_event"
              and message["frame"]["event"].get("delta", {}).get("type") == "text_delta"]
    assert "".join(deltas) == "Again."


def test_late_subscriber_gets_what_was_streamed(host, connect, provider):
    text, gate = "word " * 60, threading.Event()
    provider.replies = [Reply([text], gate=gate, gated="content_block_stop")]
    host = host(environment={name: os.environ[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")})
    session = host.create()
    first, second = connect(host), connect(host)
    first.call("subscribe", session=session, after=0)
    first.call("send", session=session, key=new_key(), text="hi")

    def text_of(messages):
        deltas = [message["frame"]["event"].get("delta", {}) for message in messages
                  if message["op"] == "live" and message["frame"]["type"] == "stream_event"]
        return "".join(delta.get("text", "") for delta in deltas)

    seen = list(first.waiting)
    while text_of(seen) != text:
        seen.append(first.receive())
    second.call("subscribe", session=session, after=0)
    gate.set()
    assert text_of(second.waiting + until_resting(second)) == text


def test_events_survive_cut_connections(host, connect):
    host = host(*[f"Answer {number}." for number in range(6)], pace_ms=5)
    session = host.create()
    done = threading.Event()

    def talk():
        for number in range(6):
            sent = host.send(session, f"question {number}")
            host.wait_for_state(session, "resting", after=sent["seq"])
        done.set()

    thread = threading.Thread(target=talk)
    thread.start()
    seen, generator = [], random.Random(7)
    head = 0
    while not done.is_set() or len(seen) < head:
        socket = connect(host)
        reply = socket.call("subscribe", session=session, after=len(seen))
        head = reply["result"]["head"]
        for _ in range(generator.randint(1, 25)):
            if done.is_set() and len(seen) >= host.session(session)["head"]:
                break
            try:
                message = socket.waiting.pop(0) if socket.waiting else json.loads(socket.connection.recv(timeout=0.05))
            except TimeoutError:
                break
            if message["op"] == "event":
                seen.append(message)
        socket.close()
        head = host.session(session)["head"]
    thread.join()
    assert [event["seq"] for event in seen] == list(range(1, head + 1))
    stored = host.events(session)
    assert [event["frame"] for event in seen] == [event["frame"] for event in stored]


def test_lists_are_watched(host, connect):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    socket = connect(host)
    assert socket.call("watch", what="sessions")["result"] == {"sessions": [], "next": None}
    assert socket.call("watch", what="requests")["result"] == {"requests": []}
    session = host.create("go")
    opened = socket.next(lambda message: message["op"] == "request")["request"]
    assert (opened["session"], opened["state"]) == (session, "open")
    socket.next(lambda message: message["op"] == "session" and message["session"]["state"] == "waiting")
    answered = socket.call("answer", request=opened["id"], decision="allow")
    assert answered["result"]["state"] == "allowed"
    socket.next(lambda message: message["op"] == "request" and message["request"]["state"] == "allowed")
    socket.next(lambda message: message["op"] == "session" and message["session"]["state"] == "resting")


def test_two_sockets_one_answer(host, connect):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create("go")
    request = host.wait_for_request(session)["id"]
    outcomes, sockets = [], [connect(host) for _ in range(20)]
    barrier = threading.Barrier(len(sockets))

    def answer(number, socket):
        barrier.wait()
        decision = "allow" if number % 2 else "deny"
        outcomes.append((decision, socket.call("answer", request=request, decision=decision)))

    threads = [threading.Thread(target=answer, args=pair) for pair in enumerate(sockets)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    winners = {decision for decision, reply in outcomes if reply["ok"]}
    assert len(winners) == 1
    codes = {reply["error"]["code"] for decision, reply in outcomes if not reply["ok"]}
    assert codes <= {"already_answered"}
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists() == (winners == {"allow"})
    assert kinds(host.events(session)).count("host/answered") == 1


def test_wrong_messages_are_answered_or_end_the_socket(host, connect):
    host = host("x")
    socket = connect(host)
    for op, fields in [("dance", {}), ("subscribe", {}), ("subscribe", {"session": "none"}), ("watch", {"what": "x"}),
                       ("send", {"session": "none", "key": "k", "text": "t"}), ("answer", {"request": "none"}),
                       ("control", {"session": "none", "request": {}}), ("subscribe", {"session": "none", "after": -1})]:
        reply = socket.call(op, **fields)
        assert not reply["ok"] and reply["error"]["code"] in ("bad_request", "not_found"), op
    for raw, code in [("no json", 1007), ('{"op":"watch"}', 1007), ('{"op":"x","id":"%s"}' % ("x" * 1_100_000), 1009)]:
        socket = connect(host)
        socket.receive()
        socket.connection.send(raw)
        assert socket.wait_for_close() == code, raw[:20]


def test_stop_closes_sockets_as_going_away(host, connect):
    host = host("x")
    socket = connect(host)
    socket.receive()
    assert host.stop() == 0
    assert socket.wait_for_close() == 1001


def test_nexia_page_gets_frames_and_answers_cards(host, connect):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create()
    with pytest.raises(InvalidStatus):
        connect(host, "/v1/nexia?session=none")
    socket = connect(host, f"/v1/nexia?session={session}")
    send = lambda **message: socket.connection.send(json.dumps(message))
    of_type = lambda kind: socket.next(lambda message: message["type"] == kind)
    send(type="message", text="go")
    card = of_type("permission_request")
    assert (card["toolName"], card["input"]) == ("Bash", {"command": "touch made"})
    send(type="permission_response", permissionId="other", approved=True)
    assert "other" in of_type("error")["message"]
    send(type="permission_response", permissionId=card["permissionId"], approved=True)
    result = of_type("result")
    assert result["result"] == "Done."
    assert (host.harness.workspace / "made").exists()
    send(type="permission_response", permissionId=card["permissionId"], approved=False)
    assert of_type("error")
    late = [message for message in socket.waiting if message["type"] in ("user", "assistant", "stream_event")]
    assert late and not [message for message in socket.waiting if message["type"] == "permission_closed"]


def test_nexia_card_closes_when_answered_elsewhere(host, connect):
    host = host(tool_call("Bash", command="touch made"), "Done.")
    session = host.create("go")
    request = host.wait_for_request(session)
    socket = connect(host, f"/v1/nexia?session={session}")
    card = socket.next(lambda message: message["type"] == "permission_request")
    host.answer(request, "deny")
    closed = socket.next(lambda message: message["type"] == "permission_closed")
    assert closed["permissionId"] == card["permissionId"] == request["id"]


def test_socket_without_pongs_is_closed(host):
    host = host("x", limits={"beat_s": 1})
    address = host.url.removeprefix("http://")
    name, port = address.rsplit(":", 1)
    with create_connection((name, int(port)), timeout=30) as raw:
        raw.sendall(
            f"GET /v1/ws HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {host.key}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: whimbrel.1\r\n\r\n".encode()
        )
        received = b""
        while part := raw.recv(65536):
            received += part
    assert received.endswith(b"\x88\x02" + (4408).to_bytes(2, "big"))
    assert b"\x89\x00" in received


def test_nexia_socket_says_why_it_is_closed(host, connect):
    host = host("x")
    session = host.create()
    key = host.call("POST", "/v1/tokens", {"kind": "key", "name": "page"}, status=201)
    revoked = connect(host, f"/v1/nexia?session={session}", headers={"Authorization": f"Bearer {key['secret']}"})
    stopped = connect(host, f"/v1/nexia?session={session}")
    assert host.request("DELETE", f"/v1/tokens/{key['id']}")[0] == 204
    assert revoked.wait_for_close() == 4401
    assert host.stop() == 0
    assert stopped.wait_for_close() == 1001


def test_operations_of_other_sessions_do_not_wait(host, connect):
    host = host("One.")
    first, second = host.create(), host.create()
    socket = connect(host)
    sends = [(number, socket.count + 1 + number) for number in range(5)]
    for number, id in sends:
        message = {"op": "send", "id": str(id), "session": first, "key": new_key(), "text": f"{number}"}
        socket.connection.send(json.dumps(message))
    socket.count += len(sends)
    assert socket.call("subscribe", session=second)["ok"]
    replies = [socket.next(lambda message: message["op"] == "reply") for _ in sends]
    assert [reply["id"] for reply in replies] == [str(id) for _, id in sends]
    seqs = [reply["result"]["seq"] for reply in replies]
    assert seqs == sorted(seqs)
