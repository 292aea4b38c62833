//! Runs the git program. Hooks of the repository do not run: nobody was asked about them. Where nobody vouches for the
//! repository, nothing else runs that its own settings name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::silence::Silence;
use super::{Changes, Fault};
use crate::files::{self, Kind};
use crate::settings::Trust;
use crate::settings::tracked::{LARGEST_INDEX, nested};
use crate::tasks::{Ending, Exchange, Heard, Order, StartFault, Step, Tasks};

/// How long one command may take; a checkout of a large repository takes its time.
const LONGEST: Duration = Duration::from_secs(600);

/// How much of git's complaint is told.
const TOLD: usize = 2_000;

/// Variables that would lead git to another repository than that of the folder.
const MISLEADING: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"];

/// What keeps git from fetching what is missing, and so from the programs and addresses that the repository names for that.
const FETCHES_NOTHING: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// The pauses after which something is tried again that another git keeps from its files: the first, and the last; each
/// is twice as long as the one before, so that they come to about five seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LAST_PAUSE: Duration = Duration::from_millis(2560);

/// A way to run git.
pub(super) struct Git {
    tasks: Tasks,
    environment: BTreeMap<String, String>,
    cancel: CancellationToken,
    /// How far the repository's own settings count.
    trust: Trust,
}

impl Git {
    pub(super) fn new(
        tasks: Tasks,
        mut environment: BTreeMap<String, String>,
        cancel: CancellationToken,
        trust: Trust,
    ) -> Self {
        environment.retain(|name, _| !MISLEADING.contains(&name.as_str()));
        let settled = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        let strict = if trust == Trust::Unknown { &FETCHES_NOTHING[..] } else { &[] };
        let settled = settled.iter().chain(strict);
        environment.extend(settled.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Self { tasks, environment, cancel, trust }
    }

    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Runs git in a folder and gives what it prints. For what only looks at branches and commits.
    pub(super) async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String, Fault> {
        self.run_in(&Silence::default(), folder, arguments).await
    }

    async fn run_in(&self, silence: &Silence, folder: &Path, arguments: &[&str]) -> Result<String, Fault> {
        let heard = self.hear(silence, folder, arguments).await?;
        Ok(heard.stdout.raw().into_owned())
    }

    async fn hear(&self, silence: &Silence, folder: &Path, arguments: &[&str]) -> Result<Heard, Fault> {
        let what = arguments.first().copied().unwrap_or_default().to_owned();
        let words = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let (options, values) = silence.said();
        let words = words.into_iter().chain(options.iter().map(String::as_str));
        let command = shlex::try_join(words.chain(arguments.iter().copied()))
            .map_err(|_| Fault::Git { what: what.clone(), said: "a name has a NUL byte in it".into() })?;
        let mut environment = self.environment.clone();
        environment.extend(values);
        let order = Order { command, cwd: folder.to_path_buf(), environment };
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
            Ok(Some(Some(ending))) => told(what, ending, exchange.close()),
        }
    }

    /// What must be switched off before git looks at files or moves branches in a folder. It is asked in that folder, because settings
    /// may count for one work tree or branch only.
    async fn silence(&self, folder: &Path) -> Result<Silence, Fault> {
        if self.trust != Trust::Unknown {
            return Ok(Silence::default());
        }
        let listed =
            self.hear(&Silence::default(), folder, &["config", "--list", "--show-scope", "-z"]).await?;
        let whole = (!listed.stdout.is_cut()).then(|| listed.stdout.raw());
        whole.and_then(|listed| Silence::of(&listed)).ok_or(Fault::Settings)
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
        let arguments = ["worktree", "list", "--porcelain", "-z"];
        Ok(parse_trees(&self.patiently(&Silence::default(), root, &arguments).await?))
    }

    /// Checks a new branch out; one of this name that is there already goes on.
    pub(super) async fn add_tree(
        &self,
        root: &Path,
        path: &Path,
        branch: &str,
        base: &str,
    ) -> Result<(), Fault> {
        let silence = self.silence(root).await?;
        if silence.varies() {
            // Git works in the new tree at once, before anybody could ask what counts there.
            return Err(Fault::Settings);
        }
        let is_new = !self.knows(root, branch).await;
        self.try_to_add(&silence, root, path, branch, base).await?;
        let filled = if self.trust == Trust::Unknown { self.fill(path).await } else { Ok(()) };
        if filled.is_err() {
            // Who was interrupted cleans up all the same, and what stays does no harm.
            let unhurried = self.uninterrupted();
            let _ = unhurried.take_away(&silence, root, path).await;
            if is_new {
                let _ = unhurried.patiently(&silence, root, &["branch", "-D", branch]).await;
            }
        }
        filled
    }

