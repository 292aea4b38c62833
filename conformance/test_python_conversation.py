"""The PyPI SDK: a cleared conversation, the origin of a prompt, and a resume that drops a turn."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, get_session_messages, list_sessions

from python_sdk import only_result, run_query, run_query_until_error, run_turn, run_with_timeout, system_data

MODEL = "claude-sonnet-4-5"
UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(10)]


def sent_text(provider, request):
    """The messages of a request as text."""
    return json.dumps(provider.requests[request]["messages"])


async def user_messages(text, **fields):
    """A prompt with further fields, in the form of streaming input."""
    yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, **fields}


def test_clear_starts_a_new_session(harness, provider):
    provider.replies = ["one", "two", "three"]

    async def run_session():
        async with ClaudeSDKClient(harness.options(model=MODEL)) as client:
            return [await run_turn(client, prompt) for prompt in ("remember me", "/clear", "who am I?")]

    before, cleared, after = run_with_timeout(run_session())
    result = only_result(cleared)
    assert (result.subtype, result.is_error, result.result, result.num_turns) == ("success", False, "", 0)
    (old,), (new,) = ({data["session_id"] for data in system_data(turn, "init")} for turn in (before, after))
    assert old != new
    assert (only_result(before).session_id, only_result(after).session_id) == (old, new)
    # `/clear` asks no model, and the next prompt does not carry the old conversation.
    assert len(provider.requests) == 2
    assert "remember me" not in sent_text(provider, 1)
    # Both are sessions of their own.
    prompts = {session.session_id: session.first_prompt for session in list_sessions(directory=str(harness.workspace))}
    assert prompts == {old: "remember me", new: "who am I?"}
    run_query("and now?", harness.options(model=MODEL, resume=old))
    assert "remember me" in sent_text(provider, 2) and "who am I?" not in sent_text(provider, 2)


def test_origin_of_a_prompt_is_on_its_result(harness, provider):
    origins = [{"kind": "human"}, None, {"kind": "channel", "server": "chat"}]
    provider.replies = ["one", "two", "three"]

    async def run_session():
        async with ClaudeSDKClient(harness.options(model=MODEL)) as client:
            prompts = [user_messages("hi", **({"origin": origin} if origin else {})) for origin in origins]
            return [only_result(await run_turn(client, prompt)) for prompt in prompts]

    assert [result.origin for result in run_with_timeout(run_session())] == origins


@pytest.fixture
def turns(harness, provider):
    """A session of three turns: its id, and its messages by the SDK."""
    provider.replies = ["first answer", "second answer", "third answer", "after the resume"]

    async def run_session():
        async with ClaudeSDKClient(harness.options(model=MODEL)) as client:
            for number, text in enumerate(("first question", "second question", "third question")):
                messages = await run_turn(client, user_messages(text, uuid=UUIDS[number]))
        return messages[-1].session_id

    session = run_with_timeout(run_session())
    messages = get_session_messages(session, directory=str(harness.workspace))
    assert [message.type for message in messages] == ["user", "assistant"] * 3
    assert [message.uuid for message in messages if message.type == "user"] == UUIDS[:3]
    return session, messages


def test_resume_drops_the_named_turn(harness, provider, turns):
    session, messages = turns
    # The last message that is kept is the second answer.
    drop = {"resume": session, "resume_session_at": messages[3].uuid, "resume_drops_turn": UUIDS[2]}
    result = only_result(run_query("instead", harness.options(model=MODEL, fork_session=True, **drop)))
    assert result.result == "after the resume"
    sent = sent_text(provider, 3)
    kept = [text for text in ("first answer", "second answer", "third question", "instead") if text in sent]
    assert kept == ["first answer", "second answer", "instead"]


REFUSED = {
    "more than the named turn would be dropped": (1, UUIDS[1]),
    "the named turn is kept": (3, UUIDS[0]),
    "the named message is unknown": (3, UUIDS[9]),
}


@pytest.mark.parametrize("last, dropped", REFUSED.values(), ids=REFUSED)
def test_resume_is_refused_if_it_drops_another_turn(harness, provider, turns, last, dropped):
    session, messages = turns
    drop = {"resume": session, "resume_session_at": messages[last].uuid, "resume_drops_turn": dropped}
    _, error = run_query_until_error("instead", harness.options(model=MODEL, **drop))
    assert "Resume rejected by --resume-drops-turn:" in str(error)
    assert len(provider.requests) == 3
    # The session is unchanged, and a plain resume works.
    run_query("instead", harness.options(model=MODEL, resume=session))
    assert "third answer" in sent_text(provider, 3)
