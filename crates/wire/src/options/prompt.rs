//! Options that are a plain value in the simple case and an object otherwise: the system prompt and the tool set.

use serde::{Deserialize, Serialize};

/// Name of the official preset on the wire.
const PRESET: &str = "claude_code";

/// The system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "PromptShape", into = "PromptShape")]
pub enum SystemPrompt {
    /// This text and nothing else; an empty text means no system prompt.
    Text(String),
    /// The engine's own system prompt.
    Preset {
        /// Text appended to it.
        append: Option<String>,
        /// Omit the sections that change from run to run.
        exclude_dynamic_sections: Option<bool>,
        /// A resumed session keeps its previous system prompt.
        snapshot: Option<bool>,
    },
    /// The text of this file.
    File {
        /// The file.
        path: String,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum PromptShape {
    Text(String),
    Object(PromptObject),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum PromptObject {
    Preset {
        #[serde(default = "default_preset")]
        preset: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        append: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exclude_dynamic_sections: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<bool>,
    },
    File {
        path: String,
    },
}

fn default_preset() -> String {
    PRESET.into()
}

impl From<PromptShape> for SystemPrompt {
    fn from(shape: PromptShape) -> Self {
        match shape {
            PromptShape::Text(text) => Self::Text(text),
            PromptShape::Object(PromptObject::File { path }) => Self::File { path },
            PromptShape::Object(PromptObject::Preset {
                append, exclude_dynamic_sections, snapshot, ..
            }) => Self::Preset { append, exclude_dynamic_sections, snapshot },
        }
    }
}

impl From<SystemPrompt> for PromptShape {
    fn from(prompt: SystemPrompt) -> Self {
        match prompt {
            SystemPrompt::Text(text) => Self::Text(text),
            SystemPrompt::File { path } => Self::Object(PromptObject::File { path }),
            SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot } => {
                Self::Object(PromptObject::Preset {
                    preset: default_preset(),
                    append,
                    exclude_dynamic_sections,
                    snapshot,
                })
            }
        }
    }
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for SystemPrompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The built-in tools to offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "ToolShape", into = "ToolShape")]
pub enum ToolSet {
    /// The engine's default tools.
    Default,
    /// These tools; an empty list means none.
    List(Vec<String>),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum ToolShape {
    List(Vec<String>),
    Object(ToolObject),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
enum ToolObject {
    Preset {
        #[serde(default = "default_preset")]
        preset: String,
    },
}

impl From<ToolShape> for ToolSet {
    fn from(shape: ToolShape) -> Self {
        match shape {
            ToolShape::List(names) => Self::List(names),
            ToolShape::Object(ToolObject::Preset { .. }) => Self::Default,
        }
    }
}

impl From<ToolSet> for ToolShape {
    fn from(tools: ToolSet) -> Self {
        match tools {
            ToolSet::List(names) => Self::List(names),
            ToolSet::Default => Self::Object(ToolObject::Preset { preset: default_preset() }),
        }
    }
}
