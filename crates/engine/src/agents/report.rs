//! What came of an errand, in words for the agent that gave it.

use std::time::Duration;

use whimbrel_wire::Usage;
use whimbrel_wire::system::TaskUsage;

use crate::tasks::TaskStatus;
use crate::turn::Ending;
use crate::verdict::End;
use crate::worktree::Worktree;

/// What came of an errand.
#[derive(Debug, Clone)]
pub struct Report {
    /// The agent.
    pub agent_id: String,
    /// How its turn went; its text is the report.
    pub ending: Ending,
    /// What it said last before something went wrong.
    pub partial: String,
    /// The model that it asked.
    pub model: String,
    /// What its replies cost.
    pub usage: Usage,
    /// The same in dollars.
    pub dollars: f64,
    /// The same, as tasks are counted.
    pub task_usage: TaskUsage,
    /// How long it took.
    pub took: Duration,
    /// Whether the turn has gone on beside it: then it is told as news.
    pub background: bool,
    /// Whether somebody told it to stop.
    pub stopped: bool,
    /// The work tree that it worked in, if there is something in it that would be lost.
    pub kept: Option<Worktree>,
    /// How many messages had come for it that it could not take up.
    pub unread: usize,
}

/// What an agent said at the end of each of its turns, in order: a message that came meanwhile does not undo its report.
pub(super) fn together(before: &[String], last: &str) -> String {
    let said = before.iter().map(String::as_str).chain([last]).filter(|text| !text.is_empty());
    said.collect::<Vec<_>>().join("\n\n")
}

impl Report {
    /// How the errand ended.
    pub fn status(&self) -> TaskStatus {
        match self.ending.end {
            End::Done => TaskStatus::Completed,
            End::AbortedStreaming | End::AbortedTools => TaskStatus::Stopped,
            End::MaxTurns
            | End::ApiFailure
            | End::Refused
            | End::OutputLimit
            | End::Stalled
            | End::NoAnswer
            | End::TooLong
            | End::HookStopped
            | End::Deferred
            | End::Broke => TaskStatus::Failed,
        }
    }

    /// Why it could not finish, if it could not.
    pub fn trouble(&self) -> Option<String> {
        let text = &self.ending.text;
        let reason = match self.ending.end {
            End::Done => return None,
            End::AbortedStreaming | End::AbortedTools => "it was interrupted".into(),
            End::MaxTurns => "it has made as many model calls as it may".into(),
            End::ApiFailure | End::TooLong | End::OutputLimit | End::Stalled => text.clone(),
            End::Refused => "its model declined to answer".into(),
            End::NoAnswer => "it gave no answer in the shape that was asked for".into(),
            End::HookStopped => "a hook stopped it".into(),
            End::Deferred => "one of its calls was put off".into(),
            End::Broke => "the budget is used up".into(),
        };
        Some(reason)
    }

    /// The report for the agent that gave the errand, and where its work is if that was done apart.
    pub fn text(&self) -> String {
        let mut said = self.said();
        if self.unread > 0 {
            said.push_str("\n\nMessages that it has not read: ");
            said.push_str(&self.unread.to_string());
        }
        let Some(tree) = &self.kept else { return said };
        let branch =
            tree.branch.as_ref().map(|branch| format!(" on the branch {branch}")).unwrap_or_default();
        format!(
            "{said}\n\nIts changes are not in the session's folder but in {}{branch}.",
            tree.path.display()
        )
    }

    fn said(&self) -> String {
        match self.trouble() {
            None if self.ending.text.is_empty() => "The agent said nothing.".into(),
            None => self.ending.text.clone(),
            Some(reason) if self.partial.is_empty() => {
                format!("The agent could not finish: {reason}. It has not said anything yet.")
            }
            Some(reason) => {
                format!("The agent could not finish: {reason}. What it said last:\n{}", self.partial)
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
            assert_eq!(together(&before, last), expected);
        }
    }

    #[test]
    fn who_could_not_finish_says_why_and_what_there_is() {
        let report = |end: End, text: &str, partial: &str| Report {
            agent_id: "a1".into(),
            ending: Ending { text: text.into(), ..Ending::new(end) },
            partial: partial.into(),
            model: "m".into(),
            usage: Usage::default(),
            dollars: 0.0,
            task_usage: TaskUsage::default(),
            took: Duration::ZERO,
            background: false,
            stopped: false,
            kept: None,
            unread: 0,
        };
        let rows: [(&str, Report, &[&str]); 5] = [
            ("well", report(End::Done, "Found it.", "Found it."), &["Found it."]),
            ("silent", report(End::Done, "", ""), &["said nothing"]),
            (
                "failed",
                report(End::ApiFailure, "API Error: 400 no", "Half."),
                &["API Error: 400 no", "Half."],
            ),
            (
                "with messages left",
                Report { unread: 2, ..report(End::MaxTurns, "", "Half.") },
                &["Half.", "not read: 2"],
            ),
            ("at once", report(End::MaxTurns, "", ""), &["model calls", "not said anything"]),
        ];
        for (name, report, parts) in rows {
            let text = report.text();
            assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
        }
    }
}
