"""The wire protocol without an SDK, for frames that the SDKs hide or cannot send."""

import json

import pytest

from harness import TIMEOUT, tool_call, wait_until
from wire_client import WireClient

TOUCH = tool_call("Bash", command="touch made.txt")
PROMPT = {"type": "user", "message": {"role": "user", "content": "go"}}


def session_states(lines):
    return [
        (line["state"], line.get("sdk_host_only")) for line in lines if line.get("subtype") == "session_state_changed"
    ]


@pytest.mark.parametrize(
    "variable, sdk_host_only",
    [("CLAUDE_CODE_SDK_READS_SESSION_STATE", True), ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", None)],
)
def test_session_state_is_sent_on_request(harness, variable, sdk_host_only):
    with WireClient(
        harness, "--model", harness.write_script(TOUCH, "Done."), "--permission-prompt-tool", "stdio", **{variable: "1"}
    ) as client:
        client.send(PROMPT)
        before = client.read_until("control_request")
        client.respond(before[-1], {"behavior": "allow"})
        after = client.read_until("result")
        (idle,) = session_states(client.read_until("session_state_changed"))
    assert [*session_states(before), *session_states(after), idle] == [
        (state, sdk_host_only) for state in ("running", "requires_action", "running", "idle")
    ]


def test_session_state_is_not_sent_by_default(harness):
    with WireClient(harness, "--model", harness.write_script("one", "two")) as client:
        client.send(PROMPT)
        first = client.read_until("result")
        client.send(PROMPT)
        assert session_states(first + client.read_until("result")) == []


def test_duplicate_or_empty_uuid_is_replaced_with_one_warning(harness):
    taken = "aaaaaaaa-2222-4333-8444-555555555555"
    lines = []
    with WireClient(
        harness, "--model", harness.write_script("one", "two", "three"), "--replay-user-messages"
    ) as client:
        for uuid in (taken, taken, ""):
            client.send(PROMPT | {"uuid": uuid})
            lines += client.read_until("result")
    ids = [line["uuid"] for line in lines if line.get("isReplay")]
    assert ids[0] == taken and len(set(ids)) == 3 and all(ids)
    assert len([line for line in lines if "empty or duplicate uuid" in line.get("content", "")]) == 1


def test_live_output_is_sent_on_request(harness):
    script = harness.write_script(tool_call("Bash", command="mkfifo gate; echo one; cat gate"), "Done.")
    with WireClient(harness, "--model", script, "--permission-mode", "bypassPermissions") as client:
        request = {"subtype": "subscribe_tool_output", "enabled": True}
        client.send({"type": "control_request", "request_id": "live", "request": request})
        assert client.read_until("control_response")[-1]["response"]["subtype"] == "success"
        client.send(PROMPT)
        first = client.read_until("tool_output")[-1]
        (harness.workspace / "gate").write_text("two\n")
        rest = client.read_until("result")
    chunks = [first, *(line for line in rest if line["type"] == "tool_output")]
    assert [chunk["text"] for chunk in chunks] == ["one\n", "two\n"]
    (result,) = (line for line in rest if line["type"] == "user")
    assert {chunk["tool_use_id"] for chunk in chunks} == {result["message"]["content"][0]["tool_use_id"]}
    assert rest.index(chunks[-1]) < rest.index(result)


def test_urgent_prompt_interrupts_and_next_prompt_comes_in(harness):
    script = harness.write_script(
        tool_call("Bash", command="sleep 600"),
        {"expect": "instead", "content": tool_call("Bash", command="mkfifo gate; cat gate")},
        {"expect": "besides", "content": ["Both."]},
    )
    ids = [f"aaaaaaaa-2222-4333-8444-55555555555{number}" for number in range(3)]

    def prompt(text, uuid, **more):
        return {"type": "user", "message": {"role": "user", "content": text}, "uuid": uuid} | more

    with WireClient(harness, "--model", script, "--permission-mode", "bypassPermissions") as client:
        client.send(prompt("go", ids[0]))
        client.read_until("assistant")
        client.send(prompt("instead", ids[1], priority="now"))
        interrupted = client.read_until("result")[-1]
        client.read_until("assistant")
        client.send(prompt("besides", ids[2], priority="next"))
        client.send({"type": "control_request", "request_id": "q", "request": {"subtype": "mcp_status"}})
        client.read_until("control_response")
        wait_until((harness.workspace / "gate").exists, "the gate")
        (harness.workspace / "gate").write_text("open\n")
        result = client.read_until("result")[-1]
    assert (interrupted["is_error"], interrupted["user_message_uuid"]) == (True, ids[0])
    assert (result["result"], result["user_message_uuids"]) == ("Both.", ids[1:])


def test_late_permission_response_is_ignored(harness):
    with WireClient(
        harness, "--model", harness.write_script(TOUCH, "next"), "--permission-prompt-tool", "stdio"
    ) as client:
        client.send(PROMPT)
        request = client.read_until("control_request")[-1]
        client.send({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})
        cancelled = client.read_until("control_cancel_request")[-1]
        assert cancelled["request_id"] == request["request_id"]
        client.read_until("result")
        client.respond(request, {"behavior": "allow"})
        client.send(PROMPT)
        assert client.read_until("result")[-1]["result"] == "next"
    assert not (harness.workspace / "made.txt").exists()


def test_unknown_control_request_is_rejected_by_name(harness):
    with WireClient(harness, "--model", harness.write_script("hi")) as client:
        client.send({"type": "control_request", "request_id": "q", "request": {"subtype": "sing_a_song"}})
        response = client.read_until("control_response")[-1]["response"]
        client.send(PROMPT)
        assert client.read_until("result")[-1]["result"] == "hi"
    assert (response["subtype"], response["request_id"]) == ("error", "q")
    assert "sing_a_song" in response["error"]


def test_idle_session_exits_on_sigterm(harness):
    with WireClient(harness, "--model", harness.write_script("hi")) as client:
        client.send(PROMPT)
        client.read_until("result")
        client.child.terminate()
        assert client.child.wait(timeout=TIMEOUT) == 128 + 15


def test_failed_start_still_drains_its_input(harness):
    # The host may still be writing its first lines. If the engine is gone by then, the npm SDK 0.2 dies of a broken
    # pipe before its caller can read the reason.
    with WireClient(harness, "--resume", "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11") as client:
        assert client.read_until("result")[-1]["is_error"]
        # More than the buffer of a pipe.
        for _ in range(200):
            client.send({"type": "keep_alive", "padding": "x" * 1000})
