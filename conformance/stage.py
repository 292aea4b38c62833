"""The stage of one test: folders of its own, models that follow a script, and a look at what still runs."""

import json
import os
import signal
import time
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

# How many seconds anything may take before a test gives up, and its processes to end after it.
PATIENCE, AFTERMATH = 30, 15


def call(tool, /, **arguments):
    """A reply of the model that is one tool call."""
    return [{"type": "tool_use", "name": tool, "input": arguments}]


def wait_until(condition, what, seconds=PATIENCE):
    """Waits until a condition holds; gives what it gave."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)
    return found


class Stage:
    """Where one test plays."""

    def __init__(self, engine, root):
        self.engine, self.root = engine, root.resolve()
        self.home, self.workspace, self.temporary = (
            self.root / name for name in ("home", "workspace", "tmp")
        )
        for folder in (self.home, self.workspace, self.temporary):
            folder.mkdir()
        self.scripts = 0

    def env(self):
        """The whole environment of the engine: nothing of the caller's but the way to programs."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            # The machine may be a container where everything runs as root.
            "IS_SANDBOX": "1",
        }

    def script(self, *replies, pace_ms=0):
        """The name of a model that gives these replies: texts, lists of blocks, or replies in full."""
        self.scripts += 1
        path = self.root / f"script-{self.scripts}.json"
        path.write_text(json.dumps({"replies": replies, "pace_ms": pace_ms}))
        return f"scripted:{path}"

    def options(self, *replies, **more):
        """Options of the Python SDK for an engine with a scripted model."""
        if replies:
            more["model"] = self.script(*replies)
        return ClaudeAgentOptions(cli_path=self.engine, cwd=self.workspace, **more)

    def processes(self):
        """Every process that belongs to this test, by its id, with its command line."""
        mark = f"TMPDIR={self.temporary}\0".encode()
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                if mark in (folder / "environ").read_bytes() + b"\0":
                    found[int(folder.name)] = (
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
            except OSError:
                continue  # It has ended meanwhile, or is not ours.
        return found

    def clear(self):
        """Waits until nothing of this test runs; whatever stays is ended, and is a failure."""
        try:
            wait_until(lambda: not self.processes(), "every process of the test to end", AFTERMATH)
        except AssertionError:
            left = self.processes()
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left behind: {left}") from None
