"""Harness of one test: its directories, scripted models, and the processes that it has started."""

import json
import os
import signal
import time
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

# Seconds until a test gives up, and until its processes must have exited after it. Other programs may keep the machine busy.
TIMEOUT, EXIT_GRACE = 120, 60


def tool_call(tool, /, **arguments):
    """A reply of the model that is one tool call."""
    return [{"type": "tool_use", "name": tool, "input": arguments}]


def wait_until(condition, description, seconds=TIMEOUT):
    """Polls a condition until it is true; returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timed out waiting for {description}"
        time.sleep(0.01)
    return value


class Harness:
    """Directories, scripts and processes of one test."""

    def __init__(self, engine, root):
        self.engine, self.root = engine, root.resolve()
        self.home, self.workspace, self.temp_dir = (self.root / name for name in ("home", "workspace", "tmp"))
        for directory in (self.home, self.workspace, self.temp_dir):
            directory.mkdir()
        self.script_count = 0
        # What a program finds that looks for the official engine by name.
        self.decoy_dir, self.decoy_log = self.root / "decoy", self.root / "decoy.log"
        self.write_program(self.decoy_dir / "claude", f'echo "$0 $*" >> {self.decoy_log}\nexit 1\n')

    @staticmethod
    def write_program(path, text):
        """Writes a shell program."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def env(self):
        """The whole environment of the engine; only PATH comes from ours, after a decoy."""
        return {
            "PATH": f"{self.decoy_dir}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(self.temp_dir),
            "LANG": "C.UTF-8",
            # The tests may run as root in a container.
            "IS_SANDBOX": "1",
        }

    def write_script(self, *replies, pace_ms=0):
        """Writes a script of replies (texts, lists of blocks, or whole replies); returns the name of its model."""
        self.script_count += 1
        path = self.root / f"script-{self.script_count}.json"
        path.write_text(json.dumps({"replies": replies, "pace_ms": pace_ms}))
        return f"scripted:{path}"

    def options(self, *replies, **more):
        """Options of the Python SDK for an engine with a scripted model."""
        if replies:
            more["model"] = self.write_script(*replies)
        return ClaudeAgentOptions(cli_path=self.engine, cwd=self.workspace, **more)

    def running_processes(self):
        """Command lines of all processes of this test by pid, recognized by their TMPDIR."""
        tag = f"TMPDIR={self.temp_dir}\0".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if tag in (entry / "environ").read_bytes() + b"\0":
                    found[int(entry.name)] = (
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
            except OSError:
                continue  # It has exited meanwhile, or belongs to another user.
        return found

    def ensure_no_other_engine(self):
        """Fails if a program has started `claude` instead of the engine under test."""
        assert not self.decoy_log.exists(), f"another engine was started: {self.decoy_log.read_text()}"

    def ensure_no_processes(self):
        """Waits until all processes of this test have exited; kills the rest and fails."""
        try:
            wait_until(lambda: not self.running_processes(), "every process of the test to exit", EXIT_GRACE)
        except AssertionError:
            left = self.running_processes()
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"processes left running: {left}") from None
