"""A cancel right behind a prompt, as the official ACP adapter sees it.

The adapter decides from the replayed prompts, the reply to `interrupt` and the results which prompt a result belongs to.
A wrong guess ends a prompt with an internal error, or with the outcome of another prompt.
"""

import os
import threading

import pytest

from wire_client import WireClient

ROUNDS = 100


def user_line(uuid, text):
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


def control_line(request_id, subtype, **fields):
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


class Adapter:
    """The bookkeeping of the adapter, as far as a cancel concerns it."""

    def __init__(self):
        self.outcomes = {}
        self.queue = []
        self.active = None
        self.cancelled = False
        # Results that are expected for prompts which a cancel has settled, and those of them that may be diagnostics.
        self.orphans = []
        self.orphan_results = 0
        self.diagnostics = set()

    def prompt(self, uuid):
        self.queue.append(uuid)

    def cancel(self):
        self.cancelled = True
        self.orphans, self.queue = self.queue, []
        for uuid in self.orphans:
            self.outcomes[uuid] = "cancelled"
        self.orphan_results += len(self.orphans)
        self.diagnostics.update(self.orphans)

    def handle_receipt(self, still_queued):
        dropped = [uuid for uuid in self.orphans if uuid not in still_queued]
        self.orphan_results = max(0, self.orphan_results - len(dropped))
        self.diagnostics.difference_update(dropped)

    def activate(self, uuid):
        self.queue.remove(uuid)
        self.active, self.cancelled, self.orphan_results = uuid, False, 0

    def settle(self, outcome):
        if self.active is not None:
            self.outcomes[self.active], self.active = outcome, None

    def handle_frame(self, frame):
        if frame["type"] == "control_response" and "still_queued" in frame["response"].get("response", {}):
            self.handle_receipt(frame["response"]["response"]["still_queued"])
        elif frame.get("isReplay") and frame["uuid"] in self.queue:
            self.activate(frame["uuid"])
        elif frame["type"] == "result":
            self.handle_result(frame)

    def handle_result(self, result):
        if self.active is None:
            if self.orphan_results > 0:
                self.orphan_results -= 1
            elif self.queue:
                self.activate(self.queue[0])
        if self.cancelled:
            self.settle("cancelled")
        elif result["is_error"] and self.diagnostics and is_diagnostic(result):
            self.diagnostics.pop()
        else:
            self.diagnostics.clear()
            self.settle("internal error" if result["is_error"] else result["result"])


def is_diagnostic(result):
    """Whether a result says that the turn was interrupted before the model replied."""
    found = [error for error in result.get("errors", []) if error.startswith("[ede_diagnostic]")]
    marks = {"result_type=user", "last_content_type=n/a", "stop_reason=null"}
    return bool(found) and marks <= set(found[0].split())


@pytest.fixture
def connect(harness, provider):
    """Connects to an engine whose model answers every prompt except those that are to be cancelled."""
    test_ended = threading.Event()

    def respond(request):
        text = request["messages"][-1]["content"][-1]["text"]
        if text.startswith("cancelled"):
            test_ended.wait()
        return f"answer to {text}"

    provider.respond = respond
    env = {name: os.environ[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")}
    yield lambda *arguments: WireClient(harness, "--replay-user-messages", *arguments, **env)
    test_ended.set()


@pytest.mark.parametrize("drops_queued", [False, True], ids=["interrupt", "drop and interrupt"])
def test_prompt_behind_a_cancelled_one_keeps_its_own_result(connect, drops_queued):
    adapter = Adapter()
    with connect() as client:
        for number in range(ROUNDS):
            first, second = (f"00000000-0000-4000-8000-{kind}{number:011}" for kind in "12")
            lines = [user_line(first, "cancelled")]
            if drops_queued:
                lines.append(control_line(f"drop {number}", "cancel_async_message", message_uuid=first))
            lines += [control_line(f"stop {number}", "interrupt"), user_line(second, f"prompt {number}")]
            adapter.prompt(first)
            adapter.cancel()
            adapter.prompt(second)
            client.send(*lines)
            while second not in adapter.outcomes:
                adapter.handle_frame(client.read_frame())
            assert adapter.outcomes[first] == "cancelled"
            assert adapter.outcomes[second] == f"answer to prompt {number}"


def test_interrupted_prompt_is_queued_for_the_host_until_it_is_replayed(connect):
    with connect() as client:
        for number in range(ROUNDS):
            uuid = f"00000000-0000-4000-8000-{number:012}"
            client.send(user_line(uuid, "cancelled"), control_line(f"stop {number}", "interrupt"))
            frames = [frame for frame in client.read_until("result") if frame["type"] != "system"]
            assert [frame["type"] for frame in frames] == ["control_response", "user", "user", "result"]
            response, replay, marker, result = frames
            assert response["response"]["response"] == {"still_queued": [uuid]}
            assert replay["isReplay"] and replay["uuid"] == uuid and marker["isSynthetic"]
            assert is_diagnostic(result)


def test_prompt_is_replayed_when_the_model_begins_to_answer(connect):
    with connect("--include-partial-messages") as client:
        client.send(user_line("00000000-0000-4000-8000-000000000000", "prompt"))
        frames = client.read_until("result")
    kinds = [frame.get("status") or frame["type"] for frame in frames]
    assert kinds.index("requesting") < kinds.index("user") < kinds.index("stream_event")
