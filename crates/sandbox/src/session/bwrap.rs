//! The arguments of bwrap for a plan of mounts: namespaces and mounts are its work, the rest is that of the launcher
//! inside. Pinned folders become mounts of their own, so that files cannot be moved across them, and protected links are
//! left as they are.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::launcher;
use crate::plan::{MountPlan, View, ViewKind};
use crate::request::RunRequest;
use crate::tier::Sandbox;

/// Flags that do not depend on the policy.
const FIXED: [&str; 11] = [
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--clearenv",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
];

/// Returns the command that starts the launcher below bwrap.
#[expect(clippy::disallowed_methods, reason = "this crate starts confined processes")]
pub(crate) fn command(sandbox: &Sandbox, request: &RunRequest) -> Command {
    let mut command = Command::new(sandbox.bwrap().unwrap_or(Path::new("/usr/bin/bwrap")));
    command.args(arguments(request.files.as_ref()));
    let launcher = &sandbox.launcher().path;
    command.arg("--ro-bind").arg(launcher).arg(launcher).arg("--").arg(launcher).arg(launcher::VERB);
    command
}

fn arguments(plan: Option<&MountPlan>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = FIXED.iter().map(OsString::from).collect();
    let Some(plan) = plan else {
        // Without a file layer, what the machine allows is allowed.
        if let Some(flag) = arguments.iter_mut().find(|argument| *argument == "--ro-bind") {
            *flag = "--dev-bind".into();
        }
        add(&mut arguments, &["--proc"], &["/proc"]);
        return arguments;
    };
    add(&mut arguments, &["--dev"], &["/dev"]);
    add(&mut arguments, &["--proc"], &["/proc"]);
    for view in &plan.views {
        add_view(view, &mut arguments);
    }
    arguments
}

fn add(arguments: &mut Vec<OsString>, flags: &[&str], paths: &[impl AsRef<Path>]) {
    arguments.extend(flags.iter().map(OsString::from));
    arguments.extend(paths.iter().map(|path| path.as_ref().as_os_str().to_owned()));
}

fn add_view(View { path, kind, .. }: &View, arguments: &mut Vec<OsString>) {
    match kind {
        ViewKind::Root { pins } => {
            add(arguments, &["--bind"], &[path, path]);
            for pin in pins {
                let pin = path.join(pin);
                add(arguments, &["--bind-try"], &[&pin, &pin]);
            }
        }
        ViewKind::ReadOnly => add(arguments, &["--ro-bind"], &[path, path]),
        ViewKind::Readable => add(arguments, &["--ro-bind-try"], &[path, path]),
        ViewKind::ReadOnlyLink => {}
        ViewKind::HiddenFile => add(arguments, &["--ro-bind"], &[Path::new("/dev/null"), path]),
        ViewKind::HiddenFolder { placeholders } if placeholders.is_empty() => {
            add(arguments, &["--perms", "0000", "--tmpfs"], &[path]);
            add(arguments, &["--remount-ro"], &[path]);
        }
        ViewKind::HiddenFolder { .. } => add(arguments, &["--perms", "0111", "--tmpfs"], &[path]),
        ViewKind::Fresh { .. } => add(arguments, &["--perms", "1777", "--tmpfs"], &[path]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Presence;

    #[test]
    fn views_become_arguments_in_their_order() {
        let view = |path: &str, kind| View { path: path.into(), kind, presence: Presence::Required };
        let plan = MountPlan {
            views: vec![
                view("/w", ViewKind::Root { pins: vec!["a".into()] }),
                view("/w/a/k", ViewKind::ReadOnly),
                view("/w/s", ViewKind::HiddenFolder { placeholders: vec![] }),
            ],
        };
        let own = &arguments(Some(&plan))[FIXED.len() + 4..];
        let expected = "--bind /w /w --bind-try /w/a /w/a --ro-bind /w/a/k /w/a/k --perms 0000 --tmpfs /w/s --remount-ro /w/s";
        assert_eq!(own, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
    }
}
