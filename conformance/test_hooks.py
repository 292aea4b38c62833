"""Hooks: callbacks of the PyPI and npm SDKs, and commands of the settings."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from claude_agent_sdk import HookMatcher

from caller import ask, the_result, tool_results
from node import Node
from stage import call

TOUCH = call("Bash", command="touch made.txt")
DENY = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "not with me",
    }
}


class Hook:
    """A hook that gives one answer and keeps what it was told."""

    def __init__(self, answer=None):
        self.answer, self.told = answer or {}, []

    async def __call__(self, told, tool_use_id, context):
        self.told.append((told, tool_use_id))
        return self.answer


def settings(stage, **values):
    """Settings of the person."""
    folder = stage.home / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(values))


def command(shell, **more):
    return [{"hooks": [{"type": "command", "command": shell, **more}]}]


def test_a_python_hook_refuses_a_call(stage):
    hook = Hook(DENY)
    options = stage.options(
        TOUCH, "Done.", allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook])]}
    )
    messages = ask("go", options)
    (made,) = tool_results(messages)
    assert made.failed and "not with me" in made.text
    assert not (stage.workspace / "made.txt").exists()
    ((told, tool_use_id),) = hook.told
    assert (told["tool_name"], told["tool_input"], tool_use_id) == ("Bash", {"command": "touch made.txt"}, made.id)
    assert [denial["tool_name"] for denial in the_result(messages).permission_denials] == ["Bash"]


def test_python_hooks_hear_of_a_turn_in_its_order(stage):
    events = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"]
    hook = Hook()
    options = stage.options(
        TOUCH,
        call("Bash", command="false"),
        "Done.",
        allowed_tools=["Bash"],
        hooks={event: [HookMatcher(hooks=[hook])] for event in events},
    )
    ask("go", options)
    assert [told["hook_event_name"] for told, _ in hook.told] == [
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreToolUse",
        "PostToolUseFailure",
        "Stop",
    ]
    assert hook.told[0][0]["prompt"] == "go"
    assert hook.told[-1][0]["last_assistant_message"] == "Done."


@pytest.mark.parametrize("version", ["0.2.50", "0.3.325"])
def test_typescript_hooks_refuse_and_add(installed, stage, version):
    played = Node(version, installed, stage).play(
        "hooks",
        TOUCH,
        {"expect": "MIND THE GAP", "content": ["Done."]},
        hooks={
            "PreToolUse": [{"matcher": "Write", "answer": DENY}, {"matcher": "Bash"}],
            "PostToolUse": [
                {
                    "answer": {
                        "hookSpecificOutput": {
                            "hookEventName": "PostToolUse",
                            "additionalContext": "MIND THE GAP",
                        }
                    }
                }
            ],
            "Stop": [{}],
        },
        options={"allowedTools": ["Bash"]},
    )
    assert played.the_result["result"] == "Done."
    assert [note["event"] for note in played.notes["hook"]] == ["PreToolUse", "PostToolUse", "Stop"]
    assert (stage.workspace / "made.txt").exists()


def test_a_command_blocks_by_its_exit_code_and_sees_the_event(stage):
    settings(stage, hooks={"PreToolUse": command('cat > "$CLAUDE_PROJECT_DIR/seen.json"; echo because >&2; exit 2')})
    messages = ask("go", stage.options(TOUCH, "Done.", allowed_tools=["Bash"]))
    (made,) = tool_results(messages)
    assert made.failed and "because" in made.text
    seen = json.loads((stage.workspace / "seen.json").read_text())
    assert (seen["hook_event_name"], seen["tool_name"], seen["cwd"]) == ("PreToolUse", "Bash", str(stage.workspace))


def test_a_command_that_must_agree_and_fails_blocks(stage):
    for on_failure, made in (({}, True), ({"onFailure": "block"}, False)):
        settings(stage, hooks={"PreToolUse": command("exit 1", **on_failure)})
        ask("go", stage.options(TOUCH, "Done.", allowed_tools=["Bash"]))
        assert (stage.workspace / "made.txt").exists() == made
        (stage.workspace / "made.txt").unlink(missing_ok=True)


def test_what_a_command_says_late_reaches_the_model_with_its_next_call(stage):
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "LATER"}})
    later = f"echo $$ > pid; echo '{{\"async\": true}}'; echo '{answer}'; mv pid said"
    settings(stage, hooks={"PreToolUse": command(later)})
    # A process that is gone was seen to end; what it said is taken in at once.
    wait = call("Bash", command="until [ -s said ] && ! kill -0 $(cat said); do sleep 0.01; done 2>/dev/null; sleep 0.3")
    options = stage.options(wait, {"expect": "LATER", "content": ["Done."]}, allowed_tools=["Bash"])
    assert the_result(ask("go", options)).result == "Done."


STOP = {"continue": False, "stopReason": "ENOUGH"}


@pytest.mark.parametrize(
    "event, replies, more",
    [
        ("PreToolUse", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PostToolUse", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PostToolUseFailure", [call("Bash", command="false")], {"allowed_tools": ["Bash"]}),
        ("PostToolBatch", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PermissionRequest", [TOUCH], {}),
        ("PermissionDenied", [TOUCH], {}),
        ("CwdChanged", [call("Bash", command="mkdir -p sub && cd sub")], {"allowed_tools": ["Bash"]}),
        ("SubagentStart", [call("Agent", description="x", prompt="y")], {}),
        ("SubagentStop", [call("Agent", description="x", prompt="y"), "From below."], {}),
        ("UserPromptSubmit", [], {}),
    ],
)
def test_a_hook_ends_the_turn_at_every_event(stage, event, replies, more):
    hook = Hook(STOP)
    options = stage.options(*replies, "Never said.", hooks={event: [HookMatcher(hooks=[hook])]}, **more)
    messages = ask("go", options)
    assert hook.told, "the event was raised"
    result = the_result(messages)
    assert (result.subtype, result.result) == ("success", "")
    told = [message.data for message in messages if getattr(message, "subtype", None) == "informational"]
    assert ["ENOUGH"] == [data["content"] for data in told if data.get("prevent_continuation")]


def test_a_block_holds_although_the_rest_of_the_answer_is_nonsense(stage):
    hook = Hook({"decision": "block", "reason": "NOT SO", "suppressOutput": "yes"})
    options = stage.options(
        TOUCH, "Done.", allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(hooks=[hook])]}
    )
    (made,) = tool_results(ask("go", options))
    assert made.failed and "NOT SO" in made.text
    assert not (stage.workspace / "made.txt").exists()


def test_what_is_told_of_a_call_is_what_was_done(stage):
    changed = {"command": "touch other.txt"}
    rewrite = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": changed}
    batch = Hook()
    hooks = {
        "PreToolUse": [HookMatcher(hooks=[Hook({"hookSpecificOutput": rewrite})])],
        "PostToolBatch": [HookMatcher(hooks=[batch])],
    }
    ask("go", stage.options(TOUCH, "Done.", hooks=hooks))
    assert (stage.workspace / "other.txt").exists()
    assert [made["tool_input"] for made in batch.told[0][0]["tool_calls"]] == [changed]

    del rewrite["permissionDecision"]
    result = the_result(ask("go", stage.options(TOUCH, "Done.", hooks=hooks)))
    assert [denial["tool_input"] for denial in result.permission_denials] == [changed]


def test_a_condition_and_once_choose_when_a_command_runs(stage):
    once = command("echo run >> ran", **{"if": "Bash(touch *)", "once": True})
    settings(stage, hooks={"PreToolUse": once})
    options = stage.options(call("Bash", command="ls"), TOUCH, TOUCH, "Done.", allowed_tools=["Bash"])
    assert len(tool_results(ask("go", options))) == 3
    assert (stage.workspace / "ran").read_text() == "run\n"


def test_a_web_address_of_the_settings_is_told_and_refuses(stage):
    told = []

    class Address(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(DENY).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Address) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        hook = {"type": "http", "url": f"http://127.0.0.1:{server.server_port}/check"}
        settings(stage, hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})
        (made,) = tool_results(ask("go", stage.options(TOUCH, "Done.", allowed_tools=["Bash"])))
        server.shutdown()
    assert made.failed and "not with me" in made.text
    assert [event["hook_event_name"] for event in told] == ["PreToolUse"]
