"""Serves page.html beside it, and passes its sockets on to `whimbrel serve` with a key: a page of your own, whose browsers
need no account of the host. Who can reach this port can use the agent, so it listens on this machine only.

Usage: WHIMBREL_KEY=wk_.. python3 serve_page.py [PORT]    (a key: `whimbrel serve key NAME`)
Then open the address that it prints with ?session=ID in the end.
"""

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

HOST = urlsplit(os.environ.get("WHIMBREL_HOST", "http://127.0.0.1:7717"))
PAGE = Path(__file__).with_name("page.html").read_bytes()


async def copy(reader, writer):
    while part := await reader.read(65536):
        writer.write(part)
        await writer.drain()
    writer.close()


async def handle(reader, writer):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    path = lines[0].split(" ")[1]
    own = [line.split(": ", 1)[1] for line in lines if line.lower().startswith("host:")][0]
    origins = [line.split(": ", 1)[1] for line in lines if line.lower().startswith("origin:")]
    if origins and urlsplit(origins[0]).netloc != own:
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    elif not path.startswith("/v1/nexia"):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(PAGE)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + PAGE)
    else:
        kept = [line for line in lines[1:-2] if not line.lower().startswith(("host:", "origin:", "cookie:"))]
        added = [f"Host: {HOST.netloc}", f"Authorization: Bearer {os.environ['WHIMBREL_KEY']}"]
        host_reader, host_writer = await asyncio.open_connection(HOST.hostname, HOST.port)
        host_writer.write("\r\n".join([lines[0], *added, *kept, "", ""]).encode())
        await asyncio.gather(copy(reader, host_writer), copy(host_reader, writer), return_exceptions=True)
    writer.close()


async def main(port="0"):
    server = await asyncio.start_server(handle, "127.0.0.1", int(port))
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
