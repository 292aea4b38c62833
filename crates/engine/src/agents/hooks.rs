//! Hooks of agent definitions, which run while such an agent works. Skills use the same format.

use std::collections::BTreeMap;

use serde_json::Value;
use whimbrel_config::settings::hooks::{HookActionConfig, parse_hooks};

use super::Definition;
use crate::hooks::HookSet;
use crate::setup::hooks::to_command_hook;

/// The hooks of a definition, with warnings. `Stop` hooks run as `SubagentStop`.
pub(super) fn agent_hooks(definition: &Definition) -> (HookSet, Vec<String>) {
    match &definition.hooks {
        Some(given) => parse_definition_hooks(&map_stop_to_subagent_stop(given), definition),
        None => (HookSet::default(), Vec::new()),
    }
}

/// The same if the definition is applied to the session: `Stop` stays `Stop`.
pub(crate) fn session_hooks(definition: &Definition) -> HookSet {
    // Warnings were reported when the definition was loaded.
    definition.hooks.as_ref().map(|given| parse_definition_hooks(given, definition).0).unwrap_or_default()
}

fn parse_definition_hooks(given: &Value, definition: &Definition) -> (HookSet, Vec<String>) {
    parse_front_matter_hooks(given, &format!("the agent {}", definition.name), &BTreeMap::new())
}

/// Parses hooks from front matter, with warnings. Commands get these additional environment variables.
pub(crate) fn parse_front_matter_hooks(
    given: &Value,
    origin: &str,
    environment: &BTreeMap<String, String>,
) -> (HookSet, Vec<String>) {
    let mut set = HookSet::default();
    let (entries, errors) = parse_hooks(given);
    let mut warnings: Vec<String> = errors
        .iter()
        .map(|problem| format!("Hooks of {origin}: {} {}.", problem.pointer, problem.cause))
        .collect();
    for entry in entries {
        let (event, matcher) = (entry.event.to_string(), entry.matcher.as_deref());
        let found = match &entry.action {
            HookActionConfig::Command(hook) => to_command_hook(hook, environment.clone()),
            HookActionConfig::Http(_) => Err("HTTP hooks are allowed only in settings".into()),
            HookActionConfig::Other { kind, .. } => {
                Err(format!("hooks of type \"{kind}\" are not supported yet"))
            }
        };
        let added = found.and_then(|command| {
            set.add_commands(&event, matcher, vec![command], origin).map_err(|error| error.to_string())
        });
        if let Err(why) = added {
            if entry.action.blocks_on_failure() {
                // Errors of event and matcher were reported above.
                let _ = set.add_unavailable(&event, matcher, &why, origin);
            }
            warnings.push(format!("A {event} hook of {origin} does not run: {why}."));
        }
    }
    warnings.extend(set.warnings().iter().cloned());
    (set, warnings)
}

/// Moves `Stop` hooks to `SubagentStop`, the event that a subagent raises at its end.
pub(crate) fn map_stop_to_subagent_stop(given: &Value) -> Value {
    let mut given = given.clone();
    if let Value::Object(events) = &mut given
        && let Some(Value::Array(stop)) = events.remove("Stop")
    {
        // A malformed `SubagentStop` is reported when it is parsed.
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
    fn stop_hooks_run_at_the_end_of_the_subagent() {
        let command = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
        let definition = Definition {
            name: "rev".into(),
            hooks: Some(json!({"Stop": command, "PreToolUse": command, "Nonsense": [], "PostToolUse": 5})),
            ..Definition::default()
        };
        let (set, warnings) = agent_hooks(&definition);
        assert!(set.has_hooks(HookEvent::SubagentStop) && set.has_hooks(HookEvent::PreToolUse));
        assert!(!set.has_hooks(HookEvent::Stop));
        let text = warnings.join("\n");
        assert!(warnings.len() == 2 && text.contains("Nonsense") && text.contains("PostToolUse"), "{text}");
        let set = session_hooks(&definition);
        assert!(
            set.has_hooks(HookEvent::Stop) && !set.has_hooks(HookEvent::SubagentStop),
            "a session's own end"
        );
        assert!(agent_hooks(&Definition::default()).0.is_empty());
    }
}
