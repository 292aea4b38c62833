"""The wire itself, for what the SDKs hide or cannot do."""

import contextlib
import json
import subprocess
import time

import pytest

from stage import call

TOUCH = call("Bash", command="touch made.txt")
PROMPT = {"type": "user", "message": {"role": "user", "content": "go"}}


class Wire:
    """A host without an SDK: writes lines and reads lines."""

    def __init__(self, stage, *arguments, **env):
        command = [
            stage.engine,
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            *arguments,
        ]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            command,
            cwd=stage.workspace,
            env=stage.env() | env,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.read()
        self.child.stdout.close()
        self.child.wait()

    def send(self, line):
        self.child.stdin.write(json.dumps(line).encode() + b"\n")
        self.child.stdin.flush()

    def answer(self, question, response):
        reply = {"subtype": "success", "request_id": question["request_id"], "response": response}
        self.send({"type": "control_response", "response": reply})

    def until(self, kind):
        """Every line up to the first of a kind, which is the last given."""
        lines = []
        for line in self.child.stdout:
            lines.append(json.loads(line))
            if kind in (lines[-1]["type"], lines[-1].get("subtype")):
                return lines
        raise AssertionError(f"there was no {kind} in {lines}")


def states(lines):
    return [
        (line["state"], line.get("sdk_host_only"))
        for line in lines
        if line.get("subtype") == "session_state_changed"
    ]


@pytest.mark.parametrize(
    "variable, stamp",
    [("CLAUDE_CODE_SDK_READS_SESSION_STATE", True), ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", None)],
)
def test_the_state_is_shown_to_whoever_asked(stage, variable, stamp):
    with Wire(
        stage, "--model", stage.script(TOUCH, "Done."), "--permission-prompt-tool", "stdio", **{variable: "1"}
    ) as wire:
        wire.send(PROMPT)
        before = wire.until("control_request")
        wire.answer(before[-1], {"behavior": "allow"})
        after = wire.until("result")
        (idle,) = states(wire.until("session_state_changed"))
    assert [*states(before), *states(after), idle] == [
        (state, stamp) for state in ("running", "requires_action", "running", "idle")
    ]


def test_the_state_is_not_shown_to_anybody_else(stage):
    with Wire(stage, "--model", stage.script("one", "two")) as wire:
        wire.send(PROMPT)
        first = wire.until("result")
        wire.send(PROMPT)
        assert states(first + wire.until("result")) == []


def test_an_id_that_is_taken_or_empty_is_not_used_again_and_that_is_said_once(stage):
    taken = "aaaaaaaa-2222-4333-8444-555555555555"
    lines = []
    with Wire(stage, "--model", stage.script("one", "two", "three"), "--replay-user-messages") as wire:
        for uuid in (taken, taken, ""):
            wire.send(PROMPT | {"uuid": uuid})
            lines += wire.until("result")
    ids = [line["uuid"] for line in lines if line.get("isReplay")]
    assert ids[0] == taken and len(set(ids)) == 3 and all(ids)
    assert len([line for line in lines if "another message has" in line.get("content", "")]) == 1


def test_an_answer_that_comes_too_late_changes_nothing(stage):
    with Wire(stage, "--model", stage.script(TOUCH, "next"), "--permission-prompt-tool", "stdio") as wire:
        wire.send(PROMPT)
        question = wire.until("control_request")[-1]
        wire.send({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})
        cancelled = wire.until("control_cancel_request")[-1]
        assert cancelled["request_id"] == question["request_id"]
        wire.until("result")
        wire.answer(question, {"behavior": "allow"})
        wire.send(PROMPT)
        assert wire.until("result")[-1]["result"] == "next"
    assert not (stage.workspace / "made.txt").exists()


def test_an_unknown_question_is_refused_by_name(stage):
    with Wire(stage, "--model", stage.script("hi")) as wire:
        wire.send({"type": "control_request", "request_id": "q", "request": {"subtype": "sing_a_song"}})
        response = wire.until("control_response")[-1]["response"]
        wire.send(PROMPT)
        assert wire.until("result")[-1]["result"] == "hi"
    assert (response["subtype"], response["request_id"]) == ("error", "q")
    assert "sing_a_song" in response["error"]


def test_a_session_with_nothing_to_do_leaves_at_once_when_told_to(stage):
    with Wire(stage, "--model", stage.script("hi")) as wire:
        wire.send(PROMPT)
        wire.until("result")
        told = time.monotonic()
        wire.child.terminate()
        assert wire.child.wait() == 128 + 15
        assert time.monotonic() - told < 1


def test_a_session_that_cannot_start_hears_its_host_out(stage):
    # A host may still be writing its first lines. If the program is gone by then, the npm SDK 0.2 dies of a
    # broken pipe before its caller can read the reason.
    with Wire(stage, "--resume", "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11") as wire:
        assert wire.until("result")[-1]["is_error"]
        # More than a pipe holds.
        for _ in range(200):
            wire.send({"type": "keep_alive", "padding": "x" * 1000})
