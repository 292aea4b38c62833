//! What this machine supports, tier by tier. A tier is probed by running a program in it.
//!
//! Modules: `obstacles`, why a tier is missing and what helps.

mod obstacles;

use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use obstacles::{MachineFacts, Obstacle};

use crate::child::RunError;
use crate::plan::{MountPlan, Presence, View, ViewKind};
use crate::policy::{Policy, ProcView};
use crate::program::LauncherProgram;
use crate::request::LayerError;
use crate::session::{CommandSpec, PlannedFiles, Session, StartError};
pub use crate::tier::{Sandbox, Tier};

/// Which tiers may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierChoice {
    /// The best one that gives every promise but those named in the documentation of bwrap.
    Best,
    /// The best one, also those that show processes of the machine.
    BestOrWeaker,
    /// This one and no other, for tests and for trying it out.
    Only(Tier),
}

impl TierChoice {
    fn candidates(self) -> Vec<Tier> {
        match self {
            Self::Best => vec![Tier::Namespaces, Tier::Bwrap],
            Self::BestOrWeaker => Tier::ALL.to_vec(),
            Self::Only(tier) => vec![tier],
        }
    }
}

/// No permitted tier works.
#[derive(Debug, thiserror::Error)]
#[error("commands cannot be confined on this machine: {}", list_obstacles(.tiers))]
pub struct Unavailable {
    pub tiers: Vec<(Tier, Obstacle)>,
}

fn list_obstacles(tiers: &[(Tier, Obstacle)]) -> String {
    let obstacle =
        |(tier, Obstacle { cause, remedy }): &(Tier, Obstacle)| format!("{}: {cause}. {remedy}", tier.name());
    tiers.iter().map(obstacle).collect::<Vec<_>>().join(" ")
}

/// Returns the first permitted tier in which a program runs. The caller keeps the result: each call starts processes.
pub fn probe(
    launcher: &LauncherProgram,
    bwrap: Option<&Path>,
    choice: TierChoice,
) -> Result<Sandbox, Unavailable> {
    let mut tiers = Vec::new();
    for tier in choice.candidates() {
        match probe_tier(launcher, bwrap, tier) {
            Ok(sandbox) => return Ok(sandbox),
            Err(obstacle) => tiers.push((tier, obstacle)),
        }
    }
    Err(Unavailable { tiers })
}

/// Runs a program in a tier.
pub fn probe_tier(launcher: &LauncherProgram, bwrap: Option<&Path>, tier: Tier) -> Result<Sandbox, Obstacle> {
    if tier == Tier::Bwrap && bwrap.is_none() {
        return Err(Obstacle {
            cause: "bwrap is not installed".into(),
            remedy: "Install the package bubblewrap".into(),
        });
    }
    let sandbox = Sandbox { launcher: launcher.clone(), bwrap: bwrap.map(Path::to_owned), tier };
    match run_true(&sandbox) {
        Ok(()) => Ok(sandbox),
        Err(error) => Err(obstacles::explain(tier, &error, &MachineFacts::read())),
    }
}

/// Runs `true` with a fresh `/tmp` as the only view: nothing is written, and no cover is made.
fn run_true(sandbox: &Sandbox) -> Result<(), LayerError> {
    let program = ["/bin/true", "/usr/bin/true"].iter().map(PathBuf::from).find(|path| path.exists());
    let policy = Policy {
        proc_view: if sandbox.tier == Tier::MachineProc { ProcView::MachineIfRefused } else { ProcView::Own },
        ..Policy::new("/", "/")
    };
    let spec = CommandSpec {
        // Without `true`, the launcher itself, which ends at once without arguments.
        program: program.unwrap_or_else(|| sandbox.launcher.path.clone()),
        arguments: Vec::new(),
        environment: std::collections::BTreeMap::new(),
        directory: "/".into(),
        id: "probe".into(),
        input: None,
    };
    let mut session = Session::new(sandbox.clone(), "/");
    let plan = MountPlan { views: fresh_folder() };
    let files = PlannedFiles { plan: Some(plan), ..PlannedFiles::default() };
    let mut prepared = session.prepare_planned(&policy, files, spec).map_err(|error| match error {
        StartError::Layer(error) => error,
        other => LayerError { layer: "launcher".into(), reason: other.to_string(), errno: None },
    })?;
    prepared.command.stdout(Stdio::null()).stderr(Stdio::null());
    let failed = |error: &std::io::Error| LayerError::new("launcher", error);
    match prepared.spawn().map_err(|error| failed(&error))?.wait_blocking() {
        Ok(_) => Ok(()),
        Err(RunError::Layer(error)) => Err(error),
        Err(RunError::Io(error)) => Err(failed(&error)),
        Err(RunError::Killed) => Err(LayerError {
            layer: "launcher".into(),
            reason: "it ended without a report".into(),
            errno: None,
        }),
    }
}

fn fresh_folder() -> Vec<View> {
    let view = |path| View {
        path,
        kind: ViewKind::Fresh { placeholders: Vec::new() },
        presence: Presence::Required,
    };
    std::fs::canonicalize("/tmp").ok().map(view).into_iter().collect()
}

/// Returns whether this kernel can open single local sockets by path.
pub fn can_open_single_sockets() -> bool {
    crate::sys::landlock_version() >= crate::launcher::SOCKET_PATHS_VERSION
}

/// Finds bwrap in the usual places, which a project cannot write.
pub fn find_bwrap() -> Option<PathBuf> {
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
}
