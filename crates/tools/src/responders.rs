//! Responders for interactive tools: the user via the host, or hooks. In mode `dontAsk` there are none.

use whimbrel_wire::permission::PermissionMode;

use crate::hooks::HookSet;
use crate::permission::PermissionState;
use whimbrel_wire::tool_names::{ENTER_PLAN_MODE, EXIT_PLAN_MODE};

/// Whether the host can ask the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserPresence {
    Present,
    Absent,
}

/// Responders of a session.
pub struct Responders {
    user: UserPresence,
    /// Tools whose questions hooks answer.
    hook_answered_tools: Vec<String>,
    /// Source of the current permission mode.
    permissions: PermissionState,
}

impl Responders {
    pub fn new(user: UserPresence, permissions: &PermissionState) -> Self {
        Self { user, hook_answered_tools: Vec::new(), permissions: permissions.clone() }
    }

    /// Adds hooks that may answer some of these tools.
    #[must_use]
    pub fn with_hooks<'a>(&self, hooks: &HookSet, tools: impl Iterator<Item = &'a str>) -> Self {
        let hooked =
            tools.filter(|tool| hooks.can_answer_tool(answering_tool(tool))).map(Into::into).collect();
        Self { user: self.user, hook_answered_tools: hooked, permissions: self.permissions.clone() }
    }

    /// Returns whether a question of this tool can be answered now.
    pub fn can_answer(&self, tool: &str) -> bool {
        self.permissions.mode() != PermissionMode::DontAsk
            && (self.user == UserPresence::Present
                || self.hook_answered_tools.iter().any(|hooked| hooked == tool))
    }
}

/// The tool whose question must be answerable: entering plan mode is useful only if ExitPlanMode can be answered.
fn answering_tool(tool: &str) -> &str {
    if tool == ENTER_PLAN_MODE { EXIT_PLAN_MODE } else { tool }
}
