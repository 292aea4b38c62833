//! Shell commands under rules, modes and paths on a fake disk, as tables.

use std::path::Path;

use whimbrel_wire::permission::PermissionMode;

use crate::decision::{Decision, Reason, SafetyRisk};
use crate::fixture::{Fixture, decision_letter};
use crate::fs::FakeFs;
use crate::rules::rule_set::RuleSource;
use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

mod dir_targets;
mod evasion;
mod indirect;
mod repetition;
mod variables;

fn check(fixture: &Fixture, mode: PermissionMode, rows: &[(&str, char)]) {
    for (command, expected) in rows {
        let got = fixture.decide_bash(mode, command);
        assert_eq!(decision_letter(&got), *expected, "{command}: {}", got.reason().text());
    }
}

/// A fixture in which all commands are allowed, with some deny rules.
fn restricted_fixture() -> Fixture {
    Fixture::new().with_rules(
        &["Bash"],
        &[],
        &["Read(/secrets/**)", "Read(~/.ssh/**)", "Edit(/docs/key)", "Bash(git push *)", "Bash(zap *)"],
    )
}

/// Checks that this fixture denies the command, in bypass mode too.
fn check_denied(command: &str) {
    check(&restricted_fixture(), Default, &[(command, 'D')]);
    check(&restricted_fixture(), BypassPermissions, &[(command, 'D')]);
}

#[test]
fn each_simple_command_needs_permission() {
    let fixture = Fixture::new().with_rules(&["Bash(safe *)", "Bash(one two)"], &[], &[]);
    check(
        &fixture,
        Default,
        &[
            ("safe a", 'A'),
            ("safe a && safe b", 'A'),
            ("safe a | grep x", 'A'),
            ("one  two", 'A'),
            ("safe a && other", '?'),
            ("safe a; other", '?'),
            ("safe a\nother", '?'),
            ("safe a || other", '?'),
            ("safe a & safe b", '?'),
            ("if safe a; then safe b; fi", 'A'),
            ("if safe a; then other; fi", '?'),
            ("for x in 1 2; do safe a; done", 'A'),
            ("(safe a)", '?'),
            ("safe $(safe a)", '?'),
            ("/usr/bin/safe a", '?'),
            ("safe 'a b'", 'A'),
            ("'safe a'", '?'),
            ("timeout 5 safe a", 'A'),
            ("NODE_ENV=test safe a", 'A'),
            ("time CI=1 safe a", 'A'),
            // Here `time` is a program, and the assignment is the name of the command that it runs.
            ("command time CI=1 safe a", '?'),
            ("CI=1 time CI=1 safe a", '?'),
            ("safe a | time CI=1 safe a", '?'),
            ("> /dev/null time CI=1 safe a", '?'),
            ("\\time CI=1 safe a", '?'),
            ("LD_PRELOAD=x safe a", '?'),
            ("sudo safe a", '?'),
        ],
    );
}

#[test]
fn bare_bash_rule_allows_unanalyzable_commands() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &[]);
    check(
        &fixture,
        Default,
        &[
            ("make all", 'A'),
            ("echo $(id) > /fx/outside/f", 'A'),
            ("(cd /; ls)", 'A'),
            ("$X y", 'A'),
            ("make &", '?'),
            ("rm -rf /", '?'),
            ("echo x > .git/hooks/pre-commit", '?'),
        ],
    );
    let limited = Fixture::new().with_rules(&["Bash"], &[], &["Bash(curl *)"]);
    check(
        &limited,
        Default,
        &[("$X y", '?'), ("eval \"$X\"", '?'), ("make $X", 'A'), ("echo $(curl x)", 'D')],
    );
}

