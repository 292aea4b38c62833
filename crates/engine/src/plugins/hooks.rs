//! The hooks of a plugin: `hooks/hooks.json`, and what its manifest says besides.

use serde_json::{Map, Value};

use super::Plugin;
use super::load::{self, Fault};
use super::manifest::{Part, Parts};
use crate::files::{self, Kind};
use crate::settings::hooks::{CommandHook, Handler, HookEntry, read};

/// Where hooks usually stand.
const USUAL: &str = "hooks/hooks.json";

/// A hook of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginHook {
    /// When it runs and what it does, the plugin's folder filled in.
    pub entry: HookEntry,
    /// Where it stands, for people.
    pub origin: String,
}

/// The hooks of a plugin. What is wrong with one does not cost the others.
pub(super) fn of(plugin: &Plugin, more: &Parts, flaws: &mut Vec<Fault>) -> Vec<PluginHook> {
    let mut hooks = Vec::new();
    let usual = plugin.root.join(USUAL);
    if !matches!(files::kind(&usual), Ok(Kind::Missing)) {
        take(plugin, load::object(&usual), &usual.display().to_string(), &mut hooks, flaws);
    }
    for part in more.each() {
        match part {
            Part::Written(fields) => {
                let origin = format!("the manifest of the plugin {}", plugin.name);
                take(plugin, Ok(fields.clone()), &origin, &mut hooks, flaws);
            }
            Part::File(written) => match load::within(&plugin.root, written) {
                Ok(path) if path == usual => {}
                Ok(path) => take(plugin, load::object(&path), &path.display().to_string(), &mut hooks, flaws),
                Err(why) => flaws.push(lost(written, &why)),
            },
        }
    }
    hooks
}

fn take(
    plugin: &Plugin,
    fields: Result<Map<String, Value>, String>,
    origin: &str,
    hooks: &mut Vec<PluginHook>,
    flaws: &mut Vec<Fault>,
) {
    let mut fields = match fields {
        Ok(fields) => fields,
        Err(why) => return flaws.push(lost(origin, &why)),
    };
    // A file may have the events under `hooks`, beside a description, or by themselves.
    let events = fields.remove("hooks").unwrap_or_else(|| fields.into());
    let (entries, wrong) = read(&events);
    flaws.extend(wrong.iter().map(|flaw| lost(origin, &format!("{} {}", flaw.pointer, flaw.cause))));
    hooks.extend(entries.into_iter().map(|mut entry| {
        if let Handler::Command(hook) = &mut entry.handler {
            fill_in(plugin, hook);
        }
        PluginHook { entry, origin: origin.to_owned() }
    }));
}

fn fill_in(plugin: &Plugin, hook: &mut CommandHook) {
    hook.command = plugin.fill_in(&hook.command);
    for word in hook.args.iter_mut().flatten() {
        *word = plugin.fill_in(word);
    }
}

fn lost(origin: &str, why: &str) -> Fault {
    Fault::new("hook-load-failed", format!("{origin}: a hook does not run: {why}."))
}
