"""The programs of `examples/`, run as a person would run them, with a provider on loopback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stage import PATIENCE, call

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(stage, *command, typed=""):
    """Runs a program to its end; gives what it printed."""
    ended = subprocess.run(
        command, cwd=stage.workspace, env=os.environ, input=typed, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("answer, made", [("y", True), ("n", False)])
def test_the_python_example_asks_before_it_lets_anything_be_changed(stage, provider, answer, made):
    haiku = stage.workspace / "haiku.txt"
    provider.replies = [call("Write", file_path=str(haiku), content="grey mud\n"), "There it is."]
    printed = run(stage, sys.executable, EXAMPLES / "python" / "permission.py", stage.engine, typed=f"{answer}\n")
    assert "Write" in printed and "allow? [y/N]" in printed and "There it is." in printed
    assert haiku.exists() == made


@pytest.mark.parametrize("version", ["0.2.50", "0.3.325"])
def test_the_typescript_example_prints_the_answer_and_what_it_cost(stage, provider, installed, version):
    # A program finds its packages beside itself.
    (stage.root / "node_modules").symlink_to(installed / f"ts-{version}" / "node_modules")
    program = stage.root / "one_shot.mjs"
    program.write_text((EXAMPLES / "typescript" / "one_shot.mjs").read_text())
    provider.replies = [call("Glob", pattern="*"), "Nothing at all."]
    assert run(stage, "node", program, stage.engine).startswith("Nothing at all. (2 turns, $")


def test_every_example_is_run_here():
    assert sorted(path.name for path in EXAMPLES.rglob("*.*")) == ["one_shot.mjs", "permission.py"]
