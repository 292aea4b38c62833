//! Servers that are small shell scripts, for behavior that a real server never shows.

use serde_json::{Value, json};

/// Entry that runs a shell script.
pub(super) fn shell_entry(script: &str) -> Value {
    json!({"command": "sh", "args": ["-c", script]})
}

/// Entry of a server that performs the handshake and runs shell code for `tools/list` and `tools/call`. `$id` is the
/// request's id.
pub(super) fn server_entry(list: &str, call: &str) -> Value {
    let initialize_reply = r#"{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n"#;
    shell_entry(&format!(
        r#"
        while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
                *'"initialize"'*) printf '{initialize_reply}' "$id" ;;
                *'"tools/list"'*) {list} ;;
                *'"tools/call"'*) {call} ;;
            esac
        done
        "#
    ))
}

/// Shell code that lists one tool, `go`.
pub(super) const LIST_ONE_TOOL: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}}\n' "$id""#;

/// Shell code that answers with a text.
pub(super) fn reply_text(text: &str) -> String {
    format!(
        r#"printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}\n' "$id""#
    )
}
