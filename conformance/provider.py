"""A provider on loopback that speaks the Messages API: gives its replies, and keeps what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider:
    """The server. A reply is a text, a list of blocks, or a pair of a status and what is wrong.

    Replies come in their order or, where the order cannot be known, from `answer`: a function of the request, which may
    take its time."""

    def __init__(self):
        self.replies, self.requests, self.answer = [], [], None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def system(self, request=-1):
        """The system prompt of a request, as one text."""
        return "\n".join(block["text"] for block in self.requests[request].get("system", []))


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        provider, request = self.provider, json.loads(body)
        provider.requests.append(request)
        reply = (
            provider.answer(request) if provider.answer else provider.replies[len(provider.requests) - 1]
        )
        if isinstance(reply, tuple):
            status, message = reply
            self._answer(
                status,
                "application/json",
                json.dumps({"type": "error", "error": {"type": "api_error", "message": message}}),
            )
        else:
            events = _events(request["model"], [reply] if isinstance(reply, str) else reply)
            self._answer(
                200,
                "text/event-stream",
                "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events),
            )

    def _answer(self, status, kind, text):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Says nothing: stderr belongs to pytest."""


def _events(model, blocks):
    """The stream of events that says these blocks."""
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
