"""Runs programs of others, which are installed below the directory of the SDKs."""

import json
import os
import subprocess
from pathlib import Path

from harness import TIMEOUT

SOURCES = Path(__file__).parent / "programs"


class Programs:
    """The installed programs, run in the directories of one test."""

    def __init__(self, sdk_dir, harness):
        self.dir, self.harness = sdk_dir / "programs", harness

    @property
    def python(self):
        """The interpreter that has the Python packages."""
        return self.dir / "python" / "bin" / "python"

    def run(self, *command, env=()):
        """Runs a command that must succeed; returns its standard output."""
        process = subprocess.run(
            [str(word) for word in command],
            cwd=self.harness.workspace,
            # Our environment is that of the harness with the additions of fixtures.
            env={**os.environ, **dict(env)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert process.returncode == 0, (process.stdout, process.stderr)
        return process.stdout

    def run_node_script(self, package, script, **params):
        """Runs a script of a package beside the installed modules; returns the JSON that it prints."""
        directory = self.harness.root / package
        if not directory.exists():
            directory.mkdir()
            (directory / "node_modules").symlink_to(self.dir / package / "node_modules")
        # A copy, because node looks for modules beside the real file.
        copy = directory / script
        copy.write_bytes((SOURCES / package / script).read_bytes())
        return json.loads(self.run("node", copy, json.dumps(params), env={"ENGINE": str(self.harness.engine)}))

    def run_python_script(self, script, *arguments, env=()):
        """Runs a script with the Python packages; returns the JSON lines that it prints."""
        printed = self.run(self.python, SOURCES / script, *arguments, env=env)
        return [json.loads(line) for line in printed.splitlines()]
