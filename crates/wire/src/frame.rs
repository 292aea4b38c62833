//! [`Frame`]: everything that can stand on a line, in either direction.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec::{FrameHead, WireError, decode, parse_body};
use crate::control::{Cancel, ControlRequest, ControlResponse};
use crate::message::{Assistant, StreamEvent, ToolProgress, TurnResult, User};
use crate::notice::{
    ActiveGoal, AuthStatus, ConversationReset, EnvironmentUpdate, KeepAlive, PromptSuggestion,
    RateLimitEvent, ToolUseSummary, TranscriptMirror,
};
use crate::raw::RawJson;
use crate::system::{System, SystemEvent};

/// Reads the body of a kind: by its own reader where it has one, as its type otherwise.
macro_rules! body {
    ($tag:literal, $body:ty, $line:ident) => {
        parse_body::<$body>($tag, $line)
    };
    ($tag:literal, $body:ty, $line:ident, $reader:path) => {
        $reader($line)
    };
}

/// Lists the kinds of frame once: tag on the wire, variant, type. Everything that goes by kind is made from this list.
macro_rules! frames {
    ($($tag:literal => $variant:ident($body:ty) $(by $reader:path)?,)*) => {
        /// One line of the wire. Small wherever it waits: what it holds is on the heap.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented at the type it holds")]
        pub enum Frame {
            $($variant(Box<$body>),)*
            /// A kind that we do not know, kept as it came and passed on.
            Unknown(RawJson),
        }

        impl Frame {
            /// Every `type` that we know.
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

        /// Adds every kind's schema to the list.
        pub(crate) fn frame_schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
            vec![$(($tag, generator.subschema_for::<$body>()),)*]
        }
    };
}

frames! {
    "assistant" => Assistant(Assistant),
    "user" => User(User),
    "result" => Result(TurnResult),
    "system" => System(System) by System::from_line,
    "stream_event" => StreamEvent(StreamEvent),
    "tool_progress" => ToolProgress(ToolProgress),
    "tool_use_summary" => ToolUseSummary(ToolUseSummary),
    "auth_status" => AuthStatus(AuthStatus),
    "rate_limit_event" => RateLimitEvent(RateLimitEvent),
    "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
    "conversation_reset" => ConversationReset(ConversationReset),
    "active_goal" => ActiveGoal(ActiveGoal),
    "control_request" => ControlRequest(ControlRequest),
    "control_response" => ControlResponse(ControlResponse),
    "control_cancel_request" => ControlCancel(Cancel),
    "keep_alive" => KeepAlive(KeepAlive),
    "update_environment_variables" => EnvironmentUpdate(EnvironmentUpdate),
    "transcript_mirror" => TranscriptMirror(TranscriptMirror),
}

impl Frame {
    /// Reads what a host writes. The engine need not know how to read the rest, which is most of it.
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

/// For a frame inside something else; a line is read by [`decode`].
impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = RawJson::deserialize(deserializer)?;
        decode(line.as_str()).map_err(D::Error::custom)
    }
}

/// A body with its `type` in front.
#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}
