//! Slash commands: prompts that begin with `/` and a known name. Other prompts are passed on unchanged.
//!
//! [`builtin`] lists the built-in commands. Other commands are files of the user, the project and plugins, skills
//! included: [`file`](mod@file) (one of them), [`parse`] (its contents), `discover` (finds them), [`template`] (fills in
//! arguments), [`rules`] (its rules for a turn). Prompts of MCP servers are commands too. The
//! [`command_runner`](crate::command_runner) runs them; the model calls them through [`skills`](crate::skills).

pub mod builtin;
mod discover;
pub mod file;
pub mod parse;
pub mod rules;
pub mod template;

use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::plugins::Plugins;
use whimbrel_mcp::PromptCommand;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_wire::control::SlashCommand;
use whimbrel_wire::message::User;

pub use self::builtin::{BUILTINS, BuiltinAction, BuiltinCommand};
pub(crate) use file::SKILL_DIR_VARIABLE;
pub use file::{CommandCallers, CommandDescription, CommandFile, CommandOwner};

#[derive(Debug, Clone, Default)]
pub struct Commands {
    builtins: &'static [BuiltinCommand],
    files: Vec<Arc<CommandFile>>,
    /// Prompts of MCP servers.
    tool_cache: Option<ToolCache>,
}

/// Command call in a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    pub target: CommandTarget,
    /// Text after the name.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CommandTarget {
    Builtin(BuiltinCommand),
    File(Arc<CommandFile>),
    /// MCP prompt by its full name; may belong to a server that is still starting.
    McpPrompt(String),
}

impl Commands {
    /// Finds built-in commands and command files. Also returns warnings about files. Reads the disk.
    pub fn discover(locations: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let (files, warnings) = discover::find_commands(locations, plugins);
        (Self { builtins: BUILTINS, files, tool_cache: None }, warnings)
    }

    /// No commands: every prompt is ordinary text.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the prompts of MCP servers. Has no effect if commands are disabled.
    #[must_use]
    pub fn with_mcp_prompts(self, tool_cache: ToolCache) -> Self {
        let tool_cache = (!self.builtins.is_empty()).then_some(tool_cache);
        Self { tool_cache, ..self }
    }

    /// Parses a prompt as a command call.
    pub fn parse_invocation(&self, prompt: &User) -> Option<Invocation> {
        // The host asks for the text to be taken literally.
        if prompt.client_composed == Some(true) {
            return None;
        }
        let text = prompt.message.content.joined_text();
        let text = text.trim().strip_prefix('/')?;
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let builtin = self
            .builtins
            .iter()
            .find(|command| command.name == name)
            .map(|command| CommandTarget::Builtin(*command));
        let file = || {
            let mut named = self.user_callable().filter(|file| file.name == name);
            named.next().or_else(|| self.user_callable().find(|file| file.matches_name(name)))
        };
        let in_file = || file().cloned().map(CommandTarget::File);
        let mcp_prompt = || {
            self.tool_cache.as_ref()?.may_be_prompt(name).then(|| CommandTarget::McpPrompt(name.to_owned()))
        };
        Some(Invocation {
            target: builtin.or_else(in_file).or_else(mcp_prompt)?,
            arguments: rest.trim().to_owned(),
        })
    }

    /// Command files, skills included.
    pub fn files(&self) -> &[Arc<CommandFile>] {
        &self.files
    }

    fn user_callable(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.includes_user())
    }

    /// Names without the slash.
    pub fn names(&self) -> Vec<String> {
        self.slash_commands().into_iter().map(|command| command.name).collect()
    }

    /// Commands for the host.
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        let builtins = self.builtins.iter().map(|command| SlashCommand {
            name: command.name.into(),
            description: command.description.into(),
            argument_hint: command.argument_hint.into(),
            builtin: Some(true),
            ..SlashCommand::default()
        });
        let prompts = self.tool_cache.as_ref().map(ToolCache::prompts).unwrap_or_default();
        let files = self.user_callable().map(|file| to_slash_command(file));
        builtins.chain(files).chain(prompts.into_iter().map(prompt_to_slash_command)).collect()
    }
}

/// Converts a command file for the host.
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

/// Converts an MCP prompt for the host.
fn prompt_to_slash_command(prompt: PromptCommand) -> SlashCommand {
    SlashCommand {
        argument_hint: prompt.argument_hint(),
        description: format!("{} (MCP)", prompt.description).trim_start().to_owned(),
        name: prompt.name,
        builtin: Some(false),
        ..SlashCommand::default()
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_config::settings::LayerScope;

    use super::*;

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
    fn only_known_names_at_the_start_are_commands() {
        let invoke = |prompt: &str| {
            commands().parse_invocation(&User::prompt(prompt)).map(|invocation| match invocation.target {
                CommandTarget::Builtin(command) => format!("{}|{}", command.name, invocation.arguments),
                CommandTarget::File(file) => format!("{}|{}", file.name, invocation.arguments),
                CommandTarget::McpPrompt(name) => format!("{name}|{}", invocation.arguments),
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
            assert_eq!(invoke(prompt).as_deref(), expected, "{prompt}");
        }
        let composed = User { client_composed: Some(true), ..User::prompt("/compact") };
        assert_eq!(commands().parse_invocation(&composed), None);
        assert_eq!(Commands::none().parse_invocation(&User::prompt("/compact")), None);
    }

    #[test]
    fn ignored_arguments_are_reported() {
        let prompt: User = serde_json::from_value(
            serde_json::json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "text", "text": "/cost"}, {"type": "text", "text": "more"}]}}),
        )
        .unwrap();
        let invocation = commands().parse_invocation(&prompt).unwrap();
        let CommandTarget::Builtin(command) = invocation.target else { panic!() };
        assert!(
            command.action.ignored_arguments(&invocation.arguments).contains("ignored"),
            "{}",
            invocation.arguments
        );
        assert_eq!(command.action.ignored_arguments(""), "");
        assert_eq!(BuiltinAction::Compact.ignored_arguments("keep the names"), "");
    }

    #[test]
    fn hosts_see_the_owner_of_a_command() {
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
