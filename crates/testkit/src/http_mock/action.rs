//! Actions that a connection runs to send a response.

use std::time::Duration;

/// Content type of a single response.
pub(super) const JSON: &str = "application/json";
/// Content type of a stream.
pub(super) const EVENTS: &str = "text/event-stream";

/// One action of a connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Sends the head; a chunked body follows.
    Head {
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// Sends a chunk of the body.
    Send(Vec<u8>),
    Wait(Duration),
    /// Waits until a name is released.
    Hold(String),
    /// Repeats a chunk until the client disconnects.
    Repeat {
        bytes: Vec<u8>,
        every: Duration,
    },
    /// Sends the bytes one by one.
    Drip {
        bytes: Vec<u8>,
        every: Duration,
    },
    /// Sends nothing more and waits until the client disconnects.
    Stall,
    /// Closes the connection; a body that was begun stays incomplete.
    HangUp,
}

/// A response with a complete body.
pub(super) fn plan_body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Vec<Action> {
    vec![head_action(status, content_type), Action::Send(body.into())]
}

/// The head of a response with this type of content.
pub(super) fn head_action(status: u16, content_type: &str) -> Action {
    Action::Head { status, headers: vec![("content-type".to_owned(), content_type.to_owned())] }
}
