"""Hooks: callbacks of the PyPI and npm SDKs, and command and HTTP hooks of the settings."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from claude_agent_sdk import HookMatcher

from harness import tool_call
from python_sdk import only_result, run_query, system_data, tool_results
from typescript_sdk import ScriptRunner

TOUCH = tool_call("Bash", command="touch made.txt")
DENY = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "not with me",
    }
}


class Hook:
    """A hook that returns a fixed output and records its inputs."""

    def __init__(self, output=None):
        self.output, self.inputs = output or {}, []

    async def __call__(self, hook_input, tool_use_id, context):
        self.inputs.append((hook_input, tool_use_id))
        return self.output


def write_user_settings(harness, **values):
    directory = harness.home / ".claude"
    directory.mkdir(exist_ok=True)
    (directory / "settings.json").write_text(json.dumps(values))


def command_hook(shell, **more):
    return [{"hooks": [{"type": "command", "command": shell, **more}]}]


def test_python_hook_denies_a_call(harness):
    hook = Hook(DENY)
    options = harness.options(
        TOUCH, "Done.", allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook])]}
    )
    messages = run_query("go", options)
    (outcome,) = tool_results(messages)
    assert outcome.failed and "not with me" in outcome.text
    assert not (harness.workspace / "made.txt").exists()
    ((hook_input, tool_use_id),) = hook.inputs
    assert (hook_input["tool_name"], hook_input["tool_input"]) == ("Bash", {"command": "touch made.txt"})
    assert tool_use_id == outcome.id
    assert [denial["tool_name"] for denial in only_result(messages).permission_denials] == ["Bash"]


def test_python_hooks_run_in_turn_order(harness):
    events = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"]
    hook = Hook()
    options = harness.options(
        TOUCH,
        tool_call("Bash", command="false"),
        "Done.",
        allowed_tools=["Bash"],
        hooks={event: [HookMatcher(hooks=[hook])] for event in events},
    )
    run_query("go", options)
    assert [hook_input["hook_event_name"] for hook_input, _ in hook.inputs] == [
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreToolUse",
        "PostToolUseFailure",
        "Stop",
    ]
    assert hook.inputs[0][0]["prompt"] == "go"
    assert hook.inputs[-1][0]["last_assistant_message"] == "Done."


@pytest.mark.parametrize("version", ["0.2.50", "0.3.325"])
def test_typescript_hooks_deny_and_add_context(sdk_dir, harness, version):
    output = ScriptRunner(version, sdk_dir, harness).run(
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
    assert output.only_result["result"] == "Done."
    assert [note["event"] for note in output.notes["hook"]] == ["PreToolUse", "PostToolUse", "Stop"]
    assert (harness.workspace / "made.txt").exists()


def test_command_hook_blocks_by_exit_code(harness):
    write_user_settings(
        harness, hooks={"PreToolUse": command_hook('cat > "$CLAUDE_PROJECT_DIR/seen.json"; echo because >&2; exit 2')}
    )
    messages = run_query("go", harness.options(TOUCH, "Done.", allowed_tools=["Bash"]))
    (outcome,) = tool_results(messages)
    assert outcome.failed and "because" in outcome.text
    seen = json.loads((harness.workspace / "seen.json").read_text())
    assert (seen["hook_event_name"], seen["tool_name"], seen["cwd"]) == ("PreToolUse", "Bash", str(harness.workspace))


def test_failing_hook_blocks_if_configured(harness):
    for on_failure, runs in (({}, True), ({"onFailure": "block"}, False)):
        write_user_settings(harness, hooks={"PreToolUse": command_hook("exit 1", **on_failure)})
        run_query("go", harness.options(TOUCH, "Done.", allowed_tools=["Bash"]))
        assert (harness.workspace / "made.txt").exists() == runs
        (harness.workspace / "made.txt").unlink(missing_ok=True)


def test_async_hook_output_reaches_the_next_request(harness):
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "LATER"}})
    shell = f"echo $$ > pid; echo '{{\"async\": true}}'; echo '{output}'; mv pid done"
    write_user_settings(harness, hooks={"PreToolUse": command_hook(shell)})
    # Once the hook process is gone, the engine takes in its output at once.
    wait = tool_call(
        "Bash", command="until [ -s done ] && ! kill -0 $(cat done); do sleep 0.01; done 2>/dev/null; sleep 0.3"
    )
    options = harness.options(wait, {"expect": "LATER", "content": ["Done."]}, allowed_tools=["Bash"])
    assert only_result(run_query("go", options)).result == "Done."


STOP_TURN = {"continue": False, "stopReason": "ENOUGH"}


@pytest.mark.parametrize(
    "event, replies, more",
    [
        ("PreToolUse", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PostToolUse", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PostToolUseFailure", [tool_call("Bash", command="false")], {"allowed_tools": ["Bash"]}),
        ("PostToolBatch", [TOUCH], {"allowed_tools": ["Bash"]}),
        ("PermissionRequest", [TOUCH], {}),
        ("PermissionDenied", [TOUCH], {}),
        ("CwdChanged", [tool_call("Bash", command="mkdir -p sub && cd sub")], {"allowed_tools": ["Bash"]}),
        ("SubagentStart", [tool_call("Agent", description="x", prompt="y")], {}),
        ("SubagentStop", [tool_call("Agent", description="x", prompt="y"), "From the subagent."], {}),
        ("UserPromptSubmit", [], {}),
    ],
)
def test_hook_can_end_the_turn_at_every_event(harness, event, replies, more):
    hook = Hook(STOP_TURN)
    options = harness.options(*replies, "Never said.", hooks={event: [HookMatcher(hooks=[hook])]}, **more)
    messages = run_query("go", options)
    assert hook.inputs, "the hook is called"
    result = only_result(messages)
    assert (result.subtype, result.result) == ("success", "")
    notices = system_data(messages, "informational")
    assert ["ENOUGH"] == [data["content"] for data in notices if data.get("prevent_continuation")]


def test_block_applies_despite_invalid_fields(harness):
    hook = Hook({"decision": "block", "reason": "NOT SO", "suppressOutput": "yes"})
    options = harness.options(TOUCH, "Done.", allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(hooks=[hook])]})
    (outcome,) = tool_results(run_query("go", options))
    assert outcome.failed and "NOT SO" in outcome.text
    assert not (harness.workspace / "made.txt").exists()


def test_hooks_and_denials_report_the_changed_input(harness):
    changed = {"command": "touch other.txt"}
    rewrite = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": changed}
    batch = Hook()
    hooks = {
        "PreToolUse": [HookMatcher(hooks=[Hook({"hookSpecificOutput": rewrite})])],
        "PostToolBatch": [HookMatcher(hooks=[batch])],
    }
    run_query("go", harness.options(TOUCH, "Done.", hooks=hooks))
    assert (harness.workspace / "other.txt").exists()
    assert [call["tool_input"] for call in batch.inputs[0][0]["tool_calls"]] == [changed]

    del rewrite["permissionDecision"]
    result = only_result(run_query("go", harness.options(TOUCH, "Done.", hooks=hooks)))
    assert [denial["tool_input"] for denial in result.permission_denials] == [changed]


def test_if_and_once_limit_a_command_hook(harness):
    once = command_hook("echo run >> ran", **{"if": "Bash(touch *)", "once": True})
    write_user_settings(harness, hooks={"PreToolUse": once})
    options = harness.options(tool_call("Bash", command="ls"), TOUCH, TOUCH, "Done.", allowed_tools=["Bash"])
    assert len(tool_results(run_query("go", options))) == 3
    assert (harness.workspace / "ran").read_text() == "run\n"


def test_http_hook_denies_a_call(harness):
    inputs = []

    class HookServer(BaseHTTPRequestHandler):
        def do_POST(self):
            inputs.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(DENY).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), HookServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        hook = {"type": "http", "url": f"http://127.0.0.1:{server.server_port}/check"}
        write_user_settings(harness, hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})
        (outcome,) = tool_results(run_query("go", harness.options(TOUCH, "Done.", allowed_tools=["Bash"])))
        server.shutdown()
    assert outcome.failed and "not with me" in outcome.text
    assert [event["hook_event_name"] for event in inputs] == ["PreToolUse"]
