//! Programs of the system that checks need: found, or installed by the package manager where that is possible.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::{self, run_args};

/// A program, the Debian package that has it, and the checks that need it.
struct SystemProgram {
    /// Names or paths under which it is installed; one is enough.
    names: &'static [&'static str],
    package: &'static str,
    purpose: &'static str,
}

/// The sandbox looks for bubblewrap in these places only.
const BUBBLEWRAP: SystemProgram = SystemProgram {
    names: &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"],
    package: "bubblewrap",
    purpose: "tests of the sandbox",
};

const CHROMIUM: SystemProgram = SystemProgram {
    names: &["chromium", "chromium-browser", "google-chrome"],
    package: "chromium",
    purpose: "tests in a browser",
};

/// Programs of the tests of completions, the man page and the terminal.
const OTHERS: [SystemProgram; 5] = [
    SystemProgram { names: &["zsh"], package: "zsh", purpose: "tests of completions" },
    SystemProgram { names: &["fish"], package: "fish", purpose: "tests of completions" },
    SystemProgram { names: &["groff"], package: "groff", purpose: "tests of the man page" },
    SystemProgram { names: &["mandoc"], package: "mandoc", purpose: "tests of the man page" },
    SystemProgram { names: &["tmux"], package: "tmux", purpose: "tests of the terminal" },
];

/// Installs what the tests in Rust and the conformance suite need, if it is missing.
pub(crate) fn install_all() -> Result<()> {
    if cfg!(target_os = "linux") {
        BUBBLEWRAP.install()?;
    }
    OTHERS.iter().try_for_each(|program| program.install().map(drop))
}

/// Returns the path of Chromium; installs Debian's if none is there. `CHROMIUM` names another.
pub(crate) fn chromium() -> Result<String> {
    match std::env::var_os("CHROMIUM") {
        Some(path) => path.into_string().ok().context("CHROMIUM is not UTF-8"),
        None => CHROMIUM.install(),
    }
}

impl SystemProgram {
    /// Returns its name or path; installs its package if it is missing.
    fn install(&self) -> Result<String> {
        if let Some(name) = self.find() {
            return Ok(name.to_owned());
        }
        let Self { package, purpose, .. } = self;
        let is_root = command::stdout(&["id", "-u"]).is_ok_and(|id| id.trim() == "0");
        if !is_root || !command::succeeds("which", &["apt-get"]) {
            bail!("the {purpose} need the program of the package {package}: install it first");
        }
        let settings = [("DEBIAN_FRONTEND", "noninteractive")];
        let install = ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", package];
        // The lists of packages may be missing or old.
        if run_args(&install, &settings).is_err() {
            run_args(&["apt-get", "update", "--quiet"], &settings)?;
            run_args(&install, &settings)?;
        }
        let found = self.find().with_context(|| format!("{package} was installed, but cannot be found"))?;
        Ok(found.to_owned())
    }

    fn find(&self) -> Option<&'static str> {
        let is_there = |name: &&str| match Path::new(name).is_absolute() {
            true => Path::new(name).exists(),
            false => command::succeeds("which", &[name]),
        };
        self.names.iter().copied().find(is_there)
    }
}
