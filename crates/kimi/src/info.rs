//! What hosts ask before they start a session: `EXE info --json`.

use serde_json::json;

use crate::versions::INFO_VERSION;

/// The version of kimi-cli whose behavior is served. Hosts compare it number by number.
const KIMI_CLI_VERSION: &str = "1.51.0";

/// One line of JSON.
pub fn info_line() -> String {
    json!({
        "kimi_cli_version": KIMI_CLI_VERSION,
        "agent_spec_versions": ["1"],
        "wire_protocol_version": INFO_VERSION.to_string(),
        // There is no Python here; clients read a text.
        "python_version": "",
    })
    .to_string()
}
