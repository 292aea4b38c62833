"""Our session stores as the Python SDK knows them: each is a process that is spoken to in JSON lines."""

import asyncio
import json


class RemoteStore:
    """A store of ours, behind the SDK's protocol for stores."""

    def __init__(self, program, *words):
        self.command = [str(word) for word in (program, *words)]
        self.process = None

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self.command, stdin=pipe, stdout=pipe, limit=1 << 24)
        return self

    async def stop(self):
        self.process.stdin.close()
        await self.process.stdin.wait_closed()
        # Reads its output to the end and sees it off.
        await self.process.communicate()
        assert self.process.returncode == 0

    async def ask(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        await self.process.stdin.drain()
        answer = json.loads(await self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]

    @staticmethod
    def name(key):
        return {"project": key["project_key"], "session": key["session_id"], "subpath": key.get("subpath")}

    async def append(self, key, entries):
        await self.ask("append", entries=entries, **self.name(key))

    async def load(self, key):
        return await self.ask("load", **self.name(key))

    async def list_sessions(self, project_key):
        listed = await self.ask("list", project=project_key)
        return [{"session_id": item["session"], "mtime": item["modified_ms"]} for item in listed]

    async def list_session_summaries(self, project_key):
        listed = await self.ask("summaries", project=project_key)
        return [
            {"session_id": item["session"], "mtime": item["modified_ms"], "data": item["summary"]}
            for item in listed
        ]

    async def delete(self, key):
        await self.ask("delete", **self.name(key))

    async def list_subkeys(self, key):
        return await self.ask("subkeys", project=key["project_key"], session=key["session_id"])
