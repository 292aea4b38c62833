"""The caller's side of the TypeScript SDK: plays a script of `typescript/` and picks from what it printed."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from caller import Answered
from stage import PATIENCE

SCRIPTS = Path(__file__).parent / "typescript"


@dataclass
class Played:
    """What a script printed: the SDK's messages, and notes by name."""

    messages: list
    notes: dict
    stderr: str

    @property
    def results(self):
        return self.of("result")

    @property
    def the_result(self):
        (result,) = self.results
        return result

    @property
    def thrown(self):
        """What the SDK threw at the end; none if it did not."""
        assert ("ended" in self.notes) != ("thrown" in self.notes), (self.notes, self.stderr)
        return self.notes.get("thrown", [None])[0]

    def of(self, kind, subtype=None):
        """Every message of a kind."""
        return [m for m in self.messages if m["type"] == kind and subtype in (None, m.get("subtype"))]

    @property
    def said(self):
        """What the model said, as one text."""
        blocks = [block for message in self.of("assistant") for block in message["message"]["content"]]
        return "".join(block["text"] for block in blocks if block["type"] == "text")

    @property
    def tool_results(self):
        """What came of every tool call, in order."""
        return [
            Answered(
                block["tool_use_id"],
                block["content"],
                bool(block.get("is_error")),
                message["tool_use_result"],
            )
            for message in self.of("user")
            if isinstance(message["message"]["content"], list)
            for block in message["message"]["content"]
            if block["type"] == "tool_result"
        ]


class Node:
    """Plays scripts with one version of the SDK."""

    def __init__(self, version, installed, stage):
        self.version, self.stage = version, stage
        self.folder = installed / f"ts-{version}" / "node_modules"

    def play(self, script, *replies, prompts=("go",), options=None, code=0, **asked):
        """Plays a script to its end with a model that gives these replies; node leaves with a code."""
        options = dict(options or {})
        if replies:
            options["model"] = self.stage.script(*replies)
        asked = {"prompts": prompts, "options": options, **asked}
        # The stage's own environment, and what a fixture has added to it.
        env = dict(os.environ, SDK_FOLDER=str(self.folder), ENGINE=str(self.stage.engine))
        played = subprocess.run(
            ["node", str(SCRIPTS / f"{script}.mjs"), json.dumps(asked)],
            cwd=self.stage.workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert played.returncode == code, played.stderr
        lines = [json.loads(line) for line in played.stdout.split("\n") if line]
        notes = {}
        for line in lines:
            if "note" in line:
                notes.setdefault(line["note"], []).append(line["value"])
        return Played([line["message"] for line in lines if "message" in line], notes, played.stderr)
