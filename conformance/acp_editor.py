"""An editor: the official Python client of the Agent Client Protocol, with a memory of what it was sent."""

import asyncio
import contextlib

import acp
from acp import schema

from harness import TIMEOUT

# Longest line of the agent.
MAX_LINE = 1 << 24


def run(journey):
    """Runs a test that is a coroutine."""
    return asyncio.run(asyncio.wait_for(journey, 2 * TIMEOUT))


class EditorWindow:
    """What the agent may ask of the editor. The answers are set by the test."""

    def __init__(self):
        # Updates as JSON, in order, and the permission requests.
        self.updates, self.requests = [], []
        # The kind of option that is chosen, or `wait` for no answer.
        self.choice = "allow_once"
        # The kind of option that is chosen for a call whose title is a key, instead of `choice`.
        self.choices = {}
        # Turns the properties of a form into the values; none closes the form.
        self.fill_form = None

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, to_json(update)))

    async def request_permission(self, session_id, tool_call, options, **_):
        self.requests.append({"call": to_json(tool_call), "options": [to_json(option) for option in options]})
        choice = lambda: self.choices.get(tool_call.title, self.choice)
        while choice() == "wait":
            await asyncio.sleep(0.01)
        if choice() == "cancelled":
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        (option,) = [option for option in options if option.kind == choice()][:1]
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message, mode, **_):
        if self.fill_form is None:
            return schema.CancelElicitationResponse(action="cancel")
        content = self.fill_form(to_json(mode)["requestedSchema"]["properties"])
        return schema.AcceptElicitationResponse(action="accept", content=content)


def to_json(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Editor:
    """A connection to `whimbrel acp`."""

    def __init__(self, connection, process, window, folder):
        self.connection, self.process, self.window, self.folder = connection, process, window, folder

    async def initialize(self, **capabilities):
        return to_json(
            await self.connection.initialize(
                protocol_version=1, client_capabilities=schema.ClientCapabilities.model_validate(capabilities)
            )
        )

    async def new_session(self, mcp_servers=(), **more):
        made = await self.connection.new_session(cwd=str(self.folder), mcp_servers=list(mcp_servers), **more)
        return made.session_id

    async def load(self, session, mcp_servers=()):
        """Loads a session into an empty window."""
        self.window.updates.clear()
        folder = str(self.folder)
        await self.connection.load_session(session_id=session, cwd=folder, mcp_servers=list(mcp_servers))

    async def request(self, method, **params):
        """Sends a request that the client has no method for."""
        return await asyncio.wait_for(self.connection._conn.send_request(method, params), TIMEOUT)

    async def prompt(self, session, *blocks):
        blocks = [acp.text_block(block) if isinstance(block, str) else block for block in blocks]
        answer = await asyncio.wait_for(self.connection.prompt(session_id=session, prompt=blocks), TIMEOUT)
        return answer.stop_reason

    def updates(self, session, kind):
        """The updates of one kind."""
        return [update for of, update in self.window.updates if of == session and update["sessionUpdate"] == kind]

    def text(self, session, kind="agent_message_chunk"):
        return "".join(update["content"]["text"] for update in self.updates(session, kind))

    def calls(self, session):
        """The calls as an editor shows them: every update merged into its call. `statuses` has all of them in order."""
        calls = {}
        for of, update in self.window.updates:
            if of == session and update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                call = calls.setdefault(update["toolCallId"], {"statuses": [], "_meta": {}, "contents": []})
                call["statuses"] += [update["status"]] if "status" in update else []
                call["contents"] += update.get("content", [])
                call["_meta"] |= update.get("_meta", {})
                call |= {name: value for name, value in update.items() if name not in ("_meta", "sessionUpdate")}
        return list(calls.values())

    async def wait_for(self, condition, description):
        """Waits until the agent has sent something."""
        async with asyncio.timeout(TIMEOUT):
            while not (value := condition()):
                await asyncio.sleep(0.01)
        assert value, description
        return value


def with_provider(provider):
    """Variables of an agent whose model is a mock of the Messages API."""
    return {
        "ANTHROPIC_BASE_URL": provider.url,
        "ANTHROPIC_API_KEY": "sk-ant-nothing",
        "ANTHROPIC_MODEL": "claude-sonnet-5",
    }


@contextlib.asynccontextmanager
async def open_editor(harness, *replies, pace_ms=0, capabilities=None, exit_code=0, **variables):
    """Starts `whimbrel acp` with a scripted model, and closes its input at the end, as an editor does."""
    env = harness.env() | {"ANTHROPIC_MODEL": harness.write_script(*replies, pace_ms=pace_ms)} | variables
    window = EditorWindow()
    command = (str(harness.engine), "acp")
    spawned = acp.spawn_agent_process(
        window,
        *command,
        env=env,
        cwd=harness.workspace,
        transport_kwargs={"limit": MAX_LINE},
        use_unstable_protocol=True,
    )
    async with spawned as (connection, process):
        editor = Editor(connection, process, window, harness.workspace)
        await editor.initialize(**(capabilities or {}))
        yield editor
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), TIMEOUT) == exit_code
