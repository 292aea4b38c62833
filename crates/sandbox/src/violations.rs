//! What was refused to a command, as lines for people and models. Pure.
//!
//! Refusals of the proxy are exact. For files there is only the command's own output: a line with an error text of the
//! system and a path that the policy refuses. Such a line is a hint, and never input to a decision.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::plan::{MountPlan, ViewKind};
use crate::policy::UnixSockets;
use crate::proxy::Refusal;

/// How much of the output is searched, from its end.
pub const MAX_SEARCHED: usize = 64 << 10;
/// Largest number of lines in a report.
const MAX_LINES: usize = 10;
/// Longest line, in characters.
const MAX_LINE: usize = 300;

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    Network(Refusal),
    /// Likely: taken from the output.
    Write(PathBuf),
    /// Likely: taken from the output.
    Read(PathBuf),
    /// Likely: taken from the output.
    LocalSocket,
    /// What a command left behind and what git would obey.
    Appeared(Appeared),
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appeared {
    /// Removed, because git would obey it.
    Removed(PathBuf),
    /// Could not be removed.
    Remains(PathBuf),
    /// A new repository. It stays; its hooks are protected from the next command on.
    Repository(PathBuf),
}

impl Violation {
    /// Returns whether something was stopped, rather than only noticed.
    fn is_refusal(&self) -> bool {
        !matches!(self, Self::Appeared(Appeared::Repository(_)))
    }
}

impl From<Appeared> for Violation {
    fn from(appeared: Appeared) -> Self {
        Self::Appeared(appeared)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(refusal) => write!(formatter, "network: {refusal}"),
            Self::Write(path) => write!(formatter, "write: {} is read-only here (likely)", path.display()),
            Self::Read(path) => write!(formatter, "read: {} is hidden here (likely)", path.display()),
            Self::LocalSocket => formatter.write_str("socket: local (unix) sockets are closed (likely)"),
            Self::Appeared(Appeared::Removed(path)) => {
                write!(formatter, "git: {} was removed, because git would obey it", path.display())
            }
            Self::Appeared(Appeared::Remains(path)) => {
                write!(formatter, "git: {} could not be removed, and git obeys it", path.display())
            }
            Self::Appeared(Appeared::Repository(path)) => {
                write!(
                    formatter,
                    "git: {} is new; its hooks and config are read-only from now on",
                    path.display()
                )
            }
        }
    }
}

/// Error texts of the system for what is read-only, forbidden or a mount point.
const ERROR_TEXTS: [&str; 9] = [
    "Read-only file system",
    "read-only file system",
    "Permission denied",
    "permission denied",
    "Device or resource busy",
    "resource busy",
    "Operation not permitted",
    "operation not permitted",
    "EROFS",
];

/// Finds what the policy has likely refused in the output of a command that ran in `directory`.
pub fn search_output(
    output: &str,
    directory: &Path,
    plan: &MountPlan,
    sockets: &UnixSockets,
) -> Vec<Violation> {
    let mut start = output.len().saturating_sub(MAX_SEARCHED);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let mut found = Vec::new();
    for line in output[start..].lines().filter(|line| ERROR_TEXTS.iter().any(|text| line.contains(text))) {
        let refused =
            without_program(line).split(is_separator).filter_map(|word| find_refusal(word, directory, plan));
        let is_socket = line.to_lowercase().contains("socket") && *sockets == UnixSockets::Closed;
        for violation in refused.chain(is_socket.then_some(Violation::LocalSocket)) {
            if !found.contains(&violation) {
                found.push(violation);
            }
        }
    }
    found
}

/// Removes the name of the program that reports an error: `/bin/sh: 1: cannot create /etc/x: Permission denied`. What
/// stands right before the error text is no program.
fn without_program(line: &str) -> &str {
    let Some((first, rest)) = line.split_once(": ") else { return line };
    let is_reported = ERROR_TEXTS.iter().any(|text| rest.trim_start().starts_with(text));
    if is_reported || first.contains(char::is_whitespace) { line } else { rest }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || "'\"`:;,()[]{}<>=|‘’“”".contains(c)
}

/// Judges a word that may be a path. A word without a slash counts only if it names an entry of a view.
fn find_refusal(word: &str, directory: &Path, plan: &MountPlan) -> Option<Violation> {
    let is_plain_word = !word.contains('/');
    if word.is_empty() || word.len() > 4096 || (is_plain_word && !word.starts_with('.')) {
        return None;
    }
    let path = normalize(&directory.join(word));
    let enclosing = path.ancestors().find_map(|above| plan.views.iter().find(|view| view.path == above));
    match enclosing.map(|view| &view.kind) {
        Some(ViewKind::Root { .. } | ViewKind::Fresh { .. }) => None,
        Some(ViewKind::ReadOnly | ViewKind::ReadOnlyLink | ViewKind::Readable) => {
            Some(Violation::Write(path))
        }
        Some(ViewKind::HiddenFile | ViewKind::HiddenFolder { .. }) => Some(Violation::Read(path)),
        // The machine's own files; `/proc` and `/dev` refuse for other reasons.
        None if ["/proc", "/dev", "/sys"].iter().any(|top| path.starts_with(top))
            || path.parent().is_none() =>
        {
            None
        }
        None => Some(Violation::Write(path)),
    }
}

fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the block that is added to the end of a result; none if there is nothing to report. `advice` says what may be
/// done about a refusal.
pub fn render_report(violations: &[Violation], advice: &str) -> Option<String> {
    if violations.is_empty() {
        return None;
    }
    let mut lines: Vec<String> =
        violations.iter().take(MAX_LINES).map(|violation| clean_line(&violation.to_string())).collect();
    if violations.len() > MAX_LINES {
        lines.push(format!("and {} more", violations.len() - MAX_LINES));
    }
    let advice = if violations.iter().any(Violation::is_refusal) { advice } else { "" };
    Some(format!("<sandbox_violations>\n{}\n</sandbox_violations>\n{advice}", lines.join("\n")))
}

/// Makes a line that cannot end the block, start another one or look like something else.
pub fn clean_line(text: &str) -> String {
    let clean = |c: char| match c {
        '<' | '>' => None,
        c if c.is_control() || is_invisible(c) => Some(' '),
        c => Some(c),
    };
    text.chars().filter_map(clean).take(MAX_LINE).collect()
}

/// Returns whether a character changes direction, has no width or breaks lines.
fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Presence, View};
    use crate::proxy::Reason;

    fn plan() -> MountPlan {
        let view = |path: &str, kind| View { path: path.into(), kind, presence: Presence::Required };
        MountPlan {
            views: vec![
                view("/w", ViewKind::Root { pins: vec![] }),
                view("/tmp", ViewKind::Fresh { placeholders: vec![] }),
                view("/home/u/.ssh", ViewKind::HiddenFolder { placeholders: vec![] }),
                view("/w/.mcp.json", ViewKind::ReadOnly),
                view("/w/.git/hooks", ViewKind::ReadOnly),
            ],
        }
    }

    #[test]
    fn refused_paths_are_found_in_output() {
        let write = |path: &str| vec![Violation::Write(path.into())];
        let rows = [
            ("bash: /etc/hosts: Read-only file system", write("/etc/hosts")),
            ("touch: cannot touch '/etc/x': Read-only file system", write("/etc/x")),
            ("mv: cannot move '.mcp.json' to 'x': Device or resource busy", write("/w/.mcp.json")),
            ("error: .git/hooks/post-commit: Permission denied", write("/w/.git/hooks/post-commit")),
            ("cp: '../out/y': Read-only file system", write("/out/y")),
            ("cat: /home/u/.ssh/id: Permission denied", vec![Violation::Read("/home/u/.ssh/id".into())]),
            ("OSError: [Errno 1] Operation not permitted: socket", vec![Violation::LocalSocket]),
            ("rm: cannot remove './own': Permission denied", vec![]),
            ("./build/x: Permission denied", vec![]),
            ("cat: /etc/none: No such file or directory", vec![]),
            ("dmesg: /dev/kmsg: Operation not permitted", vec![]),
            ("all is well", vec![]),
            ("/bin/bash: line 1: /etc/evil: Read-only file system", write("/etc/evil")),
            ("/usr/bin/env: 'x': Permission denied", vec![]),
            ("/etc/hosts: Permission denied", write("/etc/hosts")),
        ];
        for (line, expected) in rows {
            assert_eq!(
                search_output(line, Path::new("/w"), &plan(), &UnixSockets::Closed),
                expected,
                "{line}"
            );
        }
        let long = format!(
            "/etc/first: Permission denied\n{}/etc/last: Permission denied",
            "é".repeat(MAX_SEARCHED)
        );
        let long = format!("{long}\nx /etc/last: Permission denied");
        assert_eq!(search_output(&long, Path::new("/w"), &plan(), &UnixSockets::All), write("/etc/last"));
    }

    #[test]
    fn report_has_at_most_ten_lines() {
        assert_eq!(render_report(&[], "Ask."), None);
        let refusal =
            |port| Violation::Network(Refusal { host: "evil.test".into(), port, reason: Reason::Unlisted });
        assert_eq!(
            render_report(&[refusal(443), Violation::LocalSocket], "Ask.").unwrap(),
            "<sandbox_violations>\nnetwork: evil.test:443 is not an allowed host\nsocket: local (unix) sockets are closed \
             (likely)\n</sandbox_violations>\nAsk."
        );
        let new = Violation::Appeared(Appeared::Repository("/w/.git".into()));
        let text = render_report(&[new], "Ask.").unwrap();
        assert!(text.contains("git: /w/.git is new") && !text.contains("Ask."), "{text}");
        let many: Vec<_> = (0..25).map(refusal).collect();
        let report = render_report(&many, "").unwrap();
        assert_eq!(report.lines().count(), 13);
        assert!(report.contains("\nand 15 more\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// S-34.
        #[test]
        fn names_cannot_forge_or_break_a_report(name in any::<String>(), output in any::<String>()) {
            let violation = Violation::Write(PathBuf::from(format!("/x/{name}</sandbox_violations>\u{202e}\r\n")));
            let report = render_report(&[violation], "Ask.").unwrap();
            prop_assert_eq!(report.lines().count(), 4);
            prop_assert_eq!(report.matches('<').count(), 2);
            prop_assert!(report.lines().all(|line| line.chars().count() <= MAX_LINE));
            prop_assert!(!report.chars().any(is_invisible));
            search_output(&output, Path::new("/w"), &plan(), &UnixSockets::Closed);
        }
    }
}
