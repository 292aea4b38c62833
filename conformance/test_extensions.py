"""Skills, plugins and output styles through the official SDKs."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient

from harness import tool_call
from python_sdk import only_result, run_query, run_turn, run_with_timeout, system_data, tool_results
from typescript_sdk import ScriptRunner

OLD_SDK, NEW_SDK = "0.2.50", "0.3.325"
GREET_SKILL = "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS."
SKILL_WITH_ALLOW = "---\ndescription: Does things\nallowed-tools: Bash(touch *)\n---\nDo things."
CALL_GREET = tool_call("Skill", skill="greet", args="Ann")


def write_files(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))


@pytest.fixture
def plugin(harness):
    """A plugin with a command, a skill, an output style and a hook."""
    directory = harness.root / "plug"
    root = "${CLAUDE_PLUGIN_ROOT}"
    hook = {"type": "command", "command": f'echo "{root} $CLAUDE_PLUGIN_ROOT" > {harness.workspace}/hooked'}
    write_files(
        directory,
        {
            ".claude-plugin/plugin.json": {"name": "tools", "version": "1.2.3"},
            "commands/go.md": "---\ndescription: Goes\n---\nGo $0.",
            "skills/greet/SKILL.md": GREET_SKILL,
            "output-styles/brief.md": "---\nname: Brief\n---\nUse few words.",
            "hooks/hooks.json": {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}},
        },
    )
    return directory


def test_python_skills_are_listed_and_loaded(harness, provider):
    skills = {".claude/skills/greet/SKILL.md": GREET_SKILL, ".claude/skills/other/SKILL.md": SKILL_WITH_ALLOW}
    write_files(harness.workspace, skills)
    provider.replies = [CALL_GREET, "Hello Ann."]
    messages = run_query("go", harness.options(skills=["greet"], model="claude-haiku-4-5"))
    assert only_result(messages).result == "Hello Ann."
    (init,) = system_data(messages, "init")
    assert init["skills"] == ["greet", "other"] and "Skill" in init["tools"]
    (loaded,) = tool_results(messages)
    assert (loaded.failed, loaded.meta) == (False, {"success": True, "commandName": "greet"})
    before, after = (json.dumps(request["messages"]) for request in provider.requests)
    assert "- greet: Greets people" in before and "other" not in before
    assert "Say hello to Ann." in after


def test_python_named_skills_need_no_permission(harness):
    write_files(harness.workspace, {".claude/skills/greet/SKILL.md": SKILL_WITH_ALLOW})
    replies = (CALL_GREET, tool_call("Bash", command="touch made.txt"), "Done.")
    run_query("go", harness.options(*replies, skills=["greet"]))
    assert (harness.workspace / "made.txt").exists()


def test_python_loads_plugins_and_reports_broken_ones(harness, provider, plugin):
    provider.replies = ["Going.", tool_call("Skill", skill="tools:greet", args="Ann"), "Hello."]
    gone = harness.root / "gone"
    options = harness.options(
        plugins=[{"type": "local", "path": str(plugin)}, {"type": "local", "path": str(gone)}],
        settings=json.dumps({"outputStyle": "tools:Brief"}),
        # By default the SDK requests an empty system prompt.
        system_prompt={"type": "preset", "preset": "claude_code"},
        model="claude-haiku-4-5",
    )

    async def run_session():
        async with ClaudeSDKClient(options) as client:
            info = await client.get_server_info()
            return info, await run_turn(client, "/tools:go north"), await run_turn(client, "Greet Ann.")

    info, first, second = run_with_timeout(run_session())
    assert {"tools:go", "tools:greet"} <= {command["name"] for command in info["commands"]}
    assert info["output_style"] == "tools:Brief"
    assert info["available_output_styles"] == ["default", "Explanatory", "Learning", "tools:Brief"]
    (init,) = system_data(first, "init")
    assert init["plugins"] == [{"name": "tools", "path": str(plugin), "version": "1.2.3"}]
    (error,) = init["plugin_errors"]
    assert (error["type"], error["path"]) == ("path-not-found", str(gone))
    assert "Go north." in json.dumps(provider.requests[0]["messages"])
    assert "Use few words." in provider.system_prompt(0)
    assert "Say hello to Ann." in json.dumps(provider.requests[2]["messages"])
    assert only_result(second).result == "Hello."
    assert (harness.workspace / "hooked").read_text().split() == [str(plugin)] * 2


@pytest.mark.parametrize("version", [OLD_SDK, NEW_SDK])
def test_typescript_loads_a_plugin_and_calls_its_skill(sdk_dir, harness, plugin, version):
    options = {"plugins": [{"type": "local", "path": str(plugin)}], "allowedTools": ["Skill"]}
    node = ScriptRunner(version, sdk_dir, harness)
    load = tool_call("Skill", skill="tools:greet", args="Ann")
    output = node.run("single_prompt", load, {"expect": "Say hello to Ann.", "content": ["Hello."]}, options=options)
    (init,) = output.of_type("system", "init")
    assert init["plugins"] == [{"name": "tools", "path": str(plugin), "version": "1.2.3"}]
    assert init["skills"] == ["tools:greet"]
    assert {"tools:go", "tools:greet"} <= set(init["slash_commands"])
    assert output.tool_results[0].meta == {"success": True, "commandName": "tools:greet"}
    assert output.only_result["result"] == "Hello."
    assert (harness.workspace / "hooked").exists()


def test_typescript_sends_plugins_with_initialize(sdk_dir, harness, plugin):
    options = {"plugins": [{"type": "local", "path": str(plugin)}], "pluginDelivery": "initialize"}
    output = ScriptRunner(NEW_SDK, sdk_dir, harness).run("single_prompt", "Hello.", options=options)
    (init,) = output.of_type("system", "init")
    assert [found["name"] for found in init["plugins"]] == ["tools"]
    assert (harness.workspace / "hooked").exists()


@pytest.mark.parametrize("version, sources", [(OLD_SDK, ["project"]), (NEW_SDK, None)])
def test_typescript_lists_project_skills(sdk_dir, harness, version, sources):
    write_files(harness.workspace, {".claude/skills/greet/SKILL.md": GREET_SKILL})
    options = {"settingSources": sources} if sources else {}
    output = ScriptRunner(version, sdk_dir, harness).run("single_prompt", "Hello.", options=options)
    (init,) = output.of_type("system", "init")
    assert init["skills"] == ["greet"] and "greet" in init["slash_commands"]


def test_typescript_restricts_skills(sdk_dir, harness):
    skills = {".claude/skills/greet/SKILL.md": GREET_SKILL, ".claude/skills/other/SKILL.md": SKILL_WITH_ALLOW}
    write_files(harness.workspace, skills)
    replies = (tool_call("Skill", skill="other"), CALL_GREET, {"expect": "Say hello to Ann.", "content": ["Hello."]})
    output = ScriptRunner(NEW_SDK, sdk_dir, harness).run("single_prompt", *replies, options={"skills": ["greet"]})
    other, greet = output.tool_results
    assert other.failed and "Unknown skill: other" in other.text
    assert not greet.failed


RELOADS = [["reloadSkills"], ["reloadPlugins"]]


def test_typescript_reloads_during_a_session(sdk_dir, harness, plugin):
    options = {"plugins": [{"type": "local", "path": str(plugin)}]}
    output = ScriptRunner(NEW_SDK, sdk_dir, harness).run(
        "control", "One.", "Two.", prompts=["one", "two"], options=options, changes=[RELOADS]
    )
    assert [output.notes[method] for (method,) in RELOADS] == [["done"], ["done"]]
    names = {command["name"] for command in output.notes["supportedCommands"][0]}
    assert {"tools:go", "tools:greet"} <= names
