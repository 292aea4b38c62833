"""Who may use `whimbrel serve`: hosts, origins, codes, cookies, keys, wrong input, start and stop."""

import json
import re
import subprocess

import pytest
from websockets.exceptions import InvalidStatus

from host_client import Host, new_key

EVIL = "https://evil.example"


@pytest.fixture
def host(harness):
    host = Host(harness, model=harness.write_script("Hello."))
    yield host
    host.close()


def login(host, code=None):
    """Signs a browser in; returns its cookie."""
    code = code or host.ready["login"].split("#")[1]
    status, headers, _ = host.request("POST", "/v1/login", {"code": code, "name": "phone"}, key=False)
    assert status == 204
    cookie = headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/")), cookie
    return cookie.split(";")[0]


def test_link_works_once(host):
    cookie = login(host)
    me = host.call("GET", "/v1/me", key=False, headers={"Cookie": cookie})
    assert (me["person"]["role"], me["api"]) == ("owner", 1)
    body = {"code": host.ready["login"].split("#")[1]}
    assert host.fails("POST", "/v1/login", body, key=False) == (401, "not_signed_in")
    assert host.call("GET", "/v1/me", key=False) == {"person": None}


def test_ten_wrong_codes_lock_logins(host):
    for _ in range(10):
        assert host.fails("POST", "/v1/login", {"code": "wrong"}, key=False) == (401, "not_signed_in")
    status, headers, _ = host.request("POST", "/v1/login", {"code": host.ready["login"].split("#")[1]}, key=False)
    assert (status, int(headers["retry-after"]) > 0) == (429, True)
    host.stop()
    assert "locked" in host.stderr


def test_everything_else_needs_a_key_or_cookie(host):
    for path in ("/v1/sessions", "/v1/requests", "/v1/tokens", "/v1/folders", "/v1/usage", "/v1/audit", "/v1/openapi.json",
                 "/v1/wire.schema.json", "/metrics", "/v1/nothing", "/v1/sessions/x/export"):
        assert host.fails("GET", path, key=False) == (401, "not_signed_in"), path
        assert host.fails("GET", path, key=False, headers={"Authorization": "Bearer wk_wrong"})[0] == 401, path
    for path in ("/healthz", "/readyz", "/", "/login", "/s/x", "/inbox"):
        assert host.request("GET", path, key=False)[0] == 200, path
    with pytest.raises(InvalidStatus):
        host.socket(headers={"Authorization": "Bearer wk_wrong"})


@pytest.mark.parametrize("name, status", [("evil.example", 421), ("localhost:1", 421), ("", 400), ("127.0.0.1", 421)])
def test_foreign_host_names_are_refused(host, name, status):
    for path in ("/", "/v1/me", "/v1/sessions", "/healthz"):
        found, _, text = host.request("GET", path, headers={"Host": name})
        assert found in (status, 421), path
        assert str(host.harness.workspace) not in text.decode()


