"""A client of `whimbrel serve` that knows only the documented contract: HTTP, WebSocket, exit codes."""

import json
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from harness import TIMEOUT, wait_until

READY_KEYS = {"type", "url", "login", "data", "pid"}


class Host:
    """A running host, with the bearer key of its owner."""

    def __init__(self, harness, *arguments, model=None, limits=None, environment=None):
        self.harness = harness
        # Variables besides those of the harness.
        self.environment = {**harness.env(), **(environment or {})}
        self.data, self.token_file = harness.root / "data", harness.root / "key"
        self.arguments = [str(argument) for argument in arguments]
        if model:
            self.script = Path(model.removeprefix("scripted:"))
            self.arguments += ["--model", model]
        if limits:
            config = harness.root / "host.json"
            config.write_text(json.dumps({"limits": limits}))
            self.arguments += ["--config", str(config)]
        self.process = None
        self.start()

    def command(self, *words):
        return [str(self.harness.engine), "serve", *words, "--data", str(self.data)]

    def start(self):
        """Starts the host and reads its ready line."""
        words = self.command("--json", "--listen", "127.0.0.1:0", "--token-file", str(self.token_file))
        words += ["--root", str(self.harness.workspace), "--drain", "2s", *self.arguments]
        self.process = subprocess.Popen(
            words, cwd=self.harness.workspace, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            self.wait()
            raise AssertionError(self.stderr)
        self.ready = json.loads(line)
        assert set(self.ready) == READY_KEYS
        self.url = self.ready["url"]
        self.key = self.token_file.read_text().strip()

    def set_limits(self, **limits):
        """Changes limits of a host that was started with some; they count from the next start on."""
        (self.harness.root / "host.json").write_text(json.dumps({"limits": limits}))

    def write_script(self, *replies, pace_ms=0):
        """Replaces the script of the model; it counts from the next start on."""
        self.script.write_text(json.dumps({"replies": replies, "pace_ms": pace_ms}))

    def stop(self):
        """Stops the host in an orderly way; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        self.process.kill()
        return self.wait()

    def wait(self):
        code = self.process.wait(TIMEOUT)
        self.process.stdout.close()
        self.stderr = self.process.stderr.read()
        self.process.stderr.close()
        return code

    def close(self):
        if self.process.returncode is None:
            self.stop()

    def request(self, method, path, body=None, headers=None, key=True, raw=None):
        """Sends a request; returns status, headers and body."""
        all_headers = {"Authorization": f"Bearer {self.key}"} if key else {}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        all_headers.update(headers or {})
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=all_headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT + 30) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def call(self, method, path, body=None, status=None, **more):
        """Sends a request and returns the JSON of its answer; the status must be the expected one, or a success."""
        found, _, text = self.request(method, path, body, **more)
        assert found == status if status else found < 300, f"{method} {path}: {found} {text!r}"
        return json.loads(text) if text else None

    def fails(self, method, path, body=None, **more):
        """Sends a request that must fail; returns status and code. Checks the form of the error."""
        status, _, text = self.request(method, path, body, **more)
        assert status >= 400, f"{method} {path}: {status} {text!r}"
        error = json.loads(text)["error"]
        assert set(error) == {"code", "message", "detail"} and len(error["message"]) > 10
        return status, error["code"]

    def create(self, text=None, **more):
        """Creates a session in the workspace, with a first message if a text is given; returns its id."""
        body = {"folder": str(self.harness.workspace), "key": new_key(), **more}
        if text is not None:
            body["message"] = {"key": new_key(), "text": text}
        return self.call("POST", "/v1/sessions", body, status=201)["id"]

    def send(self, session, text, **more):
        message = {"key": new_key(), "text": text, **more}
        return self.call("POST", f"/v1/sessions/{session}/messages", message, status=202)

    def session(self, session):
        return self.call("GET", f"/v1/sessions/{session}")

    def events(self, session, after=0, wait=0):
        """Reads all events after a number."""
        found = []
        while True:
            path = f"/v1/sessions/{session}/events?after={after}&limit=200" + (f"&wait={wait}" if wait else "")
            page = self.call("GET", path)["events"]
            found += page
            if not page:
                return found
            after, wait = page[-1]["seq"], 0

    def wait_for(self, session, accept, after=0):
        """Waits for an event; returns it."""
        def find():
            return next((event for event in self.events(session, after, wait=2) if accept(event["frame"])), None)

        return wait_until(find, "an event")

    def wait_for_state(self, session, state, after=0):
        return self.wait_for(session, lambda frame: is_host(frame, "state") and frame["state"] == state, after)

    def wait_for_request(self, session):
        """Waits for an open request of a session; returns it."""
        def find():
            requests = self.call("GET", f"/v1/requests?state=open&session={session}")["requests"]
            return requests[0] if requests else None

        return wait_until(find, "a request")

    def answer(self, request, decision, status=200, **more):
        return self.call("POST", f"/v1/requests/{request['id']}/answer", {"decision": decision, **more}, status=status)

    def socket(self, path="/v1/ws", **more):
        headers = {"Authorization": f"Bearer {self.key}", **more.pop("headers", {})}
        protocols = ["whimbrel.1"] if path == "/v1/ws" else None
        url = self.url.replace("http", "ws", 1) + path
        return Socket(connect(url, subprotocols=protocols, additional_headers=headers, max_size=None, **more))


class Socket:
    """A WebSocket of the host."""

    def __init__(self, connection):
        self.connection = connection
        self.count = 0
        self.waiting = []

    def receive(self):
        return json.loads(self.connection.recv(timeout=TIMEOUT))

    def next(self, accept):
        """The next message that is accepted; others stay for later."""
        for message in self.waiting:
            if accept(message):
                self.waiting.remove(message)
                return message
        while True:
            message = self.receive()
            if accept(message):
                return message
            self.waiting.append(message)

    def call(self, op, **fields):
        """Sends an operation; returns its reply."""
        self.count += 1
        number = str(self.count)
        self.connection.send(json.dumps({"op": op, "id": number, **fields}))
        return self.next(lambda message: message["op"] == "reply" and message["id"] == number)

    def wait_for_close(self):
        """Reads until the host closes the socket; returns the code."""
        try:
            while True:
                self.receive()
        except ConnectionClosed as closed:
            return closed.rcvd.code

    def close(self):
        self.connection.close()


def new_key():
    return uuid.uuid4().hex


def is_host(frame, subtype):
    return frame["type"] == "host" and frame["subtype"] == subtype


def kinds(events):
    """Types of the frames of events; subtypes for those of the host and the system."""
    def kind(frame):
        return f"{frame['type']}/{frame['subtype']}" if frame["type"] in ("host", "system") else frame["type"]

    return [kind(event["frame"]) for event in events]


def quote(text):
    return urllib.parse.quote(text, safe="")
