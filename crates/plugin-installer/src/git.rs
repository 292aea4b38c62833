//! Checks out repositories of others with the git of the system. Neither hooks nor filters run, submodules are not
//! fetched, and only ordinary protocols are used.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_config::plugins::git_source::GitSource;
use whimbrel_policy::git_settings::{GitOverride, find_override};
use whimbrel_process::{CommandOutput, CommandSpec, PipedCommand, ProcessExit, ProcessGroups, SpawnError};

use crate::error::{GitError, InstallError};

/// Time limit of one git command in milliseconds.
const TIMEOUT_VARIABLE: &str = "CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS";
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// Bytes of git's stderr in an error.
const MAX_STDERR_BYTES: usize = 2_000;

/// Variables that would redirect git to another repository.
const REPOSITORY_VARIABLES: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"];

/// No prompts, no remote helpers, messages in English.
const FIXED_VARIABLES: [(&str, &str); 4] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
];

/// Sections of git's settings that make a checkout run programs.
const PROGRAM_SECTIONS: [&str; 2] = ["filter", "hook"];

/// Runs git.
pub(crate) struct Git {
    environment: BTreeMap<String, String>,
    timeout: Duration,
    groups: Arc<ProcessGroups>,
}

/// Settings that override those of the user for one command.
type Overrides = Vec<(String, String)>;

