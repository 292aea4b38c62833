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
pub mod errand;
pub mod expand;
pub mod file;
mod find;
pub mod head;
pub mod help;
pub mod loan;
pub mod model;
pub mod server_prompt;
pub mod template;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::SlashCommand;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::ground::Ground;
use crate::mcp::Supply;
use crate::model_switch::ModelSwitch;
use crate::opening::Notices;
use crate::plugins::Plugins;
use crate::turn::Ending;
use crate::verdict::End;
pub(crate) use file::FOLDER_VARIABLE;
pub use file::{Callers, CommandFile, Description, Owner};

/// A command of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, for people.
    pub description: &'static str,
    /// What may follow it.
    pub argument_hint: &'static str,
    /// What is done.
    pub action: Action,
}

/// What a command of the engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
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

impl Action {
    /// What the person is told of words behind a command that has no use for them; nothing if there are none.
    pub fn unheard(self, rest: &str) -> String {
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
pub const ALL: &[Command] =
    &[clear::COMMAND, compact::COMMAND, context::COMMAND, cost::COMMAND, help::COMMAND, model::COMMAND];

/// The commands of a session.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    own: &'static [Command],
    files: Vec<Arc<CommandFile>>,
    /// What MCP servers bring.
    supply: Option<Supply>,
}

/// A command that a prompt calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The command.
    pub order: Order,
    /// What follows its name.
    pub rest: String,
}

/// A command of whatever kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// The engine's own.
    Own(Command),
    /// In a file.
    File(Arc<CommandFile>),
    /// A prompt of an MCP server, by its whole name; or what may become one when a server that is starting is there.
    Prompt(String),
}

impl Commands {
    /// The engine's own commands and those in files, and what the host should know about the files. Touches the disk.
    pub fn find(ground: &Ground, plugins: &Plugins) -> (Self, Vec<String>) {
        let (files, warnings) = find::find(ground, plugins);
        (Self { own: ALL, files, supply: None }, warnings)
    }

    /// No commands: everything is an ordinary prompt.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same commands, and the prompts of MCP servers as they come and go. Where there are no commands, these are none
    /// either.
    #[must_use]
    pub fn with_servers(self, supply: Supply) -> Self {
        let supply = (!self.own.is_empty()).then_some(supply);
        Self { supply, ..self }
    }

    /// The command that a prompt calls.
    pub fn called(&self, prompt: &User) -> Option<Called> {
        // Such a prompt is taken to the letter.
        if prompt.client_composed == Some(true) {
            return None;
        }
        let text = prompt.message.content.joined_text();
        let text = text.trim().strip_prefix('/')?;
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let own = self.own.iter().find(|command| command.name == name).map(|command| Order::Own(*command));
        let file = || {
            let mut named = self.for_people().filter(|file| file.name == name);
            named.next().or_else(|| self.for_people().find(|file| file.answers_to(name)))
        };
        let in_file = || file().cloned().map(Order::File);
        let of_server = || self.supply.as_ref()?.may_mean(name).then(|| Order::Prompt(name.to_owned()));
        Some(Called { order: own.or_else(in_file).or_else(of_server)?, rest: rest.trim().to_owned() })
    }

    /// The commands in files, skills included.
    pub fn files(&self) -> &[Arc<CommandFile>] {
        &self.files
    }

    fn for_people(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.has_person())
    }

    /// The names, without the slash.
    pub fn names(&self) -> Vec<String> {
        self.listed().into_iter().map(|command| command.name).collect()
    }

    /// The commands as hosts are told of them.
    pub fn listed(&self) -> Vec<SlashCommand> {
        let own = self.own.iter().map(|command| SlashCommand {
            name: command.name.into(),
            description: command.description.into(),
            argument_hint: command.argument_hint.into(),
            builtin: Some(true),
            ..SlashCommand::default()
        });
        let prompts = self.supply.as_ref().map(Supply::prompts).unwrap_or_default();
        let files = self.for_people().map(|file| described(file));
        own.chain(files).chain(prompts.into_iter().map(server_prompt::described)).collect()
    }
}

