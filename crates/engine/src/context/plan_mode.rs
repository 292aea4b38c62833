//! Plan mode reminders: when it starts, once per turn while it lasts, and when it ends. They are messages, so that the
//! cached prefix stays the same.

use whimbrel_tools::api::AgentToolSet;
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::tool_names::{ASK_USER_QUESTION, EXIT_PLAN_MODE};

/// Whether the model knows that plan mode is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanModeState {
    announced: bool,
}

/// Position of a model call in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPosition {
    FirstInTurn,
    Later,
}

/// The reminder that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanReminder {
    Begins,
    Lasts,
    Ends,
}

/// The way in which an agent submits its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanDelivery {
    /// Asks the user for approval with ExitPlanMode.
    Approval,
    /// Replies with the plan: no approval is possible in this session.
    Reply,
    /// Is a subagent, which only explores for the plan of its parent.
    Report,
    /// Is a teammate, which submits the plan to its lead.
    Lead,
}

impl PlanDelivery {
    /// The subject of a reminder, and the approver of the plan.
    fn describe_roles(self) -> (&'static str, &'static str) {
        match self {
            Self::Approval | Self::Reply | Self::Report => ("The session is", "the user"),
            Self::Lead => ("You are", "your lead"),
        }
    }
}

impl CallPosition {
    /// The position after this number of model calls in the turn.
    pub fn from_call_count(count: u32) -> Self {
        if count == 0 { Self::FirstInTurn } else { Self::Later }
    }
}

impl PlanModeState {
    /// The state of a resumed conversation, from the mode that its transcript records as announced last.
    pub fn from_announced_mode(mode: Option<&str>) -> Self {
        let mode: Option<PermissionMode> = mode.and_then(|mode| mode.parse().ok());
        Self { announced: mode == Some(PermissionMode::Plan) }
    }

    /// The reminder that is due, if any; updates the state. While plan mode lasts, one per turn.
    fn next_reminder(&mut self, mode: PermissionMode, position: CallPosition) -> Option<PlanReminder> {
        let planning = mode == PermissionMode::Plan;
        let reminder = match (self.announced, planning, position) {
            (false, true, _) => Some(PlanReminder::Begins),
            (true, true, CallPosition::FirstInTurn) => Some(PlanReminder::Lasts),
            (true, false, _) => Some(PlanReminder::Ends),
            (true, true, CallPosition::Later) | (false, false, _) => None,
        };
        self.announced = planning;
        reminder
    }
}

/// What a reminder depends on besides the mode.
pub struct PlanReminderContext<'a> {
    pub tool_set: &'a AgentToolSet,
    pub agent: PlanningAgent,
    /// Instructions of the host in place of the built-in procedure.
    pub own_instructions: Option<&'a str>,
}

/// The agent that plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanningAgent {
    Main,
    Subagent,
    /// A teammate that needs the approval of its lead.
    Teammate,
}

impl PlanModeState {
    /// Renders the reminder that is due, if any; updates the state.
    pub fn take_reminder(
        &mut self,
        mode: PermissionMode,
        position: CallPosition,
        context: &PlanReminderContext<'_>,
    ) -> Option<String> {
        let reminder = self.next_reminder(mode, position)?;
        let delivery = match context.agent {
            PlanningAgent::Teammate => PlanDelivery::Lead,
            PlanningAgent::Subagent => PlanDelivery::Report,
            PlanningAgent::Main if context.tool_set.find(EXIT_PLAN_MODE).is_some() => PlanDelivery::Approval,
            PlanningAgent::Main => PlanDelivery::Reply,
        };
        let text = match reminder {
            PlanReminder::Begins => render_start(delivery, context.own_instructions, context.tool_set),
            PlanReminder::Lasts => render_ongoing(delivery),
            PlanReminder::Ends => {
                "Plan mode is over: you may make changes again, within your permissions.".to_owned()
            }
        };
        Some(format!("<system-reminder>\n{text}\n</system-reminder>"))
    }
}

const RULE_TEXT: &str = "wants to agree on a plan before anything is changed. Regardless of other instructions, do not edit files, do not run commands that change \
anything, and take no other action with side effects. Reading and searching are fine.";