#[test]
fn exact_rule_allows_odd_words_but_no_paths() {
    let rules = [
        "Bash(t1 && t2)",
        "Bash(mytool $X)",
        "Bash(cat /fx/outside/data.txt)",
        "Bash((t1))",
        "Bash(watch make)",
    ];
    let fixture = Fixture::new().with_rules(&rules, &[], &[]);
    check(
        &fixture,
        Default,
        &[
            ("t1 && t2", 'A'),
            ("t1 &&  t2", 'A'),
            ("t1 && t3", '?'),
            ("t1", '?'),
            ("mytool $X", 'A'),
            ("mytool $Y", '?'),
            ("cat /fx/outside/data.txt", '?'),
            ("(t1)", '?'),
            ("watch make", 'A'),
        ],
    );
}

#[test]
fn denied_commands_are_found_at_every_depth() {
    let fixture = Fixture::new().with_rules(&["Bash"], &["Bash(git push *)"], &["Bash(curl *)"]);
    for mode in [Default, AcceptEdits, Plan, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("curl x", 'D'),
                ("true && curl x", 'D'),
                ("(curl x)", 'D'),
                ("echo $(curl x)", 'D'),
                ("sudo -u me env A=1 curl x", 'D'),
                ("/usr/bin/curl x", 'D'),
                ("CURL x", 'D'),
                ("'curl' x", 'D'),
                ("bash -c 'curl x'", 'D'),
                // The shell expands these values a second time.
                ("PS4='$(curl x)' make", 'D'),
                ("export BASH_ENV='`curl x`'; make", 'D'),
                ("x='a[$(curl x)]'; ((x))", 'D'),
                ("[[ a -eq 'x[$(curl x)]' ]]", 'D'),
                ("test -v 'x[`curl x`]'", 'D'),
                ("printf -v 'x[$(curl x)]' a", 'D'),
                ("read 'x[$(curl x)]'", 'D'),
                // A shell also looks for a script in `PATH`.
                ("bash curl x", 'D'),
                ("sh -e /usr/bin/curl x", 'D'),
                (". curl x", 'D'),
                ("source curl", 'D'),
                ("git push origin", '?'),
                ("git -C . push origin", '?'),
            ],
        );
    }
}

#[test]
fn denied_files_are_found_in_every_form() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Read(secrets/**)", "Edit(notes.txt)"]);
    check(
        &fixture,
        Default,
        &[
            ("cat secrets/key.txt", 'D'),
            ("cat link_secret", 'D'),
            ("cat SECRETS/key.txt", 'D'),
            ("cat /proc/self/cwd/secrets/key.txt", 'D'),
            ("cat < secrets/key.txt", 'D'),
            ("cp secrets/key.txt k", 'D'),
            ("cd secrets && cat key.txt", 'D'),
            ("pushd secrets; cat key.txt", 'D'),
            ("cd /proc/self/cwd/secrets && cat key.txt", 'D'),
            ("cd src; cd /proc/self/cwd/../secrets; cat key.txt", 'D'),
            ("cd //proc/./self/cwd/secrets; cat key.txt", 'D'),
            ("env -C /proc/self/cwd/secrets cat key.txt", 'D'),
            ("env -C secrets cat key.txt", 'D'),
            ("sudo --chdir=secrets cat key.txt", 'D'),
            ("cat s*/key.txt", 'D'),
            ("cat secrets/*", 'D'),
            ("cat $F", '?'),
            ("cat *.md", 'A'),
            ("grep -r x .", '?'),
            ("grep -r x src", 'A'),
            ("ls -R sub", '?'),
            ("echo x > notes.txt", 'D'),
            ("cp notes.txt b", 'D'),
            ("cat notes.txt", 'A'),
            ("rm -rf src", 'A'),
            ("echo x > $F", '?'),
            ("touch notes.*", 'D'),
        ],
    );
    check(
        &fixture,
        BypassPermissions,
        &[
            ("cat $F", 'A'),
            ("cat secrets/$F", 'D'),
            ("cat secrets/key.txt", 'D'),
            ("cat */key.txt", 'D'),
            ("cat */none.txt", 'A'),
            ("cat /fx/**/key.txt", 'A'),
            ("shopt -s globstar; cat /fx/**/key.txt", 'D'),
            ("shopt -s extglob\ncat s@(ecrets|x)/key.txt", 'D'),
            ("shopt -s extglob\ncat !(src)/key.txt", 'D'),
            ("shopt -s extglob\ncat x@(one|two)", 'A'),
        ],
    );
}

