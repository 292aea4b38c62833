//! Permissions as a host sees them: what it is asked, field by field, and the modes that a session can be in.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

mod modes;
mod questions;

use serde_json::Value;
use whimbrel_testkit::Host;

/// What the host has been asked about calls, as it came.
fn questions_to(host: &Host) -> Vec<&Value> {
    let requests = host.heard().iter().map(|heard| &heard.json["request"]);
    requests.filter(|request| request["subtype"] == "can_use_tool").collect()
}
