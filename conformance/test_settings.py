"""Settings files: which the official SDKs ask for, and what counts of them."""

import json

import pytest

from caller import ask, the_result
from node import Node
from stage import call

TOUCH = call("Bash", command="touch made.txt")


def settings(folder, values, name="settings.json"):
    (folder / ".claude").mkdir(exist_ok=True)
    (folder / ".claude" / name).write_text(json.dumps(values))


def made(stage):
    return (stage.workspace / "made.txt").exists()


def test_a_deny_rule_of_the_project_holds_over_an_allow_of_the_host(stage):
    settings(stage.workspace, {"permissions": {"deny": ["Bash"]}})
    ask("go", stage.options(TOUCH, "Done.", allowed_tools=["Bash"]))
    assert not made(stage)


@pytest.mark.parametrize(
    "sources, counts", [(None, False), (["project"], True), (["user"], False), ([], False)]
)
def test_an_allow_rule_of_the_project_counts_when_it_was_asked_for(stage, sources, counts):
    settings(stage.workspace, {"permissions": {"allow": ["Bash(touch *)"]}})
    ask("go", stage.options(TOUCH, "Done.", setting_sources=sources))
    assert made(stage) == counts


def test_a_rule_of_the_person_counts_unless_nothing_is_read(stage):
    settings(stage.home, {"permissions": {"allow": ["Bash(touch *)"]}})
    ask("go", stage.options(TOUCH, "Done.", setting_sources=[]))
    assert not made(stage)
    ask("go", stage.options(TOUCH, "Done."))
    assert made(stage)


@pytest.mark.parametrize("version, counts", [("0.2.50", False), ("0.3.325", True)])
def test_the_npm_sdks_differ_in_what_they_read_by_themselves(installed, stage, version, counts):
    settings(stage.home, {"permissions": {"allow": ["Bash(touch *)"]}})
    Node(version, installed, stage).play("one", TOUCH, "Done.")
    assert made(stage) == counts


def test_settings_of_the_host_count_over_files(stage):
    settings(stage.home, {"env": {"WHO": "the person", "WHERE": "at home"}})
    host = json.dumps({"env": {"WHO": "the host"}, "permissions": {"allow": ["Bash"]}})
    say = call("Bash", command="echo $WHO $WHERE")
    options = stage.options(say, {"expect": "the host at home", "content": ["Done."]}, settings=host)
    assert the_result(ask("go", options)).result == "Done."
