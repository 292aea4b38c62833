//! Slash commands: prompts that begin with `/` and a known name. What no command answers to is an ordinary prompt.
//!
//! The engine's own commands are one leaf each, and one line in [`ALL`]. Others are files of the person, the project and
//! plugins, skills among them: [`file`](mod@file) (one of them), [`head`] (what it says), `find` (where they are),
//! [`template`] (filling in arguments), [`expand`] (making a prompt of one), [`errand`] (having a subagent do it), [`loan`]
//! (what a file lends to its turn). How the model comes to call them itself is told in [`skills`](crate::skills). Prompts
//! of MCP servers are commands too: [`server_prompt`].

pub mod clear;
pub mod compact;
pub mod context;
pub mod cost;
pub mod fork;
pub mod expand;
pub mod file;
mod discover;
pub mod parse;
pub mod help;
pub mod overrides;
pub mod model;
pub mod mcp_prompt;
pub mod template;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::SlashCommand;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::config_locations::ConfigLocations;
use crate::mcp::ToolCache;
use crate::model_switch::ModelSwitch;
use crate::turn_start::TurnNotices;
use crate::plugins::Plugins;
use crate::turn::TurnOutcome;
use crate::next_step::TurnEnd;
pub(crate) use file::SKILL_DIR_VARIABLE;
pub use file::{CommandCallers, CommandFile, CommandDescription, CommandOwner};

/// A command of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltinCommand {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, for people.
    pub description: &'static str,
    /// What may follow it.
    pub argument_hint: &'static str,
    /// What is done.
    pub action: BuiltinAction,
}

/// What a command of the engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinAction {
    /// Forgets the conversation.
    Clear,
    /// Replaces the conversation by a summary.
    Compact,
    /// Says what fills the context.
    Context,
    /// Says what was spent.
    Cost,
    /// Lists the commands.
    Help,
    /// Says or changes the model.
    Model,
}

impl BuiltinAction {
    /// What the person is told of words behind a command that has no use for them; nothing if there are none.
    pub fn ignored_arguments(self, rest: &str) -> String {
        match self {
            Self::Compact | Self::Model => String::new(),
            Self::Clear | Self::Context | Self::Cost | Self::Help if rest.is_empty() => String::new(),
            Self::Clear | Self::Context | Self::Cost | Self::Help => {
                "\n\nWhat stands behind the command was not heard by the model. Send it as a message of its own.".into()
            }
        }
    }
}

/// The engine's own commands.
pub const BUILTINS: &[BuiltinCommand] =
    &[clear::COMMAND, compact::COMMAND, context::COMMAND, cost::COMMAND, help::COMMAND, model::COMMAND];

/// The commands of a session.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    builtins: &'static [BuiltinCommand],
    files: Vec<Arc<CommandFile>>,
    /// What MCP servers bring.
    tool_cache: Option<ToolCache>,
}

/// A command that a prompt calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The command.
    pub target: CommandTarget,
    /// What follows its name.
    pub arguments: String,
}

/// A command of whatever kind.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandTarget {
    /// The engine's own.
    Builtin(BuiltinCommand),
    /// In a file.
    File(Arc<CommandFile>),
    /// A prompt of an MCP server, by its whole name; or what may become one when a server that is starting is there.
    McpPrompt(String),
}

impl Commands {
    /// The engine's own commands and those in files, and what the host should know about the files. Touches the disk.
    pub fn discover(ground: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let (files, warnings) = discover::find_commands(ground, plugins);
        (Self { builtins: BUILTINS, files, tool_cache: None }, warnings)
    }

    /// No commands: everything is an ordinary prompt.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same commands, and the prompts of MCP servers as they come and go. Where there are no commands, these are none
    /// either.
    #[must_use]
    pub fn with_mcp_prompts(self, supply: ToolCache) -> Self {
        let supply = (!self.builtins.is_empty()).then_some(supply);
        Self { tool_cache: supply, ..self }
    }

