"""Our session stores behind the Python SDK's store protocol. Each runs in a process and is driven by JSON lines."""

import asyncio
import json


class RemoteStore:
    """Client of one store process."""

    def __init__(self, program, *arguments):
        self.command = [str(word) for word in (program, *arguments)]
        self.process = None

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self.command, stdin=pipe, stdout=pipe, limit=1 << 24)
        return self

    async def stop(self):
        self.process.stdin.close()
        await self.process.stdin.wait_closed()
        # Drains its output and waits for its exit.
        await self.process.communicate()
        assert self.process.returncode == 0

    async def request(self, operation, **fields):
        self.process.stdin.write(json.dumps({"do": operation, **fields}).encode() + b"\n")
        await self.process.stdin.drain()
        response = json.loads(await self.process.stdout.readline())
        if "error" in response:
            raise RuntimeError(response["error"])
        return response["ok"]

    @staticmethod
    def key_fields(key):
        return {"project": key["project_key"], "session": key["session_id"], "subpath": key.get("subpath")}

    async def append(self, key, entries):
        await self.request("append", entries=entries, **self.key_fields(key))

    async def load(self, key):
        return await self.request("load", **self.key_fields(key))

    async def list_sessions(self, project_key):
        listed = await self.request("list", project=project_key)
        return [{"session_id": item["session"], "mtime": item["modified_ms"]} for item in listed]

    async def list_session_summaries(self, project_key):
        listed = await self.request("summaries", project=project_key)
        return [
            {"session_id": item["session"], "mtime": item["modified_ms"], "data": item["summary"]} for item in listed
        ]

    async def delete(self, key):
        await self.request("delete", **self.key_fields(key))

    async def list_subkeys(self, key):
        return await self.request("subkeys", project=key["project_key"], session=key["session_id"])
