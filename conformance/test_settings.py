"""Settings files: which sources the official SDKs request, and which rules apply."""

import json

import pytest

from harness import tool_call
from python_sdk import only_result, run_query
from typescript_sdk import ScriptRunner

TOUCH = tool_call("Bash", command="touch made.txt")


def write_settings(directory, values, name="settings.json"):
    (directory / ".claude").mkdir(exist_ok=True)
    (directory / ".claude" / name).write_text(json.dumps(values))


def made_file_exists(harness):
    return (harness.workspace / "made.txt").exists()


def test_project_deny_rule_overrides_host_allow(harness):
    write_settings(harness.workspace, {"permissions": {"deny": ["Bash"]}})
    run_query("go", harness.options(TOUCH, "Done.", allowed_tools=["Bash"]))
    assert not made_file_exists(harness)


@pytest.mark.parametrize("sources, applies", [(None, False), (["project"], True), (["user"], False), ([], False)])
def test_project_allow_rule_needs_its_setting_source(harness, sources, applies):
    write_settings(harness.workspace, {"permissions": {"allow": ["Bash(touch *)"]}})
    run_query("go", harness.options(TOUCH, "Done.", setting_sources=sources))
    assert made_file_exists(harness) == applies


def test_user_rule_applies_unless_sources_are_empty(harness):
    write_settings(harness.home, {"permissions": {"allow": ["Bash(touch *)"]}})
    run_query("go", harness.options(TOUCH, "Done.", setting_sources=[]))
    assert not made_file_exists(harness)
    run_query("go", harness.options(TOUCH, "Done."))
    assert made_file_exists(harness)


@pytest.mark.parametrize("version, applies", [("0.2.50", False), ("0.3.325", True)])
def test_npm_sdks_differ_in_default_setting_sources(sdk_dir, harness, version, applies):
    write_settings(harness.home, {"permissions": {"allow": ["Bash(touch *)"]}})
    ScriptRunner(version, sdk_dir, harness).run("single_prompt", TOUCH, "Done.")
    assert made_file_exists(harness) == applies


def test_host_settings_override_files(harness):
    write_settings(harness.home, {"env": {"WHO": "the user", "WHERE": "at home"}})
    host = json.dumps({"env": {"WHO": "the host"}, "permissions": {"allow": ["Bash"]}})
    echo = tool_call("Bash", command="echo $WHO $WHERE")
    options = harness.options(echo, {"expect": "the host at home", "content": ["Done."]}, settings=host)
    assert only_result(run_query("go", options)).result == "Done."
