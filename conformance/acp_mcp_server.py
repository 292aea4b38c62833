"""An MCP server over stdio, started with a name: its tools say what it was started with, and ask the user."""

import json
import os
import sys

TOOLS = [
    {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}}
    for name, description in [("who", "Says which server this is."), ("ask", "Asks the user for a color.")]
]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def ask():
    """Asks the user; returns the answer as JSON."""
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    send({"id": "ask", "method": "elicitation/create", "params": {"message": "Color?", "requestedSchema": schema}})
    while (answer := read()).get("id") != "ask":
        pass
    return json.dumps(answer.get("result"))


def call(tool):
    text = ask() if tool == "ask" else f"{sys.argv[1]} with {os.environ.get('SERVER_SECRET')}"
    return {"content": [{"type": "text", "text": text}]}


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {}}
        info = {"name": sys.argv[1], "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"])
    return {}


while True:
    request = read()
    if "id" in request and "method" in request:
        send({"id": request["id"], "result": answer(request)})
