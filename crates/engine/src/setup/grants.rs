//! What a session may do at its start, and who is asked for more.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_policy::mode::narrower;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionMode;

use super::{SetupError, configure};
use crate::audience::Person;
use crate::permission::rights::{Bypass, Granted, Grants};
use crate::permission::{NO_AUTO, Rights, paths};
use crate::settings::Settings;
use crate::workspace::Workspace;

/// What the session may do at its start.
pub(super) fn rights(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: Settings,
    workspace: &Arc<Workspace>,
    before: Option<PermissionMode>,
    warnings: &mut Vec<String>,
) -> Result<Granted, SetupError> {
    let effective = settings.effective();
    let switched_off = effective.bypass_disabled;
    let wanted = options.permission_mode == Some(PermissionMode::BypassPermissions);
    if wanted && too_mighty(env) {
        return Err(SetupError::Invalid(
            "Permissions cannot be bypassed as root: a mistake would have the whole machine. Run as another user, or set IS_SANDBOX=1 where the machine is disposable.".into(),
        ));
    }
    if wanted && switched_off {
        return Err(SetupError::Invalid(
            "Permissions cannot be bypassed here: the settings say disableBypassPermissionsMode.".into(),
        ));
    }
    let available = wanted || options.allow_dangerously_skip_permissions && !too_mighty(env) && !switched_off;
    let bypass = if available { Bypass::Available } else { Bypass::Unavailable };
    // A session that goes on gets no more than it had, and no more than the settings say now.
    let then = before.map(|then| effective.mode.map_or(then, |(now, _)| narrower(then, now)));
    let mode = match (options.permission_mode.or(then), effective.mode) {
        (Some(mode), _) => mode,
        (None, Some((PermissionMode::BypassPermissions, _))) if !available => {
            warnings.push("The settings choose the mode bypassPermissions, but the session was not started with --allow-dangerously-skip-permissions: it begins in the mode default.".into());
            PermissionMode::Default
        }
        (None, Some((mode, _))) => mode,
        (None, None) => PermissionMode::Default,
    };
    if mode == PermissionMode::Auto {
        warnings.push(NO_AUTO.into());
    }
    let real = |folder: &String| paths::real(&workspace.resolve(folder));
    let grants = Grants {
        mode,
        allow: options.allowed_rules(),
        deny: options.disallowed_tools.clone(),
        directories: options.additional_directories.iter().map(real).collect(),
    };
    Rights::grant(Arc::clone(workspace), settings, grants, bypass).map_err(SetupError::Invalid)
}

/// Whether the host answers permission questions.
pub(super) fn host_answers(options: &Options) -> bool {
    let asked = options.permission_prompts.as_deref() != Some("none");
    asked && options.permission_prompt_tool == Some(PermissionPromptTool::Stdio)
}

/// The tool of an MCP server that answers them instead.
pub(super) fn prompt_tool(options: &Options) -> Option<String> {
    match &options.permission_prompt_tool {
        _ if options.permission_prompts.as_deref() == Some("none") => None,
        Some(PermissionPromptTool::Mcp(name)) => Some(name.clone()),
        Some(PermissionPromptTool::Stdio) | None => None,
    }
}

/// Whether somebody answers what the model asks: the host, or a tool that was named for that.
pub(super) fn person(options: &Options) -> Person {
    match host_answers(options) || prompt_tool(options).is_some() {
        true => Person::Present,
        false => Person::Absent,
    }
}

/// Whether a mistake would have the whole machine.
fn too_mighty(env: &BTreeMap<String, String>) -> bool {
    nix::unistd::Uid::effective().is_root() && !configure::is_disposable(env)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Request;

    #[test]
    fn a_session_that_goes_on_has_no_more_than_then_and_now() {
        use PermissionMode::{AcceptEdits, Default, DontAsk, Plan};
        let rows = [
            ("nothing is said", None, None, None, Default),
            ("as it was", None, Some(AcceptEdits), None, AcceptEdits),
            ("less by now", None, Some(AcceptEdits), Some("plan"), Plan),
            ("less then", None, Some(Default), Some("acceptEdits"), Default),
            ("the host says it", Some(AcceptEdits), Some(Default), Some("dontAsk"), AcceptEdits),
            ("a new session", None, None, Some("dontAsk"), DontAsk),
        ];
        for (name, wanted, before, settings, expected) in rows {
            let options = Options { permission_mode: wanted, ..Options::default() };
            let flag = settings.map(|mode| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#));
            let settings = Settings::load(Request { flag, ..Request::default() }).unwrap();
            let workspace =
                Arc::new(Workspace::new("/place".into(), "/place/.spill".into(), BTreeMap::new()));
            let granted =
                rights(&options, &BTreeMap::new(), settings, &workspace, before, &mut Vec::new()).unwrap();
            assert_eq!(granted.rights.mode(), expected, "{name}");
        }
    }
}
