//! Files: what a confined command may write and read. The machine's view decides, not what the command says.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};

use support::confined_test;
use whimbrel_sandbox::policy::PathRule;
use whimbrel_sandbox::violations::Appeared;

const SETTINGS: &str = "{\"kept\": true}\n";

confined_test! {
    /// S-01.
    fn writes_outside_are_refused_by_every_name(world) {
        let outside = world.path("outside").display().to_string();
        world.run(&format!(
            "echo x > {outside}/evil; echo x >> {outside}/data.txt; rm -f {outside}/data.txt; echo evil >> ~/.bashrc
             ln -s {outside} link; echo x > link/evil; ln -s {outside}/data.txt d; echo x >> d
             ln {outside}/data.txt hl; echo evil >> hl; chmod 666 {outside}/data.txt; touch {outside}/data.txt
             truncate -s 0 {outside}/data.txt; mv {outside} moved; setfattr -n user.x -v 1 {outside}/data.txt"
        ));
        world.assert_untouched();
    }
}

confined_test! {
    /// S-01.
    fn workspace_scratch_and_allowed_paths_are_writable(world) {
        std::fs::create_dir(world.path("extra")).unwrap();
        let extra = world.path("extra");
        world.rules().allow_write.push(extra);
        let text = world.run("echo a > new && mkdir -p d/e && echo b > d/e/f && mv d/e g && f=$(mktemp) && echo x > $f && echo FINE $f; echo y > ../extra/f");
        assert!(text.contains("FINE") && text.contains("/scratch/"), "{text}");
        assert_eq!(world.read("ws/g/f").as_deref(), Some("b\n"));
        assert_eq!(world.read("extra/f").as_deref(), Some("y\n"));
    }
}

confined_test! {
    /// S-02.
    fn protected_names_cannot_be_changed_or_moved(world) {
        world.git_init();
        for name in ["ws/.claude/settings.json", "ws/.mcp.json", "ws/.vscode/tasks.json"] {
            world.put(name, SETTINGS);
        }
        world.put("ws/.git/hooks/post-checkout", SETTINGS);
        let config = world.read("ws/.git/config");
        world.run(
            "echo evil > .mcp.json; rm -f .mcp.json; echo evil > x; mv -f x .mcp.json; echo evil > .claude/settings.json
             mv .claude c2; mkdir .claude; echo evil > .claude/settings.json; rm -rf .vscode; mv .vscode v
             mv .git g2; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; git config core.fsmonitor evil
             rm -f .git/config; cp x .git/hooks/post-merge; ln -s x .git/hooks/pre-push
             python3 -c 'import ctypes; print(ctypes.CDLL(None).renameat2(-100, b\".git\", -100, b\"other\", 2))'
             mkdir other; mv -T --exchange .git other"
        );
        for name in ["ws/.claude/settings.json", "ws/.mcp.json", "ws/.vscode/tasks.json", "ws/.git/hooks/post-checkout"] {
            assert_eq!(world.read(name).as_deref(), Some(SETTINGS), "{name}");
        }
        assert_eq!(world.read("ws/.git/config"), config);
        assert_eq!(std::fs::read_dir(world.path("ws/.git/hooks")).unwrap().filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_none_or(|extension| extension != "sample")
        }).count(), 1);
    }
}

confined_test! {
    /// S-03.
    fn missing_protected_names_cannot_be_created(world) {
        world.git_init();
        world.run("mkdir -p .claude .vscode; echo evil > .claude/settings.json; echo evil > .vscode/tasks.json; echo evil > .mcp.json; echo evil > .bashrc; rmdir .idea; mkdir .idea && echo x > .idea/x");
        for name in [".claude/settings.json", ".vscode/tasks.json", ".mcp.json", ".bashrc", ".idea/x"] {
            assert_eq!(world.read(&format!("ws/{name}")), None, "{name}");
        }
        let folder = world.path("ws");
        world.session = whimbrel_sandbox::session::Session::new(world.sandbox.clone(), "/");
        let mut left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".git", "notes.txt"], "covers stay behind");
    }
}

confined_test! {
    /// S-04.
    fn protected_links_and_their_targets_stay(world) {
        world.put("ws/real/settings.json", SETTINGS);
        symlink("real", world.path("ws/.claude")).unwrap();
        world.run("echo evil > real/settings.json; echo evil > .claude/settings.json; rm .claude; mkdir .claude; mv real r2; ln -sfn other .claude; mv .claude c");
        assert_eq!(world.read("ws/.claude/settings.json").as_deref(), Some(SETTINGS));
        assert_eq!(std::fs::read_link(world.path("ws/.claude")).unwrap().to_str(), Some("real"));
    }
}

