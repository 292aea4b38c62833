//! What the model is told of plan mode: when it begins, now and then while it lasts, and when it ends. It stands among the
//! messages, so that the cached prefix stays as it is.

use whimbrel_models::History;
use whimbrel_wire::permission::PermissionMode;

use crate::agent::Agent;
use crate::toolbox::Toolbox;
use crate::tools::{ASK_USER_QUESTION, EXIT_PLAN_MODE};

/// What the model knows of plan mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planning {
    told: bool,
}

/// When the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// For the first time in a turn.
    TurnBegins,
    /// Later in it.
    Within,
}

/// What it should hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Begins,
    Lasts,
    Ends,
}

/// How an agent can hand in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It asks the person for approval.
    Approval,
    /// It can only say it: nobody is asked within the run.
    Reply,
    /// It is a subagent, which only looks around for somebody else's plan.
    Report,
    /// It is a teammate that has promised its lead a plan.
    Lead,
}

impl Way {
    /// Who is in plan mode, and who wants a plan.
    fn parties(self) -> (&'static str, &'static str) {
        match self {
            Self::Approval | Self::Reply | Self::Report => ("The session is", "the user"),
            Self::Lead => ("You are", "your lead"),
        }
    }
}

impl Moment {
    /// The moment before a model call, by the number of those that were made in the turn.
    pub fn before_call(made: u32) -> Self {
        if made == 0 { Self::TurnBegins } else { Self::Within }
    }
}

impl Planning {
    /// What the model knows of plan mode that has heard this: a conversation that goes on need not be in the mode in
    /// which it was left.
    pub fn of(history: &History) -> Self {
        let [session, mate] = [Way::Reply, Way::Lead].map(|way| way.parties().0);
        let [begun, lasting] =
            [BEGUN, LASTING].map(|text| [session, mate].map(|who| format!("{who} {text}")));
        let [[a, b], [c, d]] = [begun, lasting];
        let beginnings = [a, b, c, d, OVER.to_owned()].map(|text| format!("{OPENING}{text}"));
        let last = history.said_last(&beginnings.each_ref().map(String::as_str));
        Self { told: matches!(last, Some(0..=3)) }
    }

    /// What there is to tell, if anything. Long plan modes are recalled once per turn.
    fn next(&mut self, mode: PermissionMode, moment: Moment) -> Option<News> {
        let planning = mode == PermissionMode::Plan;
        let news = match (self.told, planning, moment) {
            (false, true, _) => Some(News::Begins),
            (true, true, Moment::TurnBegins) => Some(News::Lasts),
            (true, false, _) => Some(News::Ends),
            (true, true, Moment::Within) | (false, false, _) => None,
        };
        self.told = planning;
        news
    }
}

/// Tells an agent what has become of plan mode since it was last told.
pub fn remind(agent: &mut Agent, moment: Moment) {
    let Some(news) = agent.planning.next(agent.bench.gate.rights.mode(), moment) else { return };
    let toolbox = &agent.bench.toolbox;
    let way = match agent.bench.gate.lookout.agent_id() {
        Some(_) if agent.bench.gate.rights.owes_a_plan() => Way::Lead,
        Some(_) => Way::Report,
        None if toolbox.find(EXIT_PLAN_MODE).is_some() => Way::Approval,
        None => Way::Reply,
    };
    let text = match news {
        News::Begins => {
            let own = agent.knobs.now().plan_mode_instructions;
            begins(way, own.as_deref(), toolbox)
        }
        News::Lasts => lasts(way),
        News::Ends => format!("{OVER}: you may change things again, as far as permissions go."),
    };
    agent.conversation.brief(&format!("{OPENING}{text}\n</system-reminder>"));
}

/// How every reminder begins.
const OPENING: &str = "<system-reminder>\n";

/// How each of our reminders goes on.
const BEGUN: &str = "in plan mode";
const LASTING: &str = "still in plan mode";
const OVER: &str = "Plan mode is over";

const RULE: &str = "wants to agree on a plan before anything is changed. Whatever else you were told, do not edit files, do not run commands that change \
something, and do not act on the world in any other way. Reading and searching are free.";

