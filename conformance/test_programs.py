"""The programs of others: which ones run, and that none of them can start an engine of another vendor."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from installed_programs import SOURCES

# Files of the engine that comes with the SDKs: in the older one for TypeScript, beside the newer one, in the one for
# Python.
ENGINES = [
    "**/@anthropic-ai/claude-agent-sdk/cli.js",
    "**/@anthropic-ai/claude-agent-sdk-*",
    "**/@anthropic-ai/claude-code*",
    "**/claude_agent_sdk/_bundled/claude*",
]


def test_no_other_engine_is_installed(sdk_dir):
    assert [path for pattern in ENGINES for path in sdk_dir.glob(pattern)] == []


def test_decoy_makes_a_test_fail(harness):
    harness.ensure_no_other_engine()
    assert subprocess.run(["claude", "--version"], env=harness.env()).returncode == 1
    with pytest.raises(AssertionError, match="another engine was started: .*--version"):
        harness.ensure_no_other_engine()
    harness.decoy_log.unlink()


def test_documented_programs_are_the_pinned_ones():
    pinned = dict(re.findall(r"^(\S+)==(\S+)", (SOURCES / "requirements.txt").read_text(), re.MULTILINE))
    for manifest in SOURCES.glob("*/package.json"):
        pinned.update(json.loads(manifest.read_text())["dependencies"])
    page = (Path(__file__).parent.parent / "docs" / "install.md").read_text()
    table = re.findall(r"^\| `([^`]+)` \(.*?\) \| (\d\S+) \|", page, re.MULTILINE)
    documented = table + re.findall(r"`([\w-]+)` \((\d[\d.]+)\)", page)
    assert len(documented) == 5
    assert [(name, version) for name, version in documented if pinned.get(name) != version] == []
