//! How a permission rule is written in a settings file, and when two texts are the same rule. What a rule matches is
//! judged elsewhere.

use whimbrel_wire::permission::{PermissionBehavior, RuleValue};

/// The text of a rule. None if it cannot be written: its name is no name, or it would allow nothing.
pub fn write(rule: &RuleValue, behavior: PermissionBehavior) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:*".contains(c);
    let name = rule.tool_name.as_str();
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    match rule.rule_content.as_deref() {
        None => Some(name.into()),
        Some("") if behavior == PermissionBehavior::Allow => None,
        Some("") => Some(name.into()),
        Some(content) => Some(format!("{name}({})", escape(content))),
    }
}

fn escape(content: &str) -> String {
    let mut escaped = String::with_capacity(content.len());
    for c in content.chars() {
        if matches!(c, '(' | ')' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Whether two texts are the same rule, however they are written.
pub fn same(one: &str, other: &str) -> bool {
    one == other || parts(one) == parts(other)
}

/// Name and content: blanks around it, old names and different ways to escape make no difference.
fn parts(text: &str) -> (&str, Option<String>) {
    let text = text.trim();
    let split = text.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
    let (name, content) = split.map_or((text, None), |(name, content)| (name, Some(unescape(content))));
    let name = match name {
        "Task" => "Agent",
        "KillShell" => "TaskStop",
        "MultiEdit" => "Edit",
        name => name,
    };
    (name, content.filter(|content| content != "*"))
}

fn unescape(content: &str) -> String {
    let mut plain = String::with_capacity(content.len());
    let mut rest = content.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some(next @ ('(' | ')' | '\\'))) => {
                plain.push(*next);
                rest.next();
            }
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, content: Option<&str>) -> RuleValue {
        RuleValue { tool_name: name.into(), rule_content: content.map(String::from) }
    }

    #[test]
    fn rules_are_written_with_their_brackets_escaped() {
        use PermissionBehavior::{Allow, Deny};
        let rows = [
            ("Bash", None, Allow, Some("Bash")),
            ("Bash", Some("m1 *"), Allow, Some("Bash(m1 *)")),
            ("Read", Some("//a/(b)\\c"), Allow, Some("Read(//a/\\(b\\)\\\\c)")),
            ("mcp__a__b", None, Deny, Some("mcp__a__b")),
            ("Bash", Some(""), Deny, Some("Bash")),
            ("Bash", Some(""), Allow, None),
            ("", None, Deny, None),
            ("Bash(x", None, Allow, None),
            ("a b", None, Allow, None),
        ];
        for (name, content, behavior, expected) in rows {
            assert_eq!(write(&rule(name, content), behavior).as_deref(), expected, "{name} {content:?}");
        }
    }

    #[test]
    fn the_same_rule_can_be_written_in_several_ways() {
        let rows = [
            ("Bash(x)", " Bash(x) ", true),
            ("Bash", "Bash(*)", true),
            ("Task(explore)", "Agent(explore)", true),
            ("Read(a\\(b\\))", "Read(a(b))", true),
            ("Bash(x)", "Bash(X)", false),
            ("Bash(x)", "Bash(x )", false),
            ("Bash", "Bash(x)", false),
        ];
        for (one, other, expected) in rows {
            assert_eq!(same(one, other), expected, "{one} {other}");
        }
    }
}