def test_foreign_origins_change_nothing(host):
    cookie = login(host)
    body = {"folder": str(host.harness.workspace), "key": new_key()}
    ours = host.url
    rows = [
        ({"Origin": EVIL}, True, 403),
        ({"Origin": "null"}, True, 403),
        ({"Origin": EVIL, "Cookie": cookie}, False, 403),
        ({"Cookie": cookie}, False, 403),
        ({"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}, False, 403),
        ({"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}, False, 201),
        ({"Cookie": cookie, "Origin": ours}, False, 200),
        ({}, True, 200),
    ]
    for headers, key, status in rows:
        found, answer, _ = host.request("POST", "/v1/sessions", body, headers=headers, key=key)
        assert found == status, headers
        assert not [name for name in answer if name.lower().startswith("access-control")]
    assert len(host.call("GET", "/v1/sessions")["sessions"]) == 1
    for headers in ({"Origin": EVIL}, {"Origin": EVIL, "Cookie": cookie}):
        with pytest.raises(InvalidStatus):
            host.socket(headers=headers)


def test_wrong_bodies_are_refused_with_a_reason(host):
    folder = str(host.harness.workspace)
    assert host.fails("POST", "/v1/sessions", {"folder": folder, "key": "k", "more": 1}) == (400, "bad_request")
    assert host.fails("POST", "/v1/sessions", {"folder": "relative", "key": "k"}) == (400, "bad_request")
    assert host.fails("POST", "/v1/sessions", {"folder": folder, "key": ""}) == (400, "bad_request")
    assert host.fails("POST", "/v1/sessions", {"folder": folder, "key": "k", "mode": "fast"}) == (400, "bad_request")
    assert host.fails("POST", "/v1/sessions", raw=b"{") == (415, "not_json")
    json_type = {"Content-Type": "application/json"}
    for raw in (b"{", b"[]", b"\xff", b'{"folder": "/", "key": "k"} x', b""):
        assert host.fails("POST", "/v1/sessions", raw=raw, headers=json_type) == (400, "bad_request"), raw
    large = json.dumps({"folder": folder, "key": "k" * 1024 * 1024}).encode()
    assert host.fails("POST", "/v1/sessions", raw=large, headers=json_type) == (413, "too_large")
    assert host.fails("GET", "/v1/sessions?limit=0") == (400, "bad_request")
    assert host.fails("GET", "/v1/sessions?other=1") == (400, "bad_request")
    assert host.fails("GET", "/v1/sessions?cursor=x") == (400, "bad_request")
    assert host.fails("GET", "/v1/sessions/none") == (404, "not_found")
    assert host.fails("PUT", "/v1/sessions") == (404, "not_found")
    session = host.create()
    for message in ({"key": "k"}, {"key": "k", "text": " "}, {"key": "k", "text": "a", "content": []},
                    {"key": "k", "content": [{"kind": "?"}]}, {"key": "k", "text": "a", "priority": "soon"}):
        assert host.fails("POST", f"/v1/sessions/{session}/messages", message) == (400, "bad_request"), message


def test_keys_are_shown_once_and_can_be_revoked(host):
    made = host.call("POST", "/v1/tokens", {"kind": "key", "name": "script"}, status=201)
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert host.request("GET", "/v1/sessions", headers=headers)[0] == 200
    listed = host.call("GET", "/v1/tokens")["tokens"]
    assert made["secret"] not in json.dumps(listed)
    assert {(token["kind"], token["name"]) for token in listed} >= {("key", "script"), ("file", "token file")}
    assert host.request("DELETE", f"/v1/tokens/{made['id']}")[0] == 204
    assert host.request("GET", "/v1/sessions", headers=headers)[0] == 401
    own = next(token["id"] for token in listed if token["kind"] == "file")
    assert host.fails("DELETE", f"/v1/tokens/{own}") == (404, "not_found")


def test_revoking_closes_the_socket(host):
    made = host.call("POST", "/v1/tokens", {"kind": "key", "name": "script"}, status=201)
    socket = host.socket(headers={"Authorization": f"Bearer {made['secret']}"})
    assert socket.receive()["op"] == "hello"
    host.request("DELETE", f"/v1/tokens/{made['id']}")
    assert socket.wait_for_close() == 4401


def test_logout_ends_the_device(host):
    cookie = {"Cookie": login(host), "Origin": host.url}
    assert host.request("POST", "/v1/logout", headers=cookie, key=False)[0] == 204
    assert host.request("GET", "/v1/sessions", headers=cookie, key=False)[0] == 401


def run(host, *words):
    return subprocess.run(host.command(*words), env=host.harness.env(), capture_output=True, text=True, timeout=30)


def test_commands_for_a_running_host(host):
    link = run(host, "login").stdout.strip()
    assert re.fullmatch(re.escape(host.url) + "/login#[0-9a-f]{64}", link)
    login(host, link.split("#")[1])
    key = run(host, "key", "laptop").stdout.strip()
    assert host.request("GET", "/v1/sessions", headers={"Authorization": f"Bearer {key}"})[0] == 200


def test_second_host_names_the_first(host):
    second = run(host, "--listen", "127.0.0.1:0")
    assert second.returncode == 3 and str(host.process.pid) in second.stderr
    address = host.url.removeprefix("http://")
    other = subprocess.run(
        [host.harness.engine, "serve", "--listen", address, "--data", str(host.harness.root / "other")],
        env=host.harness.env(), cwd=host.harness.workspace, capture_output=True, text=True, timeout=30,
    )
    assert other.returncode == 4 and address in other.stderr


@pytest.mark.parametrize("words", [["--listen", "here"], ["--wrong"], ["--root", "/no/such/folder"], ["--listen", "0.0.0.0:0"]])
def test_wrong_flags_exit_with_2(harness, words):
    done = subprocess.run(
        [harness.engine, "serve", *words], env=harness.env(), cwd=harness.workspace, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2 and done.stderr


def test_signal_stops_with_0_and_leaves_nothing(host):
    assert host.stop() == 0
    assert run(host, "login").returncode == 1


def test_secrets_and_prompts_are_not_in_the_log(host):
    session = host.create("a secret prompt")
    host.wait_for_state(session, "resting")
    metrics = host.request("GET", "/metrics")[2].decode()
    assert "whimbrel_events_total" in metrics and session not in metrics
    host.stop()
    for secret in ("a secret prompt", host.key, host.ready["login"].split("#")[1]):
        assert secret not in host.stderr and secret not in metrics


def test_contract_describes_itself(host):
    document = host.call("GET", "/v1/openapi.json")
    assert document["openapi"].startswith("3.") and "/v1/sessions/{id}/messages" in document["paths"]
    assert "$defs" in host.call("GET", "/v1/wire.schema.json")


def test_page_has_a_strict_policy_and_no_foreign_request(host):
    status, headers, page = host.request("GET", "/", key=False)
    policy = headers["content-security-policy"]
    assert status == 200 and "default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    files = re.findall(r'(?:src|href)="(/app/[^"]+)"', page.decode())
    assert files
    for file in files:
        status, headers, _ = host.request("GET", file, key=False)
        assert (status, "immutable" in headers["cache-control"]) == (200, True), file
    assert host.request("GET", "/app/other/page.js", key=False)[0] == 404


def test_every_error_has_the_same_form(host):
    session = host.create()
    for method, path in [("GET", f"/v1/sessions/{session}/events/many"), ("GET", "/v1/ws"), ("GET", f"/v1/nexia?session={session}"),
                         ("GET", "/v1/nexia"), ("PUT", "/v1/sessions"), ("DELETE", "/healthz"), ("GET", "/v1/nothing"),
                         ("GET", "/v1/sessions/%ff"), ("POST", "/inbox")]:
        status, code = host.fails(method, path)
        assert (status, code) in [(400, "bad_request"), (404, "not_found")], (method, path)


def test_contract_names_parameters_and_answers(host):
    document = host.call("GET", "/v1/openapi.json")
    events = document["paths"]["/v1/sessions/{id}/events"]["get"]
    found = {parameter["name"]: (parameter["in"], parameter["schema"]["type"]) for parameter in events["parameters"]}
    assert found == {"id": ("path", "string"), "after": ("query", "integer"), "before": ("query", "integer"),
                     "limit": ("query", "integer"), "wait": ("query", "number")}
    assert events["responses"]["200"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Events"}
    code = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]
    assert {"key_reused", "wrong_host", "store_unavailable"} <= set(code["enum"])


def test_configuration_has_all_members_and_no_others(harness):
    limits = {"idle_s": 300, "no_progress_s": 1800, "retry_s": 5, "retries": 5, "bypass_s": 3600, "drain_s": 30, "beat_s": 15,
              "code_s": 600, "lease_s": 15}
    config = harness.root / "config.json"
    config.write_text(json.dumps({"turns": 8, "roots": [str(harness.workspace)], "limits": limits, "notify": {}}))
    host = Host(harness, "--config", config)
    assert host.stop() == 0
    for wrong in ({"limits": {"speed": 1}}, {"colour": "red"}):
        config.write_text(json.dumps(wrong))
        with pytest.raises(AssertionError, match="unknown field"):
            host.start()
        assert host.process.returncode == 2


def test_metrics_count_turns_by_outcome_and_cause(host):
    session = host.create("hi")
    host.wait_for_state(session, "resting")
    lines = host.request("GET", "/metrics")[2].decode().splitlines()
    assert 'whimbrel_turns_total{outcome="done",cause="message"} 1' in lines
    assert 'whimbrel_turns_total{outcome="failed",cause="background"} 0' in lines
    assert "whimbrel_first_request_seconds_count 1" in lines
    assert "whimbrel_lease_losses_total 0" in lines