    async fn try_to_add(
        &self,
        silence: &Silence,
        root: &Path,
        path: &Path,
        branch: &str,
        base: &str,
    ) -> Result<(), Fault> {
        let place = path.to_string_lossy();
        let files = if self.trust == Trust::Unknown { "--no-checkout" } else { "--checkout" };
        let mut patience = Patience::default();
        loop {
            let mut arguments = vec!["worktree", "add", "--quiet", files];
            // A try that failed may have made the branch.
            match self.knows(root, branch).await {
                true => arguments.extend([&*place, branch]),
                false => arguments.extend(["-b", branch, &*place, base]),
            }
            let added = self.run_in(silence, root, &arguments).await;
            if !patience.tries_again(&added, &self.cancel).await {
                return added.map(drop);
            }
        }
    }

    /// Whether there is a branch of this name.
    pub(super) async fn knows(&self, root: &Path, branch: &str) -> bool {
        let reference = format!("refs/heads/{branch}");
        self.run(root, &["rev-parse", "--verify", "--quiet", &reference]).await.is_ok()
    }

    /// Checks the files of a new work tree out.
    async fn fill(&self, tree: &Path) -> Result<(), Fault> {
        let silence = self.silence(tree).await?;
        let arguments = ["-c", "submodule.recurse=false", "reset", "--hard", "--quiet"];
        self.run_in(&silence, tree, &arguments).await.map(drop)
    }

    /// The same, for what is to be done in any case.
    fn uninterrupted(&self) -> Self {
        let (tasks, environment) = (self.tasks.clone(), self.environment.clone());
        Self { tasks, environment, cancel: CancellationToken::new(), trust: self.trust }
    }

    /// Removes a work tree with everything in it.
    pub(super) async fn remove_tree(&self, root: &Path, path: &Path) -> Result<(), Fault> {
        self.take_away(&self.silence(root).await?, root, path).await
    }

    async fn take_away(&self, silence: &Silence, root: &Path, path: &Path) -> Result<(), Fault> {
        let place = path.to_string_lossy();
        let removed = match path.exists() {
            true => self.patiently(silence, root, &["worktree", "remove", "--force", &place]).await,
            false => self.patiently(silence, root, &["worktree", "prune"]).await,
        };
        removed.map(drop)
    }

    /// Removes a branch, whatever is on it.
    pub(super) async fn remove_branch(&self, root: &Path, branch: &str) -> Result<(), Fault> {
        let silence = self.silence(root).await?;
        self.patiently(&silence, root, &["branch", "-D", branch]).await.map(drop)
    }

    /// Does something that another git may be in the way of, again if need be.
    async fn patiently(&self, silence: &Silence, root: &Path, arguments: &[&str]) -> Result<String, Fault> {
        let mut patience = Patience::default();
        loop {
            let done = self.run_in(silence, root, arguments).await;
            if !patience.tries_again(&done, &self.cancel).await {
                return done;
            }
        }
    }

    /// What would be lost with a work tree that was made from a commit.
    pub(super) async fn changes(&self, tree: &Path, base: Option<&str>) -> Result<Changes, Fault> {
        let silence = self.silence(tree).await?;
        let mut arguments = vec!["status", "--porcelain", "--untracked-files=all"];
        let mut inside = 0;
        if self.trust == Trust::Unknown {
            // Git would go by the settings of each repository inside, so it does not look; what is there is not lost.
            arguments.push("--ignore-submodules=dirty");
            inside = self.repositories_inside(tree).await?;
        }
        let status = self.run_in(&silence, tree, &arguments).await?;
        let commits = match base {
            Some(base) => self.commits(tree, base, "HEAD").await?,
            None => 0,
        };
        Ok(Changes { files: status.lines().count() + inside, commits })
    }

    /// How many commits there are from one to another.
    pub(super) async fn commits(&self, folder: &Path, from: &str, to: &str) -> Result<usize, Fault> {
        let counted = self.run(folder, &["rev-list", "--count", &format!("{from}..{to}"), "--"]).await?;
        Ok(counted.trim().parse().unwrap_or(0))
    }

    /// How many repositories are parts of a work tree and have been fetched. One, if that is not known.
    async fn repositories_inside(&self, tree: &Path) -> Result<usize, Fault> {
        let index = self.run(tree, &["rev-parse", "--git-path", "index"]).await?;
        let index = tree.join(index.trim_end_matches('\n'));
        let tree = tree.to_owned();
        Ok(files::aside(move || fetched(&index, &tree)).await.ok().flatten().unwrap_or(1))
    }
}

/// How many of the repositories that an index lists are there, if it can be read. Touches the disk.
fn fetched(index: &Path, tree: &Path) -> Option<usize> {
    let (bytes, _) = files::read(index, LARGEST_INDEX).ok()?;
    let is_there = |path: &PathBuf| !matches!(files::kind(&tree.join(path).join(".git")), Ok(Kind::Missing));
    Some(nested(&bytes)?.iter().filter(|path| is_there(path)).count())
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

fn told(what: String, ending: Ending, heard: Heard) -> Result<Heard, Fault> {
    if ending == Ending::Exited(0) {
        return Ok(heard);
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