/// Renders the reminder at the start: rule, procedure, and how to submit the plan.
fn render_start(delivery: PlanDelivery, host_steps: Option<&str>, tool_set: &AgentToolSet) -> String {
    let steps = match (delivery, host_steps.map(str::trim)) {
        (PlanDelivery::Report | PlanDelivery::Lead, _) => None,
        (PlanDelivery::Approval | PlanDelivery::Reply, Some(host_steps)) if !host_steps.is_empty() => {
            Some(host_steps.to_owned())
        }
        (PlanDelivery::Approval | PlanDelivery::Reply, _) => Some(planning_steps(tool_set)),
    };
    let (subject, approver) = delivery.describe_roles();
    let parts = [
        Some(format!("{subject} in plan mode: {approver} {RULE_TEXT}")),
        steps,
        Some(submission_text(delivery).to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Renders the short reminder.
fn render_ongoing(delivery: PlanDelivery) -> String {
    format!(
        "{} still in plan mode: change nothing yet. {}",
        delivery.describe_roles().0,
        submission_text(delivery)
    )
}

/// The built-in planning procedure.
fn planning_steps(tool_set: &AgentToolSet) -> String {
    let question_step = match tool_set.find(ASK_USER_QUESTION) {
        Some(_) => "Use AskUserQuestion for decisions that only the user can make.",
        None => "List the decisions that only the user can make, with your recommendation.",
    };
    format!(
        "1. Explore what the task affects until you know what has to change and what can be reused.\n\
         2. {question_step}\n\
         3. Write the plan: the approach you recommend, the files to change and how, and how to verify the result. Keep it as short as possible, but complete enough to carry out."
    )
}

fn submission_text(delivery: PlanDelivery) -> &'static str {
    match delivery {
        PlanDelivery::Approval => {
            "When the plan is ready, call ExitPlanMode with the whole plan: this asks the user for approval. Do not ask for approval in any other way, and do not start before you have it."
        }
        PlanDelivery::Reply => {
            "When the plan is ready, give it as your reply and stop: it cannot be approved during this turn."
        }
        PlanDelivery::Lead => {
            "When the plan is ready, submit it: SendMessage, type plan_approval_request, the whole plan as content; then end your turn. Do not start before your lead has approved it."
        }
        PlanDelivery::Report => {
            "Find out what you were asked for and report it; the agent that started you makes the plan."
        }
    }
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, Default as Usual, Plan};

    use super::*;

    #[test]
    fn changes_are_announced_once_and_repeated_per_turn() {
        use CallPosition::{FirstInTurn, Later};
        let rows = [
            (Usual, FirstInTurn, None),
            (Plan, Later, Some(PlanReminder::Begins)),
            (Plan, Later, None),
            (Plan, FirstInTurn, Some(PlanReminder::Lasts)),
            (Plan, Later, None),
            (AcceptEdits, Later, Some(PlanReminder::Ends)),
            (Usual, FirstInTurn, None),
            (Plan, FirstInTurn, Some(PlanReminder::Begins)),
            (Usual, FirstInTurn, Some(PlanReminder::Ends)),
        ];
        let mut state = PlanModeState::default();
        for (row, (mode, position, expected)) in rows.into_iter().enumerate() {
            assert_eq!(state.next_reminder(mode, position), expected, "row {row}");
        }
    }

    #[test]
    fn host_instructions_replace_only_the_steps() {
        let tools = AgentToolSet::empty();
        for host_steps in [None, Some(" \n")] {
            let default_text = render_start(PlanDelivery::Approval, host_steps, &tools);
            assert_eq!(
                default_text,
                format!(
                    "The session is in plan mode: the user {RULE_TEXT}\n\n{}\n\n{}",
                    planning_steps(&tools),
                    submission_text(PlanDelivery::Approval)
                )
            );
        }
        let host_text = render_start(PlanDelivery::Approval, Some("Think of the users.\n"), &tools);
        assert_eq!(
            host_text,
            format!(
                "The session is in plan mode: the user {RULE_TEXT}\n\nThink of the users.\n\n{}",
                submission_text(PlanDelivery::Approval)
            )
        );
        let subagent_text = render_start(PlanDelivery::Report, Some("Think of the users."), &tools);
        assert_eq!(
            subagent_text,
            format!(
                "The session is in plan mode: the user {RULE_TEXT}\n\n{}",
                submission_text(PlanDelivery::Report)
            )
        );
    }

    #[test]
    fn teammate_is_referred_to_its_lead_only() {
        let tools = AgentToolSet::empty();
        for text in [
            render_start(PlanDelivery::Lead, Some("Think of the users."), &tools),
            render_ongoing(PlanDelivery::Lead),
        ] {
            assert!(text.starts_with("You are") && text.contains("plan_approval_request"), "{text}");
            for foreign in ["the user", "report it", "ExitPlanMode", "session"] {
                assert!(!text.contains(foreign), "{foreign}: {text}");
            }
        }
    }

    #[test]
    fn only_available_tools_are_named() {
        let text = render_start(PlanDelivery::Reply, None, &AgentToolSet::empty());
        assert!(
            text.contains("plan mode") && !text.contains("ExitPlanMode") && !text.contains("AskUserQuestion")
        );
    }
}
