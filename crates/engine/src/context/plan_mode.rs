//! Plan mode notices: when it starts, once per turn while it lasts, and when it ends. They are messages, so that the
//! cached prefix stays the same.

use whimbrel_models::History;
use whimbrel_wire::permission::PermissionMode;

use crate::agent::Agent;
use crate::tool_set::AgentToolSet;
use crate::tools::{ASK_USER_QUESTION, EXIT_PLAN_MODE};

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

/// The notice that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanNotice {
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
    /// The agent in plan mode, and the one that wants a plan.
    fn parties(self) -> (&'static str, &'static str) {
        match self {
            Self::Approval | Self::Reply | Self::Report => ("The session is", "the user"),
            Self::Lead => ("You are", "your lead"),
        }
    }
}

impl CallPosition {
    /// The position after this number of model calls in the turn.
    pub fn from_call_count(made: u32) -> Self {
        if made == 0 { Self::FirstInTurn } else { Self::Later }
    }
}

impl PlanModeState {
    /// Restores the state from a history, because a resumed session need not be in the mode in which it ended.
    pub fn from_history(history: &History) -> Self {
        let [session, mate] = [PlanDelivery::Reply, PlanDelivery::Lead].map(|way| way.parties().0);
        let [begun, lasting] =
            [STARTED_TEXT, ACTIVE_TEXT].map(|text| [session, mate].map(|who| format!("{who} {text}")));
        let [[a, b], [c, d]] = [begun, lasting];
        let beginnings = [a, b, c, d, ENDED_TEXT.to_owned()].map(|text| format!("{REMINDER_PREFIX}{text}"));
        let last = history.find_last_text(&beginnings.each_ref().map(String::as_str));
        Self { announced: matches!(last, Some(0..=3)) }
    }

    /// The notice that is due, if any; updates the state. While plan mode lasts, one per turn.
    fn next_notice(&mut self, mode: PermissionMode, moment: CallPosition) -> Option<PlanNotice> {
        let planning = mode == PermissionMode::Plan;
        let news = match (self.announced, planning, moment) {
            (false, true, _) => Some(PlanNotice::Begins),
            (true, true, CallPosition::FirstInTurn) => Some(PlanNotice::Lasts),
            (true, false, _) => Some(PlanNotice::Ends),
            (true, true, CallPosition::Later) | (false, false, _) => None,
        };
        self.announced = planning;
        news
    }
}

/// Injects the notice that is due.
pub fn inject_notice(agent: &mut Agent, moment: CallPosition) {
    let Some(news) = agent.plan_mode.next_notice(agent.tool_env.checker.permissions.mode(), moment) else {
        return;
    };
    let toolbox = &agent.tool_env.tool_set;
    let way = match agent.tool_env.checker.hooks.agent_id() {
        Some(_) if agent.tool_env.checker.permissions.needs_plan() => PlanDelivery::Lead,
        Some(_) => PlanDelivery::Report,
        None if toolbox.find(EXIT_PLAN_MODE).is_some() => PlanDelivery::Approval,
        None => PlanDelivery::Reply,
    };
    let text = match news {
        PlanNotice::Begins => {
            let own = agent.runtime_settings.current().plan_mode_instructions;
            render_start(way, own.as_deref(), toolbox)
        }
        PlanNotice::Lasts => render_reminder(way),
        PlanNotice::Ends => format!("{ENDED_TEXT}: you may change things again, as far as permissions go."),
    };
    agent.conversation.push_hidden(&format!("{REMINDER_PREFIX}{text}\n</system-reminder>"));
}

/// Prefix of every reminder.
const REMINDER_PREFIX: &str = "<system-reminder>\n";

/// Texts that identify the notices in a history.
const STARTED_TEXT: &str = "in plan mode";
const ACTIVE_TEXT: &str = "still in plan mode";
const ENDED_TEXT: &str = "Plan mode is over";

const RULE_TEXT: &str = "wants to agree on a plan before anything is changed. Whatever else you were told, do not edit files, do not run commands that change \
something, and do not act on the world in any other way. Reading and searching are free.";

