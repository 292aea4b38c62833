"""Plan mode and questions of the model, as the PyPI SDK's permission callback sees and answers them."""

import pytest
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)

from caller import ask, in_time, notices, the_result, tool_results, turn
from stage import call

PLAN = call("ExitPlanMode", plan="1. Write a file.")
WRITE = call("Write", file_path="made.txt", content="x")
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}],
}


class Person:
    """Answers by the name of the tool, and keeps what was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def __call__(self, tool, arguments, context):
        self.asked.append((tool, arguments))
        answer = self.answers[tool]
        return answer(arguments) if callable(answer) else answer

    def tools(self):
        return [tool for tool, _ in self.asked]


def test_an_approved_plan_ends_plan_mode(stage):
    person = Person(ExitPlanMode=PermissionResultAllow(), Write=PermissionResultAllow())
    messages = ask("go", stage.options(PLAN, WRITE, "Done.", permission_mode="plan", can_use_tool=person))
    assert person.asked[0] == ("ExitPlanMode", {"plan": "1. Write a file."})
    assert person.tools() == ["ExitPlanMode", "Write"]
    approved, written = tool_results(messages)
    assert not approved.failed and not written.failed
    assert approved.meta == {"plan": "1. Write a file.", "isAgent": False}
    assert notices(messages, "init")[0]["permissionMode"] == "plan"
    assert [notice["permissionMode"] for notice in notices(messages, "status")] == ["default"]
    assert (stage.workspace / "made.txt").exists()


def test_an_approval_may_name_the_mode_and_change_the_plan(stage):
    mode = PermissionUpdate("setMode", mode="acceptEdits", destination="session")
    answer = PermissionResultAllow(updated_input={"plan": "1. Nothing."}, updated_permissions=[mode])
    person = Person(ExitPlanMode=answer)
    expecting = {"expect": "1. Nothing.", "content": WRITE}
    messages = ask("go", stage.options(PLAN, expecting, "Done.", permission_mode="plan", can_use_tool=person))
    assert person.tools() == ["ExitPlanMode"]
    assert tool_results(messages)[0].meta["planWasEdited"] is True
    assert [notice["permissionMode"] for notice in notices(messages, "status")] == ["acceptEdits"]
    assert (stage.workspace / "made.txt").exists()


def test_a_refused_plan_leaves_everything_as_it_is(stage):
    person = Person(
        ExitPlanMode=PermissionResultDeny(message="too much"), Write=PermissionResultDeny(message="not yet")
    )
    replies = (PLAN, {"expect": "too much", "content": WRITE}, "Done.")
    messages = ask("go", stage.options(*replies, permission_mode="plan", can_use_tool=person))
    assert [one.text for one in tool_results(messages)] == ["too much", "not yet"]
    assert notices(messages, "status") == []
    assert not (stage.workspace / "made.txt").exists()


def test_the_model_may_begin_plan_mode_and_the_mode_before_comes_back(stage):
    person = Person(ExitPlanMode=PermissionResultAllow(), Write=PermissionResultDeny(message="not yet"))
    replies = (call("EnterPlanMode"), {"expect": "plan mode", "content": WRITE}, PLAN, WRITE, "Done.")
    messages = ask("go", stage.options(*replies, permission_mode="acceptEdits", can_use_tool=person))
    assert person.tools() == ["Write", "ExitPlanMode"]
    assert [notice["permissionMode"] for notice in notices(messages, "status")] == ["plan", "acceptEdits"]
    assert (stage.workspace / "made.txt").exists()


def test_the_model_is_told_of_plan_mode_among_the_messages_and_when_it_is_over(stage, provider):
    provider.replies = ["One.", "Two.", "Three."]
    options = stage.options(permission_mode="plan", can_use_tool=Person(), model="claude-opus-4-5")

    async def talk():
        async with ClaudeSDKClient(options) as client:
            await turn(client, "first")
            await turn(client, "second")
            await client.set_permission_mode("default")
            await turn(client, "third")

    in_time(talk())
    said = [str(request["messages"]) for request in provider.requests]
    assert "is in plan mode" in said[0] and "Plan mode is over" not in said[1]
    assert "Plan mode is over" in said[2]
    prefixes = [(request.get("system"), request["tools"]) for request in provider.requests]
    assert prefixes[0] == prefixes[1] == prefixes[2]
    assert "plan mode" not in provider.system(0)


ANSWERS = {
    "an answer": ({"answers": {"Which colour?": "Blue"}}, "Which colour? → Blue", {"Which colour?": "Blue"}),
    "none": ({}, "no answer", {}),
}


@pytest.mark.parametrize("given, told, answers", ANSWERS.values(), ids=ANSWERS)
def test_a_question_of_the_model_is_answered_through_the_callback(stage, given, told, answers):
    person = Person(
        AskUserQuestion=lambda arguments: PermissionResultAllow(updated_input={**arguments, **given})
    )
    replies = (call("AskUserQuestion", questions=[QUESTION]), {"expect": told, "content": ["I see."]})
    messages = ask("go", stage.options(*replies, can_use_tool=person))
    assert person.asked == [("AskUserQuestion", {"questions": [QUESTION]})]
    assert tool_results(messages)[0].meta == {"questions": [QUESTION], "answers": answers}
    assert the_result(messages).result == "I see."


def test_where_nobody_answers_nothing_is_asked(stage):
    (start,) = notices(ask("go", stage.options("Done.")), "init")
    assert not {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} & set(start["tools"])
    (start,) = notices(ask("go", stage.options("Done.", can_use_tool=Person())), "init")
    assert {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} <= set(start["tools"])
