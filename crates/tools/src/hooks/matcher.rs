//! Matchers: which events of a type a hook is for. Pure.
//!
//! The characters of a matcher decide its kind:
//! 1. empty, blanks or `*`: every event;
//! 2. only letters, digits, `_`, `-`, blanks, `,` and `|`: a list of names, one of which must be equal;
//! 3. anything else: a regular expression that must match somewhere.

use std::borrow::Cow;
use std::path::Path;

use fancy_regex::Regex;
use serde::Serialize;
use whimbrel_wire::hook::{HookEvent, HookEventInput};

/// Parsed matcher of a hook.
#[derive(Debug, Clone)]
pub enum Matcher {
    All,
    /// One of these names.
    Names(Vec<String>),
    /// Regular expression.
    Pattern(Box<Regex>),
}

impl Matcher {
    /// Parses a matcher. The error describes the invalid regular expression.
    pub fn parse(event: HookEvent, text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default().trim();
        if text.is_empty() || text == "*" || matcher_field(event).is_none() {
            return Ok(Self::All);
        }
        if text.chars().all(|c| is_list_char(event, c)) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(Into::into).collect()));
        }
        Regex::new(text).map(|pattern| Self::Pattern(Box::new(pattern))).map_err(|error| error.to_string())
    }

    /// Returns true if the target matches. An event without a target matches every hook.
    pub fn matches(&self, target: Option<&str>) -> bool {
        let Some(target) = target else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == target),
            // If the regex engine gives up, the hook runs: a guard must not be skipped.
            Self::Pattern(pattern) => pattern.is_match(target).unwrap_or(true),
        }
    }

    /// Returns true if the matcher selects this target specifically, not because it matches everything.
    pub fn is_specific_to(&self, target: &str) -> bool {
        let unused_name = "\u{1}";
        self.matches(Some(target)) && !self.matches(Some(unused_name))
    }
}

/// Text that a matcher is compared with; `None` for events without matchers.
pub fn match_target(input: &HookEventInput) -> Option<Cow<'_, str>> {
    use HookEventInput as On;
    let name: &str = match input {
        On::PreToolUse(on) => &on.tool_name,
        On::PostToolUse(on) => &on.tool_name,
        On::PostToolUseFailure(on) => &on.tool_name,
        On::PermissionRequest(on) => &on.tool_name,
        On::PermissionDenied(on) => &on.tool_name,
        On::Notification(on) => &on.notification_type,
        On::UserPromptExpansion(on) => &on.command_name,
        On::SessionStart(on) => &on.source,
        On::SessionEnd(on) => &on.reason,
        On::StopFailure(on) => return Some(wire_str(&on.error)),
        On::SubagentStart(on) => &on.agent_type,
        On::SubagentStop(on) => &on.agent_type,
        On::PreCompact(on) => return Some(wire_str(&on.trigger)),
        On::PostCompact(on) => return Some(wire_str(&on.trigger)),
        On::PreModelSwitch(on) => base_model(&on.to_model),
        On::PostModelSwitch(on) => base_model(&on.to_model),
        On::Setup(on) => &on.trigger,
        On::Elicitation(on) => &on.mcp_server_name,
        On::ElicitationResult(on) => &on.mcp_server_name,
        On::ConfigChange(on) => &on.source,
        On::InstructionsLoaded(on) => &on.load_reason,
        On::FileChanged(on) => Path::new(&on.file_path).file_name()?.to_str()?,
        On::DirectoryAdded(on) => &on.source,
        On::UserPromptSubmit(_)
        | On::Stop(_)
        | On::PostToolBatch(_)
        | On::TeammateIdle(_)
        | On::TaskCreated(_)
        | On::TaskCompleted(_)
        | On::WorktreeCreate(_)
        | On::WorktreeRemove(_)
        | On::CwdChanged(_)
        | On::MessageDisplay(_)
        | On::Other { .. } => return None,
    };
    Some(Cow::Borrowed(name))
}

