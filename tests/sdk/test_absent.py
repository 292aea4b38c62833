"""What this version does not have yet: asking for it fails, and the caller of the PyPI SDK reads why."""

import pytest
from claude_agent_sdk import AgentDefinition, HookMatcher, create_sdk_mcp_server, tool

from caller import ask_until_error, results
from stage import call


async def nothing(*_):
    return {}


@tool("add", "Adds two numbers.", {"a": int, "b": int})
async def add(arguments):
    return {"content": []}


# Refused by the answer to `initialize`.
BY_ANSWER = {
    "hooks": ({"hooks": {"PreToolUse": [HookMatcher(hooks=[nothing])]}}, "hooks"),
    "skills": ({"skills": ["pdf"]}, "skills"),
    "agents": ({"agents": {"reviewer": AgentDefinition(description="d", prompt="p")}}, "agent definitions"),
}
# Refused before anything is read.
AT_ONCE = {
    "an MCP server": ({"mcp_servers": {"files": {"command": "true"}}}, "MCP servers"),
    "an MCP server in process": (
        {"mcp_servers": {"sums": create_sdk_mcp_server("sums", tools=[add])}},
        "MCP servers",
    ),
    "an unknown session": ({"resume": "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"}, "No conversation found"),
    "structured output": (
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
        "structured output",
    ),
    "a budget": ({"max_budget_usd": 1.0}, "a budget"),
    "settings": ({"settings": "{}"}, "settings"),
    "a sandbox": ({"sandbox": {"enabled": True}}, "settings"),
    "a plugin": ({"plugins": [{"type": "local", "path": "/nowhere"}]}, "plugins"),
    "a deny rule that cannot be read": ({"disallowed_tools": ["Bash(rm"]}, "Bash(rm"),
    "another prompt tool": ({"permission_prompt_tool_name": "mcp__auth__ask"}, "mcp__auth__ask"),
    "a session id that is none": ({"session_id": "tuesday"}, "tuesday"),
    "a fallback model": ({"fallback_model": "claude-haiku-4-5"}, "fallback"),
    "checkpoints of files": ({"enable_file_checkpointing": True}, "checkpoint"),
}
ROWS = [
    pytest.param(*row, id=name) for rows in (BY_ANSWER, AT_ONCE) for name, row in rows.items()
]


@pytest.mark.parametrize("more, missing", ROWS)
def test_what_is_not_there_yet_is_refused_and_nothing_is_done(stage, more, missing):
    messages, error = ask_until_error("go", stage.options("never said", **more))
    assert error is not None
    assert missing in str(error)
    assert all(end.is_error and end.num_turns == 0 for end in results(messages))


@pytest.mark.xfail(reason="settings files are not read, and nobody is told")
def test_a_deny_rule_in_the_settings_of_the_project_is_not_overlooked(stage):
    (stage.workspace / ".claude").mkdir()
    (stage.workspace / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    options = stage.options(call("Bash", command="touch made.txt"), "Done.", allowed_tools=["Bash"])
    ask_until_error("go", options)
    assert not (stage.workspace / "made.txt").exists()
