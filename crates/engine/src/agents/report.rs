//! What came of an errand, in words for the agent that gave it.

use std::time::Duration;

use whimbrel_wire::Usage;
use whimbrel_wire::system::TaskUsage;

use crate::tasks::TaskStatus;
use crate::turn::TurnOutcome;
use crate::next_step::TurnEnd;
use crate::worktree::Worktree;

/// What came of an errand.
#[derive(Debug, Clone)]
pub struct AgentReport {
    /// The agent.
    pub agent_id: String,
    /// How its turn went; its text is the report.
    pub outcome: TurnOutcome,
    /// What it said last before something went wrong.
    pub partial_text: String,
    /// The model that it asked.
    pub model: String,
    /// What its replies cost.
    pub usage: Usage,
    /// The same in dollars.
    pub cost_usd: f64,
    /// The same, as tasks are counted.
    pub task_usage: TaskUsage,
    /// How long it took.
    pub duration: Duration,
    /// Whether the turn has gone on beside it: then it is told as news.
    pub background: bool,
    /// Whether somebody told it to stop.
    pub stopped: bool,
    /// The work tree that it worked in, if there is something in it that would be lost.
    pub kept_worktree: Option<Worktree>,
    /// How many messages had come for it that it could not take up.
    pub unread_messages: usize,
}

/// What an agent said at the end of each of its turns, in order: a message that came meanwhile does not undo its report.
pub(super) fn join_texts(before: &[String], last: &str) -> String {
    let said = before.iter().map(String::as_str).chain([last]).filter(|text| !text.is_empty());
    said.collect::<Vec<_>>().join("\n\n")
}

impl AgentReport {
    /// How the errand ended.
    pub fn status(&self) -> TaskStatus {
        match self.outcome.end {
            TurnEnd::Done => TaskStatus::Completed,
            TurnEnd::AbortedStreaming | TurnEnd::AbortedTools => TaskStatus::Stopped,
            TurnEnd::MaxTurns
            | TurnEnd::ApiError
            | TurnEnd::Refused
            | TurnEnd::OutputLimit
            | TurnEnd::Stalled
            | TurnEnd::NoStructuredOutput
            | TurnEnd::ContextTooLong
            | TurnEnd::HookStopped
            | TurnEnd::Deferred
            | TurnEnd::BudgetExceeded => TaskStatus::Failed,
        }
    }

    /// Why it could not finish, if it could not.
    pub fn failure_reason(&self) -> Option<String> {
        let text = &self.outcome.text;
        let reason = match self.outcome.end {
            TurnEnd::Done => return None,
            TurnEnd::AbortedStreaming | TurnEnd::AbortedTools => "it was interrupted".into(),
            TurnEnd::MaxTurns => "it has made as many model calls as it may".into(),
            TurnEnd::ApiError | TurnEnd::ContextTooLong | TurnEnd::OutputLimit | TurnEnd::Stalled => text.clone(),
            TurnEnd::Refused => "its model declined to answer".into(),
            TurnEnd::NoStructuredOutput => "it gave no answer in the shape that was asked for".into(),
            TurnEnd::HookStopped => "a hook stopped it".into(),
            TurnEnd::Deferred => "one of its calls was put off".into(),
            TurnEnd::BudgetExceeded => "the budget is used up".into(),
        };
        Some(reason)
    }

    /// The report for the agent that gave the errand, and where its work is if that was done apart.
    pub fn text(&self) -> String {
        let mut said = self.body();
        if self.unread_messages > 0 {
            said.push_str("\n\nMessages that it has not read: ");
            said.push_str(&self.unread_messages.to_string());
        }
        let Some(tree) = &self.kept_worktree else { return said };
        let branch =
            tree.branch.as_ref().map(|branch| format!(" on the branch {branch}")).unwrap_or_default();
        format!(
            "{said}\n\nIts changes are not in the session's folder but in {}{branch}.",
            tree.path.display()
        )
    }

    fn body(&self) -> String {
        match self.failure_reason() {
            None if self.outcome.text.is_empty() => "The agent said nothing.".into(),
            None => self.outcome.text.clone(),
            Some(reason) if self.partial_text.is_empty() => {
                format!("The agent could not finish: {reason}. It has not said anything yet.")
            }
            Some(reason) => {
                format!("The agent could not finish: {reason}. What it said last:\n{}", self.partial_text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_a_message_came_is_reported_too() {
        let rows: [(&[&str], &str, &str); 4] = [
            (&[], "Done.", "Done."),
            (&["First."], "Second.", "First.\n\nSecond."),
            (&["First.", ""], "", "First."),
            (&[], "", ""),
        ];
        for (before, last, expected) in rows {
            let before: Vec<String> = before.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(join_texts(&before, last), expected);
        }
    }

    #[test]
    fn who_could_not_finish_says_why_and_what_there_is() {
        let report = |end: TurnEnd, text: &str, partial: &str| AgentReport {
            agent_id: "a1".into(),
            outcome: TurnOutcome { text: text.into(), ..TurnOutcome::new(end) },
            partial_text: partial.into(),
            model: "m".into(),
            usage: Usage::default(),
            cost_usd: 0.0,
            task_usage: TaskUsage::default(),
            duration: Duration::ZERO,
            background: false,
            stopped: false,
            kept_worktree: None,
            unread_messages: 0,
        };
        let rows: [(&str, AgentReport, &[&str]); 5] = [
            ("well", report(TurnEnd::Done, "Found it.", "Found it."), &["Found it."]),
            ("silent", report(TurnEnd::Done, "", ""), &["said nothing"]),
            (
                "failed",
                report(TurnEnd::ApiError, "API Error: 400 no", "Half."),
                &["API Error: 400 no", "Half."],
            ),
            (
                "with messages left",
                AgentReport { unread_messages: 2, ..report(TurnEnd::MaxTurns, "", "Half.") },
                &["Half.", "not read: 2"],
            ),
            ("at once", report(TurnEnd::MaxTurns, "", ""), &["model calls", "not said anything"]),
        ];
        for (name, report, parts) in rows {
            let text = report.text();
            assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
        }
    }
}
