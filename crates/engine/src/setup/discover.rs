//! Discovers hooks, MCP servers, commands, extensions and agent definitions from files, plugins and the host.

use std::collections::BTreeMap;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::settings::Settings;
use whimbrel_mcp::ServerConfigs;
use whimbrel_tools::hooks::HookSet;
use whimbrel_wire::options::Options;

use super::extensions::{self, Extensions};
use super::{SetupError, hooks, mcp_servers};
use crate::agents::AgentDefinitions;
use crate::commands::Commands;

pub(super) struct Discovered {
    pub(super) hooks: HookSet,
    pub(super) servers: ServerConfigs,
    pub(super) commands: Commands,
    pub(super) extensions: Extensions,
    pub(super) agent_definitions: AgentDefinitions,
}

/// Discovers everything; problems are added to `warnings`.
pub(super) fn discover(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &Settings,
    locations: &ConfigLocations,
    warnings: &mut Vec<String>,
) -> Result<Discovered, SetupError> {
    let (mut hooks, hook_warnings) = hooks::from_settings(settings.effective())?;
    warnings.extend(hook_warnings);
    let found = extensions::find_extensions(options, env, settings, locations);
    warnings.extend(found.warnings);
    hooks.append(found.hooks);
    let plugins = &found.extensions.plugins;
    let servers = mcp_servers::resolve_servers(options, env, settings, locations, plugins);
    warnings.extend(servers.warnings.iter().cloned());
    let (mut definitions, definition_warnings) = AgentDefinitions::load(locations, &plugins.agent_dirs());
    warnings.extend(definition_warnings);
    if options.strict_mcp_config {
        warnings.extend(definitions.remove_own_servers());
    }
    warnings.extend(definitions.add_host(options.agents.clone()));
    Ok(Discovered {
        hooks,
        servers,
        commands: found.commands,
        extensions: found.extensions,
        agent_definitions: definitions,
    })
}