/// Field of the input that matchers are compared with; `None` for events whose hooks always run.
pub fn matcher_field(event: HookEvent) -> Option<&'static str> {
    use HookEvent as On;
    Some(match event {
        On::PreToolUse
        | On::PostToolUse
        | On::PostToolUseFailure
        | On::PermissionRequest
        | On::PermissionDenied => "tool_name",
        On::Notification => "notification_type",
        On::UserPromptExpansion => "command_name",
        On::SessionStart | On::ConfigChange | On::DirectoryAdded => "source",
        On::SessionEnd => "reason",
        On::StopFailure => "error",
        On::SubagentStart | On::SubagentStop => "agent_type",
        On::PreCompact | On::PostCompact | On::Setup => "trigger",
        On::PreModelSwitch | On::PostModelSwitch => "to_model",
        On::Elicitation | On::ElicitationResult => "mcp_server_name",
        On::InstructionsLoaded => "load_reason",
        On::FileChanged => "file_path",
        On::UserPromptSubmit
        | On::Stop
        | On::PostToolBatch
        | On::TeammateIdle
        | On::TaskCreated
        | On::TaskCompleted
        | On::WorktreeCreate
        | On::WorktreeRemove
        | On::CwdChanged
        | On::MessageDisplay => return None,
    })
}

/// Returns true if the character may stand in a list of names.
fn is_list_char(event: HookEvent, c: char) -> bool {
    let allows_separators = !matches!(event, HookEvent::FileChanged | HookEvent::StopFailure);
    c.is_alphanumeric() || matches!(c, '_' | '|') || (allows_separators && matches!(c, '-' | ' ' | ','))
}

