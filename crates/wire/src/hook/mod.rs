//! Hooks: code of the host or of the settings that receives events and may influence them. The table below lists the
//! events; `input` holds their inputs, `output` what a hook may return, `partial` parses output that is partly invalid.

mod input;
mod output;
mod partial;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::lenient::from_fields;
use crate::names::named;
#[cfg(feature = "schema")]
use crate::tagged_union::tagged_union;

pub use input::*;
pub use output::*;

/// Input of a hook: the common fields and those of the event.
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    /// Fields that all events have.
    pub base: HookBase,
    /// Fields of the event.
    pub event: HookEventInput,
}

/// Lists the events once: the name on the wire, which is also the name of the variant, and the struct of its input.
macro_rules! hooks {
    ($($(#[$note:meta])* $name:literal => $event:ident($input:ident),)*) => {
        named! {
            /// An event that hooks can receive.
            pub enum HookEvent: "hook event" {
                $($(#[$note])* $event = $name,)*
            }
        }

        /// Input of a hook, by event.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented at the type it holds")]
        pub enum HookEventInput {
            $($event($input),)*
            /// An unknown event.
            Other {
                /// Its name.
                name: String,
                /// All fields of the input, the common ones included.
                fields: Map<String, Value>,
            },
        }

        impl HookEventInput {
            /// The event; `None` if it is unknown.
            pub fn event(&self) -> Option<HookEvent> {
                match self {
                    $(Self::$event(_) => Some(HookEvent::$event),)*
                    Self::Other { .. } => None,
                }
            }

            /// The name of the event on the wire.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$event(_) => $name,)*
                    Self::Other { name, .. } => name,
                }
            }

            fn parse(name: String, fields: Map<String, Value>) -> Result<Self, String> {
                match name.as_str() {
                    $($name => from_fields(fields).map(Self::$event),)*
                    _ => Ok(Self::Other { name, fields }),
                }
            }

            fn to_fields(&self) -> serde_json::Result<Value> {
                match self {
                    $(Self::$event(event) => serde_json::to_value(event),)*
                    Self::Other { fields, .. } => Ok(Value::Object(fields.clone())),
                }
            }
        }

        $(impl From<$input> for HookEventInput {
            fn from(event: $input) -> Self {
                Self::$event(event)
            }
        })*

        #[cfg(feature = "schema")]
        impl JsonSchema for HookInput {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "HookInput".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let variants = vec![$(($name, generator.subschema_for::<$input>()),)*];
                let mut schema = tagged_union("hook_event_name", "What a hook is told.", variants);
                schema.insert("allOf".into(), serde_json::json!([generator.subschema_for::<HookBase>()]));
                schema
            }
        }
    };
}

hooks! {
    /// A tool is about to run.
    "PreToolUse" => PreToolUse(PreToolUse),
    /// A tool ran.
    "PostToolUse" => PostToolUse(PostToolUse),
    /// A tool failed.
    "PostToolUseFailure" => PostToolUseFailure(PostToolUseFailure),
    /// All calls of one reply are done.
    "PostToolBatch" => PostToolBatch(PostToolBatch),
    /// The person would have to be asked.
    "PermissionRequest" => PermissionRequest(PermissionRequest),
    /// A call was refused.
    "PermissionDenied" => PermissionDenied(PermissionDeniedHook),
    /// The person should look.
    "Notification" => Notification(NotificationHook),
    /// A prompt came in.
    "UserPromptSubmit" => UserPromptSubmit(UserPromptSubmit),
    /// A slash command became a prompt.
    "UserPromptExpansion" => UserPromptExpansion(UserPromptExpansion),
    /// A session began.
    "SessionStart" => SessionStart(SessionStart),
    /// A session ended.
    "SessionEnd" => SessionEnd(SessionEnd),
    /// The model is done.
    "Stop" => Stop(Stop),
    /// The turn failed.
    "StopFailure" => StopFailure(StopFailure),
    /// A subagent began.
    "SubagentStart" => SubagentStart(SubagentStart),
    /// A subagent is done.
    "SubagentStop" => SubagentStop(SubagentStop),
    /// The conversation is about to be made shorter.
    "PreCompact" => PreCompact(PreCompact),
    /// The conversation was made shorter.
    "PostCompact" => PostCompact(PostCompact),
    /// Another model is about to be used.
    "PreModelSwitch" => PreModelSwitch(PreModelSwitch),
    /// Another model is in use.
    "PostModelSwitch" => PostModelSwitch(PostModelSwitch),
    /// The engine is being set up.
    "Setup" => Setup(Setup),
    /// A teammate has nothing to do.
    "TeammateIdle" => TeammateIdle(TeammateIdle),
    /// A task was put on the list.
    "TaskCreated" => TaskCreated(TaskCreated),
    /// A task on the list was done.
    "TaskCompleted" => TaskCompleted(TaskCompleted),
    /// An MCP server asks the person something.
    "Elicitation" => Elicitation(ElicitationHook),
    /// The person answered an MCP server.
    "ElicitationResult" => ElicitationResult(ElicitationResult),
    /// Settings changed.
    "ConfigChange" => ConfigChange(ConfigChange),
    /// An instruction file was read.
    "InstructionsLoaded" => InstructionsLoaded(InstructionsLoaded),
    /// A work tree is wanted.
    "WorktreeCreate" => WorktreeCreate(WorktreeCreate),
    /// A work tree is no longer wanted.
    "WorktreeRemove" => WorktreeRemove(WorktreeRemove),
    /// The working directory changed.
    "CwdChanged" => CwdChanged(CwdChanged),
    /// A watched file changed.
    "FileChanged" => FileChanged(FileChanged),
    /// A directory was added.
    "DirectoryAdded" => DirectoryAdded(DirectoryAdded),
    /// Text of the model is about to be shown.
    "MessageDisplay" => MessageDisplay(MessageDisplay),
}

/// Common and event fields are merged into one object; the event's fields win.
impl Serialize for HookInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut object = Map::new();
        for part in [serde_json::to_value(&self.base), self.event.to_fields()] {
            if let Value::Object(fields) = part.map_err(S::Error::custom)? {
                object.extend(fields);
            }
        }
        object.insert("hook_event_name".into(), self.event.name().into());
        object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HookInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        let Some(Value::String(name)) = fields.get("hook_event_name").cloned() else {
            return Err(D::Error::missing_field("hook_event_name"));
        };
        let base = from_fields(fields.clone()).map_err(D::Error::custom)?;
        let event = HookEventInput::parse(name, fields).map_err(D::Error::custom)?;
        Ok(Self { base, event })
    }
}
