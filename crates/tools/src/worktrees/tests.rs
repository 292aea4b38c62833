use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;
use whimbrel_config::settings::Trust;

use super::*;
use crate::api::ToolContext;

struct TestRepository {
    dir: TempDir,
    worktrees: Worktrees,
    call: ToolContext,
}

impl TestRepository {
    async fn new() -> Self {
        Self::with_trust(Trust::Untrusted).await
    }

    async fn with_trust(trust: Trust) -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut env: BTreeMap<String, String> = std::env::vars().collect();
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.com"),
        ] {
            env.insert(name.into(), value.into());
        }
        env.insert("GIT_CONFIG_GLOBAL".into(), root.join(".git/user-config").display().to_string());
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), env));
        let call = ToolContext::for_test(workspace);
        let repository = Self { worktrees: worktrees_with_trust(&call, trust), call, dir };
        repository.git(&root, &["init", "-q", "-b", "main"]).await;
        fs::write(root.join("a.txt"), "one").unwrap();
        repository.git(&root, &["add", "a.txt"]).await;
        repository.git(&root, &["commit", "-q", "-m", "one"]).await;
        repository
    }

    async fn git(&self, dir: &Path, arguments: &[&str]) -> String {
        self.worktrees.git.run(dir, arguments).await.unwrap()
    }

    /// Installs a filter for all files with these settings (config file, content); returns the file that the filter's
    /// program creates.
    async fn install_filter(&self, settings: &[(&str, &str)]) -> PathBuf {
        let (root, ran) = (self.root(), self.root().join(".git/ran"));
        fs::write(root.join(".gitattributes"), "* filter=a=b\n").unwrap();
        self.git(&root, &["add", ".gitattributes"]).await;
        self.git(&root, &["commit", "-q", "-m", "attributes"]).await;
        self.git(&root, &["config", "extensions.worktreeConfig", "true"]).await;
        for (file, settings) in settings {
            let file = root.join(".git").join(file);
            let before = fs::read_to_string(&file).unwrap_or_default();
            let settings = settings.replace("RUN", &format!("touch {}; cat", ran.display()));
            fs::write(file, before + &settings).unwrap();
        }
        ran
    }

    /// Puts a git wrapper first on the PATH that logs its arguments; returns the log file.
    fn record_git_calls(&mut self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let (programs, log) = (self.root().join(".git/programs"), self.root().join(".git/git-calls"));
        let paths = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&paths).map(|dir| dir.join("git")).find(|git| git.exists());
        let script =
            format!("#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n", log.display(), real.unwrap().display());
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("git"), script).unwrap();
        fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let paths = format!("{}:{}", programs.display(), paths.display());
        self.call.workspace.set_variables([("PATH".to_owned(), paths)].into());
        self.worktrees = worktrees_with_trust(&self.call, Trust::Untrusted);
        log
    }

    async fn assert_only_main_worktree(&self) {
        let root = self.root();
        assert!(!root.join(".claude/worktrees/try").exists());
        assert_eq!(self.worktrees.git.list_worktrees(&root).await.unwrap().len(), 1);
        assert_eq!(self.git(&root, &["branch", "--list", "worktree-*"]).await, "");
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }
}

fn worktrees_with_trust(call: &ToolContext, trust: Trust) -> Worktrees {
    let git = Git::new(call.tasks.clone(), call.workspace.environment(), call.cancel.clone(), trust);
    Worktrees { git, ..call.worktrees() }
}

#[tokio::test]
async fn a_worktree_is_created_reused_and_removed_when_clean() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(Some("try")).await.unwrap();
    assert_eq!(tree.path, repository.root().join(".claude/worktrees/try"));
    assert_eq!(tree.branch.as_deref(), Some("worktree-try"));
    assert_eq!(fs::read_to_string(tree.path.join("a.txt")).unwrap(), "one");
    assert_eq!(
        repository.git(&repository.root(), &["status", "--porcelain"]).await,
        "",
        "the main checkout has no changes"
    );
    assert_eq!(repository.worktrees.create(Some("try")).await.unwrap(), tree);
    assert_eq!(repository.worktrees.find(".claude/worktrees/try").await.unwrap().path, tree.path);
    assert_eq!(repository.worktrees.remove_if_clean(&tree).await.unwrap(), RemovalOutcome::Removed);
    assert!(!tree.path.exists());
    assert_eq!(repository.git(&repository.root(), &["branch", "--list", "worktree-*"]).await, "");
}

#[tokio::test]
async fn files_and_commits_prevent_removal() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(None).await.unwrap();
    fs::write(tree.path.join("new.txt"), "x").unwrap();
    let remaining = repository.worktrees.remove_if_clean(&tree).await.unwrap();
    assert_eq!(remaining, RemovalOutcome::Kept(WorktreeChanges { files: 1, commits: 0 }));
    repository.git(&tree.path, &["add", "new.txt"]).await;
    repository.git(&tree.path, &["commit", "-q", "-m", "two"]).await;
    let remaining = repository.worktrees.remove_if_clean(&tree).await.unwrap();
    assert_eq!(remaining, RemovalOutcome::Kept(WorktreeChanges { files: 0, commits: 1 }));
    repository.worktrees.remove(&tree).await.unwrap();
    assert!(!tree.path.exists());
}

