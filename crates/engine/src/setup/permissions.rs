//! Initial permissions of a session, and what answers its permission requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_config::settings::Settings;
use whimbrel_os::links as paths;
use whimbrel_policy::mode::choose_stricter_mode;
use whimbrel_tools::permission::state::{Bypass, InitialPermissions, NewPermissions};
use whimbrel_tools::permission::{AUTO_MODE_UNSUPPORTED, PermissionState};
use whimbrel_tools::responders::UserPresence;
use whimbrel_tools::workspace::Workspace;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionMode;

use super::{SetupError, settings};

/// Builds the initial permission state.
pub(super) fn initial_permissions(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: Settings,
    workspace: &Arc<Workspace>,
    resumed_mode: Option<PermissionMode>,
    warnings: &mut Vec<String>,
) -> Result<NewPermissions, SetupError> {
    let effective = settings.effective();
    let bypass_disabled = effective.bypass_disabled;
    let bypass_requested = options.permission_mode == Some(PermissionMode::BypassPermissions);
    if bypass_requested && is_unconfined_root(env) {
        return Err(SetupError::Invalid(
            "Permissions cannot be bypassed as root: a mistake could damage the whole machine. Run as another user, or set IS_SANDBOX=1 on a disposable machine.".into(),
        ));
    }
    if bypass_requested && bypass_disabled {
        return Err(SetupError::Invalid(
            "Permissions cannot be bypassed: the settings contain disableBypassPermissionsMode.".into(),
        ));
    }
    let available = bypass_requested
        || options.allow_dangerously_skip_permissions && !is_unconfined_root(env) && !bypass_disabled;
    let bypass = if available { Bypass::Available } else { Bypass::Unavailable };
    // A resumed session gets neither more than it had nor more than the settings permit now.
    let kept_mode = resumed_mode
        .map(|kept_mode| effective.mode.map_or(kept_mode, |(now, _)| choose_stricter_mode(kept_mode, now)));
    let mode = match (options.permission_mode.or(kept_mode), effective.mode) {
        (Some(mode), _) => mode,
        (None, Some((PermissionMode::BypassPermissions, _))) if !available => {
            warnings.push("The settings choose the mode bypassPermissions, but the option allow_dangerously_skip_permissions is not set. The session starts in the mode default.".into());
            PermissionMode::Default
        }
        (None, Some((mode, _))) => mode,
        (None, None) => PermissionMode::Default,
    };
    if mode == PermissionMode::Auto {
        warnings.push(AUTO_MODE_UNSUPPORTED.into());
    }
    let resolve = |dir: &String| paths::resolve_links(&workspace.resolve(dir));
    let initial = InitialPermissions {
        mode,
        allow: options.allowed_rules(),
        deny: options.disallowed_tools.clone(),
        directories: options.additional_directories.iter().map(resolve).collect(),
    };
    PermissionState::build(Arc::clone(workspace), settings, initial, bypass).map_err(SetupError::Invalid)
}

/// Whether the host answers permission requests.
pub(super) fn can_host_answer(options: &Options) -> bool {
    let prompts_enabled = options.permission_prompts.as_deref() != Some("none");
    prompts_enabled && options.permission_prompt_tool == Some(PermissionPromptTool::Stdio)
}

/// The MCP tool that answers permission requests instead.
pub(super) fn prompt_tool(options: &Options) -> Option<String> {
    match &options.permission_prompt_tool {
        _ if options.permission_prompts.as_deref() == Some("none") => None,
        Some(PermissionPromptTool::Mcp(name)) => Some(name.clone()),
        Some(PermissionPromptTool::Stdio) | None => None,
    }
}

/// Whether the host or the permission prompt tool can answer questions of the model.
pub(super) fn user_presence(options: &Options) -> UserPresence {
    match can_host_answer(options) || prompt_tool(options).is_some() {
        true => UserPresence::Present,
        false => UserPresence::Absent,
    }
}

/// True for root on a machine that is not disposable.
fn is_unconfined_root(env: &BTreeMap<String, String>) -> bool {
    nix::unistd::Uid::effective().is_root() && !settings::is_disposable(env)
}

#[cfg(test)]
mod tests {
    use whimbrel_config::settings::SettingsRequest;

    use super::*;

    #[test]
    fn resumed_session_gets_the_narrower_mode() {
        use PermissionMode::{AcceptEdits, Default, DontAsk, Plan};
        let rows = [
            ("no configuration", None, None, None, Default),
            ("resumed mode", None, Some(AcceptEdits), None, AcceptEdits),
            ("stricter settings", None, Some(AcceptEdits), Some("plan"), Plan),
            ("stricter resumed mode", None, Some(Default), Some("acceptEdits"), Default),
            ("mode of the host", Some(AcceptEdits), Some(Default), Some("dontAsk"), AcceptEdits),
            ("a new session", None, None, Some("dontAsk"), DontAsk),
        ];
        for (name, wanted, resumed_mode, settings, expected) in rows {
            let options = Options { permission_mode: wanted, ..Options::default() };
            let flag = settings.map(|mode| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#));
            let settings = Settings::load(SettingsRequest { flag, ..SettingsRequest::default() }).unwrap();
            let workspace =
                Arc::new(Workspace::new("/project".into(), "/project/.output".into(), BTreeMap::new()));
            let permissions = initial_permissions(
                &options,
                &BTreeMap::new(),
                settings,
                &workspace,
                resumed_mode,
                &mut Vec::new(),
            )
            .unwrap();
            assert_eq!(permissions.state.mode(), expected, "{name}");
        }
    }
}