    /// The command that a prompt calls.
    pub fn parse_invocation(&self, prompt: &User) -> Option<Invocation> {
        // Such a prompt is taken to the letter.
        if prompt.client_composed == Some(true) {
            return None;
        }
        let text = prompt.message.content.joined_text();
        let text = text.trim().strip_prefix('/')?;
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let own = self.builtins.iter().find(|command| command.name == name).map(|command| CommandTarget::Builtin(*command));
        let file = || {
            let mut named = self.user_callable().filter(|file| file.name == name);
            named.next().or_else(|| self.user_callable().find(|file| file.matches_name(name)))
        };
        let in_file = || file().cloned().map(CommandTarget::File);
        let of_server = || self.tool_cache.as_ref()?.may_be_prompt(name).then(|| CommandTarget::McpPrompt(name.to_owned()));
        Some(Invocation { target: own.or_else(in_file).or_else(of_server)?, arguments: rest.trim().to_owned() })
    }

    /// The commands in files, skills included.
    pub fn files(&self) -> &[Arc<CommandFile>] {
        &self.files
    }

    fn user_callable(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.includes_user())
    }

    /// The names, without the slash.
    pub fn names(&self) -> Vec<String> {
        self.slash_commands().into_iter().map(|command| command.name).collect()
    }

    /// The commands as hosts are told of them.
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        let own = self.builtins.iter().map(|command| SlashCommand {
            name: command.name.into(),
            description: command.description.into(),
            argument_hint: command.argument_hint.into(),
            builtin: Some(true),
            ..SlashCommand::default()
        });
        let prompts = self.tool_cache.as_ref().map(ToolCache::prompts).unwrap_or_default();
        let files = self.user_callable().map(|file| to_slash_command(file));
        own.chain(files).chain(prompts.into_iter().map(mcp_prompt::to_slash_command)).collect()
    }
}

/// A command in a file as hosts are told of it.
pub fn to_slash_command(file: &CommandFile) -> SlashCommand {
    let text = file.description.text();
    let description = match &file.owner {
        CommandOwner::User => format!("{text} (user)"),
        CommandOwner::Project => format!("{text} (project)"),
        CommandOwner::Plugin(plugin) => format!("({}) {text}", plugin.name),
    };
    SlashCommand {
        name: file.name.clone(),
        description,
        argument_hint: file.argument_hint.clone(),
        aliases: file.alias.clone().map(|alias| vec![alias]),
        builtin: Some(false),
    }
}

/// What a command does in place of a turn, or before it.
pub enum CommandJob {
    /// Summarises.
    Compact(compact::CompactRequest),
    /// Has been done; this is what the person is told.
    Answer {
        /// The prompt that called it.
        prompt: Box<User>,
        /// The answer.
        text: String,
    },
    /// Forgets the conversation.
    Clear {
        /// The prompt that called it.
        prompt: Box<User>,
        /// What the person is told about words behind the command.
        ignored_arguments: String,
    },
    /// Switches the model, if hooks agree.
    Model {
        /// The prompt that called it.
        prompt: Box<User>,
        /// The switch.
        switch: Box<ModelSwitch>,
    },
    /// Makes a prompt of a file and has it answered.
    Expand(Box<expand::CommandExpansion>),
    /// Asks an MCP server for a prompt and has it answered.
    McpPrompt(Box<mcp_prompt::McpPromptCall>),
}

/// Does it. What the host is told before comes first, but for a summary: there hosts expect it after the work.
pub(crate) async fn run(agent: &mut Agent, job: CommandJob, notices: TurnNotices, cancel: &CancellationToken) -> TurnOutcome {
    match job {
        CommandJob::Compact(wish) => compact::run(agent, wish, notices, cancel).await,
        CommandJob::Answer { prompt, text } => {
            notices.send(&agent.frame_sender).await;
            answer_without_model(agent, &prompt, text).await
        }
        CommandJob::Clear { prompt, ignored_arguments: unheard } => {
            notices.send(&agent.frame_sender).await;
            clear::run(agent, &prompt, &unheard, cancel).await
        }
        CommandJob::Model { prompt, switch } => {
            notices.send(&agent.frame_sender).await;
            let told = model::model_notice(switch.model());
            let text = switch.apply(cancel).await.map_or_else(|why| why, |()| told);
            answer_without_model(agent, &prompt, text).await
        }
        CommandJob::Expand(expansion) => {
            notices.send(&agent.frame_sender).await;
            expand::run(agent, *expansion, cancel).await
        }
        CommandJob::McpPrompt(errand) => {
            notices.send(&agent.frame_sender).await;
            mcp_prompt::run(agent, *errand, cancel).await
        }
    }
}

