//! `whimbrel mcp`: configured servers, and our own tools as a server.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{RunOutput, TestDir, TestSession, has_exited, wait_for_number, wait_until};

/// MCP client of `whimbrel mcp serve`. Its messages have no `type`, so they are matched by their id.
struct McpClient {
    session: TestSession,
    last_id: u64,
}

impl McpClient {
    fn start(test_dir: &TestDir, flags: &[&str]) -> Self {
        let mut command = test_dir.command(&[&["mcp", "serve"], flags].concat());
        // An engine that an SDK has started passes this variable on to its servers.
        command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-py").env("TMPDIR", test_dir.temp_dir());
        let mut client = Self { session: TestSession::start(command), last_id: 0 };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.request("initialize", &about);
        assert_eq!(answer["result"]["serverInfo"]["name"], "whimbrel", "{answer}");
        client.notify("notifications/initialized", &json!({}));
        client
    }

    fn write(&mut self, message: &Value) {
        self.session.write(format!("{message}\n").as_bytes());
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        self.session.find_frame(method, |message| message["id"] == id)
    }

    /// Calls a tool; returns whether it failed, and the first text.
    fn call_tool(&mut self, tool: &str, input: &Value) -> (bool, String) {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": input}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (result["isError"] == json!(true), text.to_owned())
    }
}

