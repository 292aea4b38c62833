"""The Vercel AI SDK with the package `ai-sdk-provider-claude-code`."""

import json

import pytest

from harness import tool_call, wait_until
from mock_provider import Reply

MODEL = "claude-sonnet-4-5"
# The provider passes few variables on to the engine.
BYPASS = {
    "permissionMode": "bypassPermissions",
    "allowDangerouslySkipPermissions": True,
    "env": {"IS_SANDBOX": "1"},
}


@pytest.fixture
def generate(programs):
    """Runs one prompt by a method of the script."""

    def run(method, model=MODEL, prompt="go", **settings):
        return programs.run_node_script(
            "ai-sdk", "generate.mjs", method=method, model=model, prompt=prompt, settings=settings
        )

    return run


def parts_of_type(outcome, part_type):
    return [part for part in outcome["parts"] if part["type"] == part_type]


def streamed_text(outcome):
    return "".join(part["text"] for part in parts_of_type(outcome, "text-delta"))


def test_text_has_usage_and_cost(generate, provider):
    usage = {
        "input_tokens": 1200,
        "output_tokens": 340,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 6000,
    }
    provider.replies = [Reply(["Good morning."], usage)]
    outcome = generate("text", prompt="hi")
    assert (outcome["text"], outcome["finishReason"]) == ("Good morning.", "stop")
    reported = outcome["usage"]
    assert (reported["inputTokens"], reported["outputTokens"]) == (7250, 340)
    assert (reported["inputTokenDetails"]["cacheReadTokens"], reported["inputTokenDetails"]["cacheWriteTokens"]) == (
        6000,
        50,
    )
    # Prices of the model in millionths of a cent per token: 300 and 1500, 375 to write and 30 to read the cache.
    assert round(outcome["metadata"]["costUsd"] * 1e8) == 1200 * 300 + 340 * 1500 + 50 * 375 + 6000 * 30
    assert outcome["metadata"]["sessionId"]


def test_session_is_resumed(generate, provider):
    provider.replies = ["one", "two"]
    outcome = generate("conversation", prompt="the first question")
    assert outcome["texts"] == ["one", "two"]
    assert "the first question" in json.dumps(provider.requests[1]["messages"])
    assert len(set(outcome["sessions"])) == 1


def test_text_is_streamed(generate, provider):
    text = "A sentence that is longer than one delta."
    provider.replies = [text]
    outcome = generate("stream")
    assert streamed_text(outcome) == text
    assert len(parts_of_type(outcome, "text-delta")) > 1
    (finish,) = parts_of_type(outcome, "finish")
    assert (finish["finishReason"], finish["totalUsage"]["outputTokens"]) == ("stop", 5)
    assert parts_of_type(outcome, "error") == []


def test_tools_of_the_engine_are_reported(generate, provider, harness):
    path = str(harness.workspace / "poem.txt")
    provider.replies = [
        tool_call("Write", file_path=path, content="one\n"),
        tool_call("Bash", command="cat poem.txt; exit 3"),
        "Done.",
    ]
    outcome = generate("stream", **BYPASS)
    calls, results = (parts_of_type(outcome, name) for name in ("tool-call", "tool-result"))
    assert [(call["toolName"], call["input"]) for call in calls] == [
        ("Write", {"file_path": path, "content": "one\n"}),
        ("Bash", {"command": "cat poem.txt; exit 3"}),
    ]
    failed = parts_of_type(outcome, "tool-error")
    assert [part["toolCallId"] for part in results + failed] == [call["toolCallId"] for call in calls]
    assert "one" in json.dumps((results + failed)[1])
    assert streamed_text(outcome) == "Done."


def test_tool_of_the_caller_runs_in_process(generate, provider):
    provider.replies = [tool_call("mcp__calculator__add", a=2, b=3), "Five."]
    outcome = generate("tool")
    (result,) = parts_of_type(outcome, "tool-result")
    assert "sum: 5" in json.dumps(result)
    assert "sum: 5" in json.dumps(provider.requests[1]["messages"])
    assert streamed_text(outcome) == "Five."


def test_permission_callback_decides(generate, provider, harness):
    provider.replies = [
        tool_call("Bash", command="touch allowed.txt"),
        tool_call("Bash", command="touch denied.txt"),
        "Done.",
    ]
    outcome = generate("permission")
    assert [request["input"]["command"] for request in outcome["requests"]] == ["touch allowed.txt", "touch denied.txt"]
    assert [path.name for path in harness.workspace.iterdir()] == ["allowed.txt"]
    assert "not here" in json.dumps(provider.requests[2]["messages"])
    assert outcome["text"] == "Done."


PERSON = {"name": "Ann", "age": 41}


def test_object_matches_its_schema(generate, provider):
    provider.replies = [tool_call("StructuredOutput", name="Ann"), tool_call("StructuredOutput", **PERSON), "Done."]
    assert generate("object")["output"] == PERSON


def test_object_is_streamed(generate, provider):
    provider.replies = [tool_call("StructuredOutput", **PERSON), "Done."]
    outcome = generate("objectStream")
    assert (outcome["output"], outcome["partial"][-1]) == (PERSON, PERSON)


@pytest.mark.parametrize("method", ["abort", "abortGenerate"])
def test_abort_ends_the_engine(generate, harness, method):
    outcome = generate(method, harness.write_script("word " * 1000, pace_ms=20))
    if method == "abort":
        assert parts_of_type(outcome, "abort") and not parts_of_type(outcome, "finish")
    else:
        assert "aborted" in outcome["error"]
    wait_until(lambda: not harness.running_processes(), "all processes to exit")


def test_error_of_the_provider_is_thrown(generate, provider):
    provider.replies = [(400, "this prompt is not acceptable")]
    assert "this prompt is not acceptable" in generate("failure")["error"]
