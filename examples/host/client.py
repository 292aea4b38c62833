"""Talks to `whimbrel serve`: sends a prompt, asks before each tool call, prints the answer.

Usage: WHIMBREL_KEY=wk_.. python3 client.py FOLDER "PROMPT"    (a key: `whimbrel serve key NAME`)
"""

import json
import os
import sys
import urllib.request
import uuid

HOST = os.environ.get("WHIMBREL_HOST", "http://127.0.0.1:7717")


def call(method, path, body=None):
    headers = {"Authorization": "Bearer " + os.environ["WHIMBREL_KEY"], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(HOST + path, data, headers, method=method)) as answer:
        return json.load(answer)


def main(folder, prompt):
    message = {"key": uuid.uuid4().hex, "text": prompt}
    session = call("POST", "/v1/sessions", {"folder": folder, "key": uuid.uuid4().hex, "message": message})["id"]
    seen = 0
    while True:
        for event in call("GET", f"/v1/sessions/{session}/events?after={seen}&wait=20")["events"]:
            seen, frame = event["seq"], event["frame"]
            if frame["type"] == "control_request":
                request = frame["request"]
                question = f"Allow {request['tool_name']} {json.dumps(request['input'])}? [y/n] "
                decision = "allow" if input(question).startswith("y") else "deny"
                call("POST", f"/v1/requests/{frame['request_id']}/answer", {"decision": decision})
            elif frame["type"] == "result":
                print(frame.get("result") or frame.get("errors"))
                return


main(*sys.argv[1:])
