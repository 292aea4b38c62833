//! Servers that are small shell scripts, for what a good server never does.

use serde_json::{Value, json};

/// A script that is no server at all.
pub(super) fn shell_entry(script: &str) -> Value {
    json!({"command": "sh", "args": ["-c", script]})
}

/// A server that shakes hands, and runs a piece of shell for `tools/list` and `tools/call`. `$id` is the request's id.
pub(super) fn server_entry(list: &str, call: &str) -> Value {
    let hello = r#"{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n"#;
    shell_entry(&format!(
        r#"
        while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
                *'"initialize"'*) printf '{hello}' "$id" ;;
                *'"tools/list"'*) {list} ;;
                *'"tools/call"'*) {call} ;;
            esac
        done
        "#
    ))
}

/// Lists one tool, `go`.
pub(super) const LIST_ONE_TOOL: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}}\n' "$id""#;

/// Answers with a text.
pub(super) fn reply_text(text: &str) -> String {
    format!(
        r#"printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}\n' "$id""#
    )
}
