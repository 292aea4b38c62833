//! Control requests and responses between host and engine. The `requests!` table below lists every request with its
//! direction and the type of its reply.

mod hooks_listing;
mod initialize;
mod reply;
mod request;
mod response;

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{WireError, parse_body};
use crate::hook::HookOutput;
use crate::permission::PermissionResult;
use crate::raw::RawJson;
#[cfg(feature = "schema")]
use crate::tagged_union::tagged_union;

pub use crate::hook::ElicitationAction;
pub use crate::system::SlashCommand;
pub use hooks_listing::*;
pub use initialize::*;
pub use reply::*;
pub use request::*;
pub use response::*;

/// A request that needs a response with the same id. If only its id is readable, it becomes [`Request::Invalid`], so that
/// the sender gets an error response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlRequest {
    /// Id of the request, chosen by its sender.
    pub request_id: String,
    /// The question.
    pub request: Request,
}

impl ControlRequest {
    /// Creates a request with the given id.
    pub fn new(request_id: impl Into<String>, request: impl Into<Request>) -> Self {
        Self { request_id: request_id.into(), request: request.into() }
    }
}

impl<'de> Deserialize<'de> for ControlRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Line {
            request_id: String,
            request: Option<RawJson>,
        }
        let Line { request_id, request } = Line::deserialize(deserializer)?;
        let request = match request {
            Some(request) => Request::parse(request.as_str()),
            None => {
                Request::Invalid { subtype: String::new(), error: "the field `request` is missing".into() }
            }
        };
        Ok(Self { request_id, request })
    }
}

/// Ties a request type to its subtype and to the type of its reply.
pub trait TypedRequest: Serialize + DeserializeOwned + Into<Request> {
    /// The `subtype` on the wire.
    const SUBTYPE: &'static str;
    /// Side that answers the request.
    const DIRECTION: Direction;
    /// Type of the reply.
    type Reply: Serialize + DeserializeOwned;
}

/// Side that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The engine answers; the host asks.
    ToEngine,
    /// The host answers; the engine asks.
    ToHost,
    /// Either side may ask; the other one answers.
    Both,
}

/// Lists the requests once: name on the wire, struct (which is also the variant), type of the reply.
macro_rules! requests {
    ($($direction:ident { $($subtype:literal => $ask:ident -> $reply:ty,)* })*) => {
        /// A control request, from either side.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented at the type it holds")]
        #[non_exhaustive]
        pub enum Request {
            $($($ask($ask),)*)*
            /// An unknown request; answered with [`ControlResponse::unsupported`].
            Unknown {
                /// Its subtype.
                subtype: String,
                /// The request as received.
                raw: RawJson,
            },
            /// A known request with an invalid field; answered with an error of this text.
            Invalid {
                /// Its subtype; empty if it has none.
                subtype: String,
                /// Error text that names the field.
                error: String,
            },
        }

        impl Request {
            /// Every known subtype.
            pub const SUBTYPES: &'static [&'static str] = &[$($($subtype,)*)*];

            /// The `subtype` on the wire.
            pub fn subtype(&self) -> &str {
                match self {
                    $($(Self::$ask(_) => $subtype,)*)*
                    Self::Unknown { subtype, .. } | Self::Invalid { subtype, .. } => subtype,
                }
            }

            /// Side that answers it; `None` if the request is unknown or invalid.
            pub fn direction(&self) -> Option<Direction> {
                match self {
                    $($(Self::$ask(_) => Some(Direction::$direction),)*)*
                    Self::Unknown { .. } | Self::Invalid { .. } => None,
                }
            }

            fn parse_known(subtype: &str, json: &str) -> Option<Result<Self, WireError>> {
                Some(match subtype {
                    $($($subtype => parse_request_body(subtype, json).map(Self::$ask),)*)*
                    _ => return None,
                })
            }
        }

        $($(
            impl From<$ask> for Request {
                fn from(ask: $ask) -> Self {
                    Self::$ask(ask)
                }
            }

            impl TypedRequest for $ask {
                const SUBTYPE: &'static str = $subtype;
                const DIRECTION: Direction = Direction::$direction;
                type Reply = $reply;
            }
        )*)*

        impl Serialize for Request {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(Self::$ask(body) => TaggedRequest { subtype: $subtype, body }.serialize(serializer),)*)*
                    Self::Unknown { raw, .. } => raw.serialize(serializer),
                    Self::Invalid { subtype, .. } => TaggedRequest { subtype, body: &Empty {} }.serialize(serializer),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for Request {
            fn schema_name() -> Cow<'static, str> {
                "Request".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let variants = vec![$($(($subtype, generator.subschema_for::<$ask>()),)*)*];
                tagged_union("subtype", "A question. One that is not listed is answered with an error.", variants)
            }
        }

        /// Returns the schema of every reply, by subtype.
        #[cfg(feature = "schema")]
        pub(crate) fn reply_schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
            vec![$($(($subtype, generator.subschema_for::<$reply>()),)*)*]
        }
    };
}

