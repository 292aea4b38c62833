"""Mock of the Messages API on loopback: serves scripted replies and records the requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MockProvider:
    """The server. A reply is a text, a list of blocks, or a pair of an error status and its message.

    Replies are served in order. Where the order of requests is unknown, set `respond`, a function from the request to
    its reply; it may block."""

    def __init__(self):
        self.replies, self.requests, self.respond = [], [], None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
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


class _Handler(BaseHTTPRequestHandler):
    provider: MockProvider

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        provider, request = self.provider, json.loads(body)
        provider.requests.append(request)
        reply = provider.respond(request) if provider.respond else provider.replies[len(provider.requests) - 1]
        if isinstance(reply, tuple):
            status, message = reply
            self._respond(
                status,
                "application/json",
                json.dumps({"type": "error", "error": {"type": "api_error", "message": message}}),
            )
        else:
            events = _stream_events(request["model"], [reply] if isinstance(reply, str) else reply)
            self._respond(
                200,
                "text/event-stream",
                "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events),
            )

    def _respond(self, status, content_type, text):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Logs nothing: stderr belongs to pytest."""


def _stream_events(model, blocks):
    """The events that stream a reply of these blocks."""
    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        if isinstance(block, str):
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block}
        else:
            start = {"type": "tool_use", "id": f"toolu_{index}", "name": block["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "end_turn" if all(isinstance(block, str) for block in blocks) else "tool_use"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}
