//! What this machine can do to confine commands. Each question is answered by running a program, once per process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use whimbrel_config::settings::SandboxSettings;

/// The program that confines commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SandboxLauncher {
    /// `whimbrel-sandbox` or `whimbrel`, next to this program or in `PATH`.
    #[default]
    Find,
    /// This program, which calls `whimbrel_sandbox::launcher::run_if_requested` first in its `main`.
    ThisProgram,
    At(PathBuf),
}

/// The tier in which the commands of a session run.
#[derive(Debug, Clone)]
pub struct SandboxTier {
    /// Name for hosts and users.
    pub name: &'static str,
    /// What it lacks.
    pub losses: &'static [&'static str],
    #[cfg(target_os = "linux")]
    pub(crate) sandbox: whimbrel_sandbox::tier::Sandbox,
}

/// Finds the tier, and remembers it. Shared by all sessions of a process.
#[derive(Debug, Default)]
pub struct SandboxProbe {
    launcher: SandboxLauncher,
    known: Mutex<HashMap<Question, Result<SandboxTier, String>>>,
}

/// Settings on which the answer depends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    allow_weaker_tiers: bool,
    bwrap_path: Option<String>,
}

impl SandboxProbe {
    pub fn new(launcher: SandboxLauncher) -> Self {
        Self { launcher, known: Mutex::default() }
    }

    /// Returns the best tier that the settings permit. The first call starts processes and waits for them.
    pub fn find_tier(&self, settings: &SandboxSettings) -> Result<SandboxTier, String> {
        let question = Question {
            allow_weaker_tiers: settings.allow_weaker_tiers,
            bwrap_path: settings.bwrap_path.clone(),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(question).or_insert_with_key(|question| self.probe(question)).clone()
    }

    #[cfg(target_os = "linux")]
    fn probe(&self, question: &Question) -> Result<SandboxTier, String> {
        use whimbrel_sandbox::ladder::{TierChoice, find_bwrap, probe};
        use whimbrel_sandbox::program::LauncherProgram;

        let launcher =
            match &self.launcher {
                SandboxLauncher::ThisProgram => LauncherProgram::this_program()
                    .map_err(|error| format!("this program is not found: {error}")),
                SandboxLauncher::At(path) => LauncherProgram::at(path).map_err(|error| error.to_string()),
                SandboxLauncher::Find => LauncherProgram::find(std::env::var_os("PATH").as_deref())
                    .map_err(|error| error.to_string()),
            }?;
        let bwrap = question.bwrap_path.as_ref().map(PathBuf::from).or_else(find_bwrap);
        let choice = if question.allow_weaker_tiers { TierChoice::BestOrWeaker } else { TierChoice::Best };
        let sandbox = probe(&launcher, bwrap.as_deref(), choice).map_err(|error| error.to_string())?;
        Ok(SandboxTier { name: sandbox.tier().name(), losses: sandbox.tier().losses(), sandbox })
    }

    #[cfg(not(target_os = "linux"))]
    fn probe(&self, _: &Question) -> Result<SandboxTier, String> {
        Err("commands can be confined on Linux only. Run the session in a container or a virtual machine"
            .into())
    }
}
