//! What is installed: the program, its completions and man page, and the texts that belong to it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::archive::Entry;
use super::executable::Executable;
use super::{path_text, third_party};
use crate::command::{stdout, workspace_root};

/// The files of a release, by purpose.
pub(super) struct Contents {
    pub(super) program: Vec<u8>,
    /// The man page, in roff.
    pub(super) man_page: String,
    /// Completions, with their paths below `share/`.
    pub(super) completions: Vec<(&'static str, String)>,
    /// The licenses of Whimbrel, by file name.
    pub(super) licenses: Vec<(&'static str, String)>,
    /// The licenses of the libraries in the program.
    pub(super) third_party: String,
    pub(super) readme: String,
    pub(super) changelog: String,
}

impl Contents {
    /// Collects the files. The program itself prints its completions and its man page.
    pub(super) fn collect(binary: &Path, program: Vec<u8>, executable: &Executable) -> Result<Self> {
        let binary = path_text(binary)?;
        let completions = |shell: &str| stdout(&[binary, "completions", shell]);
        Ok(Self {
            program,
            man_page: stdout(&[binary, "man"])?,
            completions: vec![
                ("bash-completion/completions/whimbrel", completions("bash")?),
                ("zsh/vendor-completions/_whimbrel", completions("zsh")?),
                ("fish/vendor_completions.d/whimbrel.fish", completions("fish")?),
            ],
            licenses: vec![
                ("LICENSE-APACHE", read_text("LICENSE-APACHE")?),
                ("LICENSE-MIT", read_text("LICENSE-MIT")?),
            ],
            third_party: third_party::render(&executable.target())?,
            readme: read_text("README.md")?,
            changelog: read_text("CHANGELOG.md")?,
        })
    }

    /// Licenses, ours and those of the libraries, for packages that install no other documents.
    pub(super) fn license_entries(&self) -> Vec<Entry> {
        let ours = self.licenses.iter().map(|(name, text)| Entry::plain(*name, text.as_str()));
        ours.chain([Entry::plain("THIRD-PARTY", self.third_party.as_str())]).collect()
    }
}

fn read_text(name: &str) -> Result<String> {
    let path = workspace_root().join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