#[test]
fn served_tools_are_subject_to_permissions() {
    let test_dir = TestDir::new();
    let file = test_dir.work_dir().join("birds.txt");
    fs::write(&file, "two curlews\n").unwrap();
    let mut client =
        McpClient::start(&test_dir, &["--allowedTools", "Edit", "--disallowedTools", "WebFetch"]);
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let hint = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.map(|tool| tool["annotations"]["readOnlyHint"] == json!(true))
    };
    assert_eq!((hint("Read"), hint("Bash"), hint("WebFetch")), (Some(true), Some(false), None));
    assert_eq!((hint("Agent"), hint("ToolSearch")), (None, None), "these need a conversation");

    let (failed, text) = client.call_tool("Read", &json!({"file_path": file}));
    assert!(!failed && text.contains("two curlews"), "{text}");
    let edit = json!({"file_path": file, "old_string": "two", "new_string": "three"});
    let (failed, text) = client.call_tool("Edit", &edit);
    assert!(!failed, "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "three curlews\n");

    let other = test_dir.work_dir().join("other.txt");
    for (tool, input) in [
        ("Write", json!({"file_path": other, "content": "x"})),
        ("Bash", json!({"command": "touch other.txt"})),
    ] {
        let (failed, text) = client.call_tool(tool, &input);
        assert!(failed && text.contains("needs permission"), "{text}");
    }
    assert!(!other.exists());
    let (failed, text) = client.call_tool("Read", &json!({"path": 5}));
    assert!(failed && text.starts_with("InputValidationError"), "{text}");
    let unknown = client.request("tools/call", &json!({"name": "Fly", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("No such tool: Fly"), "{unknown}");
    let (code, _, stderr) = client.session.finish();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(fs::read_dir(test_dir.temp_dir()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn permission_rules_of_the_settings_apply() {
    let test_dir = TestDir::new();
    let dir = test_dir.work_dir().join("../home/.claude");
    fs::create_dir(&dir).unwrap();
    let rules = json!({"permissions": {"allow": ["Bash(sh bird.sh)"], "deny": ["Read(./secret.txt)"]}});
    fs::write(dir.join("settings.json"), rules.to_string()).unwrap();
    fs::write(test_dir.work_dir().join("secret.txt"), "hush").unwrap();
    fs::write(test_dir.work_dir().join("bird.sh"), "echo curlew\n").unwrap();
    let mut client = McpClient::start(&test_dir, &[]);
    assert_eq!(client.call_tool("Bash", &json!({"command": "sh bird.sh"})), (false, "curlew".into()));
    assert!(client.call_tool("Bash", &json!({"command": "sh other.sh"})).0);
    let (failed, text) =
        client.call_tool("Read", &json!({"file_path": test_dir.work_dir().join("secret.txt")}));
    assert!(failed && !text.contains("hush"), "{text}");
    assert_eq!(client.session.finish().0, Some(0));

    let mut client =
        McpClient::start(&test_dir, &["--setting-sources", "", "--permission-mode", "acceptEdits"]);
    assert!(client.call_tool("Bash", &json!({"command": "sh bird.sh"})).0, "the settings are not loaded");
    let made = test_dir.work_dir().join("made.txt");
    assert!(!client.call_tool("Write", &json!({"file_path": made, "content": "x"})).0);
    assert_eq!(client.session.finish().0, Some(0));
}

#[test]
fn cancelled_call_ends_with_its_children() {
    let test_dir = TestDir::new();
    let mut client = McpClient::start(&test_dir, &["--allowedTools", "Bash"]);
    let sleep = |file: &str| json!({"name": "Bash", "arguments": {"command": format!("echo $$ > {file}; sleep 300")}});
    let id = client.send_request("tools/call", &sleep("first"));
    let first = wait_for_number(&test_dir.work_dir().join("first"));
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    wait_until("the end of what was cancelled", || has_exited(first).then_some(()));
    assert_eq!(
        client.call_tool("Bash", &json!({"command": "echo still here"})),
        (false, "still here".into())
    );

    let background = json!({"command": "echo $$ > second; sleep 300", "run_in_background": true});
    assert!(!client.call_tool("Bash", &background).0);
    client.send_request("tools/call", &sleep("third"));
    let left = ["second", "third"].map(|name| wait_for_number(&test_dir.work_dir().join(name)));
    assert_eq!(client.session.finish().0, Some(0));
    assert!(left.into_iter().all(has_exited), "nothing outlives the client");
}

#[test]
fn invalid_arguments_of_serve_are_reported() {
    let test_dir = TestDir::new();
    for (args, words) in [
        (["mcp", "serve", "a prompt"], "takes no prompt"),
        (["mcp", "serve", "--permission-mode=nap"], "nap"),
        (["mcp", "serve", "--settings={"], "settings"),
    ] {
        let out = test_dir.run(&args, "");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(out.stderr.contains(words), "{args:?}: {}", out.stderr);
    }
    let out = test_dir.run(&["mcp", "serve"], "");
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", ""));
}

/// Writes a server with one tool, as a shell script.
fn write_server_script(test_dir: &TestDir) -> PathBuf {
    let path = test_dir.work_dir().join("server.sh");
    let text = r#"echo $$ > server.pid
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"birds","version":"7"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"count","description":"Counts %s","inputSchema":{"type":"object"}}]}}\n' "$id" "${BIRD:-nothing}" ;;
  esac
done
"#;
    fs::write(&path, text).unwrap();
    path
}

#[track_caller]
fn run_ok(test_dir: &TestDir, args: &[&str]) -> String {
    let RunOutput { code, stdout, stderr } = test_dir.run(&[&["mcp"], args].concat(), "");
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    stdout
}

#[track_caller]
fn run_failing(test_dir: &TestDir, args: &[&str]) -> String {
    let out = test_dir.run(&[&["mcp"], args].concat(), "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
    out.stderr
}

#[test]
fn servers_are_added_shown_tested_and_removed() {
    let test_dir = TestDir::new();
    let server = write_server_script(&test_dir);
    let (server, mine) = (server.to_str().unwrap(), test_dir.work_dir().join("../home/.claude.json"));
    fs::write(&mine, "{\n  \"numStartups\": 7,\n  \"odd\": [1,2]\n}\n").unwrap();
    assert!(run_ok(&test_dir, &["list"]).starts_with("No MCP servers configured."));
    assert!(run_ok(&test_dir, &["list", "--long"]).contains("no MCP servers"));
    let added = run_ok(&test_dir, &["add", "birds", "-e", "BIRD=curlews", "--", "sh", server]);
    assert!(added.contains("birds (local)"), "{added}");
    let text = fs::read_to_string(&mine).unwrap();
    assert!(
        text.starts_with("{\n  \"numStartups\": 7,\n  \"odd\": [1,2]"),
        "the rest stays as it was: {text}"
    );
    let here = test_dir.work_dir().canonicalize().unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        config["projects"][here.to_str().unwrap()]["mcpServers"]["birds"],
        json!({"type": "stdio", "command": "sh", "args": [server], "env": {"BIRD": "curlews"}})
    );
    assert!(run_failing(&test_dir, &["add", "birds", "other"]).contains("already"));

    let tested = run_ok(&test_dir, &["test", "birds"]);
    assert!(tested.contains("birds 7, 1 tool\n  count  Counts curlews\n"), "{tested}");
    let pid = wait_for_number(&test_dir.work_dir().join("server.pid"));
    assert!(has_exited(pid), "a server that was tried is ended");
    run_ok(&test_dir, &["add", "none", "--scope", "user", "--", "/no/such/program"]);
    assert!(run_failing(&test_dir, &["test", "none"]).contains("/no/such/program"));

    let shown = run_ok(&test_dir, &["get", "birds", "--long"]);
    assert!(shown.contains("env: BIRD (values") && !shown.contains("curlews"), "{shown}");
    let shown = run_ok(&test_dir, &["get", "birds"]);
    assert!(
        shown.starts_with("birds:\n  Scope: Local config")
            && shown.contains("\n  Status: ✓ Connected\n  Type: stdio\n  Command: sh\n"),
        "{shown}"
    );
    assert!(shown.contains("  Environment:\n    BIRD=***\n") && !shown.contains("curlews"), "{shown}");
    assert_eq!(
        run_ok(&test_dir, &["list"]),
        format!(
            "Checking MCP server health...\n\nbirds: sh {server} - ✓ Connected\nnone: /no/such/program - ✗ Failed to connect\n"
        )
    );
    let listed = run_ok(&test_dir, &["list", "--long"]);
    assert!(
        listed.contains("birds  local  connected, 1 tool") && listed.contains("none   user   failed"),
        "{listed}"
    );
    let json: Value = serde_json::from_str(&run_ok(&test_dir, &["list", "--json"])).unwrap();
    assert_eq!((&json[0]["name"], &json[0]["status"]), (&json!("birds"), &json!("connected")));

    run_ok(&test_dir, &["add", "birds", "-s", "user", "https://birds.test/mcp", "-H", "X-Key: hush"]);
    assert!(run_failing(&test_dir, &["remove", "birds"]).contains("local, user"));
    assert!(run_ok(&test_dir, &["remove", "birds", "--scope", "local"]).contains("Removed birds (local)"));
    let shown = run_ok(&test_dir, &["get", "birds", "--long"]);
    assert!(shown.contains("https://birds.test/mcp") && !shown.contains("hush"), "{shown}");
    run_ok(&test_dir, &["remove", "birds"]);
    assert!(run_failing(&test_dir, &["get", "birds"]).contains("no MCP server \"birds\""));
}

#[test]
fn project_servers_need_approval() {
    let test_dir = TestDir::new();
    let server = write_server_script(&test_dir);
    let entry = json!({"command": "sh", "args": [server]}).to_string();
    assert!(
        run_ok(&test_dir, &["add-json", "birds", &entry, "-s", "project"]).contains("enabledMcpjsonServers")
    );
    let config: Value =
        serde_json::from_str(&fs::read_to_string(test_dir.work_dir().join(".mcp.json")).unwrap()).unwrap();
    assert_eq!(config["mcpServers"]["birds"]["command"], "sh");
    let listed = run_ok(&test_dir, &["list", "--long"]);
    assert!(listed.contains("birds  project  not approved"), "{listed}");
    assert!(run_ok(&test_dir, &["list"]).ends_with(" - ⏸ Pending approval\n"));
    assert!(run_ok(&test_dir, &["get", "birds"]).contains("\n  Status: ⏸ Pending approval\n"));
    assert!(!test_dir.work_dir().join("server.pid").exists(), "it was not started");
    assert!(run_ok(&test_dir, &["test", "birds"]).contains("1 tool"), "who names it means it");
    for (entry, words) in
        [(r#"{"type":"sdk","name":"x"}"#, "runs in its host"), (r#"{"url":"x"}"#, "is not valid")]
    {
        let error = run_failing(&test_dir, &["add-json", "bad", entry]);
        assert!(error.contains(words), "{error}");
    }
    assert!(run_failing(&test_dir, &["add", "a/b", "x"]).contains("not a valid server name"));
    run_ok(&test_dir, &["remove", "birds"]);
    fs::write(test_dir.work_dir().join(".mcp.json"), "{").unwrap();
    assert!(run_failing(&test_dir, &["add", "x", "-s", "project", "y"]).contains(".mcp.json"));
    assert_eq!(fs::read_to_string(test_dir.work_dir().join(".mcp.json")).unwrap(), "{");
}
