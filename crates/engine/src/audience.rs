//! Who answers what the model asks of a person: the person by way of the host, or hooks in their place. While the session
//! never asks, nobody does.

use whimbrel_wire::permission::PermissionMode;

use crate::hooks::HookSet;
use crate::permission::Rights;
use crate::tools::{ENTER_PLAN_MODE, EXIT_PLAN_MODE};

/// Whether a person can be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// One can.
    Present,
    /// None can.
    Absent,
}

/// Who answers.
pub struct Audience {
    /// Whether a person does.
    person: Person,
    /// The tools whose questions hooks answer.
    hooked: Vec<String>,
    /// What says whether anything is asked at all, as it stands.
    rights: Rights,
}

impl Audience {
    /// The person, if there is one.
    pub fn new(person: Person, rights: &Rights) -> Self {
        Self { person, hooked: Vec::new(), rights: rights.clone() }
    }

    /// The same, and hooks for what some of these tools ask.
    #[must_use]
    pub fn with_hooks<'a>(&self, hooks: &HookSet, tools: impl Iterator<Item = &'a str>) -> Self {
        let hooked = tools.filter(|tool| hooks.may_answer(asked_by(tool))).map(Into::into).collect();
        Self { person: self.person, hooked, rights: self.rights.clone() }
    }

    /// Whether somebody answers what this tool asks, as things stand.
    pub fn answers(&self, tool: &str) -> bool {
        self.rights.mode() != PermissionMode::DontAsk
            && (self.person == Person::Present || self.hooked.iter().any(|hooked| hooked == tool))
    }
}

/// The tool whose question has to be answered where a tool is used: who begins to plan must come to an end of it.
fn asked_by(tool: &str) -> &str {
    if tool == ENTER_PLAN_MODE { EXIT_PLAN_MODE } else { tool }
}