/// Model name without the context-window suffix.
fn base_model(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// Wire name of a unit variant.
fn wire_str(value: &impl Serialize) -> Cow<'static, str> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Cow::Owned(name),
        _ => Cow::Borrowed(""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::hook::HookInput;

    use super::*;

    fn fires(event: HookEvent, matcher: Option<&str>, target: Option<&str>) -> bool {
        Matcher::parse(event, matcher).unwrap().matches(target)
    }

    #[test]
    fn characters_decide_the_kind_of_matcher() {
        let mcp = "mcp__srv__get";
        for (matcher, tool, expected) in [
            (None, "Bash", true),
            (Some(""), "Bash", true),
            (Some("  "), "Bash", true),
            (Some("*"), "Bash", true),
            (Some("Bash"), "Bash", true),
            (Some("bash"), "Bash", false),
            (Some("B"), "Bash", false),
            (Some("Edit|Bash"), "Bash", true),
            (Some("Edit | Bash"), "Bash", true),
            (Some("Edit,Bash"), "Bash", true),
            (Some("Edit, Write"), "Bash", false),
            (Some("Bash|"), "Bash", true),
            (Some("|"), "Bash", false),
            (Some("Ba.*"), "Bash", true),
            (Some("^Bash$"), "Bash", true),
            (Some("^Ba$"), "Bash", false),
            (Some("a.h"), "Bash", true),
            (Some("Bash(touch:*)"), "Bash", false),
            (Some("^(?!Bash$).*"), "Bash", false),
            (Some("^(?!Bash$).*"), "Read", true),
            (Some("mcp__srv"), mcp, false),
            (Some("mcp__srv__.*"), mcp, true),
            (Some("mcp__.*__get|Bash"), mcp, true),
            (Some("code-reviewer"), "code-reviewer", true),
            (Some("code-reviewer"), "my-code-reviewer-2", false),
        ] {
            assert_eq!(fires(HookEvent::PreToolUse, matcher, Some(tool)), expected, "{matcher:?} on {tool}");
        }
    }

    #[test]
    fn file_names_and_errors_have_fewer_list_characters() {
        assert!(fires(HookEvent::FileChanged, Some(".env"), Some(".env")));
        assert!(fires(HookEvent::FileChanged, Some("my-file"), Some("my-file.txt")));
        assert!(!fires(HookEvent::FileChanged, Some("my_file"), Some("my_file.txt")));
    }

    #[test]
    fn an_invalid_regex_is_an_error_where_matchers_apply() {
        assert!(Matcher::parse(HookEvent::PreToolUse, Some("Bash(")).is_err());
        assert!(matches!(Matcher::parse(HookEvent::Stop, Some("Bash(")), Ok(Matcher::All)));
    }

    #[test]
    fn a_regex_that_gives_up_matches() {
        let pattern = Matcher::parse(HookEvent::PreToolUse, Some("(a|b|ab)*(?>c)")).unwrap();
        assert!(pattern.matches(Some(&"ab".repeat(40))));
        assert!(!pattern.matches(Some("x")));
    }

    #[test]
    fn each_event_is_matched_on_its_own_field() {
        let tool = json!({"tool_name": "X", "tool_input": {}, "tool_use_id": "t", "tool_response": 1, "error": "e", "reason": "r"});
        let model = json!({"from_model": "a", "to_model": "X[1m]", "source": "sdk", "context_tokens": 0, "prompt_cache_warm": true,
            "cache_ttl": "5m", "estimated_cache_write_usd": 0, "pricing": "catalog"});
        let agent = json!({"agent_id": "a", "agent_type": "X", "stop_hook_active": false, "agent_transcript_path": ""});
        let asks = json!({"mcp_server_name": "X", "message": "", "action": "accept"});
        let compact = json!({"trigger": "auto", "compact_summary": ""});
        let nothing = json!({"prompt": "", "stop_hook_active": false, "tool_calls": [], "teammate_name": "", "team_name": "",
            "task_id": "", "task_subject": "", "name": "", "worktree_path": "", "old_cwd": "", "new_cwd": "", "turn_id": "",
            "message_id": "", "index": 0, "final": true, "delta": ""});
        for event in HookEvent::ALL {
            use HookEvent as On;
            let (mut fields, expected) = match event {
                On::PreToolUse
                | On::PostToolUse
                | On::PostToolUseFailure
                | On::PermissionRequest
                | On::PermissionDenied => (tool.clone(), Some("X")),
                On::PreModelSwitch | On::PostModelSwitch => (model.clone(), Some("X")),
                On::SubagentStart | On::SubagentStop => (agent.clone(), Some("X")),
                On::Elicitation | On::ElicitationResult => (asks.clone(), Some("X")),
                On::PreCompact | On::PostCompact => (compact.clone(), Some("auto")),
                On::SessionStart | On::ConfigChange => (json!({"source": "X"}), Some("X")),
                On::SessionEnd => (json!({"reason": "X"}), Some("X")),
                On::Setup => (json!({"trigger": "X"}), Some("X")),
                On::Notification => (json!({"message": "m", "notification_type": "X"}), Some("X")),
                On::StopFailure => (json!({"error": "rate_limit"}), Some("rate_limit")),
                On::DirectoryAdded => (json!({"directory": "/d", "source": "X"}), Some("X")),
                On::FileChanged => (json!({"file_path": "/a/X", "event": "add"}), Some("X")),
                On::InstructionsLoaded => {
                    (json!({"file_path": "f", "memory_type": "User", "load_reason": "X"}), Some("X"))
                }
                On::UserPromptExpansion => {
                    let fields = json!({"expansion_type": "slash_command", "command_name": "X", "command_args": "", "prompt": ""});
                    (fields, Some("X"))
                }
                On::UserPromptSubmit
                | On::Stop
                | On::PostToolBatch
                | On::TeammateIdle
                | On::TaskCreated
                | On::TaskCompleted
                | On::WorktreeCreate
                | On::WorktreeRemove
                | On::CwdChanged
                | On::MessageDisplay => (nothing.clone(), None),
            };
            fields["hook_event_name"] = event.as_str().into();
            let input: HookInput = serde_json::from_value(fields).unwrap();
            assert_eq!(match_target(&input.event).as_deref(), expected, "{event}");
            let field = matcher_field(*event);
            assert_eq!(field.is_none(), expected.is_none(), "{event}");
            let fields = serde_json::to_value(&input).unwrap();
            assert!(field.is_none_or(|field| fields.get(field).is_some()), "{event}: {field:?}");
        }
    }
}