confined_test! {
    /// S-05.
    fn nested_repositories_keep_hooks_and_configuration(world) {
        for name in ["a", "b/c/d"] {
            world.put(&format!("ws/{name}/.git/config"), SETTINGS);
            world.put(&format!("ws/{name}/.git/hooks/pre-push"), SETTINGS);
        }
        world.run("for r in a b/c/d; do echo evil > $r/.git/config; echo evil > $r/.git/hooks/pre-push; rm -rf $r/.git/hooks; echo ok > $r/.git/index; done; mv a a2; mv b/c b/c2; mv b b2");
        for name in ["a", "b/c/d"] {
            assert_eq!(world.read(&format!("ws/{name}/.git/config")).as_deref(), Some(SETTINGS));
            assert_eq!(world.read(&format!("ws/{name}/.git/hooks/pre-push")).as_deref(), Some(SETTINGS));
            assert_eq!(world.read(&format!("ws/{name}/.git/index")).as_deref(), Some("ok\n"));
        }
    }
}

confined_test! {
    /// S-05: commits go on in a linked worktree, and hooks of its main repository stay.
    fn linked_worktree_writes_its_main_repository(world) {
        world.git_init();
        let text = world.run("git add -A && git commit -qm first && git worktree add -q $TMPDIR/tree && echo MADE");
        assert!(text.contains("MADE"), "{text}");
        let main = world.path("ws");
        world.policy.working_directory = world.path("scratch/tree");
        let mut spec = world.spec("");
        spec.directory = world.path("scratch/tree");
        world.policy.scratch = world.path("outside");
        let script = format!("cd {0}; echo b > b; git add -A && git commit -qm second; echo evil > {1}/.git/hooks/x; echo evil >> {1}/.git/config; echo x > {1}/outside; true", world.path("scratch/tree").display(), main.display());
        world.run(&script);
        assert!(std::fs::read_to_string(main.join(".git/logs/refs/heads/tree")).unwrap().contains("second"));
        assert!(!main.join(".git/hooks/x").exists() && !main.join("outside").exists());
        assert!(!std::fs::read_to_string(main.join(".git/config")).unwrap().contains("evil"));
    }
}

confined_test! {
    /// S-05: nothing leads the main repository, or a worktree of it, to another configuration.
    fn worktrees_and_nested_repositories_cannot_be_redirected(world) {
        world.git_init();
        for name in ["HEAD", "commondir", "gitdir"] {
            world.put(&format!("ws/.git/worktrees/w/{name}"), SETTINGS);
        }
        world.put("ws/.git/modules/m/HEAD", SETTINGS);
        world.put("ws/sub/.git/HEAD", SETTINGS);
        let prepared = world.session.prepare(&world.policy, world.spec(
            "echo evil > .git/worktrees/w/commondir; echo evil > .git/worktrees/w/gitdir; mv .git/worktrees/w/commondir x; mv .git/worktrees/w v; mv .git/worktrees v
             for r in .git .git/modules/m sub/.git; do echo evil > $r/commondir; done; echo ok > .git/worktrees/w/HEAD"
        )).unwrap();
        let left_behind = prepared.left_behind.clone();
        prepared.spawn().unwrap().wait_blocking().unwrap();
        for name in ["commondir", "gitdir"] {
            assert_eq!(world.read(&format!("ws/.git/worktrees/w/{name}")).as_deref(), Some(SETTINGS));
        }
        assert_eq!(world.read("ws/.git/worktrees/w/HEAD").as_deref(), Some("ok\n"));
        let removed: Vec<_> = [".git", ".git/modules/m", "sub/.git"].map(|git| Appeared::Removed(world.path("ws").join(git).join("commondir"))).into();
        assert_eq!(left_behind.take(), removed);
    }
}

