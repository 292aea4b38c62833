//! What was refused to a command, as the model reads it at the end of a result and as the host gets it.

use serde_json::{Value, json};
use whimbrel_sandbox::violations::{Violation, render_report};

/// What was refused to one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViolationReport {
    violations: Vec<Violation>,
    advice: &'static str,
}

/// What may be done, if the model may ask to leave the sandbox.
const ADVICE: &str = "The sandbox refused this. If the command needs it, find another way within the working directories, or \
    run it again with dangerouslyDisableSandbox: true, which asks the user.";
const STRICT_ADVICE: &str = "The sandbox refused this, and no command can leave it. Find another way, or tell the user what \
    is needed.";

impl ViolationReport {
    pub fn new(violations: Vec<Violation>, may_leave: bool) -> Self {
        Self { violations, advice: if may_leave { ADVICE } else { STRICT_ADVICE } }
    }

    /// The block for the model; `None` if nothing was refused.
    pub fn render(&self) -> Option<String> {
        render_report(&self.violations, self.advice)
    }

    /// The field of `tool_use_result`.
    pub fn to_json(&self) -> Value {
        let texts: Vec<String> = self.violations.iter().map(ToString::to_string).collect();
        json!({"confined": true, "violations": texts})
    }
}

/// Removes what the settings leave out of reports. An entry applies to commands that contain its pattern.
pub(crate) fn remove_ignored(
    violations: &mut Vec<Violation>,
    command: &str,
    ignored: &std::collections::BTreeMap<String, Vec<String>>,
) {
    let applies = |pattern: &str| pattern == "*" || command.contains(pattern);
    let entries: Vec<&String> =
        ignored.iter().filter(|(pattern, _)| applies(pattern)).flat_map(|(_, entries)| entries).collect();
    violations.retain(|violation| {
        let text = match violation {
            Violation::Network(refusal) => refusal.host.clone(),
            Violation::Write(path) | Violation::Read(path) => path.display().to_string(),
            Violation::Appeared(_) | Violation::LocalSocket => return true,
        };
        !entries.iter().any(|entry| text.starts_with(entry.trim_end_matches("/**")))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_paths_are_left_out_for_matching_commands() {
        let ignored = [
            ("npm".to_owned(), vec!["/home/u/.npm".to_owned()]),
            ("*".to_owned(), vec!["/var/**".to_owned()]),
        ];
        let ignored = ignored.into_iter().collect();
        let all = ["/home/u/.npm/x", "/var/log", "/etc/x"].map(|path| Violation::Write(path.into())).to_vec();
        for (command, expected) in [("npm install", 1), ("make", 2)] {
            let mut violations = all.clone();
            remove_ignored(&mut violations, command, &ignored);
            assert_eq!(violations.len(), expected, "{command}");
        }
    }
}
