//! Runs the git program. Hooks of the repository do not run: nobody was asked about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{Changes, Fault};
use crate::tasks::{Ending, Exchange, Heard, Order, StartFault, Step, Tasks};

/// How long one command may take; a checkout of a large repository takes its time.
const LONGEST: Duration = Duration::from_secs(600);

/// How much of git's complaint is told.
const TOLD: usize = 2_000;

/// Variables that would lead git to another repository than that of the folder.
const MISLEADING: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"];

/// The pauses after which something is tried again that another git keeps from its files: the first, and the last; each
/// is twice as long as the one before, so that they come to about five seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LAST_PAUSE: Duration = Duration::from_millis(2560);

/// A way to run git.
pub(super) struct Git {
    tasks: Tasks,
    environment: BTreeMap<String, String>,
    cancel: CancellationToken,
}

impl Git {
    pub(super) fn new(
        tasks: Tasks,
        mut environment: BTreeMap<String, String>,
        cancel: CancellationToken,
    ) -> Self {
        environment.retain(|name, _| !MISLEADING.contains(&name.as_str()));
        let settled = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        environment.extend(settled.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { tasks, environment, cancel }
    }

    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Runs git in a folder and gives what it prints.
    pub(super) async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String, Fault> {
        let what = arguments.first().copied().unwrap_or_default().to_owned();
        let words = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let command = shlex::try_join(words.into_iter().chain(arguments.iter().copied()))
            .map_err(|_| Fault::Git { what: what.clone(), said: "a name has a NUL byte in it".into() })?;
        let order = Order { command, cwd: folder.to_path_buf(), environment: self.environment.clone() };
        let mut exchange = Exchange::start(&self.tasks, &order, Bytes::new())?;
        let ended = tokio::time::timeout(LONGEST, self.cancel.run_until_cancelled(finish(&mut exchange)));
        match ended.await {
            Err(_) => {
                exchange.stop().await;
                Err(Fault::TooSlow(what))
            }
            Ok(None) => {
                exchange.stop().await;
                Err(Fault::Interrupted)
            }
            Ok(Some(None)) => Err(StartFault::SessionEnded.into()),
            Ok(Some(Some(ending))) => told(what, ending, &exchange.close()),
        }
    }

    /// The commit that is checked out.
    pub(super) async fn head(&self, root: &Path) -> Result<String, Fault> {
        match self.run(root, &["rev-parse", "--is-inside-work-tree"]).await {
            Ok(said) if said.trim() == "true" => {}
            Ok(_) | Err(Fault::Git { .. }) => return Err(Fault::NoRepository(root.to_path_buf())),
            Err(fault) => return Err(fault),
        }
        let head = self.run(root, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        head.map(|commit| commit.trim().to_owned()).map_err(|fault| match fault {
            Fault::Git { .. } => Fault::NoCommit,
            other => other,
        })
    }

    /// Where a work tree has left the commit that is checked out in the first.
    pub(super) async fn fork_point(&self, tree: &Path, head: &str) -> Result<String, Fault> {
        self.run(tree, &["merge-base", "HEAD", head]).await.map(|commit| commit.trim().to_owned())
    }

    /// The work trees of the repository, each with its branch.
    pub(super) async fn trees(&self, root: &Path) -> Result<Vec<(PathBuf, Option<String>)>, Fault> {
        Ok(parse_trees(&self.run(root, &["worktree", "list", "--porcelain", "-z"]).await?))
    }

    /// Checks a new branch out; one of this name that is there already goes on.
    pub(super) async fn add_tree(
        &self,
        root: &Path,
        path: &Path,
        branch: &str,
        base: &str,
    ) -> Result<(), Fault> {
        let place = path.to_string_lossy();
        let reference = format!("refs/heads/{branch}");
        let mut patience = Patience::default();
        loop {
            // A try that failed may have made the branch.
            let known = self.run(root, &["rev-parse", "--verify", "--quiet", &reference]).await.is_ok();
            let added = match known {
                true => self.run(root, &["worktree", "add", "--quiet", &place, branch]).await,
                false => self.run(root, &["worktree", "add", "--quiet", "-b", branch, &place, base]).await,
            };
            if !patience.tries_again(&added, &self.cancel).await {
                return added.map(drop);
            }
        }
    }

    /// Removes a work tree with everything in it.
    pub(super) async fn remove_tree(&self, root: &Path, path: &Path) -> Result<(), Fault> {
        let place = path.to_string_lossy();
        match path.exists() {
            true => self.write(root, &["worktree", "remove", "--force", &place]).await,
            false => self.write(root, &["worktree", "prune"]).await,
        }
    }

    /// Removes a branch, whatever is on it.
    pub(super) async fn remove_branch(&self, root: &Path, branch: &str) -> Result<(), Fault> {
        self.write(root, &["branch", "-D", branch]).await
    }

    /// Does something that writes to the repository, again if need be.
    async fn write(&self, root: &Path, arguments: &[&str]) -> Result<(), Fault> {
        let mut patience = Patience::default();
        loop {
            let done = self.run(root, arguments).await;
            if !patience.tries_again(&done, &self.cancel).await {
                return done.map(drop);
            }
        }
    }

    /// What would be lost with a work tree that was made from a commit.
    pub(super) async fn changes(&self, tree: &Path, base: Option<&str>) -> Result<Changes, Fault> {
        let status = self.run(tree, &["status", "--porcelain", "--untracked-files=all"]).await?;
        let commits = match base {
            Some(base) => self.run(tree, &["rev-list", "--count", &format!("{base}..HEAD")]).await?,
            None => String::new(),
        };
        Ok(Changes { files: status.lines().count(), commits: commits.trim().parse().unwrap_or(0) })
    }
}

/// How long locks of others are still waited for: two agents may end at the same moment.
struct Patience {
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { pause: FIRST_PAUSE }
    }
}

impl Patience {
    /// Whether it is worth trying again; waits until then.
    async fn tries_again(&mut self, done: &Result<String, Fault>, cancel: &CancellationToken) -> bool {
        let locked = matches!(done, Err(fault) if fault.is_locked());
        if !locked || self.pause > LAST_PAUSE {
            return false;
        }
        let waited = cancel.run_until_cancelled(tokio::time::sleep(self.pause)).await;
        self.pause *= 2;
        waited.is_some()
    }
}

/// Waits for the end; none if the session ends before.
async fn finish(exchange: &mut Exchange) -> Option<Ending> {
    loop {
        match exchange.step().await {
            Step::Said => {}
            Step::Ended(ending) => return Some(ending),
            Step::SessionEnds => return None,
        }
    }
}

fn told(what: String, ending: Ending, heard: &Heard) -> Result<String, Fault> {
    if ending == Ending::Exited(0) {
        return Ok(heard.stdout.raw().into_owned());
    }
    if ending == Ending::Exited(127) {
        return Err(Fault::NoGit);
    }
    let complaint = heard.stderr.text();
    let said = match complaint.trim() {
        "" => "it gave no reason",
        text => &text[..text.floor_char_boundary(TOLD)],
    };
    Err(Fault::Git { what, said: said.to_owned() })
}

/// What `worktree list --porcelain -z` says.
fn parse_trees(text: &str) -> Vec<(PathBuf, Option<String>)> {
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
