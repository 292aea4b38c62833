//! The table of control requests in `docs/wire-protocol.md`, held against the engine.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Script};
use whimbrel_wire::control::{Request, Response};

/// Requests that only the engine sends.
const TO_HOST: [&str; 4] = ["can_use_tool", "hook_callback", "elicitation", "request_user_dialog"];

/// Text of each row's last column by the subtypes in its first one.
fn rows(page: &str) -> BTreeMap<String, String> {
    let (_, section) = page.split_once("### From the host").unwrap();
    let (section, _) = section.split_once("### From the engine").unwrap();
    let mut rows = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")).skip(1) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        for subtype in cells[0].split(", ") {
            let subtype = subtype.trim_matches('`').to_owned();
            assert_eq!(rows.insert(subtype, cells[cells.len() - 1].to_owned()), None, "{line}");
        }
    }
    rows
}

/// A request that changes nothing on the disk; fields that a subtype does not have are ignored.
fn request(subtype: &str) -> Value {
    json!({"subtype": subtype, "mode": "default", "title": "t", "color": "red", "path": "none.txt", "mtime": 0,
        "user_message_id": "u", "message_uuid": "u", "restore": "files", "task_id": "t", "settings": {},
        "source": "none", "servers": {}, "serverName": "none", "enabled": false, "tool": "none", "uri": "none:",
        "query": "q", "directory": "none", "server_name": "none", "message": {}, "question": "", "description": "d",
        "dry_run": true})
}

#[tokio::test]
async fn page_says_of_each_request_whether_it_is_answered() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire-protocol.md");
    let rows = rows(&std::fs::read_to_string(page).unwrap());
    let mut expected: Vec<&str> = Request::SUBTYPES.to_vec();
    expected.retain(|subtype| !TO_HOST.contains(subtype));
    expected.sort_unstable();
    assert_eq!(rows.keys().map(String::as_str).collect::<Vec<_>>(), expected, "the rows are the requests");
    let mut host = Host::with_script(Script::from([])).start().await.unwrap();
    for (subtype, text) in &rows {
        assert!(!text.is_empty() && !text.contains("ignored"), "{subtype}: {text}");
        let response = host.send_raw_request(request(subtype)).await.unwrap();
        let code = match &response {
            Response::Error { error_code, .. } => error_code.as_deref(),
            Response::Success { .. } => None,
        };
        assert_eq!(
            code == Some("unsupported_request"),
            text.starts_with("refused: "),
            "{subtype}: {response:?}"
        );
    }
}

#[tokio::test]
async fn refusals_name_the_request_and_the_reason() {
    let mut host = Host::with_script(Script::from([])).start().await.unwrap();
    for (subtype, reason) in [
        ("set_color", "no color"),
        ("remote_control", "the program that starts it"),
        ("message_rated", "Ratings"),
    ] {
        let Response::Error { error, .. } = host.send_raw_request(request(subtype)).await.unwrap() else {
            panic!("{subtype}")
        };
        assert!(error.contains(subtype) && error.contains(reason), "{error}");
    }
    for subtype in TO_HOST {
        let Response::Error { .. } = host.send_raw_request(request(subtype)).await.unwrap() else {
            panic!("{subtype}")
        };
    }
}
