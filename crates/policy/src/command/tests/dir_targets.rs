//! Files written into directories, moved links, and links that are followed.

use super::*;
use crate::call::{GitInspector, GitProgram};

#[test]
fn file_written_into_a_directory_is_checked() {
    let mut fixture = Fixture::new();
    fixture.fs = FakeFs::with_files([
        "/fx/proj/t/.mcp.json",
        "/fx/proj/t/.bashrc",
        "/fx/proj/t/f",
        "/fx/proj/sub/x",
        "/fx/proj/notes.txt",
        "/fx/outside/f",
    ])
    .with_link("/fx/proj/sub/f", "/fx/outside/f");
    check(
        &fixture,
        AcceptEdits,
        &[
            ("cp t/.mcp.json .", '?'),
            ("cp t/.bashrc sub", '?'),
            ("cp t/.bashrc sub/", '?'),
            ("mkdir new && cp t/.bashrc new", '?'),
            ("mv t/.bashrc sub", '?'),
            ("cp t/f sub", '?'),
            ("cp t/.bashrc bashrc.txt", 'A'),
            ("cp t/.bashrc a.txt && cp notes.txt b.txt", 'A'),
            ("cp notes.txt sub", 'A'),
            ("cp t/f .", 'A'),
        ],
    );
    let mut allowed = Fixture::new().with_rules(&["Bash(cp *)", "Bash(curl *)"], &[], &[]);
    allowed.fs = fixture.fs;
    check(
        &allowed,
        Default,
        &[("cp -r t/. sub", '?'), ("cp -r t new", '?'), ("cp -r sub new", 'A'), ("cp t/f new.txt", 'A')],
    );
}

#[test]
fn denied_file_is_not_replaced_through_its_directory() {
    let mut fixture = Fixture::new().with_rules(&["Bash"], &[], &["Edit(./cfg/app.json)"]);
    fixture.fs = FakeFs::with_files([
        "/fx/proj/cfg/app.json",
        "/fx/proj/cfg/b",
        "/fx/proj/new/app.json",
        "/fx/proj/new/b",
    ]);
    for mode in [Default, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("cp new/app.json cfg/app.json", 'D'),
                ("cp new/app.json cfg", 'D'),
                ("cp new/app.json cfg/", 'D'),
                ("mv new/app.json cfg", 'D'),
                ("cp -t cfg new/app.json", 'D'),
                ("cp --target=cfg new/app.json", 'D'),
                ("install -m 600 new/app.json cfg", 'D'),
                ("ln -f new/app.json cfg", 'D'),
                ("rsync new/app.json cfg/", 'D'),
                ("cd cfg && cp ../new/app.json .", 'D'),
                ("cd cfg && ln ../new/app.json", 'D'),
                ("cp new/* cfg", 'D'),
                ("cp new/b new/app.json cfg", 'D'),
                ("cp -r new/. cfg", '?'),
                ("cp -rT new cfg", '?'),
                ("cp new/b cfg", 'A'),
                ("cp new/app.json other.json", 'A'),
            ],
        );
    }
}

#[test]
fn recursive_change_asks_if_denied_file_lies_below() {
    let mut fixture = Fixture::new().with_rules(&["Bash"], &[], &["Edit(./cfg/app.json)"]);
    fixture.fs = FakeFs::with_files(["/fx/proj/cfg/app.json", "/fx/proj/new/b"]);
    for mode in [Default, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("rm -rf cfg", '?'),
                ("chmod -R 700 cfg", '?'),
                ("chown --recursive a .", '?'),
                ("chmod --recurs 700 cfg", '?'),
                ("gzip -r cfg", '?'),
                ("gzip --recursive cfg", '?'),
                ("gzip -rc cfg", 'A'),
                ("git clean -fdx", '?'),
                ("git clean -fdxn", 'A'),
                ("git clean -fdx new", 'A'),
                ("git reset --hard", '?'),
                ("git reset --hard HEAD~1", '?'),
                ("git reset --soft HEAD~1", 'A'),
                ("git reset", 'A'),
                ("git checkout -f", '?'),
                ("git stash", '?'),
                ("git stash pop", '?'),
                ("git stash list", 'A'),
                ("git -C new stash", '?'),
                ("unzip -o a.zip -d cfg", '?'),
                ("unzip -o a.zip -d new", 'A'),
                ("tar xf a.tar -C cfg", '?'),
                ("tar -xzf a.tar --directory=cfg", '?'),
                ("tar xfC a.tar cfg", '?'),
                ("tar xf a.tar -C new", 'A'),
                ("tar cf a.tar -C cfg .", 'A'),
                ("zip -m x.zip cfg/app.json", 'D'),
                ("zip -rm x.zip cfg", '?'),
                ("zip x.zip cfg/app.json", 'A'),
                ("git checkout .", '?'),
                ("git checkout -- cfg", '?'),
                ("git restore .", '?'),
                ("git rm -r cfg", '?'),
                ("git mv cfg x", '?'),
                ("git clean -fd cfg", '?'),
                ("git checkout -- cfg/app.json", 'D'),
                ("gzip cfg/app.json", 'D'),
                ("gzip -c cfg/app.json", 'A'),
                ("chmod 700 cfg", 'A'),
                ("chmod -R 700 new", 'A'),
                ("git checkout main", 'A'),
                ("git restore new", 'A'),
                ("git commit -m x", 'A'),
            ],
        );
    }
}