impl Git {
    pub(crate) fn new(mut environment: BTreeMap<String, String>) -> Result<Self, InstallError> {
        let timeout =
            match environment.get(TIMEOUT_VARIABLE).map(|text| text.trim()).filter(|text| !text.is_empty()) {
                None => DEFAULT_TIMEOUT,
                Some(text) => {
                    text.parse().ok().filter(|millis| *millis > 0).map(Duration::from_millis).ok_or_else(
                        || {
                            InstallError::Invalid(format!(
                                "{TIMEOUT_VARIABLE} must be a whole number above 0, but is {text:?}"
                            ))
                        },
                    )?
                }
            };
        environment.retain(|name, _| !REPOSITORY_VARIABLES.contains(&name.as_str()));
        environment.extend(FIXED_VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(Self { environment, timeout, groups: Arc::new(ProcessGroups::new()) })
    }

    /// Checks out a repository into a directory that does not exist yet. Returns the commit.
    pub(crate) async fn check_out(&self, source: &GitSource, dir: &Path) -> Result<String, GitError> {
        let (parent, shown) = (dir.parent().unwrap_or(Path::new("/")), dir.to_string_lossy());
        match &source.revision.commit {
            None => {
                let mut arguments =
                    vec!["clone", "--quiet", "--depth", "1", "--single-branch", "--no-checkout"];
                arguments.extend(["--no-recurse-submodules", "--template="]);
                if let Some(reference) = &source.revision.reference {
                    arguments.extend(["--branch", reference]);
                }
                arguments.extend(["--", &source.url, &shown]);
                self.run(parent, &[], &arguments).await?;
                let overrides = self.program_overrides(dir).await?;
                self.run(dir, &overrides, &["reset", "--hard", "--quiet"]).await?;
            }
            Some(commit) => {
                self.run(parent, &[], &["init", "--quiet", "--template=", "--", &shown]).await?;
                self.run(dir, &[], &["remote", "add", "origin", &source.url]).await?;
                self.fetch_commit(dir, commit, source.revision.reference.as_deref()).await?;
                let overrides = self.program_overrides(dir).await?;
                self.run(dir, &overrides, &["checkout", "--quiet", "--detach", commit]).await?;
            }
        }
        self.head_commit(dir).await
    }

    /// The commit that is checked out in the root of a repository.
    pub(crate) async fn head_commit(&self, dir: &Path) -> Result<String, GitError> {
        let commit = self.run(dir, &[], &["rev-parse", "--verify", "HEAD"]).await?;
        Ok(commit.trim().to_owned())
    }

    /// Fetches one commit. Some servers only serve branches and tags, so these are fetched then.
    async fn fetch_commit(&self, dir: &Path, commit: &str, reference: Option<&str>) -> Result<(), GitError> {
        let fetch = ["fetch", "--quiet", "--no-recurse-submodules"];
        let shallow = [&fetch[..], &["--depth", "1", "--no-tags", "origin", commit]].concat();
        match self.run(dir, &[], &shallow).await {
            Err(GitError::Failed { .. }) => {}
            fetched => return fetched.map(drop),
        }
        let mut complete = [&fetch[..], &["origin"]].concat();
        complete.extend(reference);
        self.run(dir, &[], &complete).await.map(drop)
    }

    /// Overrides that disable filters and hooks. A repository cannot bring any, but its attributes select filters that
    /// the user has configured.
    async fn program_overrides(&self, dir: &Path) -> Result<Overrides, GitError> {
        let listed = self.run_captured(dir, &[], &["config", "--list", "--name-only", "-z"]).await?;
        let complete = (!listed.stdout.is_truncated()).then(|| listed.stdout.raw());
        let overrides = complete.and_then(|names| overrides_for(&names));
        overrides.ok_or(GitError::UnreadableSettings)
    }

    async fn run(
        &self,
        dir: &Path,
        overrides: &[(String, String)],
        arguments: &[&str],
    ) -> Result<String, GitError> {
        let output = self.run_captured(dir, overrides, arguments).await?;
        Ok(output.stdout.raw().into_owned())
    }

    async fn run_captured(
        &self,
        dir: &Path,
        overrides: &[(String, String)],
        arguments: &[&str],
    ) -> Result<CommandOutput, GitError> {
        let subcommand = arguments.first().copied().unwrap_or_default().to_owned();
        let variable = |number: usize| format!("WHIMBREL_GIT_SETTING_{number}");
        let options: Vec<String> = overrides
            .iter()
            .enumerate()
            .map(|(number, (key, _))| format!("--config-env={key}={}", variable(number)))
            .collect();
        let words = [
            "git",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "submodule.recurse=false",
        ];
        let words =
            words.into_iter().chain(options.iter().map(String::as_str)).chain(arguments.iter().copied());
        let command = shlex::try_join(words).map_err(|_| GitError::Failed {
            subcommand: subcommand.clone(),
            message: "a name contains a NUL byte".into(),
        })?;
        let mut environment = self.environment.clone();
        environment.extend(
            overrides.iter().enumerate().map(|(number, (_, value))| (variable(number), value.clone())),
        );
        let spec = CommandSpec { command, cwd: dir.to_path_buf(), environment };
        let mut running = PipedCommand::spawn(&self.groups, &spec, Bytes::new())?;
        match tokio::time::timeout(self.timeout, running.wait_for_exit()).await {
            Err(_) => {
                running.stop().await;
                Err(GitError::TimedOut { subcommand, limit: self.timeout })
            }
            Ok(None) => Err(SpawnError::SessionEnded.into()),
            Ok(Some(exit)) => check_exit(subcommand, exit, running.into_output()),
        }
    }
}

/// Computes the overrides for a list of setting names. None if a name cannot be expressed.
fn overrides_for(names: &str) -> Option<Overrides> {
    let mut overrides = Overrides::new();
    for key in names.split('\0') {
        let (Some(section), Some(name)) = (key.split('.').next(), key.rsplit('.').next()) else { continue };
        if !PROGRAM_SECTIONS.contains(&section) {
            continue;
        }
        let replacement = match find_override(section, name) {
            None | Some(GitOverride::ResetList) => continue,
            Some(GitOverride::Value(value)) => (key.to_owned(), value.to_owned()),
            Some(GitOverride::Disable(name)) => {
                let section = key.rsplit_once('.').map_or(section, |(section, _)| section);
                (format!("{section}.{name}"), "false".to_owned())
            }
        };
        // Invalid UTF-8 was replaced when the list was decoded.
        if key.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        overrides.push(replacement);
    }
    Some(overrides)
}

fn check_exit(
    subcommand: String,
    exit: ProcessExit,
    output: CommandOutput,
) -> Result<CommandOutput, GitError> {
    match exit {
        ProcessExit::Exited(0) => Ok(output),
        ProcessExit::Exited(127) => Err(GitError::NotFound),
        _ => {
            let stderr = output.stderr.text();
            let message = match stderr.trim().trim_end_matches('.') {
                "" => "no message on stderr",
                text => &text[..text.floor_char_boundary(MAX_STDERR_BYTES)],
            };
            Err(GitError::Failed { subcommand, message: message.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_hooks_of_the_user_are_disabled() {
        let names = "core.bare\0filter.lfs.smudge\0filter.lfs.process\0filter.lfs.required\0filter.x=y.clean\0\
            hook.a.b.command\0credential.helper\0core.sshcommand\0";
        let expected = [
            ("filter.lfs.smudge", ""),
            ("filter.lfs.process", ""),
            ("filter.lfs.required", "false"),
            ("filter.x=y.clean", ""),
            ("hook.a.b.enabled", "false"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(overrides_for(names), Some(expected.to_vec()));
        assert_eq!(overrides_for("filter.\u{fffd}.smudge"), None);
        assert_eq!(overrides_for("branch.\u{fffd}.remote"), Some(Vec::new()));
    }

    #[test]
    fn timeout_must_be_a_number() {
        let git = |value: &str| Git::new([(TIMEOUT_VARIABLE.to_owned(), value.to_owned())].into());
        assert_eq!(git("500").ok().map(|git| git.timeout), Some(Duration::from_millis(500)));
        assert_eq!(git(" ").ok().map(|git| git.timeout), Some(DEFAULT_TIMEOUT));
        for value in ["0", "-1", "soon"] {
            assert!(git(value).is_err(), "{value}");
        }
    }
}