/// The rule, how to go about it, and how to end.
fn begins(way: Way, own: Option<&str>, toolbox: &Toolbox) -> String {
    let how = match (way, own.map(str::trim)) {
        (Way::Report | Way::Lead, _) => None,
        (Way::Approval | Way::Reply, Some(own)) if !own.is_empty() => Some(own.to_owned()),
        (Way::Approval | Way::Reply, _) => Some(steps(toolbox)),
    };
    let (who, wants) = way.parties();
    let parts = [Some(format!("{who} {BEGUN}: {wants} {RULE}")), how, Some(hand_in(way).to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// The rule once more, in short.
fn lasts(way: Way) -> String {
    format!("{} {LASTING}: change nothing yet. {}", way.parties().0, hand_in(way))
}

/// Our own way to a plan.
fn steps(toolbox: &Toolbox) -> String {
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

fn hand_in(way: Way) -> &'static str {
    match way {
        Way::Approval => {
            "When the plan is ready, call ExitPlanMode with all of it: that asks the user for approval. Do not ask for it in any other way, and do not begin before you have it."
        }
        Way::Reply => {
            "When the plan is ready, give it as your reply and stop: nobody can approve it meanwhile."
        }
        Way::Lead => {
            "When the plan is ready, hand it in: SendMessage, type plan_approval_request, all of it as content; then end your turn. Do not begin before your lead has approved it."
        }
        Way::Report => "Find out what you were asked for and report it; whoever sent you makes the plan.",
    }
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, Default as Usual, Plan};

    use super::*;

    #[test]
    fn the_model_hears_of_a_change_once_and_is_reminded_once_a_turn() {
        use Moment::{TurnBegins, Within};
        let rows = [
            (Usual, TurnBegins, None),
            (Plan, Within, Some(News::Begins)),
            (Plan, Within, None),
            (Plan, TurnBegins, Some(News::Lasts)),
            (Plan, Within, None),
            (AcceptEdits, Within, Some(News::Ends)),
            (Usual, TurnBegins, None),
            (Plan, TurnBegins, Some(News::Begins)),
            (Usual, TurnBegins, Some(News::Ends)),
        ];
        let mut planning = Planning::default();
        for (row, (mode, moment, expected)) in rows.into_iter().enumerate() {
            assert_eq!(planning.next(mode, moment), expected, "row {row}");
        }
    }

    #[test]
    fn instructions_of_the_host_replace_our_steps_but_not_the_rule_and_the_end() {
        let tools = Toolbox::empty();
        for own in [None, Some(" \n")] {
            let usual = begins(Way::Approval, own, &tools);
            assert_eq!(
                usual,
                format!(
                    "The session is in plan mode: the user {RULE}\n\n{}\n\n{}",
                    steps(&tools),
                    hand_in(Way::Approval)
                )
            );
        }
        let theirs = begins(Way::Approval, Some("Think of the users.\n"), &tools);
        assert_eq!(
            theirs,
            format!(
                "The session is in plan mode: the user {RULE}\n\nThink of the users.\n\n{}",
                hand_in(Way::Approval)
            )
        );
        let below = begins(Way::Report, Some("Think of the users."), &tools);
        assert_eq!(
            below,
            format!("The session is in plan mode: the user {RULE}\n\n{}", hand_in(Way::Report))
        );
    }

    #[test]
    fn who_owes_its_lead_a_plan_hears_of_its_lead_and_nobody_else() {
        let tools = Toolbox::empty();
        for text in [begins(Way::Lead, Some("Think of the users."), &tools), lasts(Way::Lead)] {
            assert!(text.starts_with("You are") && text.contains("plan_approval_request"), "{text}");
            for foreign in ["the user", "report it", "ExitPlanMode", "session"] {
                assert!(!text.contains(foreign), "{foreign}: {text}");
            }
        }
    }

    #[test]
    fn what_was_said_last_is_what_the_model_knows() {
        let tools = Toolbox::empty();
        let rows = [
            ("nothing", vec![], false),
            ("it began", vec![begins(Way::Reply, None, &tools)], true),
            ("it lasts", vec![lasts(Way::Report)], true),
            ("a teammate's began", vec![begins(Way::Lead, None, &tools)], true),
            ("and lasts", vec![lasts(Way::Lead)], true),
            ("it is over", vec![lasts(Way::Lead), format!("{OVER}: go.")], false),
        ];
        for (name, said, told) in rows {
            let mut history = History::new();
            for text in said {
                let block = whimbrel_wire::Block::text(format!("{OPENING}{text}"));
                history.push(whimbrel_wire::Role::User, &block);
            }
            assert_eq!(Planning::of(&history), Planning { told }, "{name}");
        }
    }

    #[test]
    fn only_tools_that_are_there_are_named() {
        let text = begins(Way::Reply, None, &Toolbox::empty());
        assert!(
            text.contains("plan mode") && !text.contains("ExitPlanMode") && !text.contains("AskUserQuestion")
        );
    }
}