/// Renders the notice at the start: rule, procedure, and how to submit the plan.
fn render_start(way: PlanDelivery, own: Option<&str>, toolbox: &AgentToolSet) -> String {
    let how = match (way, own.map(str::trim)) {
        (PlanDelivery::Report | PlanDelivery::Lead, _) => None,
        (PlanDelivery::Approval | PlanDelivery::Reply, Some(own)) if !own.is_empty() => Some(own.to_owned()),
        (PlanDelivery::Approval | PlanDelivery::Reply, _) => Some(planning_steps(toolbox)),
    };
    let (who, wants) = way.parties();
    let parts = [
        Some(format!("{who} {STARTED_TEXT}: {wants} {RULE_TEXT}")),
        how,
        Some(submission_text(way).to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Renders the short reminder.
fn render_reminder(way: PlanDelivery) -> String {
    format!("{} {ACTIVE_TEXT}: change nothing yet. {}", way.parties().0, submission_text(way))
}

/// The built-in planning procedure.
fn planning_steps(toolbox: &AgentToolSet) -> String {
    let ask = match toolbox.find(ASK_USER_QUESTION) {
        Some(_) => "Ask with AskUserQuestion what only the user can decide.",
        None => "Name what only the user can decide, and what you would choose.",
    };
    format!(
        "1. Look into whatever the task touches until you know what has to change, and what can be used as it is.\n\
         2. {ask}\n\
         3. Make the plan: the approach you recommend, the files to change and what in them, how the result will be checked. As short as it can be and still be followed."
    )
}

fn submission_text(way: PlanDelivery) -> &'static str {
    match way {
        PlanDelivery::Approval => {
            "When the plan is ready, call ExitPlanMode with all of it: that asks the user for approval. Do not ask for it in any other way, and do not begin before you have it."
        }
        PlanDelivery::Reply => {
            "When the plan is ready, give it as your reply and stop: nobody can approve it meanwhile."
        }
        PlanDelivery::Lead => {
            "When the plan is ready, hand it in: SendMessage, type plan_approval_request, all of it as content; then end your turn. Do not begin before your lead has approved it."
        }
        PlanDelivery::Report => {
            "Find out what you were asked for and report it; whoever sent you makes the plan."
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
            (Plan, Later, Some(PlanNotice::Begins)),
            (Plan, Later, None),
            (Plan, FirstInTurn, Some(PlanNotice::Lasts)),
            (Plan, Later, None),
            (AcceptEdits, Later, Some(PlanNotice::Ends)),
            (Usual, FirstInTurn, None),
            (Plan, FirstInTurn, Some(PlanNotice::Begins)),
            (Usual, FirstInTurn, Some(PlanNotice::Ends)),
        ];
        let mut planning = PlanModeState::default();
        for (row, (mode, moment, expected)) in rows.into_iter().enumerate() {
            assert_eq!(planning.next_notice(mode, moment), expected, "row {row}");
        }
    }

    #[test]
    fn host_instructions_replace_only_the_steps() {
        let tools = AgentToolSet::empty();
        for own in [None, Some(" \n")] {
            let usual = render_start(PlanDelivery::Approval, own, &tools);
            assert_eq!(
                usual,
                format!(
                    "The session is in plan mode: the user {RULE_TEXT}\n\n{}\n\n{}",
                    planning_steps(&tools),
                    submission_text(PlanDelivery::Approval)
                )
            );
        }
        let theirs = render_start(PlanDelivery::Approval, Some("Think of the users.\n"), &tools);
        assert_eq!(
            theirs,
            format!(
                "The session is in plan mode: the user {RULE_TEXT}\n\nThink of the users.\n\n{}",
                submission_text(PlanDelivery::Approval)
            )
        );
        let below = render_start(PlanDelivery::Report, Some("Think of the users."), &tools);
        assert_eq!(
            below,
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
            render_reminder(PlanDelivery::Lead),
        ] {
            assert!(text.starts_with("You are") && text.contains("plan_approval_request"), "{text}");
            for foreign in ["the user", "report it", "ExitPlanMode", "session"] {
                assert!(!text.contains(foreign), "{foreign}: {text}");
            }
        }
    }

    #[test]
    fn state_is_restored_from_last_notice() {
        let tools = AgentToolSet::empty();
        let rows = [
            ("nothing", vec![], false),
            ("it began", vec![render_start(PlanDelivery::Reply, None, &tools)], true),
            ("it lasts", vec![render_reminder(PlanDelivery::Report)], true),
            ("a teammate's began", vec![render_start(PlanDelivery::Lead, None, &tools)], true),
            ("and lasts", vec![render_reminder(PlanDelivery::Lead)], true),
            ("it is over", vec![render_reminder(PlanDelivery::Lead), format!("{ENDED_TEXT}: go.")], false),
        ];
        for (name, said, announced) in rows {
            let mut history = History::new();
            for text in said {
                let block = whimbrel_wire::Block::text(format!("{REMINDER_PREFIX}{text}"));
                history.push(whimbrel_wire::Role::User, &block);
            }
            assert_eq!(PlanModeState::from_history(&history), PlanModeState { announced }, "{name}");
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
