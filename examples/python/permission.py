"""The official Python SDK with Whimbrel as its engine: python permission.py path/to/whimbrel

Needs `pip install claude-agent-sdk` and an API key in the environment. Asks before every tool call that changes
something.
"""

import asyncio
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
)


async def ask_permission(tool, tool_input, context):
    answer = input(f"{tool} {tool_input}: allow? [y/N] ")
    return PermissionResultAllow() if answer == "y" else PermissionResultDeny(message="The user denied this call.")


async def main(engine):
    options = ClaudeAgentOptions(cli_path=engine, can_use_tool=ask_permission)
    async with ClaudeSDKClient(options) as client:
        await client.query("Write a haiku about waders to haiku.txt, then show the file.")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)
            elif isinstance(message, ResultMessage):
                print(f"({message.num_turns} turns, ${message.total_cost_usd:.4f})")


asyncio.run(main(sys.argv[1]))
