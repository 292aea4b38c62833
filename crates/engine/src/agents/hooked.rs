//! The hooks of a kind of agent: commands that its file names, and that run while an agent of this kind works. Skills have
//! theirs in the same form.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Definition;
use crate::hooks::HookSet;
use crate::settings::hooks::{Handler, read};
use crate::setup::hooks::command;

/// The hooks of a kind, and what cannot be had of them. What stands under `Stop` runs when the agent wants to end.
pub(super) fn hooks(definition: &Definition) -> (HookSet, Vec<String>) {
    match &definition.hooks {
        Some(given) => made_of(&with_its_own_end(given), definition),
        None => (HookSet::default(), Vec::new()),
    }
}

/// The same for a session that is of the kind: its end is that of any session's turn.
pub(crate) fn of_session(definition: &Definition) -> HookSet {
    // What cannot be had of them is told when the kind is found.
    definition.hooks.as_ref().map(|given| made_of(given, definition).0).unwrap_or_default()
}

fn made_of(given: &Value, definition: &Definition) -> (HookSet, Vec<String>) {
    read_hooks(given, &format!("the agent {}", definition.name), &BTreeMap::new())
}

/// Hooks as the head of a file has them, and what cannot be had of them. Commands have these variables besides.
pub(crate) fn read_hooks(
    given: &Value,
    origin: &str,
    environment: &BTreeMap<String, String>,
) -> (HookSet, Vec<String>) {
    let mut set = HookSet::default();
    let (entries, flaws) = read(given);
    let mut warnings: Vec<String> =
        flaws.iter().map(|flaw| format!("Hooks of {origin}: {} {}.", flaw.pointer, flaw.cause)).collect();
    for entry in entries {
        let (event, matcher) = (entry.event.to_string(), entry.matcher.as_deref());
        let found = match &entry.handler {
            Handler::Command(hook) => command(hook, environment.clone()),
            Handler::Http(_) => Err("only settings may name web addresses".into()),
            Handler::Other { kind, .. } => Err(format!("hooks of the type \"{kind}\" are not there yet")),
        };
        let added = found.and_then(|command| {
            set.add_commands(&event, matcher, vec![command], origin).map_err(|error| error.to_string())
        });
        if let Err(why) = added {
            if entry.handler.must_agree() {
                // Whoever wrote the event and the matcher has been told what is wrong with them.
                let _ = set.add_lost(&event, matcher, &why, origin);
            }
            warnings.push(format!("A {event} hook of {origin} does not run: {why}."));
        }
    }
    warnings.extend(set.warnings().iter().cloned());
    (set, warnings)
}

/// A subagent that wants to end raises another event than the main agent; whoever writes a kind need not know that.
pub(crate) fn with_its_own_end(given: &Value) -> Value {
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
        let (set, warnings) = hooks(&definition);
        assert!(set.listens(HookEvent::SubagentStop) && set.listens(HookEvent::PreToolUse));
        assert!(!set.listens(HookEvent::Stop));
        let told = warnings.join("\n");
        assert!(warnings.len() == 2 && told.contains("Nonsense") && told.contains("PostToolUse"), "{told}");
        let set = of_session(&definition);
        assert!(set.listens(HookEvent::Stop) && !set.listens(HookEvent::SubagentStop), "a session's own end");
        assert!(hooks(&Definition::default()).0.is_empty());
    }
}