#[test]
fn readers_stay_in_the_working_directories() {
    let fixture = Fixture::new();
    check(
        &fixture,
        Default,
        &[
            ("ls", 'A'),
            ("cat notes.txt", 'A'),
            ("cat *.txt", 'A'),
            ("cat *", '?'),
            ("cat link_out/data.txt", '?'),
            ("cat /fx/proj-evil/loot.txt", '?'),
            ("cat ../outside/data.txt", '?'),
            ("cat /proc/self/cwd/notes.txt", '?'),
            ("ls /fx/outside", '?'),
            ("cat < /fx/outside/data.txt", '?'),
            ("cat < notes.txt", 'A'),
            ("ls > /dev/null 2>&1", 'A'),
            ("ls > /dev/stdout", '?'),
            ("ls > out.txt", '?'),
            ("cd src && ls", 'A'),
            ("cd src && cat ../notes.txt", '?'),
            ("cd /fx/outside && ls", '?'),
            ("cd src && cd .. && ls", '?'),
            ("cd src && git status", '?'),
            ("cd . && git status", 'A'),
            ("git log --oneline -3", 'A'),
        ],
    );
    let allowed = Fixture::new().with_rules(&["Read(//fx/outside/**)", "Bash(cat *)"], &[], &[]);
    check(
        &allowed,
        Default,
        &[("cat /fx/outside/data.txt", 'A'), ("cat link_out/data.txt", 'A'), ("cat /etc/passwd", '?')],
    );
}

#[test]
fn glob_does_not_reach_other_files_or_options() {
    let mut fixture = Fixture::new();
    // The first match of the glob is the pattern; the others are read.
    check(
        &fixture,
        Default,
        &[("grep x *.txt", 'A'), ("grep /etc/pass* notes.txt", '?'), ("grep *.txt x", '?')],
    );
    check(&fixture, Default, &[("grep -e x /etc/pass*", '?'), ("grep -e x *.txt", 'A')]);
    fixture.fs = FakeFs::with_files(["/fx/proj/-R", "/fx/proj/a.txt"]);
    check(&fixture, Default, &[("grep x *", '?'), ("grep x ./*", 'A'), ("grep x a*", 'A'), ("wc ?R", '?')]);
}

#[test]
fn command_rule_does_not_allow_a_target_path() {
    let fixture = Fixture::new().with_rules(&["Bash(echo *)", "Bash(touch *)", "Edit(docs/**)"], &[], &[]);
    check(
        &fixture,
        Default,
        &[
            ("echo x", 'A'),
            ("echo x > notes.txt", '?'),
            ("echo x > docs/n.md", 'A'),
            ("echo x > docs/*", '?'),
            ("touch a", 'A'),
            ("touch /fx/outside/a", '?'),
            ("touch a*", '?'),
            ("cp notes.txt docs/n.md", '?'),
            ("cd src && echo x > ../docs/n.md", '?'),
        ],
    );
}

#[test]
fn accepted_edits_stay_in_the_working_directories() {
    let mut fixture = Fixture::new();
    fixture.dirs.add(Path::new("/fx/extra"), RuleSource::Session, &fixture.fs);
    check(
        &fixture,
        AcceptEdits,
        &[
            ("mkdir -p a/b && touch a/b/c", 'A'),
            ("mkdir /fx/extra/a", 'A'),
            ("mkdir /fx/extra-evil/a", '?'),
            ("rm -rf src", 'A'),
            ("rm -rf .git", '?'),
            ("rm -rf sub/..", '?'),
            ("rm notes.*", '?'),
            ("cp notes.txt b.txt", 'A'),
            ("cp -r src b", '?'),
            ("mv notes.txt link_out/b", '?'),
            ("echo x > notes.txt", 'A'),
            ("echo x > link_out/f", '?'),
            ("echo x > .npmrc", '?'),
            ("sed -i s/a/b/ notes.txt", 'A'),
            ("make", '?'),
            ("touch a.", '?'),
            ("cd src && touch a", '?'),
            ("mkdir a &", '?'),
        ],
    );
    check(&fixture, Default, &[("mkdir a", '?')]);
    check(&fixture, DontAsk, &[("mkdir a", '?')]);
    check(&fixture, Plan, &[("mkdir a", '?'), ("ls", 'A')]);
}

