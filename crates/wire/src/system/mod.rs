//! `system` frames, one struct per subtype. The structs are grouped by topic in the files below; the table is here.

mod display;
mod model;
mod session;
mod task;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{WireError, parse_body};
use crate::raw::RawJson;
#[cfg(feature = "schema")]
use crate::tagged_union::tagged_union;

pub use display::*;
pub use model::*;
pub use session::*;
pub use task::*;

/// A `system` frame: configuration and state of the session, and events beside the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The subtype and its fields.
    pub event: SystemEvent,
    /// Id of this frame.
    pub uuid: String,
    /// Id of the session.
    pub session_id: String,
}

impl System {
    /// Creates a frame without ids; the sender fills them in.
    pub fn new(event: impl Into<SystemEvent>) -> Self {
        Self { event: event.into(), uuid: String::new(), session_id: String::new() }
    }

    /// Parses a whole line.
    pub(crate) fn from_line(line: &str) -> Result<Self, WireError> {
        let stamp: SystemHead = parse_body("system", line)?;
        let event = SystemEvent::parse(&stamp.subtype, line)?;
        Ok(Self { event, uuid: stamp.uuid, session_id: stamp.session_id })
    }
}

/// Fields that all subtypes have.
#[derive(Deserialize)]
struct SystemHead {
    subtype: String,
    #[serde(default)]
    uuid: String,
    #[serde(default)]
    session_id: String,
}

/// Lists the subtypes once: name on the wire, and the struct, which is also the variant.
macro_rules! system_events {
    ($($subtype:literal => $event:ident,)*) => {
        /// Content of a [`System`] frame, by subtype.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented at the type it holds")]
        #[expect(clippy::large_enum_variant, reason = "the large one, `init`, comes once per turn")]
        #[non_exhaustive]
        pub enum SystemEvent {
            $($event($event),)*
            /// An unknown subtype: the whole line. It is serialized unchanged, whatever the ids beside it are.
            Other(RawJson),
        }

        impl SystemEvent {
            /// Every known subtype.
            pub const SUBTYPES: &'static [&'static str] = &[$($subtype,)*];

            /// The `subtype` on the wire; `unknown` if it is not known.
            pub fn subtype(&self) -> &str {
                match self {
                    $(Self::$event(_) => $subtype,)*
                    Self::Other(_) => "unknown",
                }
            }

            fn parse(subtype: &str, line: &str) -> Result<Self, WireError> {
                match subtype {
                    $($subtype => parse_known(subtype, line).map(Self::$event),)*
                    _ => RawJson::parse(line).map(Self::Other).map_err(|error| WireError::not_json(line, &error)),
                }
            }
        }

        $(impl From<$event> for SystemEvent {
            fn from(event: $event) -> Self {
                Self::$event(event)
            }
        })*

        impl Serialize for System {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let (uuid, session_id) = (self.uuid.as_str(), self.session_id.as_str());
                match &self.event {
                    $(SystemEvent::$event(body) => {
                        TaggedSystem { subtype: $subtype, body, uuid, session_id }.serialize(serializer)
                    })*
                    SystemEvent::Other(raw) => without_type(raw).serialize(serializer),
                }
            }
        }

        /// The event alone: what a frame holds besides its type and its ids.
        impl Serialize for SystemEvent {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$event(body) => TaggedEvent { subtype: $subtype, body }.serialize(serializer),)*
                    Self::Other(raw) => without_type(raw).serialize(serializer),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for System {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "System".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let variants = vec![$(($subtype, generator.subschema_for::<$event>()),)*];
                let mut schema = tagged_union("subtype", "A notice about the session.", variants);
                if let Some(properties) = schema.ensure_object().get_mut("properties") {
                    properties["uuid"] = serde_json::json!({ "type": "string" });
                    properties["session_id"] = serde_json::json!({ "type": "string" });
                }
                schema
            }
        }
    };
}

