//! [`Frame`]: one line of the wire, in either direction.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use crate::control::{Cancel, ControlRequest, ControlResponse};
use crate::error::{WireError, parse_body};
use crate::message::{Assistant, StreamEvent, ToolOutputChunk, ToolProgress, TurnResult, User};
use crate::notice::{
    ActiveGoal, AuthStatus, ConversationReset, EnvironmentUpdate, KeepAlive, PromptSuggestion,
    RateLimitEvent, ToolUseSummary, TranscriptMirror,
};
use crate::raw::RawJson;
use crate::system::{System, SystemEvent};

/// The field that selects the type of a frame.
#[derive(Deserialize)]
pub(crate) struct FrameHead<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
}

/// Parses the body of a frame: with the parser that the table names, or as its type.
macro_rules! body {
    ($tag:literal, $body:ty, $line:ident) => {
        parse_body::<$body>($tag, $line)
    };
    ($tag:literal, $body:ty, $line:ident, $reader:path) => {
        $reader($line)
    };
}

/// Lists the frame types once: tag on the wire, variant, body type. Parser, serializer and schema are made from this
/// list.
macro_rules! frames {
    ($($(#[$doc:meta])+ $tag:literal => $variant:ident($body:ty) $(by $reader:path)?,)*) => {
        /// One line of the wire. Bodies are boxed, so that queued frames stay small.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Frame {
            $($(#[$doc])+ $variant(Box<$body>),)*
            /// An unknown type, passed on unchanged.
            Unknown(RawJson),
        }

        impl Frame {
            /// Every known `type`.
            pub const KINDS: &'static [&'static str] = &[$($tag,)*];

            /// The `type` of the frame.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $tag,)*
                    Self::Unknown(_) => "unknown",
                }
            }

            pub(crate) fn parse(head: &FrameHead<'_>, line: &str) -> Result<Self, WireError> {
                match head.kind.as_ref() {
                    $($tag => body!($tag, $body, line $(, $reader)?).map(|body| Self::$variant(Box::new(body))),)*
                    _ => RawJson::parse(line).map(Self::Unknown).map_err(|error| WireError::not_json(line, &error)),
                }
            }
        }

        impl Serialize for Frame {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::System(system) if let SystemEvent::Other(raw) = &system.event => raw.serialize(serializer),
                    $(Self::$variant(body) => Tagged { kind: $tag, body: &**body }.serialize(serializer),)*
                    Self::Unknown(raw) => raw.serialize(serializer),
                }
            }
        }

        $(impl From<$body> for Frame {
            fn from(body: $body) -> Self {
                Self::$variant(Box::new(body))
            }
        })*

        /// Returns the schema of every frame type.
        #[cfg(feature = "schema")]
        pub(crate) fn frame_schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
            vec![$(($tag, generator.subschema_for::<$body>()),)*]
        }
    };
}

frames! {
    /// A complete block of the model's reply, or the report of a failed call.
    "assistant" => Assistant(Assistant),
    /// A prompt, or the results of tool calls.
    "user" => User(User),
    /// A turn has ended.
    "result" => Result(TurnResult),
    /// A notice about the session: its start, a warning, a hook, a background task.
    "system" => System(System) by System::from_line,
    /// A piece of a reply that is being written.
    "stream_event" => StreamEvent(StreamEvent),
    /// How far a tool call is.
    "tool_progress" => ToolProgress(ToolProgress),
    /// What a running command has printed.
    "tool_output" => ToolOutput(ToolOutputChunk),
    /// A summary of several tool calls.
    "tool_use_summary" => ToolUseSummary(ToolUseSummary),
    /// The state of a login.
    "auth_status" => AuthStatus(AuthStatus),
    /// The state of a limit of the provider.
    "rate_limit_event" => RateLimitEvent(RateLimitEvent),
    /// A suggestion for the next prompt.
    "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
    /// The conversation starts anew.
    "conversation_reset" => ConversationReset(ConversationReset),
    /// The goal that the session works towards.
    "active_goal" => ActiveGoal(ActiveGoal),
    /// A request to the engine or to the host.
    "control_request" => ControlRequest(ControlRequest),
    /// The response to a request.
    "control_response" => ControlResponse(ControlResponse),
    /// A request is withdrawn.
    "control_cancel_request" => ControlCancel(Cancel),
    /// A sign of life.
    "keep_alive" => KeepAlive(KeepAlive),
    /// Variables that change while the engine runs.
    "update_environment_variables" => EnvironmentUpdate(EnvironmentUpdate),
    /// Lines of the transcript, for a host that keeps a copy.
    "transcript_mirror" => TranscriptMirror(TranscriptMirror),
}

impl Frame {
    /// Parses a frame of a host. Types that only the engine sends are rejected, so the engine needs no parsers for
    /// them.
    pub(crate) fn parse_from_host(head: &FrameHead<'_>, line: &str) -> Result<Self, WireError> {
        fn body<T: DeserializeOwned + Into<Frame>>(kind: &str, line: &str) -> Result<Frame, WireError> {
            parse_body::<T>(kind, line).map(Into::into)
        }
        match head.kind.as_ref() {
            kind @ "user" => body::<User>(kind, line),
            kind @ "control_request" => body::<ControlRequest>(kind, line),
            kind @ "control_response" => body::<ControlResponse>(kind, line),
            kind @ "control_cancel_request" => body::<Cancel>(kind, line),
            kind @ "keep_alive" => body::<KeepAlive>(kind, line),
            kind @ "update_environment_variables" => body::<EnvironmentUpdate>(kind, line),
            kind if Self::KINDS.contains(&kind) => Err(WireError::NotForEngine { kind: kind.to_owned() }),
            _ => RawJson::parse(line).map(Self::Unknown).map_err(|error| WireError::not_json(line, &error)),
        }
    }
}

/// A frame as serialized: its `type`, then its body.
#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}
