"""Our own tools as an MCP server, driven by the official client."""

from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters, stdio_client

from caller import in_time


@asynccontextmanager
async def served(stage, *flags):
    """A client of `whimbrel mcp serve` in the workspace of the stage."""
    server = StdioServerParameters(
        command=str(stage.engine), args=["mcp", "serve", *flags], env=stage.env(), cwd=stage.workspace
    )
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
        await client.initialize()
        yield client


async def called(client, tool, **arguments):
    """Whether a call failed, and what it says."""
    result = (await client.call_tool(tool, arguments)).model_dump(by_alias=True)
    return bool(result["isError"]), "".join(block.get("text", "") for block in result["content"])


def test_the_official_client_uses_our_tools(stage):
    notes, other = stage.workspace / "notes.txt", stage.workspace / "other.txt"
    notes.write_text("two curlews\n")
    (stage.workspace / "bird.sh").write_text("echo godwit\n")

    async def play():
        async with served(stage, "--allowedTools", "Bash(sh bird.sh)") as client:
            tools = [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]
            hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools}
            assert {"Read", "Write", "Edit", "Glob", "Grep", "Bash", "NotebookEdit", "WebFetch"} <= set(hints)
            assert hints["Read"] and hints["Grep"] and not hints["Write"] and not hints["Bash"]
            assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)

            failed, text = await called(client, "Read", file_path=str(notes))
            assert not failed and "two curlews" in text
            failed, text = await called(client, "Write", file_path=str(other), content="x")
            assert failed and "needs a permission" in text and not other.exists()
            assert await called(client, "Bash", command="sh bird.sh") == (False, "godwit")
            failed, text = await called(client, "Bash", command="touch other.txt")
            assert failed and not other.exists()

    in_time(play())


def test_a_background_command_ends_with_the_client(stage):
    async def play():
        async with served(stage, "--allowedTools", "Bash") as client:
            failed, _ = await called(client, "Bash", command="sleep 300", run_in_background=True)
            assert not failed
            assert any("sleep 300" in line for line in stage.processes().values())

    in_time(play())
    # The stage sees to it that nothing of it runs on.
