"""What this version does not have yet: asking for it fails, and the caller of the PyPI SDK reads why."""

import pytest

from caller import ask_until_error, results

REFUSED = {
    "an unknown session": ({"resume": "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"}, "No conversation found"),
    "a budget for a model without a price": ({"max_budget_usd": 1.0}, "price"),
    "a shape that is none": (
        {"output_format": {"type": "json_schema", "schema": {"type": "strange"}}},
        "schema",
    ),
    "a sandbox": ({"sandbox": {"enabled": True}}, "sandbox"),
    "a deny rule that cannot be read": ({"disallowed_tools": ["Bash(rm"]}, "Bash(rm"),
    "a session id that is none": ({"session_id": "tuesday"}, "tuesday"),
}
ROWS = [pytest.param(*row, id=name) for name, row in REFUSED.items()]


@pytest.mark.parametrize("more, missing", ROWS)
def test_what_is_not_there_yet_is_refused_and_nothing_is_done(stage, more, missing):
    messages, error = ask_until_error("go", stage.options("never said", **more))
    assert error is not None
    assert missing in str(error)
    assert all(end.is_error and end.num_turns == 0 for end in results(messages))
