//! The sandbox of a session on systems that have none: it confines nothing, and says so.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use whimbrel_config::settings::SandboxSettings;
use whimbrel_process::{CommandSpec, ConfinedCommand};
use whimbrel_sandbox::proxy::HostApproval;

use super::report::ViolationReport;
use super::{PolicyFacts, SandboxProbe, SandboxTier};

/// Returns whether this kernel can open single local sockets by path.
pub fn can_open_single_sockets() -> bool {
    false
}

#[derive(Debug, Default)]
pub struct SessionSandbox {
    probe: Arc<SandboxProbe>,
}

/// A command that is ready to start. No value exists.
#[derive(Debug)]
pub struct Prepared {
    pub command: ConfinedCommand,
    pub run: ConfinedRun,
}

#[derive(Debug)]
pub struct ConfinedRun(Infallible);

impl ConfinedRun {
    pub fn finish(self, _: &str) -> ViolationReport {
        match self.0 {}
    }
}

impl SessionSandbox {
    pub fn new(probe: Arc<SandboxProbe>) -> Self {
        Self { probe }
    }

    pub fn find_tier(&self, settings: &SandboxSettings) -> Result<SandboxTier, String> {
        self.probe.find_tier(settings)
    }

    pub fn set_approval(&self, _: Weak<dyn HostApproval>) {}

    pub fn scratch(&self, facts: &PolicyFacts) -> Result<PathBuf, String> {
        Err(self.find_tier(&facts.settings).map_or_else(|error| error, |_| String::new()))
    }

    pub fn prepare(
        &self,
        facts: &PolicyFacts,
        _: &mut CommandSpec,
        _: &str,
        _: super::CommandStdin,
    ) -> Result<Prepared, String> {
        self.scratch(facts).and_then(|_| Err("commands can be confined on Linux only".into()))
    }

    pub fn uncover(&self) {}

    pub fn has_cover(&self, _: &Path) -> bool {
        false
    }

    pub fn end(&self) {}
}
