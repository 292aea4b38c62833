//! Everything one can ask of an agent, in one builder.

use std::path::PathBuf;

use whimbrel_wire::options::{
    Effort, Options, OutputFormat, PermissionPromptTool, SettingSource, SystemPrompt, Thinking, ToolSet,
};
use whimbrel_wire::permission::PermissionMode;

use crate::callback::{Callbacks, PermissionAsked, ToolPermission};
use crate::transport::Transport;

/// An agent to be run: its options, its callbacks, and where its engine is.
///
/// What has no method of its own is set through [`Agent::with`].
#[derive(Clone, Default)]
pub struct Agent {
    pub(crate) options: Options,
    pub(crate) callbacks: Callbacks,
    pub(crate) transport: Transport,
}

/// Setters for plain options: one line each.
macro_rules! setters {
    ($($(#[$doc:meta])+ $name:ident($value:ident: $kind:ty) => $field:ident = $set:expr;)*) => {
        impl Agent {
            $($(#[$doc])+
            #[must_use]
            pub fn $name(mut self, $value: $kind) -> Self {
                self.options.$field = $set;
                self
            })*
        }
    };
}

setters! {
    /// The model, by name or alias; `openai:NAME` asks a Chat Completions endpoint.
    model(name: impl Into<String>) => model = Some(name.into());
    /// The model to use when that one is overloaded.
    fallback_model(name: impl Into<String>) => fallback_model = Some(name.into());
    /// Where the agent works.
    cwd(folder: impl Into<PathBuf>) => cwd = Some(folder.into().to_string_lossy().into_owned());
    /// Replaces the system prompt; an empty text means none.
    system_prompt(text: impl Into<String>) => system_prompt = Some(SystemPrompt::Text(text.into()));
    /// Adds to the engine's own system prompt.
    append_system_prompt(text: impl Into<String>) => system_prompt = Some(SystemPrompt::Preset {
        append: Some(text.into()), exclude_dynamic_sections: None, snapshot: None,
    });
    /// Offers only these built-in tools.
    tools(names: impl IntoIterator<Item = impl Into<String>>) => tools = Some(ToolSet::List(
        names.into_iter().map(Into::into).collect(),
    ));
    /// Calls that need no question.
    allowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => allowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// Calls that are always refused.
    disallowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => disallowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// How many model calls a turn may take.
    max_turns(limit: u32) => max_turns = Some(limit);
    /// How many dollars the run may cost.
    max_budget_usd(limit: f64) => max_budget_usd = Some(limit);
    /// Whether and how much the model thinks.
    thinking(thinking: Thinking) => thinking = Some(thinking);
    /// How hard the model tries.
    effort(effort: Effort) => effort = Some(effort);
    /// What the agent may do without asking.
    permission_mode(mode: PermissionMode) => permission_mode = Some(mode);
    /// Go on with this session.
    resume(session: impl Into<String>) => resume = Some(session.into());
    /// The id of the new session.
    session_id(id: impl Into<String>) => session_id = Some(id.into());
    /// Whether the session is kept on disk.
    persist_session(keep: bool) => persist_session = Some(keep);
    /// Which settings files are read.
    setting_sources(sources: impl IntoIterator<Item = SettingSource>) => setting_sources =
        Some(sources.into_iter().collect());
    /// Whether the model's words are passed on as they come.
    partial_messages(wanted: bool) => include_partial_messages = wanted;
    /// The shape that the final answer must have.
    output_format(format: OutputFormat) => output_format = Some(format);
}

impl Agent {
    /// An agent with every option at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets anything: `agent.with(|options| options.title = Some("tidy up".into()))`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// An environment variable of the engine and of the commands it runs.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.env.insert(name.into(), value.into());
        self
    }

    /// Asks this closure before a call that needs permission. Without one such calls are refused.
    #[must_use]
    pub fn can_use_tool<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(PermissionAsked) -> A + Send + Sync + 'static,
        A: Future<Output = ToolPermission> + Send + 'static,
    {
        self.options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        self.callbacks.set_can_use_tool(callback);
        self
    }

    /// Where the engine is.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Shares an engine with other sessions of this process: connections, catalog and prompts are then held once.
    #[cfg(feature = "in-process")]
    #[must_use]
    pub fn engine(self, engine: whimbrel_engine::Engine) -> Self {
        self.transport(Transport::InProcess(Some(engine)))
    }

    /// Lets a scripted model answer instead of a real one, for tests and demos.
    #[cfg(feature = "in-process")]
    #[must_use]
    pub fn script(self, script: impl Into<std::sync::Arc<whimbrel_models::scripted::Scripted>>) -> Self {
        let providers = whimbrel_models::providers::Providers::offline();
        providers.add_script("sdk", script.into());
        self.model("scripted:sdk").engine(whimbrel_engine::Engine::new(providers))
    }
}
