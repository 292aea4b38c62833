//! Decides whether a prompt calls a slash command, and which one; other prompts are plain text.

use std::sync::Arc;

use whimbrel_wire::message::User;

use super::{BuiltinCommand, BuiltinPrompt, CommandFile, Commands};

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
    BuiltinPrompt(&'static BuiltinPrompt),
    /// MCP prompt by its full name; may belong to a server that is still starting.
    McpPrompt(String),
}

impl Commands {
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
        let file = |file: Option<&Arc<CommandFile>>| file.cloned().map(CommandTarget::File);
        let named = || file(self.user_callable().find(|file| file.name == name));
        let builtin_prompt =
            || self.available_prompts().find(|prompt| prompt.name == name).map(CommandTarget::BuiltinPrompt);
        let alias = || file(self.user_callable().find(|file| file.matches_name(name)));
        let mcp_prompt = || {
            self.tool_cache.as_ref()?.may_be_prompt(name).then(|| CommandTarget::McpPrompt(name.to_owned()))
        };
        Some(Invocation {
            target: builtin.or_else(named).or_else(builtin_prompt).or_else(alias).or_else(mcp_prompt)?,
            arguments: rest.trim().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::commands;

    #[test]
    fn only_known_names_at_the_start_are_commands() {
        let invoke = |prompt: &str| {
            commands().parse_invocation(&User::prompt(prompt)).map(|invocation| match invocation.target {
                CommandTarget::Builtin(command) => format!("{}|{}", command.name, invocation.arguments),
                CommandTarget::File(file) => format!("{}|{}", file.name, invocation.arguments),
                CommandTarget::BuiltinPrompt(prompt) => {
                    format!("{} built in|{}", prompt.name, invocation.arguments)
                }
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
            ("/init", Some("init built in|")),
            ("/pr-comments 12", Some("pr-comments built in|12")),
            ("/review 12", Some("review|12")),
        ];
        for (prompt, expected) in rows {
            assert_eq!(invoke(prompt).as_deref(), expected, "{prompt}");
        }
        let composed = User { client_composed: Some(true), ..User::prompt("/compact") };
        assert_eq!(commands().parse_invocation(&composed), None);
        assert_eq!(Commands::none().parse_invocation(&User::prompt("/compact")), None);
    }
}