#[test]
fn moved_link_may_point_elsewhere() {
    let mut fixture = Fixture::new();
    fixture.fs = FakeFs::with_files([
        "/fx/proj/s/a/b/f",
        "/fx/proj/s/outb/x",
        "/fx/proj/plain/f",
        "/fx/outb/secret",
        "/fx/proj/notes.txt",
    ])
    .with_link("/fx/proj/s/a/b/rl", "../../outb");
    check(
        &fixture,
        AcceptEdits,
        &[
            ("mv s/a/b x && echo evil > x/rl/file", '?'),
            ("mv s/a/b x && cat x/rl/secret", '?'),
            ("mv s/a/b/rl x && touch x/file", '?'),
            ("mv s/a x; cat notes.txt; cat x/b/rl/x", '?'),
            ("mv plain x && touch x/file", 'A'),
            ("mv s/a/b x && cat notes.txt", 'A'),
            ("mv s/a/b x", 'A'),
        ],
    );
}

#[test]
fn commands_that_follow_links_check_them() {
    let mut fixture = Fixture::new();
    fixture.fs =
        FakeFs::with_files(["/fx/proj/d1/x", "/fx/proj/d3/x", "/fx/outside/secret", "/fx/proj/secrets/k"])
            .with_link("/fx/proj/d2/x", "/fx/outside/secret")
            .with_link("/fx/proj/d4/x", "../secrets/k");
    check(
        &fixture,
        Default,
        &[
            ("diff d1 d3", 'A'),
            ("diff -r d1 d3", 'A'),
            ("diff d1/x d3/x", 'A'),
            ("diff d1 d4", 'A'),
            ("diff d1 d2", '?'),
            ("diff -r d1 d2", '?'),
            ("diff d1/x d2", '?'),
            ("diff d2 d1/x", '?'),
            ("find -L d2 -type f", '?'),
            ("find d2 -type f", 'A'),
            ("ls -RL d2", '?'),
            ("ls -R d2", 'A'),
            ("grep -r x d2", 'A'),
        ],
    );
    let mut denied = Fixture::new().with_rules(&["Bash"], &[], &["Read(secrets/**)"]);
    denied.fs = fixture.fs;
    check(
        &denied,
        BypassPermissions,
        &[("diff d1 d4", '?'), ("cp -rL d4 d5", '?'), ("diff d1 d3", 'A'), ("cat d4/x", 'D')],
    );
}

#[derive(Debug)]
struct SuspiciousGit;

impl GitInspector for SuspiciousGit {
    fn configured_program(&self, work_tree: &Path) -> Option<GitProgram> {
        Some(GitProgram { key: "core.fsmonitor".to_owned(), file: work_tree.join(".git/config") })
    }
}

#[test]
fn repository_with_configured_program_asks() {
    let fixture =
        Fixture::new().with_rules(&["Bash(git push *)"], &[], &[]).with_git_inspector(&SuspiciousGit);
    for mode in [Default, AcceptEdits, Plan] {
        check(&fixture, mode, &[("git status", '?'), ("ls && git diff", '?'), ("ls", 'A')]);
    }
    check(&fixture, Default, &[("git push origin", 'A')]);
    let Decision::Ask(details) = fixture.decide_bash(Default, "git status") else { panic!("not asked") };
    let text = details.reason.text();
    assert!(text.contains("core.fsmonitor") && text.contains("/fx/proj/.git/config"), "{text}");
    assert!(details.suggestions.is_empty());
    check(&Fixture::new(), Default, &[("git status", 'A')]);
}

#[test]
fn session_configuration_is_protected_under_any_name() {
    let fixture = Fixture::new().with_rules(&["Edit(//srv/**)", "Bash(rm *)"], &[], &[]);
    let fixture = fixture.with_protected(&["/srv/agent/cfg", "/fx/proj/cfg"]);
    check(
        &fixture,
        AcceptEdits,
        &[
            ("touch cfg/settings.json", '?'),
            ("echo x > CFG/settings.json", '?'),
            ("echo x > /srv/agent/cfg/settings.json", '?'),
            ("cp notes.txt cfg", '?'),
            ("mv cfg cfg2", '?'),
            ("rm -r cfg", '?'),
            ("touch config/settings.json", 'A'),
            ("echo x > /srv/agent/x", 'A'),
        ],
    );
    let write = |path: &str| {
        let input = serde_json::json!({"file_path": path, "content": ""});
        decision_letter(&fixture.decide(AcceptEdits, "Write", &input))
    };
    assert_eq!(write("/srv/agent/cfg/settings.json"), '?');
    assert_eq!(write("cfg/x/y"), '?');
    assert_eq!(write("src/x"), 'A');
}
