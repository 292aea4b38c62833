//! Hooks in the front matter of agent definitions and skills, and the conversion of configured commands.

use std::collections::BTreeMap;

use serde_json::Value;
use whimbrel_config::settings::hooks::{self, CommandHookConfig};

use super::{CommandHook, HookOrigin, HookSet, HookSource};

/// Parses hooks from front matter, with warnings. Commands get these additional environment variables.
pub fn parse_hooks(
    config: &Value,
    origin: &str,
    environment: &BTreeMap<String, String>,
) -> (HookSet, Vec<String>) {
    let mut set = HookSet::default();
    let hook_origin = HookOrigin::new(HookSource::FrontMatter, origin);
    let (entries, errors) = hooks::parse_hooks(config);
    let mut warnings: Vec<String> =
        errors.iter().map(|error| format!("Hooks of {origin}: {} {}.", error.pointer, error.cause)).collect();
    for entry in entries {
        let (event, matcher) = (entry.event.to_string(), entry.matcher.as_deref());
        let converted = match &entry.action {
            hooks::HookActionConfig::Command(hook) => to_command_hook(hook, environment.clone()),
            hooks::HookActionConfig::Http(_) => Err("HTTP hooks are allowed only in settings".into()),
            hooks::HookActionConfig::Other { kind, .. } => {
                Err(format!("hooks of type \"{kind}\" are not supported yet"))
            }
        };
        let added = converted.and_then(|command| {
            set.add_commands(&event, matcher, vec![command], &hook_origin).map_err(|error| error.to_string())
        });
        if let Err(reason) = added {
            if entry.action.blocks_on_failure() {
                // Errors of event and matcher were reported above.
                let _ = set.add_unavailable(&event, matcher, &reason, &hook_origin);
            }
            warnings.push(format!("A {event} hook of {origin} does not run: {reason}."));
        }
    }
    warnings.extend(set.warnings().iter().cloned());
    (set, warnings)
}

/// Moves `Stop` hooks to `SubagentStop`, the event that a subagent raises at its end.
pub fn map_stop_to_subagent_stop(config: &Value) -> Value {
    let mut config = config.clone();
    if let Value::Object(events) = &mut config
        && let Some(Value::Array(stop)) = events.remove("Stop")
    {
        // A malformed `SubagentStop` is reported when it is parsed.
        let end = events.entry("SubagentStop").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = end {
            groups.extend(stop);
        }
    }
    config
}

/// Converts a command hook; the error is the reason why this version cannot run it.
pub fn to_command_hook(
    hook: &CommandHookConfig,
    environment: BTreeMap<String, String>,
) -> Result<CommandHook, String> {
    if hook.shell.as_deref().is_some_and(|shell| shell != "bash") {
        return Err("only the shell \"bash\" is supported".into());
    }
    if hook.is_async_rewake {
        return Err("\"asyncRewake\" is not supported yet".into());
    }
    Ok(CommandHook {
        command: shell_command(hook),
        timeout: hook.timeout,
        background: hook.is_async,
        on_failure: hook.on_failure.clone(),
        condition: hook.condition.clone(),
        once: hook.once,
        environment,
    })
}

/// The command as shell text. With `args` each word is quoted.
fn shell_command(hook: &CommandHookConfig) -> String {
    let Some(args) = &hook.args else { return hook.command.clone() };
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    std::iter::once(&hook.command).chain(args).map(quote).collect::<Vec<_>>().join(" ")
}