requests! {
    ToEngine {
        "initialize" => Initialize -> InitializeReply,
        "interrupt" => Interrupt -> InterruptReply,
        "set_permission_mode" => SetPermissionMode -> SetPermissionModeReply,
        "set_model" => SetModel -> SetModelReply,
        "set_max_thinking_tokens" => SetMaxThinkingTokens -> Empty,
        "set_partial_messages" => SetPartialMessages -> Empty,
        "set_output_format" => SetOutputFormat -> Empty,
        "rename_session" => RenameSession -> Empty,
        "set_color" => SetColor -> Empty,
        "get_context_usage" => GetContextUsage -> ContextUsage,
        "get_session_cost" => GetSessionCost -> SessionCost,
        "get_usage" => GetUsage -> UsageReport,
        "list_models" => ListModels -> ModelList,
        "get_binary_version" => GetBinaryVersion -> BinaryVersion,
        "file_suggestions" => FileSuggestions -> FileSuggestionsReply,
        "read_file" => ReadFile -> ReadFileReply,
        "seed_read_state" => SeedReadState -> SeedReadStateReply,
        "rewind_files" => RewindFiles -> RewindFilesReply,
        "rewind_session" => RewindSession -> RewindSessionReply,
        "resume_pending_calls" => ResumePendingCalls -> ResumePendingCallsReply,
        "register_repo_root" => RegisterRepoRoot -> Empty,
        "cancel_async_message" => CancelAsyncMessage -> CancelAsyncMessageReply,
        "stop_task" => StopTask -> Empty,
        "background_tasks" => BackgroundTasks -> BackgroundTasksReply,
        "get_task_output" => GetTaskOutput -> TaskOutput,
        "subscribe_tool_output" => SubscribeToolOutput -> Empty,
        "apply_flag_settings" => ApplyFlagSettings -> Empty,
        "get_settings" => GetSettings -> SettingsReport,
        "update_settings" => UpdateSettings -> Empty,
        "check_tool_input" => CheckToolInput -> CheckToolInputReply,
        "list_permission_rules" => ListPermissionRules -> PermissionRules,
        "update_permissions" => UpdatePermissions -> Empty,
        "get_hooks_listing" => GetHooksListing -> HooksListing,
        "reload_plugins" => ReloadPlugins -> ReloadPluginsReply,
        "reload_skills" => ReloadSkills -> ReloadSkillsReply,
        "reload_output_styles" => ReloadOutputStyles -> ReloadOutputStylesReply,
        "mcp_status" => McpStatus -> McpStatusReply,
        "mcp_set_servers" => McpSetServers -> McpSetServersReply,
        "mcp_reconnect" => McpReconnect -> Empty,
        "mcp_toggle" => McpToggle -> Empty,
        "mcp_call" => McpCall -> RawJson,
        "mcp_read_resource" => McpReadResource -> McpReadResourceReply,
        "set_mcp_permission_mode_override" => SetMcpPermissionModeOverride -> Empty,
        "set_has_subscribers" => SetHasSubscribers -> Empty,
        "remote_control" => RemoteControl -> RawJson,
        "generate_session_title" => GenerateSessionTitle -> RawJson,
        "side_question" => SideQuestion -> SideQuestionReply,
        "message_rated" => MessageRated -> Empty,
    }
    ToHost {
        "can_use_tool" => CanUseTool -> PermissionResult,
        "hook_callback" => HookCallback -> HookOutput,
        "elicitation" => Elicitation -> ElicitationReply,
        "request_user_dialog" => RequestUserDialog -> UserDialogReply,
    }
    Both {
        "mcp_message" => McpMessage -> McpMessageReply,
    }
}

