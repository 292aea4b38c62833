//! What this version does not have yet. Asking for it is an error that says so: nothing is silently left out.

use std::path::Path;

use whimbrel_wire::control::Initialize;
use whimbrel_wire::options::{Options, SettingSource};

use crate::files::{self, Kind};

/// The first option that cannot be honoured, in words.
pub fn in_options(options: &Options) -> Option<String> {
    let rows = [
        (options.output_format.is_some(), "structured output (--json-schema)"),
        (
            options.max_budget_usd.is_some() || options.task_budget.is_some(),
            "a budget (--max-budget-usd, --task-budget)",
        ),
        (!options.mcp_servers.is_empty(), "MCP servers (--mcp-config)"),
        (options.settings.is_some() || options.sandbox.is_some(), "settings (--settings)"),
        (options.managed_settings.is_some(), "managed settings (--managed-settings)"),
        (options.agent.is_some() || !options.agents.is_empty(), "agent definitions (--agent, --agents)"),
        (!options.plugins.is_empty(), "plugins (--plugin-dir)"),
        (options.fallback_model.is_some(), "a fallback model (--fallback-model)"),
        (options.enable_file_checkpointing, "file checkpoints"),
        (options.skills.as_ref().is_some_and(|skills| !skills.is_empty()), "skills"),
        (options.plan_mode_instructions.is_some(), "instructions for plan mode"),
        (!options.tool_aliases.is_empty(), "aliases for tools"),
    ];
    rows.iter().find(|(asked, _)| *asked).map(|(_, what)| sentence(what))
}

/// The first part of an `initialize` that cannot be honoured, in words.
pub fn in_initialize(initialize: &Initialize) -> Option<String> {
    let rows = [
        (initialize.hooks.as_ref().is_some_and(|hooks| !hooks.is_empty()), "hooks"),
        (
            initialize.sdk_mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty()),
            "in-process MCP servers",
        ),
        (initialize.json_schema.is_some(), "structured output"),
        (initialize.skills.as_ref().is_some_and(|skills| !skills.is_empty()), "skills"),
        (initialize.agents.as_ref().is_some_and(|agents| !agents.is_empty()), "agent definitions"),
        (initialize.plugins.as_ref().is_some_and(|plugins| !plugins.is_empty()), "plugins"),
    ];
    rows.iter().find(|(asked, _)| *asked).map(|(_, what)| sentence(what))
}

/// Settings and memory files that were asked for, by name or by default, and that this version does not read.
pub fn unread_files(options: &Options, home: Option<&Path>, root: &Path) -> Option<String> {
    let asked = |source| options.setting_sources.as_ref().is_none_or(|sources| sources.contains(&source));
    let mut files = Vec::new();
    if let (Some(home), true) = (home, asked(SettingSource::User)) {
        files.extend([home.join("settings.json"), home.join("CLAUDE.md")]);
    }
    if asked(SettingSource::Project) {
        files.extend([root.join(".claude/settings.json"), root.join(".mcp.json"), root.join("CLAUDE.md")]);
    }
    if asked(SettingSource::Local) {
        files.push(root.join(".claude/settings.local.json"));
    }
    files.retain(|file| matches!(files::kind(file), Ok(Kind::File(_))));
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("This version of Whimbrel does not read settings and memory files yet. Rules, hooks and instructions in these are not in force: {names}")
    })
}

fn sentence(what: &str) -> String {
    format!("This version of Whimbrel does not have {what} yet. Leave it out, or use a newer version.")
}