#[test]
fn critical_removals_ask_in_every_mode() {
    let mut fixture = Fixture::new().with_rules(&["Bash"], &[], &[]);
    fixture.dirs.add(Path::new("/fx/extra"), RuleSource::Session, &fixture.fs);
    let critical = [
        "rm -rf /",
        "rm -rf //",
        "rm -rf /usr",
        "rm -rf ~",
        "rm -rf $HOME",
        "rm -rf ~/",
        "rm -rf .",
        "rm -rf ..",
        "rm -rf /fx",
        "rm -rf /fx/proj/",
        "rm -rf /FX/proj",
        "rm -rf src/..",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf /*",
        "rm -rf /?*",
        "rm -rf ~/*",
        "rm -rf ../*",
        "rm -rf /fx/pro*",
        "rm -rf /fx/extra/*",
        "rm -rf \"$D\"/*",
        "rm -rf $D/",
        "rm -rf /$D",
        "rm -rf {/,x}",
        "rmdir /etc",
        "sudo rm -rf /",
        "bash -c 'rm -rf /'",
        "echo $(rm -rf ~)",
        "find / -delete",
        "cd src; rm -rf ..",
    ];
    for command in critical {
        for mode in [Default, BypassPermissions] {
            let got = fixture.decide_bash(mode, command);
            let expected = Reason::Safety { risk: SafetyRisk::CriticalRemoval, approvable: false };
            assert_eq!(got.reason(), &expected, "{command} {mode}");
        }
    }
    check(
        &fixture,
        BypassPermissions,
        &[
            ("rm -rf build", 'A'),
            ("rm -rf src/*", 'A'),
            ("rm -rf \"${D:?}\"/*", 'A'),
            ("rm -rf $D", 'A'),
            ("rm -rf $D/build", 'A'),
            ("rm -rf /fx/extra", 'A'),
            ("rm -rf /fx/outside/x", 'A'),
        ],
    );
}

#[test]
fn question_names_its_reason() {
    let fixture = Fixture::new();
    let ask_details = |command: &str| match fixture.decide_bash(Default, command) {
        Decision::Ask(details) => *details,
        other => panic!("{command}: {other:?}"),
    };
    assert_eq!(ask_details("make").reason, Reason::NeedsApproval);
    let outside = ask_details("cat /fx/outside/data.txt");
    assert_eq!(outside.blocked_path.as_deref(), Some("/fx/outside/data.txt"));
    assert!(matches!(outside.reason, Reason::WorkingDir { .. }));
    let redirect = ask_details("ls > out.txt");
    assert_eq!(redirect.reason, Reason::NeedsApproval);
    assert_eq!(redirect.blocked_path.as_deref(), Some("/fx/proj/out.txt"));
    assert!(ask_details("cd src && git log").reason.text().contains("directory"));
    assert!(
        matches!(ask_details("make && ls").reason, Reason::SimpleCommands(commands) if commands.len() == 2)
    );
    assert!(matches!(ask_details("ls $X").reason, Reason::Unanalyzable(_)));
    assert!(ask_details("make &").should_default_to_no());
}

#[test]
fn only_own_repository_is_trusted() {
    let mut fixture = Fixture::new();
    check(&fixture, Default, &[("git status", 'A'), ("git -C . status", '?')]);
    fixture.fs = FakeFs::with_files(["/fx/proj/HEAD", "/fx/proj/objects/", "/fx/proj/refs/"]);
    check(&fixture, Default, &[("git status", '?')]);
    fixture.fs = FakeFs::with_files(["/fx/proj/a"]).with_link("/fx/proj/.git", "/fx/outside/.git");
    check(&fixture, Default, &[("git status", '?')]);
}