#[tokio::test]
async fn a_deleted_worktree_can_be_removed() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(Some("gone")).await.unwrap();
    fs::remove_dir_all(&tree.path).unwrap();
    assert_eq!(repository.worktrees.remove_if_clean(&tree).await.unwrap(), RemovalOutcome::Removed);
    assert!(!repository.git(&repository.root(), &["worktree", "list"]).await.contains("gone"));
}

#[tokio::test]
async fn a_deleted_worktree_is_created_again_with_its_commits() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(Some("again")).await.unwrap();
    assert!(tree.exists());
    fs::write(tree.path.join("new.txt"), "x").unwrap();
    repository.git(&tree.path, &["add", "new.txt"]).await;
    repository.git(&tree.path, &["commit", "-q", "-m", "two"]).await;
    fs::remove_dir_all(&tree.path).unwrap();
    assert!(!tree.exists());
    let remaining = repository.worktrees.remove_if_clean(&tree).await.unwrap();
    assert_eq!(
        remaining,
        RemovalOutcome::Kept(WorktreeChanges { files: 0, commits: 1 }),
        "only its branch is left"
    );
    assert_eq!(repository.worktrees.create(Some("again")).await.unwrap(), tree);
    assert_eq!(fs::read_to_string(tree.path.join("new.txt")).unwrap(), "x");
    fs::remove_file(tree.path.join(".git")).unwrap();
    assert!(!tree.exists(), "git would look for the repository further up");
}

#[tokio::test]
async fn nothing_is_checked_out_through_a_symlink() {
    let repository = TestRepository::new().await;
    let outside = TempDir::new().unwrap();
    fs::create_dir(repository.root().join(".claude")).unwrap();
    std::os::unix::fs::symlink(outside.path(), repository.root().join(".claude/worktrees")).unwrap();
    let error = repository.worktrees.create(Some("try")).await.unwrap_err();
    assert!(matches!(error, WorktreeError::OutsideSession(_)), "{error}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_gitignore_is_not_written_through_a_symlink() {
    let repository = TestRepository::new().await;
    let outside = TempDir::new().unwrap();
    let worktrees_dir = repository.root().join(".claude/worktrees");
    fs::create_dir_all(&worktrees_dir).unwrap();
    std::os::unix::fs::symlink(outside.path().join("new"), worktrees_dir.join(".gitignore")).unwrap();
    let error = repository.worktrees.create(Some("try")).await.unwrap_err();
    assert!(matches!(error, WorktreeError::OutsideSession(_)), "{error}");
    assert!(!outside.path().join("new").exists() && !worktrees_dir.join("try").exists());
}

const SMUDGE: &str = "[filter \"a=b\"]\n\tsmudge = RUN\n\tclean = RUN\n\trequired = true\n";

#[tokio::test]
async fn filters_of_an_untrusted_repository_do_not_run() {
    let process = "[filter \"a=b\"]\n\tprocess = RUN\n";
    for settings in [&[("config", SMUDGE)][..], &[("config", process)], &[("config.worktree", SMUDGE)]] {
        let repository = TestRepository::new().await;
        let ran = repository.install_filter(settings).await;
        let tree = repository.worktrees.create(Some("try")).await.unwrap();
        assert_eq!(fs::read_to_string(tree.path.join("a.txt")).unwrap(), "one");
        // A changed file forces git to read it.
        fs::write(tree.path.join("a.txt"), "two").unwrap();
        let changes = repository.worktrees.changes(&tree).await.unwrap();
        assert_eq!(changes, WorktreeChanges { files: 1, commits: 0 });
        assert!(!ran.exists(), "{settings:?}");
    }
}

#[tokio::test]
async fn filters_of_the_user_or_a_trusted_repository_run() {
    for (trust, file) in [(Trust::Full, "config"), (Trust::Untrusted, "user-config")] {
        let repository = TestRepository::with_trust(trust).await;
        let ran = repository.install_filter(&[(file, SMUDGE)]).await;
        repository.worktrees.create(Some("try")).await.unwrap();
        assert!(ran.exists(), "{file}");
    }
}

#[tokio::test]
async fn a_nested_repository_is_kept_but_not_inspected() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(Some("try")).await.unwrap();
    let (nested, ran) = (tree.path.join("inside"), repository.root().join(".git/ran"));
    fs::create_dir(&nested).unwrap();
    repository.git(&nested, &["init", "-q"]).await;
    repository.git(&nested, &["commit", "-q", "--allow-empty", "-m", "inside"]).await;
    repository.git(&tree.path, &["add", "inside"]).await;
    repository.git(&tree.path, &["commit", "-q", "-m", "a repository"]).await;
    repository.git(&nested, &["config", "core.fsmonitor", &format!("touch {}", ran.display())]).await;
    let remaining = repository.worktrees.remove_if_clean(&tree).await.unwrap();
    assert_eq!(remaining, RemovalOutcome::Kept(WorktreeChanges { files: 1, commits: 1 }));
    assert!(!ran.exists());
}

