//! What files, plugins and the host bring to a session.

use std::collections::BTreeMap;

use whimbrel_wire::options::Options;

use super::extensions::{self, Extensions};
use super::{SetupError, hooks, servers};
use crate::agents::Kinds;
use crate::commands::Commands;
use crate::ground::Ground;
use crate::hooks::HookSet;
use crate::mcp::Servers;
use crate::settings::Settings;

/// All of it.
pub(super) struct Brought {
    pub(super) hooks: HookSet,
    pub(super) servers: Servers,
    pub(super) commands: Commands,
    pub(super) extensions: Extensions,
    pub(super) kinds: Kinds,
}

/// Finds it. What is wrong with any of it is added to the warnings.
pub(super) fn brought(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &Settings,
    ground: &Ground,
    warnings: &mut Vec<String>,
) -> Result<Brought, SetupError> {
    let (mut hooks, about_hooks) = hooks::of_settings(settings.effective())?;
    warnings.extend(about_hooks);
    let found = extensions::find(options, settings, ground, &ground.root);
    warnings.extend(found.warnings);
    hooks.append(found.hooks);
    let plugins = &found.extensions.plugins;
    let servers = servers::servers(options, env, settings, ground, plugins);
    warnings.extend(servers.problems.iter().cloned());
    let (mut kinds, about_kinds) = Kinds::find(ground, &plugins.agent_folders());
    warnings.extend(about_kinds);
    if options.strict_mcp_config {
        warnings.extend(kinds.without_own_servers());
    }
    warnings.extend(kinds.add_host(options.agents.clone()));
    Ok(Brought { hooks, servers, commands: found.commands, extensions: found.extensions, kinds })
}
