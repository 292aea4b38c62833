//! Runs git. Hooks of the repository never run. In an untrusted repository, no other program that its settings name
//! runs either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::Trust;
use whimbrel_config::settings::trust::git_index::{MAX_INDEX_SIZE, submodule_paths};
use whimbrel_os::backoff::Backoff;
use whimbrel_os::files::{self, FileKind};
use whimbrel_process::{CommandOutput, CommandSpec, PipedCommand, ProcessExit, SpawnError};

use super::git_overrides::GitOverrides;
use super::{WorktreeChanges, WorktreeError};
use crate::tasks::TaskRegistry;

/// Time limit of one command; a checkout of a large repository takes long.
const GIT_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of git's stderr in an error.
const MAX_STDERR_BYTES: usize = 2_000;

/// Variables that would redirect git to another repository.
const REPOSITORY_VARIABLES: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"];

/// Prevents lazy fetches, and so the programs and addresses that the repository names for them.
const NO_FETCH_VARIABLES: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Delays before retrying an operation blocked by another git process; their sum is about five seconds.
const LOCK_BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(5), factor: 2, max: Duration::from_millis(2560) };
const MAX_LOCK_RETRIES: u32 = 10;

/// A configured git runner.
pub(super) struct Git {
    tasks: TaskRegistry,
    environment: BTreeMap<String, String>,
    cancel: CancellationToken,
    /// Trust in the repository's own settings.
    trust: Trust,
}

