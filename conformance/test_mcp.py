"""MCP servers: in the process of the official SDKs, and published reference servers."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, create_sdk_mcp_server, tool

from harness import tool_call, wait_until
from python_sdk import only_result, result_messages, run_query, run_turn, run_with_timeout, system_data, tool_results
from typescript_sdk import ScriptRunner

TYPESCRIPT_VERSIONS = ["0.2.50", "0.3.325"]

# Published servers may start slowly on a busy machine.
START_TIMEOUT = 120


@pytest.fixture(params=TYPESCRIPT_VERSIONS)
def node(request, sdk_dir, harness):
    return ScriptRunner(request.param, sdk_dir, harness)


def result_text(outcome):
    """The text of a tool result."""
    if isinstance(outcome.text, str):
        return outcome.text
    return "".join(block.get("text", "") for block in outcome.text)


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(arguments):
    return {"content": [{"type": "text", "text": f"sum={arguments['a'] + arguments['b']:g}"}]}


@tool("fail", "Fails.", {})
async def fail(arguments):
    raise ValueError("it broke")


def test_python_sdk_server_is_called(harness):
    replies = (tool_call("mcp__sums__add", a=2, b=3), tool_call("mcp__sums__fail"), "done")
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add, fail])}
    options = harness.options(*replies, mcp_servers=servers, allowed_tools=["mcp__sums"])
    messages = run_query("go", options)
    assert only_result(messages).result == "done"
    good, bad = tool_results(messages)
    assert result_text(good) == "sum=5" and not good.failed
    assert "it broke" in result_text(bad) and bad.failed
    (init,) = system_data(messages, "init")
    assert [(server["name"], server["status"]) for server in init["mcp_servers"]] == [("sums", "connected")]


def test_subagent_calls_a_python_sdk_server(harness):
    replies = (
        tool_call("Agent", description="sum", prompt="Add."),
        tool_call("mcp__sums__add", a=1, b=1),
        {"expect": "sum=2", "content": ["added"]},
        "done",
    )
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
    messages = run_query("go", harness.options(*replies, mcp_servers=servers, allowed_tools=["mcp__sums"]))
    assert only_result(messages).result == "done"


def test_background_agent_calls_a_python_sdk_server(harness):
    adds = harness.write_script(tool_call("mcp__sums__add", a=1, b=1), {"expect": "sum=2", "content": ["added"]})
    adder = AgentDefinition(description="adds", prompt="You add.", model=adds, background=True)

    async def run_session():
        options = harness.options(
            tool_call("Agent", description="sum", prompt="Add.", subagent_type="adder"),
            "it adds",
            {"expect": "<result>added</result>", "content": ["done"]},
            agents={"adder": adder},
            mcp_servers={"sums": create_sdk_mcp_server("sums", "1.0.0", [add])},
            allowed_tools=["mcp__sums"],
        )
        async with ClaudeSDKClient(options) as client:
            first = await run_turn(client, "go")
            return only_result(first).result, [
                message.result async for message in client.receive_response() if hasattr(message, "result")
            ]

    assert run_with_timeout(run_session()) == ("it adds", ["done"])


def test_teammate_calls_a_python_sdk_server(harness, provider, monkeypatch):
    def respond(request):
        text = json.dumps(request["messages"][-1])
        if "You are ann," in json.dumps(request["system"]):
            if "sum=" in text:
                return tool_call("SendMessage", recipient="team-lead", content="It is sum=2.")
            return "Sent." if "Delivered" in text else tool_call("mcp__sums__add", a=1, b=1)
        if "Created the team" in text:
            return tool_call("Agent", description="sum", prompt="Add.", name="ann")
        if "has joined" in text:
            return "Started."
        return "done" if "It is sum=2." in text else tool_call("TeamCreate", team_name="adders")

    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    provider.respond = respond
    servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
    options = harness.options(model="claude-haiku-4-5", mcp_servers=servers, allowed_tools=["mcp__sums"])
    assert [result.result for result in result_messages(run_query("go", options))] == ["Started.", "done"]


def test_python_client_reads_and_toggles_servers(harness):
    async def run_session():
        servers = {"sums": create_sdk_mcp_server("sums", "1.0.0", [add])}
        async with ClaudeSDKClient(harness.options("one", "two", mcp_servers=servers)) as client:
            await run_turn(client, "go")
            before = await client.get_mcp_status()
            await client.toggle_mcp_server("sums", False)
            off = await client.get_mcp_status()
            await client.reconnect_mcp_server("sums")
            return before, off, await client.get_mcp_status()

    before, off, after = run_with_timeout(run_session())
    states = [status["mcpServers"][0]["status"] for status in (before, off, after)]
    assert states == ["connected", "disabled", "connected"]
    assert [tool["name"] for tool in before["mcpServers"][0]["tools"]] == ["add"]


def test_typescript_sdk_server_is_called(node):
    replies = (tool_call("mcp__sums__add", a=2, b=3), tool_call("mcp__sums__fail"), "done")
    output = node.run("sdk_mcp_server", *replies, options={"allowedTools": ["mcp__sums"]})
    assert output.error is None and output.only_result["result"] == "done"
    good, bad = output.tool_results
    assert result_text(good) == "sum=5" and not good.failed
    assert "it broke" in result_text(bad) and bad.failed
    assert output.notes["called"] == [{"a": 2, "b": 3}]
    (init,) = output.of_type("system", "init")
    assert [(server["name"], server["status"]) for server in init["mcp_servers"]] == [("sums", "connected")]
    (status,) = output.notes["status"]
    assert [(server["name"], server["status"]) for server in status] == [("sums", "connected")]
    (changed,) = output.notes["changed"]
    assert (changed["added"], changed["errors"]) == (["more"], {})


def run_when_servers_ready(harness, *replies, **more):
    """Messages of a turn that starts once no server is pending."""

    async def run_session():
        options = harness.options(*replies, env={"MCP_TIMEOUT": str(START_TIMEOUT * 1000)}, **more)
        async with ClaudeSDKClient(options) as client:
            while await has_pending_servers(client):
                await asyncio.sleep(0.05)
            return await run_turn(client, "go")

    return run_with_timeout(run_session(), START_TIMEOUT)


async def has_pending_servers(client):
    servers = (await client.get_mcp_status())["mcpServers"]
    return any(server["status"] == "pending" for server in servers)


def everything_server_command(sdk_dir, *arguments):
    """Command line of the reference server `everything`."""
    package = sdk_dir / "servers/node_modules/@modelcontextprotocol/server-everything"
    return ["node", str(package / "dist/index.js"), *arguments]


@pytest.fixture
def http_server(request, sdk_dir, harness, monkeypatch):
    """Runs the reference server over HTTP on loopback; gives its configuration."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    env = dict(harness.env(), PORT=str(port))
    process = subprocess.Popen(
        everything_server_command(sdk_dir, request.param),
        env=env,
        cwd=harness.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_listening():
        assert process.poll() is None, "the server has exited"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    try:
        wait_until(is_listening, "the server to listen", START_TIMEOUT)
        transports = {"sse": ("sse", "sse"), "streamableHttp": ("http", "mcp")}
        transport, path = transports[request.param]
        yield {"type": transport, "url": f"http://127.0.0.1:{port}/{path}"}
    finally:
        process.kill()
        process.wait()


def call_everything_server(harness, server):
    """Calls the tools of the reference server; returns their results."""
    replies = (
        tool_call("mcp__all__echo", message="hey"),
        tool_call("mcp__all__get-sum", a=2, b=3),
        tool_call("mcp__all__get-tiny-image"),
        tool_call("mcp__all__get-roots-list"),
        tool_call("ListMcpResourcesTool", server="all"),
        tool_call("mcp__all__echo"),
        "done",
    )
    messages = run_when_servers_ready(harness, *replies, mcp_servers={"all": server}, allowed_tools=["mcp__all"])
    assert only_result(messages).result == "done"
    (init,) = system_data(messages, "init")
    assert [(s["name"], s["status"]) for s in init["mcp_servers"]] == [("all", "connected")]
    assert any(name.startswith("mcp__all__") for name in init["slash_commands"]), init["slash_commands"]
    return tool_results(messages)


def check_everything_results(harness, outcomes):
    echo, total, image, roots, resources, wrong = outcomes
    assert "hey" in result_text(echo) and "5" in result_text(total)
    assert "image" in {block["type"] for block in image.text}
    assert str(harness.workspace) in result_text(roots)
    assert "://" in result_text(resources) and not resources.failed
    assert wrong.failed


def test_reference_server_over_stdio(harness, sdk_dir):
    command, *arguments = everything_server_command(sdk_dir, "stdio")
    check_everything_results(harness, call_everything_server(harness, {"command": command, "args": arguments}))


@pytest.mark.parametrize("http_server", ["sse", "streamableHttp"], indirect=True)
def test_reference_server_over_http(harness, http_server):
    outcomes = call_everything_server(harness, http_server)
    check_everything_results(harness, outcomes)


def test_servers_from_pypi(harness):
    subprocess.run(["git", "init", "-q", "."], cwd=harness.workspace, check=True)
    (harness.workspace / "new.txt").write_text("new\n")
    bin = Path(sys.executable).parent
    servers = {
        "time": {"command": str(bin / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": str(bin / "mcp-server-git"), "args": ["--repository", str(harness.workspace)]},
    }
    zones = {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    replies = (
        tool_call("mcp__time__convert_time", **zones),
        tool_call("mcp__git__git_status", repo_path=str(harness.workspace)),
        "done",
    )
    rules = ["mcp__time", "mcp__git"]
    messages = run_when_servers_ready(harness, *replies, mcp_servers=servers, allowed_tools=rules)
    time, git = tool_results(messages)
    assert "21:30" in result_text(time), time
    assert "new.txt" in result_text(git), git


def test_project_mcp_file_needs_approval(harness, sdk_dir):
    command, *arguments = everything_server_command(sdk_dir, "stdio")
    entry = {"mcpServers": {"all": {"command": command, "args": arguments}}}
    (harness.workspace / ".mcp.json").write_text(json.dumps(entry))
    rows = [
        ({}, []),
        ({"settings": json.dumps({"enabledMcpjsonServers": ["all"]})}, [("all", "connected")]),
        ({"setting_sources": ["project"]}, [("all", "connected")]),
        ({"setting_sources": ["project"], "strict_mcp_config": True}, []),
        ({"setting_sources": []}, []),
    ]
    for more, expected in rows:
        messages = run_query("go", harness.options("done", **more))
        (init,) = system_data(messages, "init")
        found = [(server["name"], server["status"]) for server in init["mcp_servers"]]
        assert found == expected, more