/// A command in a file as hosts are told of it.
pub fn described(file: &CommandFile) -> SlashCommand {
    let text = file.description.text();
    let description = match &file.owner {
        Owner::User => format!("{text} (user)"),
        Owner::Project => format!("{text} (project)"),
        Owner::Plugin(plugin) => format!("({}) {text}", plugin.name),
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
pub enum Job {
    /// Summarises.
    Compact(compact::Wish),
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
        unheard: String,
    },
    /// Switches the model, if hooks agree.
    Model {
        /// The prompt that called it.
        prompt: Box<User>,
        /// The switch.
        switch: Box<ModelSwitch>,
    },
    /// Makes a prompt of a file and has it answered.
    Expand(Box<expand::Expansion>),
    /// Asks an MCP server for a prompt and has it answered.
    Prompt(Box<server_prompt::Errand>),
}

/// Does it. What the host is told before comes first, but for a summary: there hosts expect it after the work.
pub(crate) async fn run(agent: &mut Agent, job: Job, notices: Notices, cancel: &CancellationToken) -> Ending {
    match job {
        Job::Compact(wish) => compact::run(agent, wish, notices, cancel).await,
        Job::Answer { prompt, text } => {
            notices.tell(&agent.outbox).await;
            answer(agent, &prompt, text).await
        }
        Job::Clear { prompt, unheard } => {
            notices.tell(&agent.outbox).await;
            clear::run(agent, &prompt, &unheard, cancel).await
        }
        Job::Model { prompt, switch } => {
            notices.tell(&agent.outbox).await;
            let told = model::chosen(switch.to());
            let text = switch.make(cancel).await.map_or_else(|why| why, |()| told);
            answer(agent, &prompt, text).await
        }
        Job::Expand(expansion) => {
            notices.tell(&agent.outbox).await;
            expand::run(agent, *expansion, cancel).await
        }
        Job::Prompt(errand) => {
            notices.tell(&agent.outbox).await;
            server_prompt::run(agent, *errand, cancel).await
        }
    }
}

/// Answers without a model.
async fn answer(agent: &mut Agent, prompt: &User, text: String) -> Ending {
    agent.conversation.answer(prompt, &text).await;
    agent.conversation.settle().await;
    Ending { text, ..Ending::new(End::Done) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Scope;

    fn commands() -> Commands {
        let file = CommandFile {
            name: "front:end".into(),
            alias: None,
            path: "/w/.claude/commands/front/end.md".into(),
            folder: None,
            owner: Owner::Project,
            scope: Scope::Project,
            description: Description::Given("Ends it".into()),
            argument_hint: "[how]".into(),
            callers: Callers::All,
            grants: false,
            flaw: None,
        };
        let skill = CommandFile { name: "p:pdf".into(), alias: Some("pdf".into()), ..file.clone() };
        let hidden = CommandFile { name: "hidden".into(), callers: Callers::Model, ..file.clone() };
        Commands { own: ALL, files: [file, skill, hidden].map(Arc::new).into(), supply: None }
    }

    #[test]
    fn only_known_names_at_the_beginning_are_commands() {
        let called = |prompt: &str| {
            commands().called(&User::prompt(prompt)).map(|called| match called.order {
                Order::Own(command) => format!("{}|{}", command.name, called.rest),
                Order::File(file) => format!("{}|{}", file.name, called.rest),
                Order::Prompt(name) => format!("{name}|{}", called.rest),
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
        assert_eq!(commands().called(&letter), None);
        assert_eq!(Commands::none().called(&User::prompt("/compact")), None);
    }

    #[test]
    fn words_that_no_command_hears_are_told_of() {
        let prompt: User = serde_json::from_value(
            serde_json::json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "text", "text": "/cost"}, {"type": "text", "text": "more"}]}}),
        )
        .unwrap();
        let called = commands().called(&prompt).unwrap();
        let Order::Own(command) = called.order else { panic!() };
        assert!(command.action.unheard(&called.rest).contains("not heard"), "{}", called.rest);
        assert_eq!(command.action.unheard(""), "");
        assert_eq!(Action::Compact.unheard("keep the names"), "");
    }

    #[test]
    fn hosts_are_told_whose_a_command_is() {
        let listed = commands().listed();
        let [.., file, skill] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!(skill.aliases, Some(vec!["pdf".to_owned()]));
        assert_eq!(
            (file.name.as_str(), file.description.as_str(), file.argument_hint.as_str(), file.builtin),
            ("front:end", "Ends it (project)", "[how]", Some(false))
        );
        assert_eq!(commands().names().len(), ALL.len() + 2);
    }
}
