//! The hooks of a kind of agent: commands that its file names, and that run while an agent of this kind works. Skills have
//! theirs in the same form.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Definition;
use crate::hooks::HookSet;
use crate::settings::hooks::{HookActionConfig, parse_hooks};
use crate::setup::hooks::to_command_hook;

/// The hooks of a kind, and what cannot be had of them. What stands under `Stop` runs when the agent wants to end.
pub(super) fn agent_hooks(definition: &Definition) -> (HookSet, Vec<String>) {
    match &definition.hooks {
        Some(given) => parse_definition_hooks(&map_stop_to_subagent_stop(given), definition),
        None => (HookSet::default(), Vec::new()),
    }
}

/// The same for a session that is of the kind: its end is that of any session's turn.
pub(crate) fn session_hooks(definition: &Definition) -> HookSet {
    // What cannot be had of them is told when the kind is found.
    definition.hooks.as_ref().map(|given| parse_definition_hooks(given, definition).0).unwrap_or_default()
}

fn parse_definition_hooks(given: &Value, definition: &Definition) -> (HookSet, Vec<String>) {
    parse_front_matter_hooks(given, &format!("the agent {}", definition.name), &BTreeMap::new())
}

/// Hooks as the head of a file has them, and what cannot be had of them. Commands have these variables besides.
pub(crate) fn parse_front_matter_hooks(
    given: &Value,
    origin: &str,
    environment: &BTreeMap<String, String>,
) -> (HookSet, Vec<String>) {
    let mut set = HookSet::default();
    let (entries, flaws) = parse_hooks(given);
    let mut warnings: Vec<String> =
        flaws.iter().map(|flaw| format!("Hooks of {origin}: {} {}.", flaw.pointer, flaw.cause)).collect();
    for entry in entries {
        let (event, matcher) = (entry.event.to_string(), entry.matcher.as_deref());
        let found = match &entry.action {
            HookActionConfig::Command(hook) => to_command_hook(hook, environment.clone()),
            HookActionConfig::Http(_) => Err("only settings may name web addresses".into()),
            HookActionConfig::Other { kind, .. } => Err(format!("hooks of the type \"{kind}\" are not there yet")),
        };
        let added = found.and_then(|command| {
            set.add_commands(&event, matcher, vec![command], origin).map_err(|error| error.to_string())
        });
        if let Err(why) = added {
            if entry.action.blocks_on_failure() {
                // Whoever wrote the event and the matcher has been told what is wrong with them.
                let _ = set.add_unavailable(&event, matcher, &why, origin);
            }
            warnings.push(format!("A {event} hook of {origin} does not run: {why}."));
        }
    }
    warnings.extend(set.warnings().iter().cloned());
    (set, warnings)
}

/// A subagent that wants to end raises another event than the main agent; whoever writes a kind need not know that.
pub(crate) fn map_stop_to_subagent_stop(given: &Value) -> Value {
    let mut given = given.clone();
    if let Value::Object(events) = &mut given
        && let Some(Value::Array(stop)) = events.remove("Stop")
    {
        // What is wrong with the other one is told by whoever reads it.
        let end = events.entry("SubagentStop").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = end {
            groups.extend(stop);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::hook::HookEvent;

    use super::*;

    #[test]
    fn what_stands_under_stop_is_for_the_agents_own_end() {
        let command = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
        let definition = Definition {
            name: "rev".into(),
            hooks: Some(json!({"Stop": command, "PreToolUse": command, "Nonsense": [], "PostToolUse": 5})),
            ..Definition::default()
        };
        let (set, warnings) = agent_hooks(&definition);
        assert!(set.has_hooks(HookEvent::SubagentStop) && set.has_hooks(HookEvent::PreToolUse));
        assert!(!set.has_hooks(HookEvent::Stop));
        let told = warnings.join("\n");
        assert!(warnings.len() == 2 && told.contains("Nonsense") && told.contains("PostToolUse"), "{told}");
        let set = session_hooks(&definition);
        assert!(set.has_hooks(HookEvent::Stop) && !set.has_hooks(HookEvent::SubagentStop), "a session's own end");
        assert!(agent_hooks(&Definition::default()).0.is_empty());
    }
}