impl Git {
    pub(super) fn new(
        tasks: TaskRegistry,
        mut environment: BTreeMap<String, String>,
        cancel: CancellationToken,
        trust: Trust,
    ) -> Self {
        environment.retain(|name, _| !REPOSITORY_VARIABLES.contains(&name.as_str()));
        let variables = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        let no_fetch = if trust == Trust::Untrusted { &NO_FETCH_VARIABLES[..] } else { &[] };
        let variables = variables.iter().chain(no_fetch);
        environment.extend(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Self { tasks, environment, cancel, trust }
    }

    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Runs git in a directory and returns its stdout. For commands that only read branches and commits.
    pub(super) async fn run(&self, dir: &Path, arguments: &[&str]) -> Result<String, WorktreeError> {
        self.run_with(&GitOverrides::default(), dir, arguments).await
    }

    async fn run_with(
        &self,
        overrides: &GitOverrides,
        dir: &Path,
        arguments: &[&str],
    ) -> Result<String, WorktreeError> {
        let output = self.run_captured(overrides, dir, arguments).await?;
        Ok(output.stdout.raw().into_owned())
    }

    async fn run_captured(
        &self,
        overrides: &GitOverrides,
        dir: &Path,
        arguments: &[&str],
    ) -> Result<CommandOutput, WorktreeError> {
        let subcommand = arguments.first().copied().unwrap_or_default().to_owned();
        let words = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let (options, variables) = overrides.to_arguments();
        let words = words.into_iter().chain(options.iter().map(String::as_str));
        let command =
            shlex::try_join(words.chain(arguments.iter().copied())).map_err(|_| WorktreeError::Git {
                subcommand: subcommand.clone(),
                message: "a name contains a NUL byte".into(),
            })?;
        let mut environment = self.environment.clone();
        environment.extend(variables);
        let spec = CommandSpec { command, cwd: dir.to_path_buf(), environment };
        let mut exchange = PipedCommand::spawn(self.tasks.process_groups(), &spec, Bytes::new())?;
        let ended =
            tokio::time::timeout(GIT_TIMEOUT, self.cancel.run_until_cancelled(exchange.wait_for_exit()));
        match ended.await {
            Err(_) => {
                exchange.stop().await;
                Err(WorktreeError::TimedOut(subcommand))
            }
            Ok(None) => {
                exchange.stop().await;
                Err(WorktreeError::Interrupted)
            }
            Ok(Some(None)) => Err(SpawnError::SessionEnded.into()),
            Ok(Some(Some(exit))) => check_exit(subcommand, exit, exchange.into_output()),
        }
    }

    /// Config overrides for commands that read files or move branches in a directory. Queried in that directory,
    /// because settings may depend on worktree or branch.
    async fn config_overrides(&self, dir: &Path) -> Result<GitOverrides, WorktreeError> {
        if self.trust != Trust::Untrusted {
            return Ok(GitOverrides::default());
        }
        let listed = self
            .run_captured(&GitOverrides::default(), dir, &["config", "--list", "--show-scope", "-z"])
            .await?;
        let complete = (!listed.stdout.is_truncated()).then(|| listed.stdout.raw());
        complete.and_then(|listed| GitOverrides::from_listing(&listed)).ok_or(WorktreeError::UnsafeSettings)
    }

    /// The commit that is checked out.
    pub(super) async fn head_commit(&self, root: &Path) -> Result<String, WorktreeError> {
        match self.run(root, &["rev-parse", "--is-inside-work-tree"]).await {
            Ok(text) if text.trim() == "true" => {}
            Ok(_) | Err(WorktreeError::Git { .. }) => {
                return Err(WorktreeError::NoRepository(root.to_path_buf()));
            }
            Err(error) => return Err(error),
        }
        let head = self.run(root, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        head.map(|commit| commit.trim().to_owned()).map_err(|error| match error {
            WorktreeError::Git { .. } => WorktreeError::NoCommit,
            other => other,
        })
    }

    /// The commit where a worktree branched off from the main checkout.
    pub(super) async fn fork_point(&self, tree: &Path, head: &str) -> Result<String, WorktreeError> {
        self.run(tree, &["merge-base", "HEAD", head]).await.map(|commit| commit.trim().to_owned())
    }

    /// The worktrees of the repository with their branches.
    pub(super) async fn list_worktrees(
        &self,
        root: &Path,
    ) -> Result<Vec<(PathBuf, Option<String>)>, WorktreeError> {
        let arguments = ["worktree", "list", "--porcelain", "-z"];
        Ok(parse_worktrees(&self.run_with_retry(&GitOverrides::default(), root, &arguments).await?))
    }

    /// Creates a worktree on a new branch, or on an existing branch of that name.
    pub(super) async fn add_worktree(
        &self,
        root: &Path,
        path: &Path,
        branch: &str,
        base: &str,
    ) -> Result<(), WorktreeError> {
        let overrides = self.config_overrides(root).await?;
        if overrides.depends_on_location() {
            // Git would act in the new worktree before its settings can be queried.
            return Err(WorktreeError::UnsafeSettings);
        }
        let is_new = !self.has_branch(root, branch).await;
        self.add_with_retry(&overrides, root, path, branch, base).await?;
        let checked_out =
            if self.trust == Trust::Untrusted { self.checkout_files(path).await } else { Ok(()) };
        if checked_out.is_err() {
            // Clean up even after a cancellation; errors leave only harmless remains.
            let cleanup = self.without_cancellation();
            let _ = cleanup.remove_or_prune(&overrides, root, path).await;
            if is_new {
                let _ = cleanup.run_with_retry(&overrides, root, &["branch", "-D", branch]).await;
            }
        }
        checked_out
    }

    async fn add_with_retry(
        &self,
        overrides: &GitOverrides,
        root: &Path,
        path: &Path,
        branch: &str,
        base: &str,
    ) -> Result<(), WorktreeError> {
        let shown_path = path.to_string_lossy();
        let files = if self.trust == Trust::Untrusted { "--no-checkout" } else { "--checkout" };
        let mut retries = LockRetries::default();
        loop {
            let mut arguments = vec!["worktree", "add", "--quiet", files];
            // A failed attempt may have created the branch.
            match self.has_branch(root, branch).await {
                true => arguments.extend([&*shown_path, branch]),
                false => arguments.extend(["-b", branch, &*shown_path, base]),
            }
            let added = self.run_with(overrides, root, &arguments).await;
            if !retries.wait_before_retry(&added, &self.cancel).await {
                return added.map(drop);
            }
        }
    }

    pub(super) async fn has_branch(&self, root: &Path, branch: &str) -> bool {
        let reference = format!("refs/heads/{branch}");
        self.run(root, &["rev-parse", "--verify", "--quiet", &reference]).await.is_ok()
    }

    /// Checks out the files of a new worktree.
    async fn checkout_files(&self, tree: &Path) -> Result<(), WorktreeError> {
        let overrides = self.config_overrides(tree).await?;
        let arguments = ["-c", "submodule.recurse=false", "reset", "--hard", "--quiet"];
        self.run_with(&overrides, tree, &arguments).await.map(drop)
    }

    /// The same runner, for cleanup that must not be cancelled.
    fn without_cancellation(&self) -> Self {
        let (tasks, environment) = (self.tasks.clone(), self.environment.clone());
        Self { tasks, environment, cancel: CancellationToken::new(), trust: self.trust }
    }

    /// Removes a worktree with its content.
    pub(super) async fn remove_worktree(&self, root: &Path, path: &Path) -> Result<(), WorktreeError> {
        self.remove_or_prune(&self.config_overrides(root).await?, root, path).await
    }

    async fn remove_or_prune(
        &self,
        overrides: &GitOverrides,
        root: &Path,
        path: &Path,
    ) -> Result<(), WorktreeError> {
        let shown_path = path.to_string_lossy();
        let removed = match path.exists() {
            true => {
                self.run_with_retry(overrides, root, &["worktree", "remove", "--force", &shown_path]).await
            }
            false => self.run_with_retry(overrides, root, &["worktree", "prune"]).await,
        };
        removed.map(drop)
    }

    /// Removes a branch, merged or not.
    pub(super) async fn remove_branch(&self, root: &Path, branch: &str) -> Result<(), WorktreeError> {
        let overrides = self.config_overrides(root).await?;
        self.run_with_retry(&overrides, root, &["branch", "-D", branch]).await.map(drop)
    }

    /// Runs a command, retrying while another git process holds a lock.
    async fn run_with_retry(
        &self,
        overrides: &GitOverrides,
        root: &Path,
        arguments: &[&str],
    ) -> Result<String, WorktreeError> {
        let mut retries = LockRetries::default();
        loop {
            let result = self.run_with(overrides, root, arguments).await;
            if !retries.wait_before_retry(&result, &self.cancel).await {
                return result;
            }
        }
    }

    /// Counts what would be lost with a worktree created from `base`.
    pub(super) async fn changes(
        &self,
        tree: &Path,
        base: Option<&str>,
    ) -> Result<WorktreeChanges, WorktreeError> {
        let overrides = self.config_overrides(tree).await?;
        let mut arguments = vec!["status", "--porcelain", "--untracked-files=all"];
        let mut nested = 0;
        if self.trust == Trust::Untrusted {
            // Git would follow the settings of nested repositories, so it must not look into them; each counts as a
            // change.
            arguments.push("--ignore-submodules=dirty");
            nested = self.count_nested_repositories(tree).await?;
        }
        let status = self.run_with(&overrides, tree, &arguments).await?;
        let commits = match base {
            Some(base) => self.count_commits(tree, base, "HEAD").await?,
            None => 0,
        };
        Ok(WorktreeChanges { files: status.lines().count() + nested, commits })
    }

    /// Number of commits in `from..to`.
    pub(super) async fn count_commits(
        &self,
        dir: &Path,
        from: &str,
        to: &str,
    ) -> Result<usize, WorktreeError> {
        let counted = self.run(dir, &["rev-list", "--count", &format!("{from}..{to}"), "--"]).await?;
        Ok(counted.trim().parse().unwrap_or(0))
    }

    /// Number of nested repositories (submodules) that are checked out; 1 if unknown.
    async fn count_nested_repositories(&self, tree: &Path) -> Result<usize, WorktreeError> {
        let index = self.run(tree, &["rev-parse", "--git-path", "index"]).await?;
        let index = tree.join(index.trim_end_matches('\n'));
        let tree = tree.to_owned();
        Ok(files::run_blocking(move || count_fetched(&index, &tree)).await.ok().flatten().unwrap_or(1))
    }
}

/// Counts existing nested repositories listed in an index. Accesses the disk.
fn count_fetched(index: &Path, tree: &Path) -> Option<usize> {
    let (bytes, _) = files::read(index, MAX_INDEX_SIZE).ok()?;
    let is_present =
        |path: &PathBuf| !matches!(files::file_kind(&tree.join(path).join(".git")), Ok(FileKind::Missing));
    Some(submodule_paths(&bytes)?.iter().filter(|path| is_present(path)).count())
}

/// Retries while another git process holds a lock.
#[derive(Default)]
struct LockRetries {
    failures: u32,
}

impl LockRetries {
    /// Waits before a retry; returns false if retrying is pointless.
    async fn wait_before_retry(
        &mut self,
        result: &Result<String, WorktreeError>,
        cancel: &CancellationToken,
    ) -> bool {
        let locked = matches!(result, Err(error) if error.is_lock_conflict());
        if !locked || self.failures == MAX_LOCK_RETRIES {
            return false;
        }
        self.failures += 1;
        let delay = LOCK_BACKOFF.delay(self.failures);
        cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_some()
    }
}

fn check_exit(
    subcommand: String,
    exit: ProcessExit,
    output: CommandOutput,
) -> Result<CommandOutput, WorktreeError> {
    if exit == ProcessExit::Exited(0) {
        return Ok(output);
    }
    if exit == ProcessExit::Exited(127) {
        return Err(WorktreeError::GitNotFound);
    }
    let stderr = output.stderr.text();
    let message = match stderr.trim() {
        "" => "no message on stderr",
        text => &text[..text.floor_char_boundary(MAX_STDERR_BYTES)],
    };
    Err(WorktreeError::Git { subcommand, message: message.to_owned() })
}

/// Parses the output of `worktree list --porcelain -z`.
fn parse_worktrees(text: &str) -> Vec<(PathBuf, Option<String>)> {
    let mut trees: Vec<(PathBuf, Option<String>)> = Vec::new();
    for line in text.split('\0') {
        if let Some(path) = line.strip_prefix("worktree ") {
            trees.push((PathBuf::from(path), None));
        } else if let (Some(branch), Some(tree)) = (line.strip_prefix("branch refs/heads/"), trees.last_mut())
        {
            tree.1 = Some(branch.to_owned());
        }
    }
    trees
}
