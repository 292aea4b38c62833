//! Who answers what the model asks of a person: the person by way of the host, or hooks in their place. While the session
//! never asks, nobody does.

use whimbrel_wire::permission::PermissionMode;

use crate::hooks::HookSet;
use crate::permission::PermissionState;
use crate::tools::{ENTER_PLAN_MODE, EXIT_PLAN_MODE};

/// Whether a person can be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserPresence {
    /// One can.
    Present,
    /// None can.
    Absent,
}

/// Who answers.
pub struct Responders {
    /// Whether a person does.
    user: UserPresence,
    /// The tools whose questions hooks answer.
    hook_answered_tools: Vec<String>,
    /// What says whether anything is asked at all, as it stands.
    permissions: PermissionState,
}

impl Responders {
    /// The person, if there is one.
    pub fn new(user: UserPresence, rights: &PermissionState) -> Self {
        Self { user, hook_answered_tools: Vec::new(), permissions: rights.clone() }
    }

    /// The same, and hooks for what some of these tools ask.
    #[must_use]
    pub fn with_hooks<'a>(&self, hooks: &HookSet, tools: impl Iterator<Item = &'a str>) -> Self {
        let hooked = tools.filter(|tool| hooks.can_answer_tool(answering_tool(tool))).map(Into::into).collect();
        Self { user: self.user, hook_answered_tools: hooked, permissions: self.permissions.clone() }
    }

    /// Whether somebody answers what this tool asks, as things stand.
    pub fn can_answer(&self, tool: &str) -> bool {
        self.permissions.mode() != PermissionMode::DontAsk
            && (self.user == UserPresence::Present || self.hook_answered_tools.iter().any(|hooked| hooked == tool))
    }
}

/// The tool whose question has to be answered where a tool is used: who begins to plan must come to an end of it.
fn answering_tool(tool: &str) -> &str {
    if tool == ENTER_PLAN_MODE { EXIT_PLAN_MODE } else { tool }
}