system_events! {
    "init" => Init,
    "status" => Status,
    "compact_boundary" => CompactBoundary,
    "conversation_rewound" => ConversationRewound,
    "session_state_changed" => SessionStateChanged,
    "worker_shutting_down" => WorkerShuttingDown,
    "commands_changed" => CommandsChanged,
    "files_persisted" => FilesPersisted,
    "memory_recall" => MemoryRecall,
    "mirror_error" => MirrorError,
    "session_writes_lost" => SessionWritesLost,
    "api_retry" => ApiRetry,
    "control_request_progress" => ControlRequestProgress,
    "model_refusal_fallback" => ModelRefusalFallback,
    "model_refusal_no_fallback" => ModelRefusalNoFallback,
    "model_fallback" => ModelFallback,
    "thinking_tokens" => ThinkingTokens,
    "task_started" => TaskStarted,
    "task_progress" => TaskProgress,
    "task_updated" => TaskUpdated,
    "task_notification" => TaskNotification,
    "background_tasks_changed" => BackgroundTasksChanged,
    "hook_started" => HookStarted,
    "hook_progress" => HookProgress,
    "hook_response" => HookResponse,
    "local_command_output" => LocalCommandOutput,
    "plugin_install" => PluginInstall,
    "notification" => Notification,
    "informational" => Informational,
    "elicitation_complete" => ElicitationComplete,
    "permission_denied" => PermissionDenied,
    "wire_error" => WireErrorNotice,
}

/// A frame as serialized, without its `type`.
#[derive(Serialize)]
struct TaggedSystem<'a, T> {
    subtype: &'static str,
    #[serde(flatten)]
    body: &'a T,
    uuid: &'a str,
    session_id: &'a str,
}

/// An event as serialized without its frame.
#[derive(Serialize)]
struct TaggedEvent<'a, T> {
    subtype: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

fn parse_known<T: DeserializeOwned>(subtype: &str, line: &str) -> Result<T, WireError> {
    parse_body(&format!("system/{subtype}"), line)
}

/// Drops the `type`, which the enclosing frame adds.
fn without_type(raw: &RawJson) -> Map<String, Value> {
    let mut fields: Map<String, Value> = raw.decode().unwrap_or_default();
    fields.shift_remove("type");
    fields
}

impl<'de> Deserialize<'de> for System {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = RawJson::deserialize(deserializer)?;
        Self::from_line(line.as_str()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, decode, encode};

    #[test]
    fn event_alone_is_serialized_without_the_frame() {
        let line = r#"{"type":"system","subtype":"elicitation_complete","mcp_server_name":"s","elicitation_id":"e","uuid":"u","session_id":"s"}"#;
        let Frame::System(system) = decode(line).unwrap() else { panic!("a system frame") };
        let event = serde_json::to_value(&system.event).unwrap();
        assert_eq!(event["subtype"], "elicitation_complete");
        assert_eq!((event.get("type"), event.get("uuid")), (None, None), "{event}");
    }

    #[test]
    fn unknown_subtype_is_written_back_byte_for_byte() {
        let line = r#"{"uuid":"u","type":"system","n":1.50,"subtype":"brand_new","session_id":"s","z":null}"#;
        let frame = decode(line).unwrap();
        let Frame::System(system) = &frame else { panic!() };
        assert!(matches!(system.event, SystemEvent::Other(_)));
        assert_eq!((system.uuid.as_str(), system.session_id.as_str()), ("u", "s"));
        let mut out = Vec::new();
        encode(&frame, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
    }

    #[test]
    fn invalid_field_error_names_subtype_and_field() {
        let line = r#"{"type":"system","subtype":"task_progress","task_id":"t","description":"d","usage":{"total_tokens":"x"}}"#;
        let Err(WireError::InvalidField { kind, field, .. }) = decode(line) else { panic!() };
        assert_eq!((kind.as_str(), field.as_str()), ("system/task_progress", "usage.total_tokens"));
    }

    #[test]
    fn fraction_is_accepted_as_a_count() {
        let line = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"retry_delay_ms":523.7,"error_status":null,"error":"new_kind"}"#;
        let Ok(Frame::System(system)) = decode(line) else { panic!() };
        let SystemEvent::ApiRetry(retry) = system.event else { panic!() };
        assert_eq!(retry.retry_delay_ms, 523);
    }
}
