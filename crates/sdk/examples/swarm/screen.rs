//! Shows the crew: as a tree that is drawn over itself in a terminal, as a line for each event elsewhere.

use std::io::{self, Write};

use whimbrel::wire::system::TaskEnd;

use crate::agent_tree::{AgentTree, AgentStatus, ProgressEvent};

/// Where the crew is shown.
pub(crate) enum Screen {
    /// In a terminal; so many lines were drawn last.
    Tree(usize),
    /// In a file or a pipe.
    Lines,
}

impl Screen {
    pub(crate) fn tree() -> Self {
        Self::Tree(0)
    }

    pub(crate) fn lines() -> Self {
        Self::Lines
    }

    /// Shows what has happened. A tree is drawn anew even if there is no news: somebody has spent something.
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
                    // Back to the first line; everything below goes.
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
    let leader = format!("{} \x1b[1mleader\x1b[0m  {}", status_symbol(&crew.leader), truncate(&crew.leader.activity, 64));
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

/// The text in one line, cut to fit: a line that wraps could not be drawn over.
fn truncate(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.chars().count() > width {
        true => line.chars().take(width - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}
