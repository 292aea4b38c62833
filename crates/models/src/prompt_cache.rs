//! Prompt cache breakpoints (`cache_control`): which blocks of a request carry one, and for which models.

use whimbrel_wire::Role;

/// Cache breakpoint: asks the provider to cache everything up to and including its block.
pub(crate) const CACHE_CONTROL: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Whether breakpoints are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheMarks {
    Set,
    Omitted,
}

/// Models for which the user has disabled prompt caching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptCaching {
    /// Parts of the names of these models. An empty part matches all.
    disabled: Vec<&'static str>,
}

impl PromptCaching {
    /// Reads `DISABLE_PROMPT_CACHING` and its variants for model families.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        let switches = [
            ("DISABLE_PROMPT_CACHING", ""),
            ("DISABLE_PROMPT_CACHING_HAIKU", "haiku"),
            ("DISABLE_PROMPT_CACHING_SONNET", "sonnet"),
            ("DISABLE_PROMPT_CACHING_OPUS", "opus"),
            ("DISABLE_PROMPT_CACHING_FABLE", "fable"),
        ];
        let is_on = |name: &str| get(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"));
        Self {
            disabled: switches.into_iter().filter(|(name, _)| is_on(name)).map(|(_, part)| part).collect(),
        }
    }

    /// Returns whether requests to a model get breakpoints.
    pub fn is_enabled(&self, model: &str) -> bool {
        self.disabled.is_empty() || {
            let model = model.to_ascii_lowercase();
            !self.disabled.iter().any(|part| model.contains(part))
        }
    }
}

/// The end of a conversation with breakpoints.
pub(crate) struct MarkedTail {
    pub(crate) json: Vec<u8>,
    /// Where the breakpoints begin.
    pub(crate) marks: Vec<usize>,
}

/// Removes the breakpoints that begin at these positions.
pub(crate) fn remove_marks(json: &[u8], marks: &[usize]) -> Vec<u8> {
    let mut unmarked = Vec::with_capacity(json.len());
    let mut from = 0;
    for mark in marks {
        unmarked.extend_from_slice(&json[from..*mark]);
        from = mark + CACHE_CONTROL.len();
    }
    unmarked.extend_from_slice(&json[from..]);
    unmarked
}

/// Copies the end of a conversation, whose last message is still open, with breakpoints at its end and at the end of
/// the previous request. An end that is not the user's gets none. The copy has room for the closing brackets.
pub(crate) fn mark_tail(tail: &[u8], last_request_end: Option<usize>, last_role: Option<Role>) -> MarkedTail {
    let mut marked = Vec::with_capacity(tail.len() + 2 * CACHE_CONTROL.len() + 2);
    let mut marks = Vec::new();
    let mut from = 0;
    let end = tail.len();
    for breakpoint in last_request_end.into_iter().chain([end]).filter(|at| *at > 0) {
        // A request that is sent again ends where the previous one did.
        if breakpoint == end && last_role != Some(Role::User) || breakpoint <= from + 1 {
            continue;
        }
        // The breakpoint goes inside the block that ends here, before its closing brace.
        marked.extend_from_slice(&tail[from..breakpoint - 1]);
        marks.push(marked.len());
        marked.extend_from_slice(CACHE_CONTROL.as_bytes());
        from = breakpoint - 1;
    }
    marked.extend_from_slice(&tail[from..]);
    MarkedTail { json: marked, marks }
}

/// Adds a breakpoint to the last block of the system prompt. Each block is a JSON object.
pub(crate) fn mark_last_system_block(blocks: &mut [String]) {
    if let Some(block) = blocks.last_mut() {
        block.insert_str(block.len() - 1, CACHE_CONTROL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_gets_one_breakpoint() {
        let tail = br#"{"role":"user","content":[{"a":1},{"b":2}"#;
        let first_end = tail.len() - r#",{"b":2}"#.len();
        for (last_request_end, last_role, count) in [
            (None, Role::User, 1),
            (Some(first_end), Role::User, 2),
            (Some(first_end), Role::Assistant, 1),
            (Some(tail.len()), Role::User, 1),
        ] {
            let MarkedTail { json, marks } = mark_tail(tail, last_request_end, Some(last_role));
            assert_eq!(remove_marks(&json, &marks), tail);
            let marked = String::from_utf8(json).unwrap();
            assert_eq!(marked.matches(CACHE_CONTROL).count(), count, "{last_request_end:?}: {marked}");
        }
    }

    #[test]
    fn variables_disable_caching_for_models() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], [bool; 3]);
        let rows: [Row<'_>; 6] = [
            ("none", &[], [true, true, true]),
            ("all models", &[("DISABLE_PROMPT_CACHING", "1")], [false, false, false]),
            ("switched off", &[("DISABLE_PROMPT_CACHING", "0")], [true, true, true]),
            ("empty", &[("DISABLE_PROMPT_CACHING", "")], [true, true, true]),
            ("one family", &[("DISABLE_PROMPT_CACHING_HAIKU", "true")], [false, true, true]),
            (
                "two families",
                &[("DISABLE_PROMPT_CACHING_OPUS", "1"), ("DISABLE_PROMPT_CACHING_SONNET", "1")],
                [true, false, false],
            ),
        ];
        for (name, variables, expected) in rows {
            let get = |wanted: &str| {
                variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
            };
            let caching = PromptCaching::from_env(get);
            let found = ["claude-haiku-5-5", "claude-Sonnet-5-5", "us.anthropic.claude-opus-4-5"]
                .map(|model| caching.is_enabled(model));
            assert_eq!(found, expected, "{name}");
        }
    }
}
