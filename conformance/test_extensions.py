"""Skills, plugins and output styles, as the official SDKs ask for them."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient

from caller import ask, in_time, notices, the_result, tool_results, turn
from node import Node
from stage import call

OLD, NEW = "0.2.50", "0.3.325"
GREET = "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS."
MIGHTY = "---\ndescription: Does things\nallowed-tools: Bash(touch *)\n---\nDo things."
LOAD = call("Skill", skill="greet", args="Ann")


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))


@pytest.fixture
def plugin(stage):
    """A plugin with something of each kind."""
    folder = stage.root / "plug"
    root = "${CLAUDE_PLUGIN_ROOT}"
    hook = {"type": "command", "command": f'echo "{root} $CLAUDE_PLUGIN_ROOT" > {stage.workspace}/hooked'}
    write(
        folder,
        {
            ".claude-plugin/plugin.json": {"name": "tools", "version": "1.2.3"},
            "commands/go.md": "---\ndescription: Goes\n---\nGo $0.",
            "skills/greet/SKILL.md": GREET,
            "output-styles/brief.md": "---\nname: Brief\n---\nUse few words.",
            "hooks/hooks.json": {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}},
        },
    )
    return folder


def test_python_offers_skills_and_the_model_loads_one(stage, provider):
    write(stage.workspace, {".claude/skills/greet/SKILL.md": GREET, ".claude/skills/other/SKILL.md": MIGHTY})
    provider.replies = [LOAD, "Hello Ann."]
    messages = ask("go", stage.options(skills=["greet"], model="claude-haiku-4-5"))
    assert the_result(messages).result == "Hello Ann."
    (init,) = notices(messages, "init")
    assert init["skills"] == ["greet", "other"] and "Skill" in init["tools"]
    (loaded,) = tool_results(messages)
    assert (loaded.failed, loaded.meta) == (False, {"success": True, "commandName": "greet"})
    told, after = (json.dumps(request["messages"]) for request in provider.requests)
    assert "- greet: Greets people" in told and "other" not in told
    assert "Say hello to Ann." in after


def test_python_needs_no_question_for_the_skills_that_it_names(stage):
    write(stage.workspace, {".claude/skills/greet/SKILL.md": MIGHTY})
    replies = (LOAD, call("Bash", command="touch made.txt"), "Done.")
    ask("go", stage.options(*replies, skills=["greet"]))
    assert (stage.workspace / "made.txt").exists()


def test_python_loads_a_plugin_and_hears_of_a_broken_one(stage, provider, plugin):
    provider.replies = ["Going.", call("Skill", skill="tools:greet", args="Ann"), "Hello."]
    gone = stage.root / "gone"
    options = stage.options(
        plugins=[{"type": "local", "path": str(plugin)}, {"type": "local", "path": str(gone)}],
        settings=json.dumps({"outputStyle": "tools:Brief"}),
        # Without a choice the SDK asks for no system prompt at all.
        system_prompt={"type": "preset", "preset": "claude_code"},
        model="claude-haiku-4-5",
    )

    async def both():
        async with ClaudeSDKClient(options) as client:
            info = await client.get_server_info()
            return info, await turn(client, "/tools:go north"), await turn(client, "Greet Ann.")

    info, first, second = in_time(both())
    assert {"tools:go", "tools:greet"} <= {command["name"] for command in info["commands"]}
    assert info["output_style"] == "tools:Brief"
    assert info["available_output_styles"] == ["default", "Explanatory", "Learning", "tools:Brief"]
    (init,) = notices(first, "init")
    assert init["plugins"] == [{"name": "tools", "path": str(plugin), "version": "1.2.3"}]
    (error,) = init["plugin_errors"]
    assert (error["type"], error["path"]) == ("path-not-found", str(gone))
    assert "Go north." in json.dumps(provider.requests[0]["messages"])
    assert "Use few words." in provider.system(0)
    assert "Say hello to Ann." in json.dumps(provider.requests[2]["messages"])
    assert the_result(second).result == "Hello."
    assert (stage.workspace / "hooked").read_text().split() == [str(plugin)] * 2


@pytest.mark.parametrize("version", [OLD, NEW])
def test_typescript_loads_a_plugin_and_calls_its_skill(installed, stage, plugin, version):
    options = {"plugins": [{"type": "local", "path": str(plugin)}], "allowedTools": ["Skill"]}
    node = Node(version, installed, stage)
    load = call("Skill", skill="tools:greet", args="Ann")
    played = node.play("one", load, {"expect": "Say hello to Ann.", "content": ["Hello."]}, options=options)
    (init,) = played.of("system", "init")
    assert init["plugins"] == [{"name": "tools", "path": str(plugin), "version": "1.2.3"}]
    assert init["skills"] == ["tools:greet"]
    assert {"tools:go", "tools:greet"} <= set(init["slash_commands"])
    assert played.tool_results[0].meta == {"success": True, "commandName": "tools:greet"}
    assert played.the_result["result"] == "Hello."
    assert (stage.workspace / "hooked").exists()


def test_typescript_may_send_plugins_by_initialize(installed, stage, plugin):
    options = {"plugins": [{"type": "local", "path": str(plugin)}], "pluginDelivery": "initialize"}
    played = Node(NEW, installed, stage).play("one", "Hello.", options=options)
    (init,) = played.of("system", "init")
    assert [found["name"] for found in init["plugins"]] == ["tools"]
    assert (stage.workspace / "hooked").exists()


@pytest.mark.parametrize("version, sources", [(OLD, ["project"]), (NEW, None)])
def test_typescript_lists_skills_of_the_project(installed, stage, version, sources):
    write(stage.workspace, {".claude/skills/greet/SKILL.md": GREET})
    options = {"settingSources": sources} if sources else {}
    played = Node(version, installed, stage).play("one", "Hello.", options=options)
    (init,) = played.of("system", "init")
    assert init["skills"] == ["greet"] and "greet" in init["slash_commands"]


def test_typescript_chooses_skills(installed, stage):
    write(stage.workspace, {".claude/skills/greet/SKILL.md": GREET, ".claude/skills/other/SKILL.md": MIGHTY})
    replies = (call("Skill", skill="other"), LOAD, {"expect": "Say hello to Ann.", "content": ["Hello."]})
    played = Node(NEW, installed, stage).play("one", *replies, options={"skills": ["greet"]})
    other, greet = played.tool_results
    assert other.failed and "Unknown skill: other" in other.text
    assert not greet.failed


RELOADS = [["reloadSkills"], ["reloadPlugins"]]


def test_typescript_loads_anew_while_a_session_runs(installed, stage, plugin):
    options = {"plugins": [{"type": "local", "path": str(plugin)}]}
    played = Node(NEW, installed, stage).play(
        "control", "One.", "Two.", prompts=["one", "two"], options=options, switches=[RELOADS]
    )
    assert [played.notes[method] for method, in RELOADS] == [["done"], ["done"]]
    names = {command["name"] for command in played.notes["supportedCommands"][0]}
    assert {"tools:go", "tools:greet"} <= names
