"""Runs prompts through the Python SDK and selects from its messages."""

import asyncio
from dataclasses import dataclass
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    query,
)

from harness import TIMEOUT


def run_with_timeout(coroutine, seconds=TIMEOUT):
    """Runs a coroutine to completion."""
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


def run_query(prompt, options):
    """All messages of `query` for a prompt; raises its error."""
    messages, error = run_query_until_error(prompt, options)
    if error:
        raise error
    return messages


def run_query_until_error(prompt, options):
    """All messages of `query` for a prompt, and its error or None."""

    async def collect():
        messages = []
        try:
            async for message in query(prompt=prompt, options=options):
                messages.append(message)
        except Exception as error:  # The SDK raises errors of any type.
            return messages, error
        return messages, None

    return run_with_timeout(collect())


async def run_turn(client, prompt):
    """Runs one turn of a client; returns all messages up to the result."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def result_messages(messages):
    return [message for message in messages if isinstance(message, ResultMessage)]


def only_result(messages):
    """The result; fails if there is not exactly one."""
    (result,) = result_messages(messages)
    return result


def assistant_text(messages):
    """All text blocks of the model, joined."""
    blocks = [block for message in messages if isinstance(message, AssistantMessage) for block in message.content]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def system_data(messages, subtype):
    """The data of all system messages of a subtype."""
    return [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == subtype]


@dataclass
class ToolOutcome:
    """The result of one tool call, as the caller of an SDK sees it."""

    id: str
    text: str
    failed: bool
    meta: Any


def tool_results(messages):
    """The results of all tool calls, in order."""
    return [
        ToolOutcome(block.tool_use_id, block.content, bool(block.is_error), message.tool_use_result)
        for message in messages
        if isinstance(message, UserMessage) and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
