//! A single rule: `Tool` or `Tool(specifier)`. Parsing and formatting.

use std::fmt;

use thiserror::Error;
use whimbrel_wire::permission::{PermissionBehavior, RuleValue};

use crate::rules::command_pattern::CommandPattern;
use crate::rules::parameter_rule::ParameterRule;
use crate::rules::tool_name::{check_name, resolve_alias};
use crate::tool_kind::ToolKind;

/// A parsed rule. `rule_set` interprets the specifier, depending on the tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Tool name with aliases replaced; may contain `*`.
    pub tool: String,
    /// Specifier in the parentheses, unescaped; `None` means every call. `*` is stored as `None`.
    pub content: Option<String>,
}

/// Reason why a text is not a valid rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// The tool name is missing.
    #[error("rule `{0}` has no tool name; write `Tool` or `Tool(specifier)`")]
    MissingName(String),
    /// The tool name contains a character that no tool name has.
    #[error(
        "rule `{rule}` has `{character}` in the tool's name; write `Tool(specifier)` without blanks before `(`"
    )]
    InvalidName {
        rule: String,
        /// First invalid character.
        character: char,
    },
    /// The closing parenthesis is missing or not the last character.
    #[error("rule `{0}` does not end in `)`; close the specifier and write nothing after it")]
    Unclosed(String),
    /// `mcp__` without a server, or `mcp__server__` without a tool.
    #[error("rule `{0}` is incomplete; write `mcp__server` or `mcp__server__tool`")]
    IncompleteMcpName(String),
    /// `Tool()` as an allow rule.
    #[error("rule `{0}` has an empty specifier; write the tool's name alone to mean every call")]
    EmptySpecifier(String),
    /// An allow rule with a `*` that would cover tools that the rule does not name.
    #[error("allow rule `{0}` has a `*` in the tool's name; only `mcp__server__prefix*` may have one")]
    WildcardAllow(String),
    /// A path pattern with `!`, which gitignore reads as an exception.
    #[error("rule `{0}` begins with `!`, but rules have no exceptions; write the paths that the rule covers")]
    Negation(String),
    #[error("rule `{0}` contains an invalid glob; escape a literal `[` as `\\[`")]
    InvalidGlob(String),
}