confined_test! {
    /// S-02, S-03: what a repository names as its hooks cannot be created.
    fn missing_folder_of_hooks_cannot_be_created(world) {
        world.git_init();
        world.put("ws/.git/config", "[core]\nhooksPath = .githooks # note\n[include]\npath = ../team.cfg\n");
        world.run("mkdir -p .githooks; echo evil > .githooks/pre-commit; chmod +x .githooks/pre-commit; echo evil > team.cfg; mv .githooks h; rmdir .githooks; mkdir .githooks; echo evil > .githooks/x; git status");
        assert_eq!((world.read("ws/.githooks/pre-commit"), world.read("ws/.githooks/x")), (None, None));
        assert_eq!(world.read("ws/team.cfg").as_deref(), Some(""));
    }
}

confined_test! {
    /// S-03: as in the working directory.
    fn missing_names_are_covered_in_every_working_directory(world) {
        let extra = world.path("extra");
        std::fs::create_dir(&extra).unwrap();
        world.put("extra/own.txt", "own\n");
        world.rules().work_directories.push(extra.clone());
        world.run("cd ../extra; echo evil > .mcp.json; mkdir .claude; echo evil > .claude/settings.json; echo x > own.txt");
        assert_eq!((world.read("extra/.mcp.json"), world.read("extra/.claude/settings.json")), (None, None));
        assert_eq!(world.read("extra/own.txt").as_deref(), Some("x\n"));
        assert!(world.session.uncover().unwrap());
        let left: Vec<_> = std::fs::read_dir(extra).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["own.txt"]);
        let running = world.start("sleep 600");
        assert!(!world.session.uncover().unwrap(), "a command runs");
        assert!(world.path("extra/.mcp.json").is_dir());
        drop(running);
        assert!(world.session.uncover().unwrap());
    }
}

confined_test! {
    /// The journals of covers decide what the next session removes, and their lock stops all sessions.
    fn journals_can_be_neither_read_written_nor_locked(world) {
        world.policy.working_directory = world.path("");
        world.policy.scratch = world.path("scratch");
        let text = world.run("cd ..; ls state; echo '{\"Scratch\":\"/x\"}' > state/x.covers && echo BAD; mv state s && echo BAD; rm -rf state; flock -n -x state/lock true && echo BAD; flock -n -x state true && echo BAD");
        assert!(!text.contains("BAD") && !text.contains("covers\n"), "{text}");
        assert!(!world.path("state/x.covers").exists());
    }
}

confined_test! {
    /// S-06.
    fn mounts_and_namespaces_cannot_be_made(world) {
        let outside = world.path("outside").display().to_string();
        let text = world.run(&format!(
            "mount -o remount,rw,bind / && echo BAD; mount -o remount,rw / && echo BAD; umount -l /proc && echo BAD
             unshare -Ur true && echo BAD; unshare -m true && echo BAD; echo x > {outside}/evil"
        ));
        assert!(!text.contains("BAD"), "{text}");
        world.assert_untouched();
    }
}

