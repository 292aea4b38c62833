//! The `initialize` request, with which a host opens a session, and its reply.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient::or_default;
use crate::options::{
    AgentDefinition, McpServerConfig, Options, OutputFormat, PluginConfig, SdkServer, SystemPrompt,
};
use crate::permission::PermissionMode;
use crate::system::{SessionState, SlashCommand};

/// The host introduces itself: what it wants, and what it can be asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Initialize {
    /// Hooks that the host runs, by event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
    /// MCP servers that the host runs, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_mcp_servers: Option<Vec<String>>,
    /// Settings of those servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_mcp_server_configs: Option<BTreeMap<String, HostedServerConfig>>,
    /// What those servers would say about themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_mcp_server_manifests: Option<BTreeMap<String, HostedServerManifest>>,
    /// Where the manifests come from: `host_per_send`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_mcp_server_manifests_origin: Option<String>,
    /// The shape that the final answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    /// The system prompt, in pieces. None: the engine's own.
    #[serde(deserialize_with = "string_or_list", skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Vec<String>>,
    /// Text to add to the engine's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Whether a resumed session keeps its old system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_snapshot: Option<bool>,
    /// What to tell the model in plan mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode_instructions: Option<String>,
    /// Other names for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_aliases: Option<BTreeMap<String, String>>,
    /// Whether to leave out what changes from run to run in the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_dynamic_sections: Option<bool>,
    /// Kinds of subagent, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<BTreeMap<String, AgentDefinition>>,
    /// The session's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The skills to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// Whether the host wants suggestions for the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_suggestions: Option<bool>,
    /// Whether the host wants to hear how far subagents are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_progress_summaries: Option<bool>,
    /// Whether the host wants to hear what subagents say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_subagent_text: Option<bool>,
    /// The dialogs that the host can show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_dialog_kinds: Option<Vec<String>>,
    /// Whether the host can stop single tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_task_stop_affordance: Option<bool>,
    /// Plugins to load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<PluginConfig>>,
}

/// Hooks of the host that answer the same events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookMatcher {
    /// Which events: a list of names or a pattern; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The hooks.
    #[serde(default, deserialize_with = "or_default")]
    pub hook_callback_ids: Vec<String>,
    /// How long they may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// What a failure of the hook means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What the failure of a hook means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The event may not go on.
    Block,
    /// Anything else.
    #[serde(untagged)]
    Other(String),
}

/// Settings of an MCP server that the host runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostedServerConfig {
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// What is allowed with its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
}

/// What an MCP server of the host says about itself, told in advance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostedServerManifest {
    /// Its answer to `initialize`.
    #[serde(default, deserialize_with = "or_default")]
    pub initialize_result: Value,
    /// Its answer to `tools/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_result: Option<Value>,
}

/// What the engine has to offer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitializeReply {
    /// The slash commands.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<SlashCommand>,
    /// The kinds of subagent.
    #[serde(default, deserialize_with = "or_default")]
    pub agents: Vec<AgentInfo>,
    /// The output style in use.
    #[serde(default, deserialize_with = "or_default")]
    pub output_style: String,
    /// All output styles.
    #[serde(default, deserialize_with = "or_default")]
    pub available_output_styles: Vec<String>,
    /// The models.
    #[serde(default, deserialize_with = "or_default")]
    pub models: Vec<ModelInfo>,
    /// Whose credentials are in use.
    #[serde(default, deserialize_with = "or_default")]
    pub account: AccountInfo,
    /// The engine's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The protocol version spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claude_code_version: Option<String>,
    /// Whether the host's hooks are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks_applied: Option<bool>,
    /// Whether a failing hook can block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_on_failure_supported: Option<bool>,
    /// What became of the host's plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins_applied: Option<Value>,
    /// Manifests that wait to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk_mcp_manifests_parked: Option<Value>,
    /// Whether the fast mode is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_mode_state: Option<String>,
    /// Why the fast mode cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_mode_disabled_reason: Option<String>,
    /// Where the person's own output styles are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_output_styles_dir: Option<String>,
    /// The permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_permission_mode: Option<PermissionMode>,
    /// Whether the session is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_state: Option<SessionState>,
    /// Protocol features that this engine has, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
}

