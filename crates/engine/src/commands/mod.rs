//! Slash commands: prompts that begin with `/` and a known name. Other prompts are passed on unchanged.
//!
//! [`builtin`] lists the built-in commands, [`builtin_prompts`] the built-in prompts. Other commands are files of the user, the project and plugins, skills
//! included: [`file`](mod@file) (one of them), [`parse_file`] (its contents), `discover` (finds them), [`template`]
//! (fills in arguments), [`rules`] (its rules for a turn). Prompts of MCP servers are commands too. `invocation` finds
//! the command that a prompt calls, the [`command_runner`](crate::command_runner) runs it; the model calls commands
//! through [`skills`](crate::skills).

pub mod builtin;
pub mod builtin_prompts;
mod discover;
pub mod file;
mod invocation;
pub mod parse_file;
pub mod rules;
pub mod template;

use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::plugins::Plugins;
use whimbrel_mcp::PromptCommand;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_wire::control::SlashCommand;

pub use self::builtin::{BUILTINS, BuiltinAction, BuiltinCommand};
pub use self::builtin_prompts::{BUILTIN_PROMPTS, BuiltinPrompt};
pub(crate) use file::SKILL_DIR_VARIABLE;
pub use file::{CommandCallers, CommandDescription, CommandFile, CommandOwner};
pub use invocation::{CommandTarget, Invocation};

#[derive(Debug, Clone, Default)]
pub struct Commands {
    builtins: &'static [BuiltinCommand],
    builtin_prompts: &'static [BuiltinPrompt],
    files: Vec<Arc<CommandFile>>,
    /// Prompts of MCP servers.
    tool_cache: Option<ToolCache>,
}

impl Commands {
    /// Finds built-in commands and command files. Also returns warnings about files. Reads the disk.
    pub fn discover(locations: &ConfigLocations, plugins: &Plugins) -> (Self, Vec<String>) {
        let (files, warnings) = discover::find_commands(locations, plugins);
        (Self { builtins: BUILTINS, builtin_prompts: BUILTIN_PROMPTS, files, tool_cache: None }, warnings)
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

    /// Command files, skills included.
    pub fn files(&self) -> &[Arc<CommandFile>] {
        &self.files
    }

    fn user_callable(&self) -> impl Iterator<Item = &Arc<CommandFile>> {
        self.files.iter().filter(|file| file.callers.includes_user())
    }

    /// Built-in prompts that no command file replaces.
    fn available_prompts(&self) -> impl Iterator<Item = &'static BuiltinPrompt> {
        let is_replaced = |prompt: &BuiltinPrompt| self.user_callable().any(|file| file.name == prompt.name);
        self.builtin_prompts.iter().filter(move |prompt| !is_replaced(prompt))
    }

    /// Names without the slash.
    pub fn names(&self) -> Vec<String> {
        self.slash_commands().into_iter().map(|command| command.name).collect()
    }

    /// Commands for the host.
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        let actions = self.builtins.iter();
        let actions = actions.map(|command| (command.name, command.description, command.argument_hint));
        let texts = self.available_prompts();
        let texts = texts.map(|prompt| (prompt.name, prompt.description, prompt.argument_hint));
        let builtins = actions.chain(texts).map(|(name, description, argument_hint)| SlashCommand {
            name: name.into(),
            description: description.into(),
            argument_hint: argument_hint.into(),
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
    use whimbrel_wire::message::User;

    use super::*;

    pub(super) fn commands() -> Commands {
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
        let review = CommandFile { name: "review".into(), ..file.clone() };
        Commands {
            builtins: BUILTINS,
            builtin_prompts: BUILTIN_PROMPTS,
            files: [review, file, skill, hidden].map(Arc::new).into(),
            tool_cache: None,
        }
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
        assert_eq!(commands().names().len(), BUILTINS.len() + BUILTIN_PROMPTS.len() + 2);
    }
}
