//! The built-in commands: names, descriptions and actions. They are run by [`crate::command_runner`].

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltinCommand {
    /// Name without the slash.
    pub name: &'static str,
    pub description: &'static str,
    pub argument_hint: &'static str,
    pub action: BuiltinAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinAction {
    /// Clears the conversation.
    Clear,
    /// Replaces the conversation by a summary.
    Compact,
    /// Shows what fills the context.
    Context,
    /// Shows the cost.
    Cost,
    Help,
    /// Shows or changes the model.
    Model,
}

impl BuiltinAction {
    /// Notice about arguments that the command ignores; empty if there are none.
    pub fn ignored_arguments(self, rest: &str) -> String {
        match self {
            Self::Compact | Self::Model => String::new(),
            Self::Clear | Self::Context | Self::Cost | Self::Help if rest.is_empty() => String::new(),
            Self::Clear | Self::Context | Self::Cost | Self::Help => {
                "\n\nThe text after the command was ignored. Send it as a separate message.".into()
            }
        }
    }
}

/// All built-in commands.
pub const BUILTINS: &[BuiltinCommand] = &[CLEAR, COMPACT, CONTEXT, COST, HELP, MODEL];

const CLEAR: BuiltinCommand = BuiltinCommand {
    name: "clear",
    description: "Clear the conversation",
    argument_hint: "",
    action: BuiltinAction::Clear,
};

const CONTEXT: BuiltinCommand = BuiltinCommand {
    name: "context",
    description: "Show context usage",
    argument_hint: "",
    action: BuiltinAction::Context,
};

const COST: BuiltinCommand = BuiltinCommand {
    name: "cost",
    description: "Show the cost of the session",
    argument_hint: "",
    action: BuiltinAction::Cost,
};

const HELP: BuiltinCommand = BuiltinCommand {
    name: "help",
    description: "List the commands",
    argument_hint: "",
    action: BuiltinAction::Help,
};

const MODEL: BuiltinCommand = BuiltinCommand {
    name: "model",
    description: "Show or change the model",
    argument_hint: "[model]",
    action: BuiltinAction::Model,
};

const COMPACT: BuiltinCommand = BuiltinCommand {
    name: "compact",
    description: "Replace the conversation with a summary to free context",
    argument_hint: "[what the summary should keep]",
    action: BuiltinAction::Compact,
};