impl Rule {
    /// Parses a rule.
    ///
    /// # Errors
    ///
    /// If the text is not of the form `Tool` or `Tool(specifier)`.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let (name, content) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let inner = strip_closing_paren(rest).ok_or_else(|| RuleError::Unclosed(text.to_owned()))?;
                (name, Some(unescape(inner)))
            }
        };
        check_name(name, text)?;
        Ok(Self::new(name, content))
    }

    /// Creates a rule from its wire form.
    ///
    /// # Errors
    ///
    /// If the tool name is invalid.
    pub fn from_value(value: &RuleValue) -> Result<Self, RuleError> {
        let name = value.tool_name.trim();
        check_name(name, name)?;
        Ok(Self::new(name, value.rule_content.clone()))
    }

    /// Wire form of the rule.
    pub fn to_value(&self) -> RuleValue {
        RuleValue { tool_name: self.tool.clone(), rule_content: self.content.clone() }
    }

    /// Returns true if the rule applies to every call of its tools.
    pub fn is_bare(&self) -> bool {
        self.content.is_none()
    }

    /// Returns true if another rule with the same behavior has the same meaning: `x:*` and `x *` are one command
    /// pattern. Deny and ask rules are equivalent only if neither may be a rule about an input field.
    pub fn is_equivalent(&self, other: &Self, behavior: PermissionBehavior) -> bool {
        let (Some(left), Some(right)) = (&self.content, &other.content) else { return self == other };
        let about_field =
            |content: &str| behavior != PermissionBehavior::Allow && ParameterRule::parse(content).is_some();
        let is_command = self.tool == other.tool && ToolKind::from_name(&self.tool) == ToolKind::Shell;
        self == other
            || is_command
                && !about_field(left)
                && !about_field(right)
                && CommandPattern::new(left) == CommandPattern::new(right)
    }

    fn new(name: &str, content: Option<String>) -> Self {
        Self { tool: resolve_alias(name).to_owned(), content: content.filter(|content| content != "*") }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        let Some(content) = &self.content else { return Ok(()) };
        f.write_str("(")?;
        for character in content.chars() {
            if matches!(character, '(' | ')' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        f.write_str(")")
    }
}

/// Returns the text before the closing parenthesis, which must be last and not escaped.
fn strip_closing_paren(rest: &str) -> Option<&str> {
    let inner = rest.strip_suffix(')')?;
    let backslashes = inner.bytes().rev().take_while(|byte| *byte == b'\\').count();
    (backslashes % 2 == 0).then_some(inner)
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = characters.next_if(|next| character == '\\' && matches!(next, '(' | ')' | '\\'));
        out.push(escaped.unwrap_or(character));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tool: &str, content: Option<&str>) -> Rule {
        Rule { tool: tool.to_owned(), content: content.map(str::to_owned) }
    }

    #[test]
    fn valid_rules_parse() {
        let rows = [
            ("Bash", rule("Bash", None)),
            ("  Bash  ", rule("Bash", None)),
            ("Bash(*)", rule("Bash", None)),
            ("Bash(npm run build)", rule("Bash", Some("npm run build"))),
            ("Bash(echo (a))", rule("Bash", Some("echo (a)"))),
            ("Read(//a/\\(b\\)\\\\c)", rule("Read", Some("//a/(b)\\c"))),
            ("Bash(k\\*)", rule("Bash", Some("k\\*"))),
            ("Bash()", rule("Bash", Some(""))),
            ("Task(Explore)", rule("Agent", Some("Explore"))),
            ("KillShell", rule("TaskStop", None)),
            ("MultiEdit(a)", rule("Edit", Some("a"))),
            ("mcp__a__b*", rule("mcp__a__b*", None)),
            ("*", rule("*", None)),
        ];
        for (text, expected) in rows {
            assert_eq!(Rule::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_rules_are_rejected() {
        let no_rules = [
            "",
            " ",
            "(a)",
            "Bash(a",
            "Bash(a) b",
            "Bash (a)",
            "Bash(a\\)",
            "Ba sh",
            "mcp__",
            "mcp__a__",
            "mcp____b",
            "Bäsh",
        ];
        for text in no_rules {
            assert!(Rule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_rule_parses_to_itself() {
        for content in ["//a/(b)\\c", "k\\*", "a\\\\b", "\\", ")(", "x"] {
            let rule = rule("Read", Some(content));
            assert_eq!(Rule::parse(&rule.to_string()), Ok(rule.clone()), "{rule}");
        }
        assert_eq!(rule("Read", Some("//a/(b)\\c")).to_string(), "Read(//a/\\(b\\)\\\\c)");
    }

    #[test]
    fn equivalent_rules() {
        use PermissionBehavior::{Allow, Deny};
        let rows = [
            ("Bash(touch:*)", "Bash(touch *)", Allow, true),
            ("Bash(npm  run:*)", "Bash(npm run *)", Deny, true),
            ("Bash(timeout:*)", "Bash(timeout *)", Deny, false),
            ("Bash(touch:*)", "Bash(touch*)", Allow, false),
            ("Bash(touch:*)", "Monitor(touch *)", Allow, false),
            ("Bash(touch:*)", "Bash", Allow, false),
            ("Read(touch:*)", "Read(touch *)", Allow, false),
        ];
        for (left, other, behavior, expected) in rows {
            let [first, second] = [left, other].map(|text| Rule::parse(text).unwrap());
            assert_eq!(first.is_equivalent(&second, behavior), expected, "{behavior} {left} {other}");
        }
    }
}
