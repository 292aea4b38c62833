"""Runs the scripts of `typescript/` with a version of the TypeScript SDK and selects from their output."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import TIMEOUT
from python_sdk import ToolOutcome

SCRIPT_DIR = Path(__file__).parent / "typescript"


@dataclass
class ScriptOutput:
    """The output of a script: the SDK's messages, and the script's notes by name."""

    messages: list
    notes: dict
    stderr: str

    @property
    def results(self):
        return self.of_type("result")

    @property
    def only_result(self):
        """The result; fails if there is not exactly one."""
        (result,) = self.results
        return result

    @property
    def error(self):
        """The error that the SDK threw at the end, or None."""
        assert ("ended" in self.notes) != ("error" in self.notes), (self.notes, self.stderr)
        return self.notes.get("error", [None])[0]

    def of_type(self, message_type, subtype=None):
        """All messages of a type and, if given, a subtype."""
        return [m for m in self.messages if m["type"] == message_type and subtype in (None, m.get("subtype"))]

    @property
    def assistant_text(self):
        """All text blocks of the model, joined."""
        blocks = [block for message in self.of_type("assistant") for block in message["message"]["content"]]
        return "".join(block["text"] for block in blocks if block["type"] == "text")

    @property
    def tool_results(self):
        """The results of all tool calls, in order."""
        return [
            ToolOutcome(
                block["tool_use_id"],
                block["content"],
                bool(block.get("is_error")),
                message["tool_use_result"],
            )
            for message in self.of_type("user")
            if isinstance(message["message"]["content"], list)
            for block in message["message"]["content"]
            if block["type"] == "tool_result"
        ]


class ScriptRunner:
    """Runs scripts with one version of the SDK."""

    def __init__(self, version, sdk_dir, harness):
        self.version, self.harness = version, harness
        self.modules_dir = sdk_dir / f"ts-{version}" / "node_modules"

    def run(self, script, *replies, prompts=("go",), options=None, code=0, **params):
        """Runs a script with a model that gives these replies; node must exit with `code`."""
        options = dict(options or {})
        if replies:
            options["model"] = self.harness.write_script(*replies)
        params = {"prompts": prompts, "options": options, **params}
        # Our environment is that of the harness with the additions of fixtures.
        env = dict(os.environ, SDK_MODULES=str(self.modules_dir), ENGINE=str(self.harness.engine))
        process = subprocess.run(
            ["node", str(SCRIPT_DIR / f"{script}.mjs"), json.dumps(params)],
            cwd=self.harness.workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert process.returncode == code, process.stderr
        lines = [json.loads(line) for line in process.stdout.split("\n") if line]
        notes = {}
        for line in lines:
            if "note" in line:
                notes.setdefault(line["note"], []).append(line["value"])
        return ScriptOutput([line["message"] for line in lines if "message" in line], notes, process.stderr)
