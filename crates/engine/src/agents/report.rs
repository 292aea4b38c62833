//! Result of a subagent task, rendered for the parent agent.

use std::time::Duration;

use whimbrel_tools::tasks::TaskStatus;
use whimbrel_tools::workspace::worktree::Worktree;
use whimbrel_wire::Usage;
use whimbrel_wire::system::TaskUsage;

use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;

#[derive(Debug, Clone)]
pub struct AgentReport {
    pub agent_id: String,
    /// Outcome of its last turn; the text is the report.
    pub outcome: TurnOutcome,
    /// Last text before a failure.
    pub partial_text: String,
    pub model: String,
    pub usage: Usage,
    pub cost_usd: f64,
    /// The usage as reported for tasks.
    pub task_usage: TaskUsage,
    pub duration: Duration,
    /// Whether it ended in the background: then it is delivered as a notification.
    pub background: bool,
    /// Whether it was stopped on request.
    pub stopped: bool,
    /// Its worktree, if it has changes.
    pub kept_worktree: Option<Worktree>,
    /// Number of messages that it did not read.
    pub unread_messages: usize,
}

/// Joins the final texts of all turns: a message during the task must not hide the earlier report.
pub(super) fn join_texts(before: &[String], last: &str) -> String {
    let texts = before.iter().map(String::as_str).chain([last]).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

impl AgentReport {
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
            | TurnEnd::HookDeferred
            | TurnEnd::Conflict
            | TurnEnd::BudgetExceeded => TaskStatus::Failed,
        }
    }

    /// Reason why it did not finish, if it did not.
    pub fn failure_reason(&self) -> Option<String> {
        let text = &self.outcome.text;
        let reason = match self.outcome.end {
            TurnEnd::Done => return None,
            TurnEnd::AbortedStreaming | TurnEnd::AbortedTools => "it was interrupted".into(),
            TurnEnd::MaxTurns => "it reached its limit of model calls".into(),
            TurnEnd::ApiError | TurnEnd::ContextTooLong | TurnEnd::OutputLimit | TurnEnd::Stalled => {
                text.clone()
            }
            TurnEnd::Refused => "its model declined to answer".into(),
            TurnEnd::NoStructuredOutput => "it gave no valid structured output".into(),
            TurnEnd::HookStopped => "a hook stopped it".into(),
            TurnEnd::HookDeferred => "one of its tool calls was deferred".into(),
            TurnEnd::BudgetExceeded => "the budget is used up".into(),
            TurnEnd::Conflict => "its session was continued elsewhere".into(),
        };
        Some(reason)
    }

    /// Renders the report for the parent, with the location of isolated changes.
    pub fn text(&self) -> String {
        let mut text = self.body();
        if self.unread_messages > 0 {
            text.push_str("\n\nMessages that it has not read: ");
            text.push_str(&self.unread_messages.to_string());
        }
        let Some(worktree) = &self.kept_worktree else { return text };
        let branch =
            worktree.branch.as_ref().map(|branch| format!(" on the branch {branch}")).unwrap_or_default();
        format!(
            "{text}\n\nIts changes are not in the session's directory but in {}{branch}.",
            worktree.path.display()
        )
    }

    fn body(&self) -> String {
        match self.failure_reason() {
            None if self.outcome.text.is_empty() => "The agent gave no report.".into(),
            None => self.outcome.text.clone(),
            Some(reason) if self.partial_text.is_empty() => {
                format!("The agent could not finish: {reason}. It wrote no text.")
            }
            Some(reason) => {
                format!("The agent could not finish: {reason}. Its last text:\n{}", self.partial_text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_earlier_turns_are_reported() {
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
    fn failed_task_reports_reason_and_partial_text() {
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
            ("completed", report(TurnEnd::Done, "Found it.", "Found it."), &["Found it."]),
            ("no text", report(TurnEnd::Done, "", ""), &["no report"]),
            (
                "failed",
                report(TurnEnd::ApiError, "API Error: 400 no", "Half."),
                &["API Error: 400 no", "Half."],
            ),
            (
                "with unread messages",
                AgentReport { unread_messages: 2, ..report(TurnEnd::MaxTurns, "", "Half.") },
                &["Half.", "not read: 2"],
            ),
            ("failed without text", report(TurnEnd::MaxTurns, "", ""), &["model calls", "no text"]),
        ];
        for (name, report, parts) in rows {
            let text = report.text();
            assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
        }
    }
}