#[tokio::test]
async fn unexpressible_settings_prevent_creation() {
    let by_branch = b"[includeIf \"onbranch:worktree-*\"]\n\tpath = more\n";
    for settings in [&b"[filter \"\xff\"]\n\tsmudge = x\n"[..], by_branch] {
        let repository = TestRepository::new().await;
        let root = repository.root();
        let before = fs::read(root.join(".git/config")).unwrap();
        fs::write(root.join(".git/config"), [&before, settings].concat()).unwrap();
        let error = repository.worktrees.create(Some("try")).await.unwrap_err();
        assert!(matches!(error, WorktreeError::UnsafeSettings), "{error}");
        repository.assert_only_main_worktree().await;
    }
}

#[tokio::test]
async fn a_failed_checkout_is_cleaned_up() {
    let repository = TestRepository::new().await;
    let root = repository.root();
    let blob = repository.git(&root, &["rev-parse", "HEAD:a.txt"]).await;
    let (dir, name) = blob.trim().split_at(2);
    fs::remove_file(root.join(".git/objects").join(dir).join(name)).unwrap();
    let error = repository.worktrees.create(Some("try")).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Git { .. }), "{error}");
    repository.assert_only_main_worktree().await;
    // An existing branch is kept.
    repository.git(&root, &["branch", "worktree-old"]).await;
    repository.worktrees.create(Some("old")).await.unwrap_err();
    assert_eq!(repository.git(&root, &["branch", "--list", "worktree-*"]).await.trim(), "worktree-old");
}

#[tokio::test]
async fn branch_commands_disable_hooks_from_settings() {
    let mut repository = TestRepository::new().await;
    let root = repository.root();
    let log = repository.record_git_calls();
    repository.git(&root, &["config", "hook.mine.command", "true"]).await;
    let tree = repository.worktrees.create(Some("try")).await.unwrap();
    repository.worktrees.remove(&tree).await.unwrap();
    let tree = repository.worktrees.create(Some("gone")).await.unwrap();
    fs::remove_dir_all(&tree.path).unwrap();
    repository.worktrees.remove(&tree).await.unwrap();
    let log = fs::read_to_string(log).unwrap();
    for subcommand in ["worktree add", "worktree remove", "worktree prune", "branch -D", "reset --hard"] {
        let mut lines = log.lines().filter(|line| line.contains(subcommand)).peekable();
        assert!(lines.peek().is_some(), "{subcommand}");
        assert!(lines.all(|line| line.contains("--config-env=hook.mine.enabled=")), "{subcommand}: {log}");
    }
}

#[tokio::test]
async fn hooks_of_the_repository_do_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let repository = TestRepository::new().await;
    let hook = repository.root().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch \"$(git rev-parse --git-common-dir)/ran\"\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    repository.worktrees.create(Some("try")).await.unwrap();
    assert!(!repository.root().join(".git/ran").exists());
}

#[tokio::test]
async fn a_worktree_from_before_the_session_is_not_removed() {
    let repository = TestRepository::new().await;
    repository.git(&repository.root(), &["worktree", "add", "-q", "old"]).await;
    let tree = repository.worktrees.find("old").await.unwrap();
    let error = repository.worktrees.remove(&tree).await.unwrap_err();
    assert!(matches!(error, WorktreeError::NotCreatedHere(_)), "{error}");
    assert!(repository.call.workspace.worktree().is_none() && tree.path.exists());
}

#[test]
fn a_name_cannot_escape_the_directory() {
    for name in ["a", "fix-1", "v1.2_x", &"x".repeat(64)] {
        assert!(check_name(name).is_ok(), "{name}");
    }
    for name in ["", ".git", "-b", "a/b", "..", "a..b", "a b", "x.lock", "a.", "ä", "a\0", &"x".repeat(65)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

#[tokio::test]
async fn worktrees_are_created_and_removed_concurrently() {
    let repository = TestRepository::new().await;
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let created =
        futures::future::join_all(names.iter().map(|name| repository.worktrees.create(Some(name)))).await;
    let trees: Vec<Worktree> = created.into_iter().map(Result::unwrap).collect();
    for removed in
        futures::future::join_all(trees.iter().map(|tree| repository.worktrees.remove_if_clean(tree))).await
    {
        assert_eq!(removed.unwrap(), RemovalOutcome::Removed);
    }
    assert_eq!(repository.git(&repository.root(), &["branch", "--format=%(refname:short)"]).await, "main\n");
    assert_eq!(repository.worktrees.git.list_worktrees(&repository.root()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_git_lock_is_waited_for() {
    let repository = TestRepository::new().await;
    let tree = repository.worktrees.create(Some("try")).await.unwrap();
    let lock = repository.root().join(".git/refs/heads/worktree-try.lock");
    fs::write(&lock, "").unwrap();
    let holder = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        fs::remove_file(&lock).unwrap();
    };
    let (removed, ()) = tokio::join!(repository.worktrees.remove(&tree), holder);
    removed.unwrap();
    assert_eq!(repository.git(&repository.root(), &["branch", "--format=%(refname:short)"]).await, "main\n");
}
