//! Requests that the engine knows and refuses, and those that go the other way.

use whimbrel_wire::control::{ControlResponse, Direction, Request};

/// Refuses a request that has no handler, with the reason.
pub(super) fn refuse(id: String, request: &Request) -> ControlResponse {
    let subtype = request.subtype();
    if request.direction() == Some(Direction::ToHost) {
        let text =
            format!("\"{subtype}\" is a request from the engine to the host, not the other way round.");
        return ControlResponse::error(id, text);
    }
    match refusal_reason(request) {
        Some(reason) => {
            let text = format!("Unsupported control request subtype: {subtype}. {reason}");
            ControlResponse::error_with_code(id, text, "unsupported_request")
        }
        None => ControlResponse::unsupported(id, subtype),
    }
}

/// Why the engine has no answer to a request of the protocol.
fn refusal_reason(request: &Request) -> Option<&'static str> {
    Some(match request {
        Request::SetColor(_) => "Sessions have no color. Keep it in the host.",
        Request::RemoteControl(_) => {
            "A session is controlled by the program that starts it, over this connection only."
        }
        Request::MessageRated(_) => "Ratings are not collected. Keep them in the host.",
        _ => return None,
    })
}
