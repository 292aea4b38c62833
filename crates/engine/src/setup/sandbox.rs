//! Checks the sandbox of a session before it starts: settings that cannot be carried out, and a machine that cannot
//! confine commands.

use whimbrel_config::settings::SandboxSettings;
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::sandbox::{self, SessionSandbox};
use whimbrel_wire::system::InitSandbox;

use super::SetupError;

/// Checks the settings. Starts processes, once per process of the engine, to find out what the machine can do.
pub(super) fn check_sandbox(settings: &SandboxSettings, sandbox: &SessionSandbox) -> Result<(), SetupError> {
    if !settings.enabled {
        return Ok(());
    }
    if let Some(error) = settings.errors.first() {
        return Err(SetupError::Invalid(error.clone()));
    }
    sandbox::check_hosts(settings).map_err(SetupError::Invalid)?;
    sandbox::check_paths(settings).map_err(SetupError::Invalid)?;
    match sandbox.find_tier(settings) {
        Err(error) if settings.fail_if_unavailable => Err(SetupError::SandboxUnavailable(error)),
        Err(_) | Ok(_) => Ok(()),
    }
}

/// Describes the sandbox of a session; `None` if it has none.
pub(crate) fn describe_sandbox(
    settings: &SandboxSettings,
    permissions: &PermissionState,
    sandbox: &SessionSandbox,
) -> Option<Box<InitSandbox>> {
    if !settings.enabled {
        return None;
    }
    let mut warnings = settings.warnings.clone();
    if !settings.network.unix_sockets.is_empty() && !sandbox::can_open_single_sockets() {
        warnings.push(
            "sandbox.network.allowUnixSockets has no effect: this kernel cannot open single sockets; Linux 7.1 can.".into(),
        );
    }
    warnings.extend(permissions.policy_facts().upstream_warning());
    let unenforced = sandbox::unenforced_rules(&permissions.snapshot());
    if !unenforced.is_empty() {
        warnings.push(format!(
            "These rules hold for tools, but not for what confined programs do, because their patterns begin with a \
             wildcard: {}.",
            unenforced.join(", ")
        ));
    }
    let tier = sandbox.find_tier(settings);
    match &tier {
        Ok(tier) => {
            warnings.extend(tier.losses.iter().map(|loss| format!("The tier {}: {loss}.", tier.name)));
        }
        Err(error) => warnings.push(format!("Commands run outside of a sandbox: {error}.")),
    }
    Some(Box::new(InitSandbox {
        enabled: tier.is_ok(),
        backend: tier
            .as_ref()
            .ok()
            .map(|tier| if tier.name == "bwrap" { "bwrap" } else { "whimbrel" }.to_owned()),
        tier: tier.ok().map(|tier| tier.name.to_owned()),
        warnings,
    }))
}
