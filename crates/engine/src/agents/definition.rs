//! Kinds of subagent.

/// A kind of subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// When to use it, for the model that may start one.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it has, by name; none means all that its parent has.
    pub tools: Option<Vec<String>>,
    /// Its model; none means its parent's.
    pub model: Option<String>,
}

/// The kinds that every session has.
pub fn built_in() -> Vec<Definition> {
    vec![Definition {
        name: GENERAL.into(),
        description: "Research and work of several steps that need no talk in between".into(),
        prompt: "You are a subagent: another agent gave you an errand and waits for your report. Do exactly the errand, with the tools you have and without asking back. \
Your last message is the report, and all that the other agent will see: say what you found or did, with file paths as path:line and the facts it needs to go on; say plainly what you could \
not do. No preamble."
            .into(),
        tools: None,
        model: None,
    }]
}

/// The kind that is used when none is named.
pub const GENERAL: &str = "general-purpose";
