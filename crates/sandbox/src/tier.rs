//! The ways in which commands are confined, and what starts commands in one of them.

use std::path::{Path, PathBuf};

use crate::program::LauncherProgram;

/// A way to confine commands, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Our own launcher, with everything.
    Namespaces,
    /// bwrap makes namespaces and mounts. Files cannot be moved across folders with protected names, and protected links
    /// can be replaced.
    Bwrap,
    /// Our own launcher with the `/proc` of the machine: its processes are visible.
    MachineProc,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Namespaces, Self::Bwrap, Self::MachineProc];

    /// Name in settings and on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bwrap => "bwrap",
            Self::MachineProc => "machine-proc",
        }
    }

    /// What commands in this tier lack; empty for the strongest one.
    pub fn losses(self) -> &'static [&'static str] {
        match self {
            Self::Namespaces => &[],
            Self::Bwrap => &[
                "files cannot be moved across folders that hold protected names",
                "protected symbolic links can be replaced",
                "the number of processes is not limited for root",
                "background servers do not answer later commands",
            ],
            Self::MachineProc => &[
                "processes of the machine are visible, and programs cannot be debugged",
                "the number of processes is not limited for root",
            ],
        }
    }
}

/// A tier that works on this machine, and what starts commands in it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) launcher: LauncherProgram,
    pub(crate) bwrap: Option<PathBuf>,
    pub(crate) tier: Tier,
}

impl Sandbox {
    pub fn tier(&self) -> Tier {
        self.tier
    }

    pub(crate) fn launcher(&self) -> &LauncherProgram {
        &self.launcher
    }

    pub(crate) fn bwrap(&self) -> Option<&Path> {
        self.bwrap.as_deref()
    }
}
