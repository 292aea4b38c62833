"""`whimbrel mcp serve` with the official MCP client."""

from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters, stdio_client

from python_sdk import run_with_timeout


@asynccontextmanager
async def connect_client(harness, *flags):
    """A client of `whimbrel mcp serve` in the workspace."""
    server = StdioServerParameters(
        command=str(harness.engine), args=["mcp", "serve", *flags], env=harness.env(), cwd=harness.workspace
    )
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as client:
        await client.initialize()
        yield client


async def call_tool(client, tool, **arguments):
    """Whether a call failed, and its text."""
    result = (await client.call_tool(tool, arguments)).model_dump(by_alias=True)
    return bool(result["isError"]), "".join(block.get("text", "") for block in result["content"])


def test_official_client_calls_our_tools(harness):
    notes, other = harness.workspace / "notes.txt", harness.workspace / "other.txt"
    notes.write_text("two curlews\n")
    (harness.workspace / "bird.sh").write_text("echo godwit\n")

    async def use_client():
        async with connect_client(harness, "--allowedTools", "Bash(sh bird.sh)") as client:
            tools = [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]
            hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools}
            assert {"Read", "Write", "Edit", "Glob", "Grep", "Bash", "NotebookEdit", "WebFetch"} <= set(hints)
            assert hints["Read"] and hints["Grep"] and not hints["Write"] and not hints["Bash"]
            assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)

            failed, text = await call_tool(client, "Read", file_path=str(notes))
            assert not failed and "two curlews" in text
            failed, text = await call_tool(client, "Write", file_path=str(other), content="x")
            assert failed and "needs permission" in text and not other.exists()
            assert await call_tool(client, "Bash", command="sh bird.sh") == (False, "godwit")
            failed, text = await call_tool(client, "Bash", command="touch other.txt")
            assert failed and not other.exists()

    run_with_timeout(use_client())


def test_background_command_ends_with_the_client(harness):
    async def use_client():
        async with connect_client(harness, "--allowedTools", "Bash") as client:
            failed, _ = await call_tool(client, "Bash", command="sleep 300", run_in_background=True)
            assert not failed
            assert any("sleep 300" in line for line in harness.running_processes().values())

    run_with_timeout(use_client())
    # The harness fixture checks that no process is left.
