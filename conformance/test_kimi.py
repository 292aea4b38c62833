"""The engine under hosts of the Kimi Agent SDK: raw lines, the official SDK for Node, and the example in `examples/kimi`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import TIMEOUT, tool_call, wait_until

RUNNER = Path(__file__).parents[1] / "examples" / "kimi" / "runner.mjs"
SESSION = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.fixture
def kimi(harness, provider):
    """A configuration whose model is the mock provider."""
    share_dir = harness.home / ".kimi"
    share_dir.mkdir()
    (share_dir / "config.toml").write_text(
        f"""
default_model = "main"
[models.main]
provider = "mock"
model = "mock-1"
max_context_size = 100000
[providers.mock]
type = "anthropic"
base_url = "{provider.url}"
api_key = "sk-nothing"
"""
    )
    return share_dir


class Client:
    """A client that writes the lines by hand."""

    def __init__(self, harness, *flags):
        self.process = subprocess.Popen(
            [harness.engine, "--wire", *flags],
            cwd=harness.workspace,
            env=os.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events, self.requests = [], []

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def send(self, method, params=None, id="1"):
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}))

    def answer(self, request, **result):
        self.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"request_id": request["id"], **result}}))

    def read(self):
        return json.loads(self.process.stdout.readline())

    def until_reply(self, approve="approve"):
        """Reads up to the next reply; answers approvals."""
        while True:
            message = self.read()
            match message.get("method"):
                case None:
                    return message
                case "event":
                    self.events.append((message["params"]["type"], message["params"]["payload"]))
                case "request":
                    payload = message["params"]["payload"]
                    self.requests.append(payload)
                    self.answer(payload, response=approve)

    def until_request(self):
        """Reads up to the next request of the engine."""
        while (message := self.read()).get("method") != "request":
            assert message.get("method") == "event", message
            self.events.append((message["params"]["type"], message["params"]["payload"]))
        return message["params"]["payload"]

    def call(self, method, params=None, **more):
        self.send(method, params)
        return self.until_reply(**more)

    def initialize(self, version="1.7"):
        return self.call("initialize", {"protocol_version": version})

    def prompt(self, text, **more):
        return self.call("prompt", {"user_input": text}, **more)

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT)
        self.process.stdout.close()
        return code

    def kinds(self):
        return [kind for kind, _ in self.events]

    def payloads(self, kind):
        return [payload for name, payload in self.events if name == kind]


def test_turn_with_an_approval(harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="touch made"), "Done."]
    client = Client(harness)
    assert client.initialize()["result"]["protocol_version"] == "1.7"
    assert client.prompt("go")["result"] == {"status": "finished"}
    assert (harness.workspace / "made").exists()
    [request] = client.requests
    assert (request["sender"], request["action"]) == ("Shell", "run command")
    assert client.kinds() == [
        "TurnBegin", "StepBegin", "ToolCall", "ToolCallPart", "StatusUpdate", "ApprovalResponse", "ToolResult",
        "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd",
    ]  # fmt: skip
    offered = {tool["name"] for tool in provider.requests[0]["tools"]}
    assert {"Shell", "ReadFile", "WriteFile", "StrReplaceFile", "SetTodoList", "FetchURL"} <= offered
    assert not {"Bash", "Read", "Write", "Edit", "TaskCreate", "Monitor"} & offered
    assert "Bash" not in provider.system_prompt() and "Use Shell for everything else" in provider.system_prompt()
    called = provider.requests[1]["messages"][-2]["content"][-1]
    assert (called["name"], called["input"]) == ("Shell", {"command": "touch made"})
    assert client.close() == 0


def test_rejection_ends_the_turn(harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="touch no"), "Next."]
    client = Client(harness)
    client.initialize()
    assert client.prompt("go", approve="reject")["result"] == {"status": "finished"}
    assert not (harness.workspace / "no").exists() and len(provider.requests) == 1
    assert client.prompt("and now?")["result"] == {"status": "finished"}
    assert client.close() == 0


def test_steer_does_not_outlive_a_rejection(harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="touch no"), "Next."]
    client = Client(harness)
    client.initialize()
    client.send("prompt", {"user_input": "go"}, id="prompt")
    request = client.until_request()
    client.send("steer", {"user_input": "left over"}, id="steer")
    assert client.until_reply()["result"] == {"status": "steered"}
    client.answer(request, response="reject")
    assert client.until_reply() == {"jsonrpc": "2.0", "id": "prompt", "result": {"status": "finished"}}
    assert client.prompt("the next one")["result"] == {"status": "finished"}
    assert len(provider.requests) == 2 and "left over" not in json.dumps(provider.requests)
    assert client.payloads("TurnBegin") == [{"user_input": "go"}, {"user_input": "the next one"}]
    assert client.close() == 0


def test_yolo_ends_with_its_process(harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="true"), "One.", tool_call("Shell", command="true"), "Two."]
    asked = []
    for flags in (["--yolo"], []):
        client = Client(harness, "--session", SESSION, *flags)
        client.initialize()
        client.prompt("go")
        asked.append(len(client.requests))
        assert client.close() == 0
    assert asked == [0, 1]


def test_plan_mode_holds_whatever_is_approved(harness, kimi, provider):
    provider.replies = [tool_call("WriteFile", path="a.txt", content="x"), tool_call("look"), "Planned."]
    client = Client(harness, "--yolo")
    tool = {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {}}}
    capabilities = {"supports_question": True, "supports_plan_mode": True}
    client.call("initialize", {"protocol_version": "1.7", "capabilities": capabilities, "external_tools": [tool]})
    assert client.call("set_plan_mode", {"enabled": True})["result"] == {"status": "ok", "plan_mode": True}
    client.send("prompt", {"user_input": "go"}, id="prompt")
    request = client.until_request()
    assert request["name"] == "look", "a tool of the host needs no approval"
    value = {"is_error": False, "output": "seen", "message": "", "display": []}
    client.answer(request, tool_call_id=request["id"], return_value=value)
    assert client.until_reply()["result"] == {"status": "finished"}
    [written, looked] = [result["return_value"] for result in client.payloads("ToolResult")]
    assert written["is_error"] and "Plan mode" in written["message"] and not (harness.workspace / "a.txt").exists()
    assert looked["output"] == "seen"
    assert client.close() == 0


def test_cleared_conversation_stays_cleared(harness, kimi, provider):
    provider.replies = ["One.", "Two."]
    client = Client(harness, "--session", SESSION)
    client.initialize()
    client.prompt("the old question")
    assert client.prompt("/clear")["result"] == {"status": "finished"}
    assert client.close() == 0
    client = Client(harness, "--session", SESSION)
    client.initialize()
    client.prompt("the new question")
    assert "the old question" not in json.dumps(provider.requests[1]["messages"])
    assert client.close() == 0


def test_edits_have_kimis_shape(harness, kimi, provider):
    (harness.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    edits = [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]
    provider.replies = [
        tool_call("ReadFile", path="a.txt"),
        tool_call("StrReplaceFile", path="a.txt", edit=edits),
        tool_call("WriteFile", path="a.txt", content="four\n", mode="append"),
        "Done.",
    ]
    client = Client(harness, "--yolo")
    client.initialize()
    assert client.prompt("go")["result"] == {"status": "finished"}
    assert (harness.workspace / "a.txt").read_text() == "1\ntwo\n3\nfour\n"
    assert not client.requests
    values = [result["return_value"] for result in client.payloads("ToolResult")]
    assert [value["is_error"] for value in values] == [False] * 3
    assert values[1]["display"][0]["type"] == "diff"
    assert client.close() == 0


def test_sessions_go_on_and_are_listed(harness, kimi, provider):
    provider.replies = ["one", "two", "three"]
    for prompt in ("the first question", "the second"):
        client = Client(harness, "--session", SESSION)
        client.initialize()
        client.prompt(prompt)
        assert client.close() == 0
    assert "the first question" in json.dumps(provider.requests[1]["messages"])
    client = Client(harness, "--continue")
    client.initialize()
    client.prompt("the third")
    assert client.close() == 0
    assert "the second" in json.dumps(provider.requests[2]["messages"])
    listed = subprocess.run(
        [harness.engine, "sessions", "list", "--json"], cwd=harness.workspace, capture_output=True, text=True, check=True
    )
    assert SESSION in listed.stdout


def test_bad_lines_get_the_errors_of_the_protocol(harness, kimi, provider):
    provider.replies = ["fine"]
    client = Client(harness)
    client.initialize()
    for line, code in [
        ("this is not json", -32700),
        ("", -32700),
        ('{"jsonrpc": "2.0", "id": 7, "method": "prompt"}', -32600),
        ('{"jsonrpc": "2.0", "id": "1", "method": "teleport"}', -32601),
        ('{"jsonrpc": "2.0", "id": "1", "method": "prompt", "params": {}}', -32602),
        ('{"jsonrpc": "2.0", "id": "1", "method": "cancel"}', -32000),
        ('{"jsonrpc": "2.0", "id": "1", "method": "steer", "params": {"user_input": "x"}}', -32000),
    ]:
        client.write(line)
        assert client.read()["error"]["code"] == code, line
    assert client.prompt("go on")["result"] == {"status": "finished"}
    assert client.close() == 0


def test_old_clients_get_only_what_they_know(harness, kimi, provider):
    provider.replies = ["hi"]
    client = Client(harness)
    client.initialize("1.1")
    client.prompt("go")
    assert client.kinds() == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate"]
    assert client.close() == 0


def test_skills_of_the_host_replace_those_of_the_user(harness, kimi, provider):
    for directory, name in [(harness.home / ".claude" / "skills", "mine"), (harness.root / "skills", "given")]:
        (directory / name).mkdir(parents=True)
        (directory / name / "SKILL.md").write_text(f"---\ndescription: what {name} does\n---\nSay {name}.")
    provider.replies = ["One.", "Two."]
    client = Client(harness, "--skills-dir", str(harness.root / "skills"))
    names = {command["name"] for command in client.initialize()["result"]["slash_commands"]}
    assert "given" in names and "mine" not in names
    assert client.prompt("/skill:given now")["result"] == {"status": "finished"}
    assert "Say given." in json.dumps(provider.requests[0]["messages"])
    assert "Skill" in {tool["name"] for tool in provider.requests[0]["tools"]}
    assert client.close() == 0


@pytest.mark.parametrize(
    "flags", [["--no-such-flag"], ["--session", "a", "--continue"], ["--config", "{bad"], ["--agent-file", "/no/such.yaml"]]
)
def test_wrong_flags_are_explained(harness, kimi, flags):
    process = subprocess.run(
        [harness.engine, "--wire", *flags], cwd=harness.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert process.returncode == 2 and process.stdout == "" and len(process.stderr) > 20


def test_info_names_the_versions(harness):
    printed = subprocess.run([harness.engine, "info", "--json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed)["wire_protocol_version"] == "1.3"


def drive(programs, harness, action, **params):
    return programs.run_node_script("kimi-sdk", "drive.mjs", action=action, workDir=str(harness.workspace), **params)


def said(turn):
    parts = [event["payload"] for event in turn["events"] if event["type"] == "ContentPart"]
    return "".join(part["text"] for part in parts if part["type"] == "text")


def test_node_sdk_runs_turns_and_lists_them(programs, harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="touch made"), "done", "again"]
    outcome = drive(programs, harness, "turns", sessionId=SESSION, prompts=["one", "two"])
    assert [said(turn) for turn in outcome["turns"]] == ["done", "again"]
    assert [turn["result"] for turn in outcome["turns"]] == [{"status": "finished"}] * 2
    assert not [event for turn in outcome["turns"] for event in turn["events"] if event["type"] == "error"]
    assert "compact" in outcome["commands"]
    stored = drive(programs, harness, "stored")
    assert [session["id"] for session in stored["sessions"]] == [SESSION] and stored["sessions"][0]["brief"] == "one"
    assert stored["kinds"].count("TurnBegin") == 2 and "error" not in stored["kinds"]


def test_node_sdk_forks_by_copying_files(programs, harness, kimi, provider):
    provider.replies = [tool_call("ReadFile", path="no.txt"), "remember the whimbrel", "forget it", "I remember"]
    drive(programs, harness, "turns", sessionId=SESSION, prompts=["one", "two"])
    outcome = drive(programs, harness, "fork", sessionId=SESSION, prompts=["what was it?"])
    assert said(outcome["turns"][0]) == "I remember"
    sent = json.dumps(provider.requests[3]["messages"])
    assert "remember the whimbrel" in sent and "forget it" not in sent and "ReadFile" in sent


def test_node_sdk_hook_blocks_a_call(programs, harness, kimi, provider):
    provider.replies = [tool_call("Shell", command="touch no"), "ok"]
    outcome = drive(programs, harness, "hook", prompts=["go"], decision={"action": "block", "reason": "not here"})
    assert outcome["calls"][0]["input_data"]["tool_name"] == "Shell" and not (harness.workspace / "no").exists()
    assert "not here" in json.dumps(provider.requests[1]["messages"])
    assert outcome["hello"]["hooks"]["configured"] == {"PreToolUse": 1}


class Runner:
    """The example program, with its output read line by line."""

    def __init__(self, programs, harness):
        directory = harness.root / "runner"
        if not directory.exists():
            directory.mkdir()
            (directory / "node_modules").symlink_to(programs.dir / "kimi-sdk" / "node_modules")
            (directory / RUNNER.name).write_bytes(RUNNER.read_bytes())
        self.process = subprocess.Popen(
            ["node", directory / RUNNER.name, harness.engine],
            cwd=harness.workspace,
            env=os.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read_until(self, start):
        """Reads lines up to the first one that begins so."""
        for line in self.process.stdout:
            if line.startswith(start):
                return line.rstrip("\n")
        raise AssertionError(f"the program ended without {start!r}")

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT) == 0
        self.process.stdout.close()


def test_example_steers_calls_its_tool_and_resumes(programs, harness, kimi, provider):
    gate = harness.workspace / "gate"
    os.mkfifo(gate)
    provider.replies = [
        tool_call("Shell", command="cat gate"),
        tool_call("send_message", text="half way"),
        "All done.",
        "I remember.",
    ]
    runner = Runner(programs, harness)
    runner.write("begin")
    assert runner.read_until("tool:") == "tool: Shell"
    # The command waits for the gate, so the message comes into the running turn.
    runner.write("and also this")
    assert runner.read_until("steered:") == "steered: and also this"
    descriptor = wait_until(lambda: open_if_read(gate), "the command to read the gate")
    os.close(descriptor)
    assert runner.read_until("message:") == "message: half way"
    assert runner.read_until("answer") == "answer (finished): All done."
    runner.close()
    assert "and also this" in json.dumps(provider.requests[2]["messages"])

    again = Runner(programs, harness)
    again.write("what did I ask?")
    assert again.read_until("answer") == "answer (finished): I remember."
    again.close()
    assert "begin" in json.dumps(provider.requests[3]["messages"])


def open_if_read(fifo):
    """Opens a pipe for writing if a process reads it."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None
