"""The programs of `examples/`, run from the command line with a mock provider."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import TIMEOUT, tool_call
from host_client import Host

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_program(harness, *command, typed=""):
    """Runs a program with the given input; returns its output."""
    process = subprocess.run(
        command, cwd=harness.workspace, env=os.environ, input=typed, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("answer, written", [("y", True), ("n", False)])
def test_python_example_asks_before_changes(harness, provider, answer, written):
    haiku = harness.workspace / "haiku.txt"
    provider.replies = [tool_call("Write", file_path=str(haiku), content="grey mud\n"), "There it is."]
    printed = run_program(
        harness, sys.executable, EXAMPLES / "python" / "permission.py", harness.engine, typed=f"{answer}\n"
    )
    assert "Write" in printed and "allow? [y/N]" in printed and "There it is." in printed
    assert haiku.exists() == written


@pytest.mark.parametrize("version", ["0.2.50", "0.3.325"])
def test_typescript_example_prints_result_and_cost(harness, provider, sdk_dir, version):
    # Node resolves packages from the directory of the program.
    (harness.root / "node_modules").symlink_to(sdk_dir / f"ts-{version}" / "node_modules")
    program = harness.root / "one_shot.mjs"
    program.write_text((EXAMPLES / "typescript" / "one_shot.mjs").read_text())
    provider.replies = [tool_call("Glob", pattern="*"), "Nothing at all."]
    assert run_program(harness, "node", program, harness.engine).startswith("Nothing at all. (2 turns, $")


def test_client_of_the_host_asks_and_prints_the_answer(harness):
    haiku = harness.workspace / "haiku.txt"
    host = Host(harness, model=harness.write_script(tool_call("Write", file_path=str(haiku), content="mud\n"), "There it is."))
    try:
        os.environ.update(WHIMBREL_HOST=host.url, WHIMBREL_KEY=host.key)
        client = EXAMPLES / "host" / "client.py"
        printed = run_program(harness, sys.executable, client, harness.workspace, "a haiku, please", typed="y\n")
    finally:
        for name in ("WHIMBREL_HOST", "WHIMBREL_KEY"):
            os.environ.pop(name, None)
        host.close()
    assert "Allow Write" in printed and "There it is." in printed
    assert haiku.read_text() == "mud\n"


def test_page_of_the_host_is_one_file_without_other_addresses():
    """What it sends is tested with the socket /v1/nexia."""
    page = (EXAMPLES / "host" / "page.html").read_text()
    assert "/v1/nexia?session=" in page and "http:" not in page and "https:" not in page


def test_every_example_has_a_test():
    names = sorted(path.name for path in EXAMPLES.rglob("*.*"))
    assert names == ["client.py", "one_shot.mjs", "page.html", "permission.py", "runner.mjs", "serve_page.py"]