confined_test! {
    /// S-07.
    fn hidden_paths_are_hidden_by_every_name(world) {
        world.put("ws/secrets/key.txt", "CANARY-WS\n");
        world.put("ws/deep/er/x.pem", "CANARY-PEM\n");
        symlink(world.path("home/.ssh"), world.path("ws/keys")).unwrap();
        symlink("/nonexistent/there", world.path("ws/dangling")).unwrap();
        let rules = [world.path("ws/secrets"), world.path("ws/keys/id_rsa"), world.path("ws/dangling"), world.path("home/none")];
        world.rules().deny_read = rules.into_iter().map(PathRule::Literal).collect();
        let glob = PathRule::parse(&format!("{}/**/*.pem", world.path("ws").display()));
        world.rules().deny_read.push(glob);
        let text = world.run(
            "cat secrets/key.txt ~/.ssh/id_rsa keys/id_rsa deep/er/x.pem /proc/self/root$PWD/secrets/key.txt; mv secrets s2; cat s2/key.txt
             cp -a secrets s3; cat s3/*; chmod 700 s3; mv deep d2; cat d2/er/x.pem; chmod 777 secrets ~/.ssh/id_rsa; cat secrets/* ~/.ssh/id_rsa
             echo x > secrets/new && echo WROTE; ls secrets"
        );
        assert!(!text.contains("CANARY") && !text.contains("WROTE"), "{text}");
        assert_eq!(world.read("ws/secrets/key.txt").as_deref(), Some("CANARY-WS\n"));
    }
}

confined_test! {
    /// S-07: the more specific rule wins, and the working directory stays in a hidden home.
    fn allowed_paths_inside_hidden_ones_are_readable(world) {
        world.put("home/open/a.txt", "READABLE\n");
        world.put("home/open/b.key", "CANARY-B\n");
        world.put("home/work/own.txt", "OWN\n");
        let home = world.path("home");
        world.rules().deny_read = vec![PathRule::Literal(home.clone()), PathRule::Literal(home.join("open/b.key"))];
        world.rules().allow_read = vec![home.join("open")];
        world.rules().allow_write = vec![home.join("work")];
        let text = world.run("cat ~/open/a.txt ~/open/b.key ~/.ssh/id_rsa ~/work/own.txt; echo x > ~/work/new; echo x > ~/open/new; echo x > ~/new; ls ~");
        assert!(text.contains("READABLE") && text.contains("OWN") && !text.contains("CANARY"), "{text}");
        assert_eq!(world.read("home/work/new").as_deref(), Some("x\n"));
        assert_eq!((world.read("home/open/new"), world.read("home/new")), (None, None));
    }
}

confined_test! {
    /// S-08.
    fn temporary_folders_devices_and_switches_are_private(world) {
        let name = format!("sandbox-canary-{}", std::process::id());
        let text = world.run(&format!(
            "for d in /tmp /var/tmp /dev/shm /run; do echo x > $d/{name}; done; cat /tmp/{name} /dev/shm/{name}; ls /dev | tr '\\n' ' '
             echo 1 > /proc/sys/kernel/sysrq && echo BAD; echo x > /proc/sysrq-trigger && echo BAD; echo '|/x' > /proc/sys/kernel/core_pattern && echo BAD
             mknod disk b 254 0 && head -c 1 disk > /dev/null && echo BAD; mknod kmsg c 1 11 && head -c 1 kmsg && echo BAD
             head -c 4 /dev/urandom | wc -c; echo > /dev/null && echo NULL-FINE"
        ));
        assert!(!text.contains("BAD") && text.contains("NULL-FINE") && text.contains("\n4\n"), "{text}");
        for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            assert!(!std::path::Path::new(folder).join(&name).exists(), "{folder}");
        }
        assert!(text.contains("core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"), "{text}");
    }
}

confined_test! {
    /// S-09.
    fn setuid_files_cannot_be_made(world) {
        world.run(
            "cp /bin/true t; chmod u+s t; chmod 2755 t; chmod g+s t
             python3 -c 'import os\nfor m in (0o4755, 0o2755):\n  for f in (lambda: os.chmod(\"t\", m), lambda: os.close(os.open(\"u%o\" % m, os.O_CREAT | os.O_WRONLY, m)), lambda: os.mknod(\"v%o\" % m, m | 0o100000)):\n    try: f()\n    except OSError as e: print(e)'"
        );
        for entry in std::fs::read_dir(world.path("ws")).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o6000, 0, "{:?}", entry.path());
        }
    }
}

confined_test! {
    /// S-27 for the part of this crate: a denied write holds inside an allowed one, also for what does not exist.
    fn denied_writes_win_over_allowed_ones(world) {
        world.put("ws/conf/prod.json", SETTINGS);
        let rules = ["ws/conf/prod.json", "ws/conf/missing.json"].map(|name| PathRule::Literal(world.path(name)));
        world.rules().deny_write = rules.to_vec();
        let conf = world.path("ws/conf");
        world.rules().allow_write.push(conf);
        world.run("echo evil > conf/prod.json; mv conf c2; echo evil > conf/missing.json; echo ok > conf/other.json");
        assert_eq!(world.read("ws/conf/prod.json").as_deref(), Some(SETTINGS));
        assert_eq!(world.read("ws/conf/missing.json"), None);
        assert_eq!(world.read("ws/conf/other.json").as_deref(), Some("ok\n"));
    }
}

confined_test! {
    /// The section on fail-closed behavior: a writable root that became a link is refused.
    fn root_that_became_a_link_is_refused(world) {
        let prepared = world.session.prepare(&world.policy, world.spec("echo ran > ran")).unwrap();
        std::fs::rename(world.path("ws"), world.path("moved")).unwrap();
        symlink(world.path("outside"), world.path("ws")).unwrap();
        let error = prepared.spawn().unwrap().wait_blocking().unwrap_err();
        assert!(error.to_string().starts_with("the sandbox could not be set up: mounts: "), "{error}");
        std::fs::remove_file(world.path("ws")).unwrap();
        world.assert_untouched();
    }
}
