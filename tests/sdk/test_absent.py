"""What this version does not have yet: asking for it fails, and the caller of the PyPI SDK reads why."""

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from caller import ask_until_error, results


@tool("add", "Adds two numbers.", {"a": int, "b": int})
async def add(arguments):
    return {"content": []}


# Refused by the answer to `initialize`.
BY_ANSWER = {
    "skills": ({"skills": ["pdf"]}, "skills"),
}
# Refused before anything is read.
AT_ONCE = {
    "an MCP server": ({"mcp_servers": {"files": {"command": "true"}}}, "MCP servers"),
    "an MCP server in process": (
        {"mcp_servers": {"sums": create_sdk_mcp_server("sums", tools=[add])}},
        "MCP servers",
    ),
    "an unknown session": ({"resume": "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"}, "No conversation found"),
    "a budget for a model without a price": ({"max_budget_usd": 1.0}, "price"),
    "a shape that is none": (
        {"output_format": {"type": "json_schema", "schema": {"type": "strange"}}},
        "schema",
    ),
    "a sandbox": ({"sandbox": {"enabled": True}}, "sandbox"),
    "a plugin": ({"plugins": [{"type": "local", "path": "/nowhere"}]}, "plugins"),
    "a deny rule that cannot be read": ({"disallowed_tools": ["Bash(rm"]}, "Bash(rm"),
    "another prompt tool": ({"permission_prompt_tool_name": "mcp__auth__ask"}, "mcp__auth__ask"),
    "a session id that is none": ({"session_id": "tuesday"}, "tuesday"),
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
