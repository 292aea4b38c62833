"""A small client of the Agent Client Protocol: JSON-RPC over the stdin and stdout of an agent."""

import asyncio
import contextlib
import itertools
import json

from harness import TIMEOUT

# Longest line of the agent.
MAX_LINE = 1 << 24


class AcpError(Exception):
    """An error that the agent answered."""


class AcpClient:
    """One connection to an agent. Use as an asynchronous context manager."""

    def __init__(self, command, cwd, env):
        self.command, self.cwd, self.env = [str(word) for word in command], cwd, env
        # Everything of `session/update`, in order, and every `session/request_permission`.
        self.updates, self.permission_requests = [], []
        # The kind of option that is chosen for the next permission requests.
        self.choice = "reject_once"
        self.ids, self.pending = itertools.count(), {}

    async def __aenter__(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *self.command, cwd=self.cwd, env=self.env, stdin=pipe, stdout=pipe, limit=MAX_LINE
        )
        self.reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_):
        self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), TIMEOUT)
        except TimeoutError:
            self.process.kill()
            raise
        await self.reader
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.wait_closed()

    def send(self, method, **params):
        """Sends a request; returns the future of its result, which may be an `AcpError`."""
        number, future = next(self.ids), asyncio.get_running_loop().create_future()
        self.pending[number] = future
        self._write({"id": number, "method": method, "params": params})
        return future

    def notify(self, method, **params):
        self._write({"method": method, "params": params})

    async def initialize(self, **more):
        """Announces no capabilities but these."""
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, **more}
        return await self.send("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new_session(self):
        """Starts a session; returns its id."""
        return (await self.send("session/new", cwd=str(self.cwd), mcpServers=[]))["sessionId"]

    def prompt(self, session, text):
        """Sends a prompt; returns the future of its result."""
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def updates_of_kind(self, *kinds, since=0):
        return [update for update in self.updates[since:] if update["sessionUpdate"] in kinds]

    def text(self, kind="agent_message_chunk", since=0):
        """The text of all chunks of a kind."""
        return "".join(update["content"]["text"] for update in self.updates_of_kind(kind, since=since))

    def tool_calls(self, since=0):
        """The tool calls by id, each with its updates merged."""
        calls = {}
        for update in self.updates_of_kind("tool_call", "tool_call_update", since=since):
            calls.setdefault(update["toolCallId"], {}).update(update)
        return calls

    def _write(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self):
        try:
            await self._read_messages()
        finally:
            for future in self.pending.values():
                if not future.done():
                    future.set_exception(AcpError("the agent is gone, or sent what this client cannot handle"))

    async def _read_messages(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" in message:
                self._handle(message)
                continue
            future = self.pending.pop(message["id"])
            if "error" in message:
                future.set_exception(AcpError(json.dumps(message["error"])))
            else:
                future.set_result(message["result"])

    def _handle(self, message):
        params = message["params"]
        if message["method"] == "session/update":
            self.updates.append(params["update"])
        elif message["method"] == "session/request_permission":
            self.permission_requests.append(params)
            option = next(option for option in params["options"] if option["kind"] == self.choice)
            outcome = {"outcome": "selected", "optionId": option["optionId"]}
            self._write({"id": message["id"], "result": {"outcome": outcome}})
        elif "id" in message:
            error = {"code": -32601, "message": f"{message['method']} is unknown"}
            self._write({"id": message["id"], "error": error})
