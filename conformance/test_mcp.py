"""MCP servers: those that the official SDKs run in their own process, and reference servers as others write them."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, create_sdk_mcp_server, tool

from caller import ask, in_time, notices, results, the_result, tool_results, turn
from node import Node
from stage import call, wait_until

TYPESCRIPT = ["0.2.50", "0.3.325"]

# Programs of others may take their time to start on a busy machine.
STARTING = 120


@pytest.fixture(params=TYPESCRIPT)
def node(request, installed, stage):
    return Node(request.param, installed, stage)


def text_of(answered):
    """The text of what came of a call."""
    if isinstance(answered.text, str):
        return answered.text
    return "".join(block.get("text", "") for block in answered.text)


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(arguments):
    return {"content": [{"type": "text", "text": f"sum={arguments['a'] + arguments['b']:g}"}]}


@tool("fail", "Fails.", {})
async def fail(arguments):
    raise ValueError("it broke")


def test_a_server_of_the_python_sdk_is_called(stage):
    replies = (call("mcp__sums__add", a=2, b=3), call("mcp__sums__fail"), "done")
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add, fail])}
    options = stage.options(*replies, mcp_servers=servers, allowed_tools=["mcp__sums"])
    messages = ask("go", options)
    assert the_result(messages).result == "done"
    good, bad = tool_results(messages)
    assert text_of(good) == "sum=5" and not good.failed
    assert "it broke" in text_of(bad) and bad.failed
    (init,) = notices(messages, "init")
    assert [(server["name"], server["status"]) for server in init["mcp_servers"]] == [("sums", "connected")]


def test_a_subagent_calls_a_server_of_the_python_sdk(stage):
    replies = (
        call("Agent", description="sum", prompt="Add."),
        call("mcp__sums__add", a=1, b=1),
        {"expect": "sum=2", "content": ["added"]},
        "done",
    )
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
    messages = ask("go", stage.options(*replies, mcp_servers=servers, allowed_tools=["mcp__sums"]))
    assert the_result(messages).result == "done"


def test_an_agent_in_the_background_calls_a_server_of_the_python_sdk(stage):
    adds = stage.script(call("mcp__sums__add", a=1, b=1), {"expect": "sum=2", "content": ["added"]})
    adder = AgentDefinition(description="adds", prompt="You add.", model=adds, background=True)

    async def play():
        options = stage.options(
            call("Agent", description="sum", prompt="Add.", subagent_type="adder"),
            "it adds",
            {"expect": "<result>added</result>", "content": ["done"]},
            agents={"adder": adder},
            mcp_servers={"sums": create_sdk_mcp_server("sums", "1.0.0", [add])},
            allowed_tools=["mcp__sums"],
        )
        async with ClaudeSDKClient(options) as client:
            first = await turn(client, "go")
            return the_result(first).result, [
                message.result async for message in client.receive_response() if hasattr(message, "result")
            ]

    assert in_time(play()) == ("it adds", ["done"])


def test_a_teammate_calls_a_server_of_the_python_sdk(stage, provider, monkeypatch):
    def answer(request):
        text = json.dumps(request["messages"][-1])
        if "You are ann," in json.dumps(request["system"]):
            if "sum=" in text:
                return call("SendMessage", recipient="team-lead", content="It is sum=2.")
            return "Told." if "Delivered" in text else call("mcp__sums__add", a=1, b=1)
        if "is founded" in text:
            return call("Agent", description="sum", prompt="Add.", name="ann")
        if "has joined" in text:
            return "Away."
        return "done" if "It is sum=2." in text else call("TeamCreate", team_name="crew")

    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    provider.answer = answer
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
    options = stage.options(model="claude-haiku-4-5", mcp_servers=servers, allowed_tools=["mcp__sums"])
    assert [end.result for end in results(ask("go", options))] == ["Away.", "done"]


def test_the_python_client_looks_at_servers_and_switches_them(stage):
    async def play():
        servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
        async with ClaudeSDKClient(stage.options("one", "two", mcp_servers=servers)) as client:
            await turn(client, "go")
            before = await client.get_mcp_status()
            await client.toggle_mcp_server("sums", False)
            off = await client.get_mcp_status()
            await client.reconnect_mcp_server("sums")
            return before, off, await client.get_mcp_status()

    before, off, after = in_time(play())
    states = [status["mcpServers"][0]["status"] for status in (before, off, after)]
    assert states == ["connected", "disabled", "connected"]
    assert [tool["name"] for tool in before["mcpServers"][0]["tools"]] == ["add"]


def test_a_server_of_the_typescript_sdk_is_called(node):
    replies = (call("mcp__sums__add", a=2, b=3), call("mcp__sums__fail"), "done")
    played = node.play("server", *replies, options={"allowedTools": ["mcp__sums"]})
    assert played.thrown is None and played.the_result["result"] == "done"
    good, bad = played.tool_results
    assert text_of(good) == "sum=5" and not good.failed
    assert "it broke" in text_of(bad) and bad.failed
    assert played.notes["called"] == [{"a": 2, "b": 3}]
    (init,) = played.of("system", "init")
    assert [(server["name"], server["status"]) for server in init["mcp_servers"]] == [("sums", "connected")]
    (status,) = played.notes["status"]
    assert [(server["name"], server["status"]) for server in status] == [("sums", "connected")]
    (changed,) = played.notes["changed"]
    assert (changed["added"], changed["errors"]) == (["more"], {})


def ask_when_ready(stage, *replies, **more):
    """Every message of a turn that begins when all servers are there."""

    async def play():
        options = stage.options(*replies, env={"MCP_TIMEOUT": str(STARTING * 1000)}, **more)
        async with ClaudeSDKClient(options) as client:
            while await starting(client):
                await asyncio.sleep(0.05)
            return await turn(client, "go")

    return in_time(play(), STARTING)


async def starting(client):
    """Whether a server is still being waited for."""
    servers = (await client.get_mcp_status())["mcpServers"]
    return any(server["status"] == "pending" for server in servers)


def everything(installed, *words):
    """The command of the reference server for everything."""
    package = installed / "servers/node_modules/@modelcontextprotocol/server-everything"
    return ["node", str(package / "dist/index.js"), *words]


@pytest.fixture
def address(request, installed, stage, monkeypatch):
    """The reference server at an address on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    env = dict(stage.env(), PORT=str(port))
    running = subprocess.Popen(
        everything(installed, request.param),
        env=env,
        cwd=stage.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def listens():
        assert running.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    try:
        wait_until(listens, "the server to listen", STARTING)
        kinds = {"sse": ("sse", "sse"), "streamableHttp": ("http", "mcp")}
        kind, path = kinds[request.param]
        yield {"type": kind, "url": f"http://127.0.0.1:{port}/{path}"}
    finally:
        running.kill()
        running.wait()


def use_everything(stage, server):
    """Has the reference server called in several ways; gives the answers."""
    replies = (
        call("mcp__all__echo", message="hey"),
        call("mcp__all__get-sum", a=2, b=3),
        call("mcp__all__get-tiny-image"),
        call("mcp__all__get-roots-list"),
        call("ListMcpResourcesTool", server="all"),
        call("mcp__all__echo"),
        "done",
    )
    messages = ask_when_ready(stage, *replies, mcp_servers={"all": server}, allowed_tools=["mcp__all"])
    assert the_result(messages).result == "done"
    (init,) = notices(messages, "init")
    assert [(s["name"], s["status"]) for s in init["mcp_servers"]] == [("all", "connected")]
    assert any(name.startswith("mcp__all__") for name in init["slash_commands"]), init["slash_commands"]
    return tool_results(messages)


def check_everything(stage, answers):
    echo, total, image, roots, resources, wrong = answers
    assert "hey" in text_of(echo) and "5" in text_of(total)
    assert "image" in {block["type"] for block in image.text}
    assert str(stage.workspace) in text_of(roots)
    assert "://" in text_of(resources) and not resources.failed
    assert wrong.failed


def test_the_reference_server_as_a_program(stage, installed):
    command, *arguments = everything(installed, "stdio")
    check_everything(stage, use_everything(stage, {"command": command, "args": arguments}))


@pytest.mark.parametrize("address", ["sse", "streamableHttp"], indirect=True)
def test_the_reference_server_at_an_address(stage, address):
    answers = use_everything(stage, address)
    check_everything(stage, answers)


def test_servers_from_pypi(stage):
    subprocess.run(["git", "init", "-q", "."], cwd=stage.workspace, check=True)
    (stage.workspace / "new.txt").write_text("new\n")
    bin = Path(sys.executable).parent
    servers = {
        "time": {"command": str(bin / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": str(bin / "mcp-server-git"), "args": ["--repository", str(stage.workspace)]},
    }
    zones = {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    replies = (
        call("mcp__time__convert_time", **zones),
        call("mcp__git__git_status", repo_path=str(stage.workspace)),
        "done",
    )
    rules = ["mcp__time", "mcp__git"]
    messages = ask_when_ready(stage, *replies, mcp_servers=servers, allowed_tools=rules)
    time, git = tool_results(messages)
    assert "21:30" in text_of(time), time
    assert "new.txt" in text_of(git), git


def test_a_project_file_counts_when_somebody_answers_for_it(stage, installed):
    command, *arguments = everything(installed, "stdio")
    entry = {"mcpServers": {"all": {"command": command, "args": arguments}}}
    (stage.workspace / ".mcp.json").write_text(json.dumps(entry))
    rows = [
        ({}, []),
        ({"settings": json.dumps({"enabledMcpjsonServers": ["all"]})}, [("all", "connected")]),
        ({"setting_sources": ["project"]}, [("all", "connected")]),
        ({"setting_sources": ["project"], "strict_mcp_config": True}, []),
        ({"setting_sources": []}, []),
    ]
    for more, expected in rows:
        messages = ask("go", stage.options("done", **more))
        (init,) = notices(messages, "init")
        found = [(server["name"], server["status"]) for server in init["mcp_servers"]]
        assert found == expected, more