/// A kind of subagent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// When to use it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The model it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The name to ask for it.
    pub value: String,
    /// The model that this name stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_model: Option<String>,
    /// The name to show.
    #[serde(default, deserialize_with = "or_default")]
    pub display_name: String,
    /// What it is good for.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Whether one can say how hard it should think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_effort: Option<bool>,
    /// How hard it can think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported_effort_levels: Option<Vec<String>>,
    /// Whether it decides itself how hard to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_adaptive_thinking: Option<bool>,
    /// Whether it has a fast mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_fast_mode: Option<bool>,
    /// Whether it can be used in the `auto` permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_auto_mode: Option<bool>,
}

/// Whose credentials are in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccountInfo {
    /// The person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// What was paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription_type: Option<String>,
    /// Where a token came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_source: Option<String>,
    /// Where an API key came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_source: Option<String>,
    /// Whose API is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_provider: Option<String>,
}

/// Deserializes the system prompt of either SDK generation: one string, or a list of strings.
fn string_or_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StringOrList {
        One(String),
        Many(Vec<String>),
    }
    Ok(Option::<StringOrList>::deserialize(deserializer)?.map(|pieces| match pieces {
        StringOrList::One(text) => vec![text],
        StringOrList::Many(texts) => texts,
    }))
}

impl Options {
    /// Returns the `initialize` request. The caller adds the hooks, because they are code.
    pub fn to_initialize(&self) -> Initialize {
        let (system_prompt, append, exclude, snapshot) = match &self.system_prompt {
            Some(SystemPrompt::Text(text)) => (Some(vec![text.clone()]), None, None, None),
            Some(SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot }) => {
                (None, append.clone(), *exclude_dynamic_sections, *snapshot)
            }
            Some(SystemPrompt::File { .. }) | None => (None, None, None, None),
        };
        let json_schema =
            self.output_format.as_ref().map(|OutputFormat::JsonSchema { schema }| schema.clone());
        Initialize {
            sdk_mcp_servers: non_empty(self.hosted_servers().map(|(name, _)| name.clone()).collect()),
            sdk_mcp_server_configs: self.hosted_configs(),
            json_schema,
            system_prompt,
            append_system_prompt: append,
            exclude_dynamic_sections: exclude,
            system_prompt_snapshot: snapshot,
            plan_mode_instructions: self.plan_mode_instructions.clone(),
            tool_aliases: (!self.tool_aliases.is_empty()).then(|| self.tool_aliases.clone()),
            agents: (!self.agents.is_empty()).then(|| self.agents.clone()),
            title: self.title.clone(),
            skills: self.skills.clone().filter(|names| !names.iter().any(|name| name == "*")),
            prompt_suggestions: self.prompt_suggestions,
            agent_progress_summaries: self.agent_progress_summaries,
            forward_subagent_text: self.forward_subagent_text,
            supported_dialog_kinds: self.supported_dialog_kinds.clone(),
            per_task_stop_affordance: self.per_task_stop_affordance,
            ..Initialize::default()
        }
    }

    fn hosted_servers(&self) -> impl Iterator<Item = (&String, &SdkServer)> {
        self.mcp_servers.iter().filter_map(|(name, server)| match server {
            McpServerConfig::Sdk(server) => Some((name, server)),
            _ => None,
        })
    }

    fn hosted_configs(&self) -> Option<BTreeMap<String, HostedServerConfig>> {
        let special =
            self.hosted_servers().filter(|(_, server)| server.timeout.is_some() || server.tools.is_some());
        let configs: BTreeMap<_, _> = special
            .map(|(name, server)| {
                (name.clone(), HostedServerConfig { timeout: server.timeout, tools: server.tools.clone() })
            })
            .collect();
        (!configs.is_empty()).then_some(configs)
    }
}

fn non_empty(names: Vec<String>) -> Option<Vec<String>> {
    (!names.is_empty()).then_some(names)
}
