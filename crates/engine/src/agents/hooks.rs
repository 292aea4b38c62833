//! Hooks of agent definitions, which run while such an agent works.

use std::collections::BTreeMap;

use serde_json::Value;
use whimbrel_tools::hooks::HookSet;
use whimbrel_tools::hooks::front_matter::{map_stop_to_subagent_stop, parse_hooks};

use super::ResolvedDefinition;

/// The hooks of a definition, with warnings. `Stop` hooks run as `SubagentStop`.
pub(super) fn agent_hooks(definition: &ResolvedDefinition) -> (HookSet, Vec<String>) {
    match &definition.hooks {
        Some(given) => parse_definition_hooks(&map_stop_to_subagent_stop(given), definition),
        None => (HookSet::default(), Vec::new()),
    }
}

/// The same if the definition is applied to the session: `Stop` stays `Stop`.
pub(crate) fn session_hooks(definition: &ResolvedDefinition) -> HookSet {
    // Warnings were reported when the definition was loaded.
    definition.hooks.as_ref().map(|given| parse_definition_hooks(given, definition).0).unwrap_or_default()
}

fn parse_definition_hooks(given: &Value, definition: &ResolvedDefinition) -> (HookSet, Vec<String>) {
    parse_hooks(given, &format!("the agent {}", definition.name), &BTreeMap::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::hook::HookEvent;

    use super::*;

    #[test]
    fn stop_hooks_run_at_the_end_of_the_subagent() {
        let command = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
        let definition = ResolvedDefinition {
            name: "rev".into(),
            hooks: Some(json!({"Stop": command, "PreToolUse": command, "Nonsense": [], "PostToolUse": 5})),
            ..ResolvedDefinition::default()
        };
        let (set, warnings) = agent_hooks(&definition);
        assert!(set.has_hooks(HookEvent::SubagentStop) && set.has_hooks(HookEvent::PreToolUse));
        assert!(!set.has_hooks(HookEvent::Stop));
        let text = warnings.join("\n");
        assert!(warnings.len() == 2 && text.contains("Nonsense") && text.contains("PostToolUse"), "{text}");
        let set = session_hooks(&definition);
        assert!(
            set.has_hooks(HookEvent::Stop) && !set.has_hooks(HookEvent::SubagentStop),
            "Stop hooks of the session"
        );
        assert!(agent_hooks(&ResolvedDefinition::default()).0.is_empty());
    }
}
