//! What can go wrong with a reply on its way, as values.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A way to fail. In JSON the `kind` names it, and its fields stand beside that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// An answer with an error status.
    Status {
        /// The HTTP status.
        status: u16,
        /// The error's type; none takes the one that usually goes with the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The error's text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Headers beside the usual ones, such as `retry-after`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// The connection breaks after so many events.
    Cut {
        /// How many events get through.
        after: usize,
    },
    /// Nothing more comes after so many events, but the connection stays.
    Stall {
        /// How many events get through.
        after: usize,
    },
    /// Only signs of life come after so many events, without end.
    Pings {
        /// How many events get through.
        after: usize,
        /// The time between them.
        #[serde(with = "super::json::millis", rename = "everyMs")]
        every: Duration,
    },
    /// After so many events the rest comes byte by byte.
    Drip {
        /// How many events get through.
        after: usize,
        /// The time between two bytes.
        #[serde(with = "super::json::millis", rename = "everyMs")]
        every: Duration,
    },
    /// The stream reports an error after so many events, and ends.
    ErrorEvent {
        /// How many events get through.
        #[serde(default)]
        after: usize,
        /// The error's type.
        error: String,
        /// The error's text.
        message: String,
    },
    /// An event that does not belong there; the reply is otherwise whole.
    ExtraEvent {
        /// How many events come before it.
        after: usize,
        /// Its name.
        name: String,
        /// Its data, which need not be JSON.
        data: String,
    },
    /// A page of HTML instead of a reply.
    Html,
    /// A stream without a single byte.
    EmptyBody,
    /// This text instead of the events.
    RawBody {
        /// The body; in JSON only text can be given.
        #[serde(with = "super::json::text")]
        body: Vec<u8>,
    },
    /// The connection is closed without any answer.
    HangUp,
}

/// How often a fault happens before the reply gets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCount {
    /// With the first so many requests.
    First(NonZeroU32),
    /// With every request.
    Always,
}

impl FaultCount {
    /// Once.
    pub const ONCE: Self = Self::First(NonZeroU32::MIN);
}

impl Fault {
    /// The type of error that usually goes with a status.
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
