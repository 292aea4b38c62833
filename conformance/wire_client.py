"""A host that speaks the wire protocol without an SDK."""

import contextlib
import json
import subprocess


class WireClient:
    """A host that writes and reads JSON lines."""

    def __init__(self, harness, *arguments, **env):
        command = [
            harness.engine,
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
            cwd=harness.workspace,
            env=harness.env() | env,
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

    def send(self, *lines):
        """Writes lines, all at once."""
        self.child.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self.child.stdin.flush()

    def respond(self, request, response):
        body = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.send({"type": "control_response", "response": body})

    def read_frame(self):
        """Reads one line."""
        line = self.child.stdout.readline()
        assert line, "the engine has closed its output"
        return json.loads(line)

    def read_until(self, name):
        """Reads lines up to and including the first with this type or subtype."""
        lines = []
        for line in self.child.stdout:
            lines.append(json.loads(line))
            if name in (lines[-1]["type"], lines[-1].get("subtype")):
                return lines
        raise AssertionError(f"no {name} in {lines}")
