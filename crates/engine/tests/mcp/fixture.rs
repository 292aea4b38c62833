//! An MCP server written as a shell script, and a host that uses it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, Reply, Script};
use whimbrel_wire::options::{McpServerConfig, Options};
use whimbrel_wire::permission::PermissionMode;

/// Tools of the script: `echo` only reads, `ask` sends an elicitation, `send` sends a URL elicitation, `step` reports
/// progress, `allow` and `deny` answer permission requests, `die` exits, `sign` requires user interaction, `new`
/// appears once a file named `grown` exists.
const SERVER_SCRIPT: &str = r#"
echo $$ >> pids
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { say "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
plain() { printf '{"name":"%s","inputSchema":{"type":"object","properties":{"word":{"type":"string"}}}},' "$1"; }
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"method":"initialize"'*)
            say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"},"instructions":"SHELL-INSTRUCTIONS"}' ;;
        *'"method":"tools/list"'*)
            more=$(for name in ask send step allow deny die; do plain $name; done; test -e grown && plain new)
            signed='{"name":"sign","_meta":{"anthropic/requiresUserInteraction":true},"inputSchema":{"type":"object","properties":{"word":{"type":"string"}}}},'
            say "{\"tools\":[$more$signed{\"name\":\"echo\",\"annotations\":{\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\"}}}}]}" ;;
        *'"method":"prompts/list"'*)
            say '{"prompts":[{"name":"hello","description":"says hello","arguments":[{"name":"who"}]}]}' ;;
        *'"method":"prompts/get"'*)
            who=$(printf %s "$line" | sed -n 's/.*"who":"\([^"]*\)".*/\1/p')
            say "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"PROMPT-HELLO $who\"}}]}" ;;
        *'"method":"resources/list"'*) say '{"resources":[{"uri":"sh://one","name":"one"}]}' ;;
        *'"method":"resources/read"'*) say '{"contents":[{"uri":"sh://one","text":"RESOURCE-TEXT"}]}' ;;
        *'"method":"tools/call"'*)
            case "$line" in
                *'"name":"die"'*) echo "I give up" >&2; exit 3 ;;
                *'"name":"ask"'*)
                    printf '{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}\n'
                    read -r answer
                    text "$(printf %s "$answer" | tr -d '\\"')" ;;
                *'"name":"send"'*)
                    printf '{"jsonrpc":"2.0","id":78,"method":"elicitation/create","params":{"mode":"url","message":"Pay there","url":"https://pay.test/","elicitationId":"e1"}}\n'
                    read -r answer
                    for done in stranger e1 e1; do
                        printf '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"%s"}}\n' $done
                    done
                    text sent ;;
                *'"name":"step"'*)
                    token=$(printf %s "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
                    printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$token"
                    text stepped ;;
                *'"name":"allow"'*) text '{\"behavior\":\"allow\"}' ;;
                *'"name":"deny"'*) text '{\"behavior\":\"deny\",\"message\":\"the tool says no\"}' ;;
                *) text "said: $(printf %s "$line" | sed -n 's/.*"word":"\([^"]*\)".*/\1/p')" ;;
            esac ;;
    esac
done
"#;

/// Configuration of the script as a server.
pub(crate) fn shell_server() -> McpServerConfig {
    stdio_server(&["sh", "-c", SERVER_SCRIPT])
}

/// Configuration of a stdio server that runs this program.
pub(crate) fn stdio_server(command: &[&str]) -> McpServerConfig {
    serde_json::from_value(json!({"command": command[0], "args": command[1..]})).unwrap()
}

/// Options with one server, `sh`.
pub(crate) fn options() -> Options {
    Options { mcp_servers: [("sh".to_owned(), shell_server())].into(), ..Options::default() }
}

/// A host with that server, in bypass mode.
pub(crate) fn host(script: impl Into<Script>) -> HostBuilder {
    let mode = Some(PermissionMode::BypassPermissions);
    Host::with_script(script).options(Options { permission_mode: mode, ..options() }).env("IS_SANDBOX", "1")
}

/// A tool call with a `word` argument.
pub(crate) fn word_call(tool: &str, word: &str) -> Reply {
    Reply::tool(tool, json!({"word": word}))
}

/// Names and states of the servers in an `init` frame.
pub(crate) fn server_states(init: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let servers = init["mcp_servers"].as_array().unwrap().iter();
    servers.map(|server| (text(&server["name"]), text(&server["status"]))).collect()
}

/// Waits until all processes of the script have exited.
pub(crate) async fn wait_until_processes_gone(dir: &Path) {
    let pids = std::fs::read_to_string(dir.join("pids")).unwrap();
    let exited = async {
        while pids.lines().any(|pid| Path::new("/proc").join(pid).join("cwd").exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), exited).await.unwrap();
    assert!(!pids.is_empty());
}
