"""Options that are rejected: the session fails before its first turn and the caller of the PyPI SDK gets the reason."""

import pytest

from python_sdk import result_messages, run_query_until_error

REJECTED = {
    "an unknown session": ({"resume": "0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11"}, "No conversation found"),
    "a budget for a model without a price": ({"max_budget_usd": 1.0}, "price"),
    "an invalid output schema": (
        {"output_format": {"type": "json_schema", "schema": {"type": "strange"}}},
        "schema",
    ),
    "a malformed sandbox": ({"sandbox": {"enabled": True, "network": {"allowedDomains": "all"}}}, "sandbox"),
    "a malformed deny rule": ({"disallowed_tools": ["Bash(rm"]}, "Bash(rm"),
    "an invalid session id": ({"session_id": "tuesday"}, "tuesday"),
}
ROWS = [pytest.param(*row, id=name) for name, row in REJECTED.items()]


@pytest.mark.parametrize("more, reason", ROWS)
def test_rejected_options_fail_before_any_turn(harness, more, reason):
    messages, error = run_query_until_error("go", harness.options("never said", **more))
    assert error is not None
    assert reason in str(error)
    assert all(result.is_error and result.num_turns == 0 for result in result_messages(messages))
