"""Plan mode and questions of the model, answered by the permission callback of the PyPI SDK."""

import pytest
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)

from harness import tool_call
from python_sdk import only_result, run_query, run_turn, run_with_timeout, system_data, tool_results

PLAN = tool_call("ExitPlanMode", plan="1. Write a file.")
WRITE = tool_call("Write", file_path="made.txt", content="x")
QUESTION = {
    "question": "Which color?",
    "header": "Color",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}],
}


class PermissionResponder:
    """A permission callback with a response for each tool; records its requests."""

    def __init__(self, **responses):
        self.responses, self.requests = responses, []

    async def __call__(self, tool, arguments, context):
        self.requests.append((tool, arguments))
        response = self.responses[tool]
        return response(arguments) if callable(response) else response

    def requested_tools(self):
        return [tool for tool, _ in self.requests]


def test_approved_plan_ends_plan_mode(harness):
    responder = PermissionResponder(ExitPlanMode=PermissionResultAllow(), Write=PermissionResultAllow())
    messages = run_query("go", harness.options(PLAN, WRITE, "Done.", permission_mode="plan", can_use_tool=responder))
    assert responder.requests[0] == ("ExitPlanMode", {"plan": "1. Write a file."})
    assert responder.requested_tools() == ["ExitPlanMode", "Write"]
    approved, written = tool_results(messages)
    assert not approved.failed and not written.failed
    assert approved.meta == {"plan": "1. Write a file.", "isAgent": False}
    assert system_data(messages, "init")[0]["permissionMode"] == "plan"
    assert [data["permissionMode"] for data in system_data(messages, "status")] == ["default"]
    assert (harness.workspace / "made.txt").exists()


def test_approval_can_change_plan_and_mode(harness):
    mode = PermissionUpdate("setMode", mode="acceptEdits", destination="session")
    response = PermissionResultAllow(updated_input={"plan": "1. Nothing."}, updated_permissions=[mode])
    responder = PermissionResponder(ExitPlanMode=response)
    expecting = {"expect": "1. Nothing.", "content": WRITE}
    messages = run_query(
        "go", harness.options(PLAN, expecting, "Done.", permission_mode="plan", can_use_tool=responder)
    )
    assert responder.requested_tools() == ["ExitPlanMode"]
    assert tool_results(messages)[0].meta["planWasEdited"] is True
    assert [data["permissionMode"] for data in system_data(messages, "status")] == ["acceptEdits"]
    assert (harness.workspace / "made.txt").exists()


def test_denied_plan_keeps_plan_mode(harness):
    responder = PermissionResponder(
        ExitPlanMode=PermissionResultDeny(message="too much"), Write=PermissionResultDeny(message="not yet")
    )
    replies = (PLAN, {"expect": "too much", "content": WRITE}, "Done.")
    messages = run_query("go", harness.options(*replies, permission_mode="plan", can_use_tool=responder))
    assert [outcome.text for outcome in tool_results(messages)] == ["too much", "not yet"]
    assert system_data(messages, "status") == []
    assert not (harness.workspace / "made.txt").exists()


def test_exit_from_model_started_plan_mode_restores_the_mode(harness):
    responder = PermissionResponder(ExitPlanMode=PermissionResultAllow(), Write=PermissionResultDeny(message="not yet"))
    replies = (tool_call("EnterPlanMode"), {"expect": "plan mode", "content": WRITE}, PLAN, WRITE, "Done.")
    messages = run_query("go", harness.options(*replies, permission_mode="acceptEdits", can_use_tool=responder))
    assert responder.requested_tools() == ["Write", "ExitPlanMode"]
    assert [data["permissionMode"] for data in system_data(messages, "status")] == ["plan", "acceptEdits"]
    assert (harness.workspace / "made.txt").exists()


def test_plan_mode_reminders_are_messages(harness, provider):
    provider.replies = ["One.", "Two.", "Three."]
    options = harness.options(permission_mode="plan", can_use_tool=PermissionResponder(), model="claude-opus-4-5")

    async def run_session():
        async with ClaudeSDKClient(options) as client:
            await run_turn(client, "first")
            await run_turn(client, "second")
            await client.set_permission_mode("default")
            await run_turn(client, "third")

    run_with_timeout(run_session())
    texts = [str(request["messages"]) for request in provider.requests]
    assert "is in plan mode" in texts[0] and "Plan mode is over" not in texts[1]
    assert "Plan mode is over" in texts[2]
    prefixes = [(request.get("system"), request["tools"]) for request in provider.requests]
    assert prefixes[0] == prefixes[1] == prefixes[2]
    assert "plan mode" not in provider.system_prompt(0)


ANSWERS = {
    "an answer": ({"answers": {"Which color?": "Blue"}}, "Which color? → Blue", {"Which color?": "Blue"}),
    "none": ({}, "did not answer", {}),
}


@pytest.mark.parametrize("given, text, answers", ANSWERS.values(), ids=ANSWERS)
def test_ask_user_question_is_answered_by_the_callback(harness, given, text, answers):
    responder = PermissionResponder(
        AskUserQuestion=lambda arguments: PermissionResultAllow(updated_input={**arguments, **given})
    )
    replies = (tool_call("AskUserQuestion", questions=[QUESTION]), {"expect": text, "content": ["I see."]})
    messages = run_query("go", harness.options(*replies, can_use_tool=responder))
    assert responder.requests == [("AskUserQuestion", {"questions": [QUESTION]})]
    assert tool_results(messages)[0].meta == {"questions": [QUESTION], "answers": answers}
    assert only_result(messages).result == "I see."


def test_interactive_tools_need_a_callback(harness):
    (init,) = system_data(run_query("go", harness.options("Done.")), "init")
    assert not {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} & set(init["tools"])
    (init,) = system_data(run_query("go", harness.options("Done.", can_use_tool=PermissionResponder())), "init")
    assert {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} <= set(init["tools"])