impl Request {
    /// Parses a request. Never fails: errors become [`Request::Invalid`].
    fn parse(json: &str) -> Self {
        let subtype = match serde_json::from_str::<Subtype<'_>>(json) {
            Ok(head) => head.subtype,
            Err(error) => {
                return Self::Invalid {
                    subtype: String::new(),
                    error: format!("the field `subtype` is missing or invalid: {error}"),
                };
            }
        };
        match Self::parse_known(&subtype, json) {
            Some(Ok(request)) => request,
            Some(Err(error)) => Self::Invalid { subtype: subtype.into(), error: error.to_string() },
            None => match RawJson::parse(json) {
                Ok(raw) => Self::Unknown { subtype: subtype.into(), raw },
                Err(error) => Self::Invalid { subtype: subtype.into(), error: error.to_string() },
            },
        }
    }
}

fn parse_request_body<T: DeserializeOwned>(subtype: &str, json: &str) -> Result<T, WireError> {
    parse_body(&format!("control_request/{subtype}"), json)
}

#[derive(Deserialize)]
struct Subtype<'a> {
    #[serde(borrow)]
    subtype: Cow<'a, str>,
}

/// A request as serialized, with its subtype first.
#[derive(Serialize)]
struct TaggedRequest<'a, T> {
    subtype: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(RawJson::deserialize(deserializer)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Frame;

    fn parse_request(line: &serde_json::Value) -> Request {
        match crate::decode(&line.to_string()) {
            Ok(Frame::ControlRequest(asked)) if asked.request_id == "r1" => asked.request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn invalid_request_keeps_its_id_and_names_the_field() {
        for (body, field) in [
            (json!({"subtype": "set_permission_mode", "mode": "yolo"}), "`mode`"),
            (json!({"subtype": "mcp_toggle", "serverName": "a", "enabled": "yes"}), "`enabled`"),
            (json!({"subtype": "rewind_files"}), "`user_message_id`"),
            (json!({"subtype": "rewind_session", "user_message_id": "u"}), "`restore`"),
            (
                json!({"subtype": "hook_callback", "callback_id": "h", "input": {"hook_event_name": "Stop"}}),
                "stop_hook_active",
            ),
            (
                json!({"subtype": "mcp_set_servers", "servers": {"a": {"type": "carrier-pigeon"}}}),
                "carrier-pigeon",
            ),
            (json!({"subtype": 5}), "subtype"),
            (json!("interrupt"), "subtype"),
            (json!(null), "`request`"),
        ] {
            let asked =
                parse_request(&json!({"type": "control_request", "request_id": "r1", "request": body}));
            let Request::Invalid { error, .. } = asked else { panic!("{asked:?}") };
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn line_without_a_request_keeps_its_id() {
        let asked = parse_request(&json!({"type": "control_request", "request_id": "r1"}));
        assert!(matches!(&asked, Request::Invalid { error, .. } if error.contains("`request`")), "{asked:?}");
    }

    #[test]
    fn request_without_an_id_is_an_error() {
        let line = r#"{"type":"control_request","request":{"subtype":"interrupt"}}"#;
        let Err(WireError::InvalidField { kind, reason, .. }) = crate::decode(line) else { panic!() };
        assert_eq!(kind, "control_request");
        assert!(reason.contains("request_id"), "{reason}");
    }

    #[test]
    fn unknown_request_is_kept_unchanged() {
        let line = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"dance","n":1.50}}"#;
        let mut out = Vec::new();
        crate::encode(&crate::decode(line).unwrap(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
    }

    #[test]
    fn system_prompt_may_be_a_string_or_a_list() {
        for (given, read) in [
            (json!("be short"), Some(vec!["be short"])),
            (json!(["be", "short"]), Some(vec!["be", "short"])),
            (json!(""), Some(vec![""])),
            (json!(null), None),
        ] {
            let body = json!({"subtype": "initialize", "systemPrompt": given});
            let asked =
                parse_request(&json!({"type": "control_request", "request_id": "r1", "request": body}));
            let Request::Initialize(initialize) = asked else { panic!("{asked:?}") };
            assert_eq!(
                initialize.system_prompt,
                read.map(|texts| texts.into_iter().map(String::from).collect())
            );
        }
    }

    #[test]
    fn null_equals_absent_in_initialize() {
        let body = json!({"subtype": "initialize", "hooks": null, "agents": null, "sdkMcpServers": null, "skills": null,
            "jsonSchema": null, "appendSystemPrompt": null, "promptSuggestions": null, "plugins": null});
        let asked = parse_request(&json!({"type": "control_request", "request_id": "r1", "request": body}));
        assert_eq!(asked, Initialize::default().into());
    }
}
