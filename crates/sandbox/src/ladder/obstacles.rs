//! Why a tier does not work on this machine, and what helps. Pure, but for reading the facts.

use std::path::Path;

use super::Tier;
use crate::request::LayerError;

/// What stands in the way of a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub cause: String,
    pub remedy: String,
}

/// Switches of this machine that decide about namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub apparmor_restricts: bool,
    /// `user.max_user_namespaces` is 0.
    pub no_user_namespaces: bool,
    /// `kernel.unprivileged_userns_clone` is 0.
    pub unprivileged_refused: bool,
    pub is_container: bool,
    /// Windows Subsystem for Linux, version 1.
    pub is_wsl1: bool,
    pub is_root: bool,
    /// The program that makes the namespaces.
    pub program: String,
}

impl MachineFacts {
    /// Reads the facts.
    pub fn read() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let is = |path: &str, value: &str| read(path).trim() == value;
        let release = read("/proc/sys/kernel/osrelease");
        Self {
            apparmor_restricts: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            no_user_namespaces: is("/proc/sys/user/max_user_namespaces", "0"),
            unprivileged_refused: is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            is_container: ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists()),
            is_wsl1: release.contains("Microsoft") && !release.contains("WSL2"),
            is_root: rustix::process::geteuid().is_root(),
            program: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
        }
    }
}

/// Explains an error of the launcher.
pub(crate) fn explain(tier: Tier, error: &LayerError, facts: &MachineFacts) -> Obstacle {
    let is_namespace = ["user namespace", "identity map", "namespaces"].contains(&error.layer.as_str());
    if facts.is_wsl1 {
        return obstacle("version 1 of WSL has no namespaces", "Use WSL 2");
    }
    if tier == Tier::Bwrap && !is_namespace {
        return obstacle(
            &format!("bwrap fails: {error}"),
            "Run `bwrap --unshare-all --ro-bind / / true` to see why",
        );
    }
    if facts.no_user_namespaces && is_namespace {
        return obstacle("user.max_user_namespaces is 0", "Raise it: sysctl user.max_user_namespaces=10000");
    }
    if facts.unprivileged_refused && is_namespace && !facts.is_root {
        return obstacle(
            "kernel.unprivileged_userns_clone is 0",
            "Set it: sysctl kernel.unprivileged_userns_clone=1; or install the package bubblewrap",
        );
    }
    // AppArmor lets the namespace be made, without rights in it.
    if facts.apparmor_restricts && !facts.is_root {
        return obstacle(
            "AppArmor refuses user namespaces to this program",
            &apparmor_remedy(&facts.program),
        );
    }
    if error.layer == "identity map" && facts.is_root {
        return obstacle(
            "root may not keep its number in a user namespace: CAP_SETFCAP is missing",
            "Give the container CAP_SETFCAP, or run as another user",
        );
    }
    if error.layer == "/proc" {
        return obstacle(
            &format!("the machine refuses a fresh /proc ({error}), as containers with a masked /proc do"),
            "Allow the weaker tier (enableWeakerNestedSandbox), or start the container with \
             --security-opt systempaths=unconfined",
        );
    }
    if is_namespace && error.errno == Some(libc::EPERM) {
        let place = if facts.is_container { "the container" } else { "the machine" };
        return obstacle(
            &format!("{place} refuses namespaces ({error})"),
            "Start the container with --security-opt seccomp=unconfined or a profile that allows unshare, setns and mount",
        );
    }
    obstacle(&error.to_string(), "Run `whimbrel doctor`, and report this if the machine should support it")
}

fn apparmor_remedy(program: &str) -> String {
    format!(
        "Write this to /etc/apparmor.d/whimbrel and run `apparmor_parser -r /etc/apparmor.d/whimbrel`: \
         `abi <abi/4.0>, include <tunables/global> profile whimbrel {program} flags=(unconfined) {{ userns, }}`; or \
         install the package bubblewrap; as a last resort: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    )
}

fn obstacle(cause: &str, remedy: &str) -> Obstacle {
    Obstacle { cause: cause.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-28.
    #[test]
    fn cause_and_remedy_follow_from_error_and_facts() {
        let error = |layer: &str, errno: i32| LayerError {
            layer: layer.into(),
            reason: "refused".into(),
            errno: Some(errno),
        };
        let none = MachineFacts::default();
        let apparmor =
            MachineFacts { apparmor_restricts: true, program: "/opt/whimbrel".into(), ..none.clone() };
        let container = MachineFacts { is_container: true, is_root: true, ..none.clone() };
        let rows = [
            (
                error("user namespace", libc::ENOSPC),
                MachineFacts { no_user_namespaces: true, ..none.clone() },
                "max_user",
            ),
            (error("identity map", libc::EPERM), apparmor.clone(), "AppArmor"),
            (error("mounts", libc::EACCES), apparmor, "profile whimbrel /opt/whimbrel"),
            (error("namespaces", libc::EPERM), container.clone(), "--security-opt seccomp"),
            (error("identity map", libc::EPERM), container.clone(), "CAP_SETFCAP"),
            (error("/proc", libc::EPERM), container, "enableWeakerNestedSandbox"),
            (error("user namespace", libc::EINVAL), MachineFacts { is_wsl1: true, ..none.clone() }, "WSL 2"),
            (error("Landlock", libc::EIO), none, "Landlock: refused"),
        ];
        for (error, facts, expected) in rows {
            let Obstacle { cause, remedy } = explain(Tier::Namespaces, &error, &facts);
            assert!(format!("{cause}. {remedy}").contains(expected), "{expected}: {cause}. {remedy}");
        }
    }
}
