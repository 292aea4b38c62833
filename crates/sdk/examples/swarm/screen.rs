//! Shows the agent tree: redrawn in place on a terminal, one line per event elsewhere.

use std::io::{self, Write};

use whimbrel::wire::system::TaskEnd;

use crate::agent_tree::{AgentStatus, AgentTree, ProgressEvent};

/// Output of the example.
pub(crate) enum Screen {
    /// A terminal; holds the number of lines drawn last.
    Tree(usize),
    /// A file or a pipe.
    Lines,
}

impl Screen {
    pub(crate) fn tree() -> Self {
        Self::Tree(0)
    }

    pub(crate) fn lines() -> Self {
        Self::Lines
    }

    /// Shows an event. The tree is redrawn even without one, because token counts may have changed.
    pub(crate) fn show(&mut self, crew: &AgentTree, news: Option<&ProgressEvent>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self {
            Self::Lines => {
                if let Some(ProgressEvent { agent: who, text: what }) = news {
                    writeln!(out, "{who:<20} {what}")?;
                }
            }
            Self::Tree(drawn) => {
                let lines = render_tree(crew);
                if *drawn > 0 {
                    // Move back to the first line and clear everything below.
                    write!(out, "\x1b[{drawn}A\x1b[J")?;
                }
                for line in &lines {
                    writeln!(out, "{line}")?;
                }
                *drawn = lines.len();
            }
        }
        out.flush()
    }
}

fn render_tree(crew: &AgentTree) -> Vec<String> {
    let leader = format!(
        "{} \x1b[1mleader\x1b[0m  {}",
        status_symbol(&crew.leader),
        truncate(&crew.leader.activity, 64)
    );
    let last = crew.subagents.len().saturating_sub(1);
    let below = crew.subagents.iter().enumerate().map(|(place, member)| {
        let branch = if place == last { "└─" } else { "├─" };
        format!(
            "{branch} {} \x1b[1m{:<18}\x1b[0m {:<20} \x1b[2m{:>6} tokens\x1b[0m  {}",
            status_symbol(member),
            member.name,
            truncate(&member.task_description, 20),
            member.tokens,
            truncate(&member.activity, 24),
        )
    });
    std::iter::once(leader).chain(below).collect()
}

fn status_symbol(member: &AgentStatus) -> &'static str {
    match member.end {
        None => "\x1b[33m●\x1b[0m",
        Some(TaskEnd::Completed) => "\x1b[32m✓\x1b[0m",
        Some(_) => "\x1b[31m✗\x1b[0m",
    }
}

/// Returns the first line of a text, truncated to the width: a wrapped line could not be redrawn in place.
fn truncate(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.chars().count() > width {
        true => line.chars().take(width - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}
