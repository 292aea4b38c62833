//! Faults that the mock injects into a reply.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An injected fault. In JSON, `kind` is its tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// A response with an error status.
    Status {
        /// The HTTP status.
        status: u16,
        /// The error type; defaults to the usual one for the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The error's text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Additional headers, such as `retry-after`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// Closes the connection in the middle of the stream.
    Cut {
        /// The number of events sent before.
        after: usize,
    },
    /// Sends nothing more but keeps the connection open.
    Stall {
        /// The number of events sent before.
        after: usize,
    },
    /// Sends only pings, without end.
    Pings {
        /// The number of events sent before.
        after: usize,
        /// The interval between pings.
        #[serde(with = "super::json::millis", rename = "everyMs")]
        every: Duration,
    },
    /// Sends the rest byte by byte.
    Drip {
        /// The number of events sent before.
        after: usize,
        /// The interval between bytes.
        #[serde(with = "super::json::millis", rename = "everyMs")]
        every: Duration,
    },
    /// Ends the stream with an error event.
    ErrorEvent {
        /// The number of events sent before.
        #[serde(default)]
        after: usize,
        /// The error type.
        error: String,
        /// The error message.
        message: String,
    },
    /// Inserts an unexpected event into an otherwise complete reply.
    ExtraEvent {
        /// The number of events sent before.
        after: usize,
        /// The event name.
        name: String,
        /// The event data, which need not be JSON.
        data: String,
    },
    /// An HTML page instead of a reply.
    Html,
    /// An empty stream.
    EmptyBody,
    /// These bytes instead of the events.
    RawBody {
        /// The body; JSON can give only text.
        #[serde(with = "super::json::text")]
        body: Vec<u8>,
    },
    /// Closes the connection without a response.
    HangUp,
}

/// The number of requests that a fault affects before the reply succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCount {
    /// The first `n` requests.
    First(NonZeroU32),
    /// Every request.
    Always,
}

impl FaultCount {
    /// Only the first request.
    pub const ONCE: Self = Self::First(NonZeroU32::MIN);
}

impl Fault {
    /// Returns the error type that usually goes with a status.
    pub(crate) fn default_error_type(status: u16) -> &'static str {
        match status {
            400 | 422 => "invalid_request_error",
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            408 | 504 => "timeout_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        }
    }
}
