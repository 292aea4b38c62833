"""The caller's side of the Python SDK: asks, and picks from what comes back."""

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

from stage import PATIENCE


def in_time(work, seconds=PATIENCE):
    """Runs a coroutine to its end, but not for ever."""
    return asyncio.run(asyncio.wait_for(work, seconds))


def ask(prompt, options):
    """Every message that `query` gives for a prompt; an error is raised."""
    messages, error = ask_until_error(prompt, options)
    if error:
        raise error
    return messages


def ask_until_error(prompt, options):
    """Every message that `query` gives for a prompt, and the error that ends it, if one does."""

    async def listen():
        messages = []
        try:
            async for message in query(prompt=prompt, options=options):
                messages.append(message)
        except Exception as error:  # The SDK raises errors of any type.
            return messages, error
        return messages, None

    return in_time(listen())


async def turn(client, prompt):
    """One turn of a client: every message up to the result."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def results(messages):
    """Every result among messages."""
    return [message for message in messages if isinstance(message, ResultMessage)]


def the_result(messages):
    """The one result among messages."""
    (result,) = results(messages)
    return result


def said(messages):
    """What the model said, as one text."""
    blocks = [
        block for message in messages if isinstance(message, AssistantMessage) for block in message.content
    ]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def notices(messages, subtype):
    """The data of every system message of one kind."""
    return [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == subtype]


@dataclass
class Answered:
    """What came of one tool call."""

    id: str
    text: str
    failed: bool
    meta: Any


def tool_results(messages):
    """What came of every tool call, in order."""
    return [
        Answered(block.tool_use_id, block.content, bool(block.is_error), message.tool_use_result)
        for message in messages
        if isinstance(message, UserMessage) and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
