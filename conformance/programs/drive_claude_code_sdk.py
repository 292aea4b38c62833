"""Drives the engine with `claude-code-sdk` 0.0.25, which finds it as `claude`. Prints one JSON line for each event."""

import json
import sys
from pathlib import Path

import anyio
from claude_code_sdk import (
    AssistantMessage,
    ClaudeCodeOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def emit_message(message):
    if isinstance(message, SystemMessage):
        emit("system", subtype=message.subtype)
    elif isinstance(message, ResultMessage):
        fields = {"subtype": message.subtype, "result": message.result, "cost": message.total_cost_usd}
        emit("result", turns=message.num_turns, **fields)
    elif isinstance(message, (AssistantMessage, UserMessage)) and isinstance(message.content, list):
        for block in message.content:
            if isinstance(block, TextBlock):
                emit("text", text=block.text, model=isinstance(message, AssistantMessage))
            elif isinstance(block, ToolUseBlock):
                emit("call", tool=block.name, input=block.input)
            elif isinstance(block, ToolResultBlock):
                emit("tool result", content=block.content, failed=bool(block.is_error))


async def run_turn(client, prompt):
    await client.query(prompt)
    async for message in client.receive_response():
        emit_message(message)


async def run_query(options):
    async for message in query(prompt="hi", options=ClaudeCodeOptions(**options)):
        emit_message(message)


async def run_conversation(options):
    async with ClaudeSDKClient(ClaudeCodeOptions(**options)) as client:
        emit("server info", commands=len((await client.get_server_info())["commands"]))
        for prompt in ("the first question", "the second question"):
            await run_turn(client, prompt)


async def interrupt_when(client, begun):
    while not begun.exists():
        await anyio.sleep(0.01)
    await client.interrupt()
    emit("interrupted")


async def run_interrupt(options):
    async with ClaudeSDKClient(ClaudeCodeOptions(**options)) as client, anyio.create_task_group() as group:
        group.start_soon(interrupt_when, client, Path("begun"))
        await run_turn(client, "go")
        await run_turn(client, "and now?")


async def run_permissions(options):
    async def decide(name, tool_input, context):
        emit("request", tool=name, input=tool_input, suggestions=len(context.suggestions))
        if "denied" in tool_input["command"]:
            return PermissionResultDeny(message="not here")
        changed = {**tool_input, "command": tool_input["command"].replace("before", "after")}
        return PermissionResultAllow(updated_input=None if changed == tool_input else changed)

    async with ClaudeSDKClient(ClaudeCodeOptions(can_use_tool=decide, **options)) as client:
        await run_turn(client, "go")


async def run_hook(options):
    async def on_call(hook_input, tool_use_id, context):
        emit("hook", tool=hook_input["tool_name"], has_id=tool_use_id is not None)
        output = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "by a hook"}
        return {"hookSpecificOutput": output}

    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[on_call])]}
    async with ClaudeSDKClient(ClaudeCodeOptions(hooks=hooks, **options)) as client:
        await run_turn(client, "go")


async def run_tool(options):
    @tool("add", "Adds two numbers", {"a": float, "b": float})
    async def add(arguments):
        return {"content": [{"type": "text", "text": f"sum: {arguments['a'] + arguments['b']:g}"}]}

    servers = {"calculator": create_sdk_mcp_server("calculator", tools=[add])}
    allowed = ["mcp__calculator__add"]
    async with ClaudeSDKClient(ClaudeCodeOptions(mcp_servers=servers, allowed_tools=allowed, **options)) as client:
        await run_turn(client, "go")


RUNS = {
    "query": run_query,
    "conversation": run_conversation,
    "interrupt": run_interrupt,
    "permissions": run_permissions,
    "hook": run_hook,
    "tool": run_tool,
}

anyio.run(RUNS[sys.argv[1]], json.loads(sys.argv[2]))