/// Answers without a model.
async fn answer_without_model(agent: &mut Agent, prompt: &User, text: String) -> TurnOutcome {
    agent.conversation.push_local_answer(prompt, &text).await;
    agent.conversation.end_turn().await;
    TurnOutcome { text, ..TurnOutcome::new(TurnEnd::Done) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LayerScope;

    fn commands() -> Commands {
        let file = CommandFile {
            name: "front:end".into(),
            alias: None,
            path: "/w/.claude/commands/front/end.md".into(),
            skill_dir: None,
            owner: CommandOwner::Project,
            scope: LayerScope::Project,
            description: CommandDescription::Given("Ends it".into()),
            argument_hint: "[how]".into(),
            callers: CommandCallers::All,
            grants_permissions: false,
            warning: None,
        };
        let skill = CommandFile { name: "p:pdf".into(), alias: Some("pdf".into()), ..file.clone() };
        let hidden = CommandFile { name: "hidden".into(), callers: CommandCallers::Model, ..file.clone() };
        Commands { builtins: BUILTINS, files: [file, skill, hidden].map(Arc::new).into(), tool_cache: None }
    }

    #[test]
    fn only_known_names_at_the_beginning_are_commands() {
        let called = |prompt: &str| {
            commands().parse_invocation(&User::prompt(prompt)).map(|called| match called.target {
                CommandTarget::Builtin(command) => format!("{}|{}", command.name, called.arguments),
                CommandTarget::File(file) => format!("{}|{}", file.name, called.arguments),
                CommandTarget::McpPrompt(name) => format!("{name}|{}", called.arguments),
            })
        };
        let rows = [
            ("/compact keep the names", Some("compact|keep the names")),
            ("  /compact", Some("compact|")),
            ("/front:end\nnow  please ", Some("front:end|now  please")),
            ("/nosuch", None),
            ("compact", None),
            ("see /compact", None),
            ("/compactor", None),
            ("/ compact", None),
            ("/front", None),
            ("/pdf x", Some("p:pdf|x")),
            ("/p:pdf x", Some("p:pdf|x")),
            ("/hidden", None),
        ];
        for (prompt, expected) in rows {
            assert_eq!(called(prompt).as_deref(), expected, "{prompt}");
        }
        let letter = User { client_composed: Some(true), ..User::prompt("/compact") };
        assert_eq!(commands().parse_invocation(&letter), None);
        assert_eq!(Commands::none().parse_invocation(&User::prompt("/compact")), None);
    }

    #[test]
    fn words_that_no_command_hears_are_told_of() {
        let prompt: User = serde_json::from_value(
            serde_json::json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "text", "text": "/cost"}, {"type": "text", "text": "more"}]}}),
        )
        .unwrap();
        let called = commands().parse_invocation(&prompt).unwrap();
        let CommandTarget::Builtin(command) = called.target else { panic!() };
        assert!(command.action.ignored_arguments(&called.arguments).contains("not heard"), "{}", called.arguments);
        assert_eq!(command.action.ignored_arguments(""), "");
        assert_eq!(BuiltinAction::Compact.ignored_arguments("keep the names"), "");
    }

    #[test]
    fn hosts_are_told_whose_a_command_is() {
        let listed = commands().slash_commands();
        let [.., file, skill] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!(skill.aliases, Some(vec!["pdf".to_owned()]));
        assert_eq!(
            (file.name.as_str(), file.description.as_str(), file.argument_hint.as_str(), file.builtin),
            ("front:end", "Ends it (project)", "[how]", Some(false))
        );
        assert_eq!(commands().names().len(), BUILTINS.len() + 2);
    }
}
