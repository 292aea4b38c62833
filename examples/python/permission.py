"""The official Python SDK with Whimbrel as its engine: python permission.py path/to/whimbrel

Needs `pip install claude-agent-sdk` and a key in the environment. Every call that changes something is shown and asked about.
"""
import asyncio
import sys

from claude_agent_sdk import (AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny,
                              ResultMessage, TextBlock)


async def may_i(tool, tool_input, context):
    answer = input(f"{tool} {tool_input}: allow? [y/N] ")
    return PermissionResultAllow() if answer == "y" else PermissionResultDeny(message="The user said no.")


async def main(engine):
    options = ClaudeAgentOptions(cli_path=engine, can_use_tool=may_i)
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
