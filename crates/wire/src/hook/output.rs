//! Output of hooks.

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::HookEvent;
use crate::lenient::{from_fields, optional_count};
use crate::permission::PermissionResult;
#[cfg(feature = "schema")]
use crate::tagged_union::tagged_union;

/// What a hook answers: now, or "I am still at it".
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "almost every answer is the large one")]
pub enum HookOutput {
    /// Still at it; do not wait.
    Async(AsyncOutput),
    /// The answer.
    Sync(SyncOutput),
}

/// Output without any effect.
impl Default for HookOutput {
    fn default() -> Self {
        Self::Sync(SyncOutput::default())
    }
}

impl From<SyncOutput> for HookOutput {
    fn from(output: SyncOutput) -> Self {
        Self::Sync(output)
    }
}

impl<'de> Deserialize<'de> for HookOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        match fields.get("async") {
            Some(Value::Bool(true)) => from_fields(fields).map(Self::Async).map_err(D::Error::custom),
            _ => Ok(Self::Sync(SyncOutput::parse_partial(fields))),
        }
    }
}

/// The hook continues in the background; the engine does not wait for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AsyncOutput {
    /// Always true.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// How long it may take, in milliseconds.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub async_timeout: Option<u64>,
}

/// The answer of a hook. Whatever is left out is no opinion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SyncOutput {
    /// False: the turn ends.
    #[serde(default, rename = "continue", skip_serializing_if = "Option::is_none")]
    pub should_continue: Option<bool>,
    /// Whether the hook's output stays out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_output: Option<bool>,
    /// What the person is told when the turn ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// A verdict on what happens; the older form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<HookDecision>,
    /// What the person is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// What the model is told about the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Control codes for the person's terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_sequence: Option<String>,
    /// What only this event allows.
    #[serde(default, rename = "hookSpecificOutput", skip_serializing_if = "Option::is_none")]
    pub specific: Option<HookSpecific>,
    /// Errors of the fields that were dropped because they are invalid, each beginning with the field's name.
    #[serde(skip)]
    pub invalid_fields: Vec<String>,
}

/// A verdict in the older form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HookDecision {
    /// It may happen.
    Approve,
    /// It may not.
    Block,
}

/// Lists the events that have output fields of their own: variant and struct.
macro_rules! specifics {
    ($($event:ident($output:ty),)*) => {
        /// Output fields of one event.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented at the type it holds")]
        pub enum HookSpecific {
            $($event($output),)*
            /// Fields of an unknown event, or of one without output fields of its own.
            Other(Map<String, Value>),
        }

        impl HookSpecific {
            /// The event; `None` if it is unknown.
            pub fn event(&self) -> Option<HookEvent> {
                match self {
                    $(Self::$event(_) => Some(HookEvent::$event),)*
                    Self::Other(fields) => fields.get("hookEventName")?.as_str()?.parse().ok(),
                }
            }

            pub(super) fn parse(event: Option<HookEvent>, fields: Map<String, Value>) -> Result<Self, String> {
                match event {
                    $(Some(HookEvent::$event) => from_fields(fields).map(Self::$event),)*
                    _ => Ok(Self::Other(fields)),
                }
            }
        }

        impl Serialize for HookSpecific {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$event(body) => NamedOutput { name: HookEvent::$event, body }.serialize(serializer),)*
                    Self::Other(fields) => fields.serialize(serializer),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for HookSpecific {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "HookSpecific".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let variants = vec![$((HookEvent::$event.as_str(), generator.subschema_for::<$output>()),)*];
                tagged_union("hookEventName", "What only one event allows.", variants)
            }
        }
    };
}

specifics! {
    PreToolUse(PreToolUseOutput),
    PostToolUse(PostToolUseOutput),
    PostToolUseFailure(ContextOutput),
    PostToolBatch(ContextOutput),
    PermissionRequest(PermissionRequestOutput),
    PermissionDenied(PermissionDeniedOutput),
    Notification(ContextOutput),
    UserPromptSubmit(UserPromptSubmitOutput),
    UserPromptExpansion(UserPromptExpansionOutput),
    SessionStart(SessionStartOutput),
    Setup(ContextOutput),
    Stop(ContextOutput),
    SubagentStart(ContextOutput),
    SubagentStop(ContextOutput),
    PreModelSwitch(PreModelSwitchOutput),
    PostModelSwitch(ContextOutput),
    Elicitation(ElicitationOutput),
    ElicitationResult(ElicitationOutput),
    CwdChanged(WatchOutput),
    FileChanged(WatchOutput),
    MessageDisplay(MessageDisplayOutput),
    WorktreeCreate(WorktreeCreateOutput),
}

/// Event-specific output as serialized, with the event name first.
#[derive(Serialize)]
struct NamedOutput<'a, T> {
    #[serde(rename = "hookEventName")]
    name: HookEvent,
    #[serde(flatten)]
    body: &'a T,
}

impl<'de> Deserialize<'de> for HookSpecific {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        let Some(Value::String(name)) = fields.get("hookEventName") else {
            return Err(D::Error::missing_field("hookEventName"));
        };
        Self::parse(name.parse().ok(), fields).map_err(D::Error::custom)
    }
}

/// The answer of events where a hook can only add something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextOutput {
    /// What the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
}

/// A say in whether and how a tool runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreToolUseOutput {
    /// The verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<HookPermissionDecision>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
    /// The input to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Map<String, Value>>,
    /// What the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
}

/// A hook's verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HookPermissionDecision {
    /// Make it.
    Allow,
    /// Do not make it.
    Deny,
    /// Ask the person.
    Ask,
    /// End the run here; the host makes the call later.
    Defer,
}

/// A say in what the model hears about a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PostToolUseOutput {
    /// What the model is told besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// What the permission classifier is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier_context: Option<String>,
    /// The result to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_tool_output: Option<Value>,
    /// The result to use instead, for an MCP tool.
    #[serde(default, rename = "updatedMCPToolOutput", skip_serializing_if = "Option::is_none")]
    pub updated_mcp_tool_output: Option<Value>,
}

/// An answer in the person's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequestOutput {
    /// The verdict.
    pub decision: PermissionResult,
}

/// A say in whether the model may try again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionDeniedOutput {
    /// Whether it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
}

/// A say in what a prompt becomes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserPromptSubmitOutput {
    /// What the model is told besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// The session's title from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
    /// Whether the model does not see the prompt itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_original_prompt: Option<bool>,
}

/// A say in what a slash command becomes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserPromptExpansionOutput {
    /// What the model is told besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Whether the model does not see the prompt itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_original_prompt: Option<bool>,
}

/// A say in how a session begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStartOutput {
    /// What the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// The first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_user_message: Option<String>,
    /// The session's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
    /// Files whose changes the hooks want to hear of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_paths: Option<Vec<String>>,
    /// Whether there are new skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_skills: Option<bool>,
}

/// A say in whether the model is changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreModelSwitchOutput {
    /// The verdict; `defer` has no meaning here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<HookPermissionDecision>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
}

/// An answer to an MCP server in the person's place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ElicitationOutput {
    /// Whether there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ElicitationAction>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// What to watch from now on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchOutput {
    /// Files whose changes the hooks want to hear of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_paths: Option<Vec<String>>,
}

/// A say in what is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageDisplayOutput {
    /// The text to show instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_content: Option<String>,
}

/// The work tree that the hook made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorktreeCreateOutput {
    /// Its directory.
    pub worktree_path: String,
}

/// Whether a person answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAction {
    /// Yes.
    Accept,
    /// The person would not.
    #[default]
    Decline,
    /// The person went away.
    Cancel,
}
