"""Mock of the Messages API on loopback: serves scripted replies and records the requests."""

import json
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import TIMEOUT

USAGE = {"input_tokens": 7, "output_tokens": 5}


@dataclass
class Reply:
    """A reply of the model: blocks, and the tokens that the provider reports for it."""

    blocks: list
    usage: dict = field(default_factory=lambda: dict(USAGE))
    # The reply stops before its first event of the type `gated` until this event is set.
    gate: threading.Event | None = None
    gated: str = "message_delta"


class MockProvider:
    """The server. A reply is a text, a list of blocks, a `Reply`, or a pair of an error status and its message.

    Replies are served in order. Where the order of requests is unknown, set `respond`, a function from the request to
    its reply; it may block."""

    def __init__(self):
        self.replies, self.requests, self.respond = [], [], None
        # Model and tokens of each reply that came to its end.
        self.reported = []
        self.user_agents = set()
        self.lock = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def system_prompt(self, request=-1):
        """The system prompt of a request, its blocks joined."""
        return "\n".join(block["text"] for block in self.requests[request].get("system", []))

    def ensure_only_our_engine_asked(self):
        """Fails if another engine has sent a request."""
        others = {agent for agent in self.user_agents if not agent.startswith("whimbrel/")}
        assert not others, f"requests of another engine: {others}"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Reports everything but closed connections: an engine that is interrupted closes its own."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    provider: MockProvider

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        provider, request = self.provider, json.loads(body)
        with provider.lock:
            number = len(provider.requests)
            provider.requests.append(request)
            provider.user_agents.add(self.headers.get("user-agent", ""))
        reply = provider.respond(request) if provider.respond else provider.replies[number]
        if isinstance(reply, tuple):
            self._send_error_reply(*reply)
            return
        if not isinstance(reply, Reply):
            reply = Reply([reply] if isinstance(reply, str) else reply)
        self._stream(request["model"], number, reply)

    def _send_error_reply(self, status, message):
        body = json.dumps({"type": "error", "error": {"type": "api_error", "message": message}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, model, number, reply):
        # The end of the connection is the end of the body.
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", f"req_{number}")
        self.end_headers()
        for event in _stream_events(model, number, reply):
            if reply.gate and event["type"] == reply.gated:
                assert reply.gate.wait(TIMEOUT), "the reply was held back for too long"
            if event["type"] == "message_delta":
                self._finish(model, reply)
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def _finish(self, model, reply):
        """Notes the tokens, before the event that reports them."""
        with self.provider.lock:
            self.provider.reported.append((model, reply.usage))

    def log_message(self, *_):
        """Logs nothing: stderr belongs to pytest."""


def _stream_events(model, number, reply):
    """The events that stream a reply to the request with this number."""
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**reply.usage, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(reply.blocks):
        if isinstance(block, str):
            start, deltas = {"type": "text", "text": ""}, _text_deltas(block)
        else:
            start = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": block["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "end_turn" if all(isinstance(block, str) for block in reply.blocks) else "tool_use"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": reply.usage["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _text_deltas(text, length=12):
    """Deltas that add up to a text."""
    starts = range(0, len(text), length) or [0]
    return [{"type": "text_delta", "text": text[start : start + length]} for start in starts]
