//! Landlock: a second line behind the mounts, as far as the kernel has it. Write rights only below the writable paths; no
//! abstract sockets and no signals out of the command.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};

use super::LayerResult;
use crate::plan::MountPlan;
use crate::policy::{NestedNamespaces, UnixSockets};
use crate::request::{LayerError, RunRequest};

const LAYER: &str = "Landlock";

/// First version with rights for local sockets by path.
pub(crate) const SOCKET_PATHS_VERSION: u32 = 9;

/// Folders of the command's own.
const OWN_FOLDERS: [&str; 4] = ["/dev", "/tmp", "/run", "/proc"];

/// Restricts this process and its children.
pub(crate) fn restrict(request: &RunRequest) -> LayerResult<()> {
    let sockets = match &request.unix_sockets {
        UnixSockets::Paths(_) if crate::sys::landlock_version() < SOCKET_PATHS_VERSION => {
            return Err(LayerError {
                layer: LAYER.into(),
                reason: "this kernel cannot open single local sockets; Linux 7.1 can".into(),
                errno: None,
            });
        }
        UnixSockets::Paths(paths) => Some(paths.as_slice()),
        UnixSockets::Closed | UnixSockets::All => None,
    };
    // Landlock forbids all mounts, which programs with namespaces of their own need.
    let files = request.files.as_ref().filter(|_| request.nested == NestedNamespaces::Refused);
    restrict_with(files, sockets).map_err(|error| LayerError {
        layer: LAYER.into(),
        reason: error.to_string(),
        errno: None,
    })
}

fn restrict_with(
    files: Option<&MountPlan>,
    sockets: Option<&[PathBuf]>,
) -> Result<(), landlock::RulesetError> {
    let writing = AccessFs::from_write(ABI::V3);
    let mut handled: BitFlags<AccessFs> = BitFlags::empty();
    if files.is_some() {
        handled |= writing;
    }
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(ABI::V6))?;
    if sockets.is_some() {
        handled |= AccessFs::ResolveUnix;
    }
    if !handled.is_empty() {
        ruleset = ruleset.handle_access(handled)?;
    }
    let mut created = ruleset.create()?;
    if let Some(plan) = files {
        let own = OWN_FOLDERS.iter().map(Path::new);
        created = created.add_rules(path_beneath_rules(plan.writable_paths().chain(own), writing))?;
    }
    if let Some(paths) = sockets {
        created = created.add_rules(path_beneath_rules(paths, AccessFs::ResolveUnix))?;
    }
    created.restrict_self()?;
    Ok(())
}
