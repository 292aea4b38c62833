"""Requests to people: permissions, questions, plans; answered once, from anywhere."""

import json
from pathlib import Path

import pytest

from harness import tool_call, wait_until
from host_client import Host, is_host


@pytest.fixture
def host(harness):
    """Starts a host with a script; it is stopped in the end."""
    started = []

    def start(*replies, **more):
        started.append(Host(harness, model=harness.write_script(*replies), **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def touch(name):
    return tool_call("Bash", command=f"touch {name}")


def ask(host, text="go", **more):
    """Creates a session that asks; returns its id and the request."""
    session = host.create(text, **more)
    return session, host.wait_for_request(session)


def tool_results(host, session):
    blocks = []
    for event in host.events(session):
        content = event["frame"]["message"]["content"] if event["frame"]["type"] == "user" else None
        if isinstance(content, list):
            blocks += [block for block in content if block["type"] == "tool_result"]
    return blocks


def test_allowed_call_runs_and_the_event_says_who(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    assert (request["kind"], request["state"], request["request"]["tool_name"]) == ("permission", "open", "Bash")
    assert host.session(session)["state"] == "waiting"
    answered = host.answer(request, "allow")
    assert (answered["state"], answered["by"]["name"]) == ("allowed", host.call("GET", "/v1/me")["person"]["name"])
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists()
    event = host.wait_for(session, lambda frame: is_host(frame, "answered"))["frame"]
    assert (event["request"], event["decision"], event["scope"], event["input_changed"]) == (request["id"], "allow", "once", False)


def test_note_of_a_denial_reaches_the_agent(host):
    host = host(touch("made"), "I see.")
    session, request = ask(host)
    host.answer(request, "deny", message="use another name")
    host.wait_for_state(session, "resting")
    assert not (host.harness.workspace / "made").exists()
    assert "use another name" in json.dumps(tool_results(host, session))


def test_first_answer_wins(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    host.answer(request, "allow")
    host.answer(request, "allow")  # The same again is no conflict.
    status, _, text = host.request("POST", f"/v1/requests/{request['id']}/answer", {"decision": "deny"})
    error = json.loads(text)["error"]
    assert (status, error["code"], error["detail"]["request"]["state"]) == (409, "already_answered", "allowed")
    assert host.fails("POST", "/v1/requests/none/answer", {"decision": "deny"}) == (404, "not_found")
    host.wait_for_state(session, "resting")


def test_edited_input_is_checked_and_runs(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    path = f"/v1/requests/{request['id']}/answer"
    status, _, text = host.request("POST", path, {"decision": "allow", "input": {"command": 7}})
    error = json.loads(text)["error"]
    assert (status, error["code"], error["detail"]["path"]) == (422, "bad_input", "/command")
    assert host.fails("POST", path, {"decision": "allow", "scope": "session", "input": {"command": "ls"}}) == (400, "bad_request")
    assert host.fails("POST", path, {"decision": "maybe"}) == (400, "bad_request")
    assert host.call("GET", f"/v1/requests/{request['id']}")["state"] == "open"
    host.answer(request, "allow", input={"command": "touch other"})
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "other").exists() and not (host.harness.workspace / "made").exists()


def test_an_empty_input_wipes_nothing(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    host.answer(request, "allow", input={})
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists()


def test_scope_session_counts_in_this_session_only(host):
    host = host(touch("made"), touch("made"), "Done.", touch("made"), "Done.")
    session, request = ask(host)
    assert [scope["scope"] for scope in request["scopes"]] == ["session", "user"]
    host.answer(request, "allow", scope="session")
    answered = host.wait_for(session, lambda frame: is_host(frame, "answered"))
    assert answered["frame"]["rule"] == request["scopes"][0]["rule"] == "Bash(touch made)"
    host.wait_for_state(session, "resting")
    _, other = ask(host)
    assert other["session"] != session


def test_scope_project_needs_trust_and_writes_the_rule(host):
    host = host(touch("made"), "Done.", touch("made"), "Done.")
    session, request = ask(host)
    path = f"/v1/requests/{request['id']}/answer"
    assert host.fails("POST", path, {"decision": "allow", "scope": "project"}) == (409, "no_suggestion")
    host.call("PUT", "/v1/folders/trust", {"folder": str(host.harness.workspace), "trusted": True})
    wait_until(lambda: len(host.call("GET", f"/v1/requests/{request['id']}")["scopes"]) == 4, "wider scopes")
    host.answer(request, "allow", scope="project")
    host.wait_for_state(session, "resting")
    settings = json.loads((host.harness.workspace / ".claude" / "settings.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(touch made)"]
    again = host.create("again")
    host.wait_for_state(again, "resting")
    assert host.call("GET", f"/v1/requests?session={again}")["requests"] == []


def test_rule_of_a_project_is_removed(host):
    host = host(touch("made"), "Done.", touch("made"), "Done.")
    host.call("PUT", "/v1/folders/trust", {"folder": str(host.harness.workspace), "trusted": True})
    session, request = ask(host)
    host.answer(request, "allow", scope="project")
    host.wait_for_state(session, "resting")
    rules = lambda: host.call("POST", f"/v1/sessions/{session}/control", {"subtype": "list_permission_rules"})["state"]["rules"]
    listed = [{name: rule[name] for name in ("source", "behavior", "rule")} for rule in rules()]
    assert listed == [{"source": "projectSettings", "behavior": "allow", "rule": "Bash(touch made)"}]
    path = f"/v1/sessions/{session}/permission-rules"
    assert host.fails("DELETE", path, {**listed[0], "source": "policySettings"}) == (400, "bad_request")
    assert host.request("DELETE", path, listed[0])[0] == 204
    assert rules() == []
    settings = json.loads((host.harness.workspace / ".claude" / "settings.json").read_text())
    assert settings.get("permissions", {}).get("allow", []) == []
    _, again = ask(host)
    host.answer(again, "deny")
    assert "remove_rule" in [entry["what"] for entry in host.call("GET", "/v1/audit")["audit"]]


def test_trust_shows_what_it_adds(host, harness):
    settings = harness.workspace / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": "beep"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}, "permissions": {"allow": ["Bash(ls)"]}}))
    host = host("x")
    trust = host.call("GET", f"/v1/folders/trust?folder={harness.workspace}")
    assert (trust["trusted"], trust["adds"]["hooks"], trust["adds"]["allow"]) == (False, ["Stop: beep"], ["Bash(ls)"])
    assert host.fails("GET", "/v1/folders/trust?folder=/") == (403, "outside_roots")


def test_untrusted_folder_runs_no_hook(host, harness):
    settings = harness.workspace / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": f"touch {harness.root}/hooked"}
    settings.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}))
    host = host("One.", "Two.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    assert not (harness.root / "hooked").exists()
    host.call("PUT", "/v1/folders/trust", {"folder": str(harness.workspace), "trusted": True})
    sent = host.send(session, "again")
    host.wait_for_state(session, "resting", after=sent["seq"])
    assert (harness.root / "hooked").exists()


def test_cards_close_with_the_turn(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    host.call("POST", f"/v1/sessions/{session}/control", {"subtype": "interrupt"})
    host.wait_for_state(session, "resting")
    cancelled = host.wait_for(session, lambda frame: frame["type"] == "control_cancel_request")["frame"]
    assert cancelled["request_id"] == request["id"]
    assert host.call("GET", f"/v1/requests/{request['id']}")["state"] == "withdrawn"
    assert host.fails("POST", f"/v1/requests/{request['id']}/answer", {"decision": "allow"}) == (409, "already_answered")


def test_question_has_the_answers_exactly(host):
    question = {"question": "Which color?", "header": "Color", "multiSelect": True,
                "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]}
    host = host(tool_call("AskUserQuestion", questions=[question]), "Thanks.")
    session, request = ask(host)
    assert (request["kind"], request["scopes"]) == ("question", [])
    host.answer(request, "allow", answers={"Which color?": ["Red", "my own"]})
    host.wait_for_state(session, "resting")
    assert "Red, my own" in json.dumps(tool_results(host, session))


def test_plan_is_approved_with_the_next_mode(host):
    plan = tool_call("ExitPlanMode", plan="1. touch made")
    host = host(plan, plan, "Working.")
    session, first = ask(host, mode="plan")
    assert first["kind"] == "plan"
    host.answer(first, "deny", message="more detail")
    wait_until(lambda: host.wait_for_request(session)["id"] != first["id"], "the second plan")
    assert host.session(session)["mode"] == "plan"
    host.answer(host.wait_for_request(session), "allow", mode="acceptEdits")
    host.wait_for_state(session, "resting")
    assert host.session(session)["mode"] == "acceptEdits"
    assert "more detail" in json.dumps(tool_results(host, session))


def test_approved_plan_without_a_mode_ends_plan_mode(host):
    host = host(tool_call("ExitPlanMode", plan="1. touch made"), "Working.")
    session, request = ask(host, mode="plan")
    host.answer(request, "allow")
    host.wait_for_state(session, "resting")
    assert host.session(session)["mode"] == "default"
    modes = [event["frame"]["mode"] for event in host.events(session) if is_host(event["frame"], "settings")]
    assert modes == ["default"]


def test_mode_of_the_engine_is_an_event(host):
    host = host(tool_call("EnterPlanMode"), "Planning.")
    session = host.create("plan it")
    settings = host.wait_for(session, lambda frame: is_host(frame, "settings"))["frame"]
    assert (settings["mode"], settings["by"]) == ("plan", None)
    host.wait_for_state(session, "resting")
    assert host.session(session)["mode"] == "plan"


def test_mode_of_an_answer_is_one_event_of_the_person(host):
    host = host(tool_call("ExitPlanMode", plan="1. touch made"), "Working.")
    session, request = ask(host, mode="plan")
    host.answer(request, "allow", mode="acceptEdits")
    host.wait_for_state(session, "resting")
    settings = [event["frame"] for event in host.events(session) if is_host(event["frame"], "settings")]
    assert [frame["mode"] for frame in settings] == ["acceptEdits"]
    assert settings[0]["by"]["name"] == host.call("GET", "/v1/me")["person"]["name"]


def test_note_of_an_allowed_call_reaches_the_agent(host):
    host = host(touch("made"), "I see.")
    session, request = ask(host)
    host.answer(request, "allow", message="and then stop")
    host.wait_for_state(session, "resting")
    assert (host.harness.workspace / "made").exists()
    frames = [event["frame"] for event in host.events(session)]
    prompts = [frame["message"]["content"] for frame in frames if frame["type"] == "user"]
    assert "and then stop" in json.dumps(prompts)
    assert [frame["type"] for frame in frames].count("result") == 1


def test_trust_of_another_folder_closes_no_session(host, harness):
    (harness.workspace / "other").mkdir()
    host = host("Hello.")
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    transcript = next(harness.home.glob(f".claude/projects/*/{session}.jsonl"))
    assert is_locked(transcript)
    host.call("PUT", "/v1/folders/trust", {"folder": str(harness.workspace / "other"), "trusted": True})
    host.session(session)
    assert is_locked(transcript)
    host.call("PUT", "/v1/folders/trust", {"folder": str(harness.workspace), "trusted": True})
    wait_until(lambda: not is_locked(transcript), "the end of the engine's session")


def is_locked(path):
    """Whether a process holds a lock of the file."""
    inode = f":{path.stat().st_ino} "
    return any(inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_inbox_has_requests_of_all_sessions_oldest_first(host):
    host = host(*[touch(f"made{number}") for number in range(3)], *["Done."] * 3)
    sessions = [ask(host)[0] for _ in range(3)]
    waiting = host.call("GET", "/v1/requests?state=open")["requests"]
    assert [request["session"] for request in waiting] == sessions
    for request in waiting:
        host.answer(request, "deny")
    for session in sessions:
        host.wait_for_state(session, "resting")
    assert host.call("GET", "/v1/requests?state=open")["requests"] == []


def test_answers_are_in_the_audit(host):
    host = host(touch("made"), "Done.")
    session, request = ask(host)
    host.answer(request, "allow")
    entries = host.call("GET", "/v1/audit")["audit"]
    answers = [entry for entry in entries if entry["what"] == "answer"]
    assert [(entry["body"]["request"], entry["body"]["session"]) for entry in answers] == [(request["id"], session)]
    host.wait_for_state(session, "resting")


def test_bypass_asks_nothing_and_ends_by_itself(host):
    host = host(touch("made"), "Done.", touch("other"), "Done.", limits={"bypass_s": 1})
    session = host.create()
    control = {"subtype": "set_permission_mode", "mode": "bypassPermissions"}
    host.call("POST", f"/v1/sessions/{session}/control", control)
    sent = host.send(session, "go")
    host.wait_for_state(session, "resting", after=sent["seq"])
    assert (host.harness.workspace / "made").exists()
    host.wait_for(session, lambda frame: is_host(frame, "settings") and frame["mode"] == "default")
    host.send(session, "go on")
    assert host.wait_for_request(session)["request"]["input"] == {"command": "touch other"}
    assert "bypass" in [entry["what"] for entry in host.call("GET", "/v1/audit")["audit"]]
