//! Denied commands and files stay denied in other options, through other programs and in worktrees.

use super::*;

#[test]
fn files_written_by_options_are_found() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Edit(sub/**)"]);
    let forms = [
        ("curl", "s", "o", "output"),
        ("wget", "q", "O", "output-document"),
        ("sort", "u", "o", "output"),
        ("cp", "r", "t", "target-directory"),
    ];
    for mode in [Default, BypassPermissions] {
        for (program, flag, letter, long) in forms {
            for option in [
                format!("-{letter} sub/x"),
                format!("-{letter}sub/x"),
                format!("-{flag}{letter} sub/x"),
                format!("-{flag}{letter}sub/x"),
                format!("--{long} sub/x"),
                format!("--{long}=sub/x"),
                format!("--{}=sub/x", &long[..5]),
            ] {
                check(&fixture, mode, &[(&format!("{program} {option} a"), 'D')]);
            }
        }
    }
}

#[test]
fn files_passed_to_writers_are_found() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Edit(./sub/**)"]);
    for mode in [Default, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("echo sub/f | xargs rm", 'D'),
                ("xargs rm <<< sub/f", 'D'),
                ("echo x > $PWD/sub/f", 'D'),
                ("echo x > $(pwd)/sub/f", 'D'),
                ("sed -n 1,3p notes.txt", 'A'),
                ("find src -name '*.ts' -exec wc {} +", 'A'),
            ],
        );
    }
    check(&fixture, Default, &[("ls | xargs rm", '?'), ("find . -exec touch {} +", '?')]);
    check(
        &fixture,
        BypassPermissions,
        &[("rm -rf \"$PWD\"", '?'), ("rm -rf $(pwd)", '?'), ("rm -rf ~root", '?')],
    );
}

#[test]
fn foreign_code_is_denied_only_for_commands() {
    let fixture =
        Fixture::new().with_rules(&["Bash"], &[], &["Bash(git clean *)", "Bash(rm *)", "Read(./sub/**)"]);
    for mode in [Default, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("awk 'BEGIN { system(\"git clean -fd\") }'", 'D'),
                ("awk \"BEGIN { system(\\\"git clean -fd $X\\\") }\"", 'D'),
                ("awk 'BEGIN { system(\"git -C . clean -fd\") }'", 'D'),
                ("awk 'BEGIN { system(\"cat sub/x\") }'", 'D'),
                ("git -c core.pager=\"git clean -fd $X\" log", 'D'),
                ("sed '1egit clean -fd' f", 'D'),
                ("sed 's/x/git clean -fd/e;p' f", 'D'),
                ("perl -e 'system(\"git clean -fd\")'", 'D'),
                ("python3 -c 'import os; os.system(\"rm x\")'", 'D'),
                ("awk '/a|b/ { print \"(\" $1 \")\" }' f", 'A'),
                ("awk '!/sub|node_modules/' f", 'A'),
                ("awk '/rmdir|format/ { s += $1 * $2 }' f", 'A'),
                ("cd src && awk '/a|b/ { print \"touch x\" }' f", 'A'),
                ("sed -i 's/e (x/y/' f", 'A'),
                ("sed -i 's/rm -f/x/' f", 'A'),
                ("sed -e '/e/d' -e '/rmdir/d' f", 'A'),
                ("python3 -c 'print(\"git clean\")'", 'A'),
                ("git -c user.name=\"$NAME\" commit -m x", 'A'),
            ],
        );
    }
}

#[test]
fn file_with_argument_list_counts_as_read() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Read(./sub/**)"]);
    for mode in [Default, BypassPermissions] {
        check(
            &fixture,
            mode,
            &[
                ("xargs -a sub/x echo", 'D'),
                ("xargs -asub/x echo", 'D'),
                ("xargs -ra sub/x echo", 'D'),
                ("xargs --arg-file=sub/x echo", 'D'),
                ("ls | xargs echo", 'A'),
            ],
        );
    }
}

#[test]
fn deny_rule_applies_in_worktree() {
    let mut fixture = Fixture::new().with_rules(&["Bash"], &[], &["Read(./sub/secrets/**)"]);
    fixture.fs = FakeFs::with_files(["/fx/proj/.claude/worktrees/w/sub/secrets/k2.txt"]);
    check(
        &fixture,
        BypassPermissions,
        &[
            ("cat .claude/worktrees/w/sub/secrets/k2.txt", 'D'),
            ("cd .claude/worktrees/w; cat sub/secrets/k2.txt", 'D'),
            ("cat .claude/worktrees/w/sub/x", 'A'),
        ],
    );
    let read = serde_json::json!({"file_path": "/fx/proj/.claude/worktrees/w/sub/secrets/k2.txt"});
    assert_eq!(decision_letter(&fixture.decide(BypassPermissions, "Read", &read)), 'D');
}

#[test]
fn doubling_value_is_bounded() {
    let doubling = |count: usize, last: &str| format!("x=zap; {}{last}", "x=$x$x; ".repeat(count));
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Bash(zapzap *)"]);
    for mode in [Default, BypassPermissions] {
        check(&fixture, mode, &[(&doubling(1, "$x y"), 'D'), (&doubling(200, "$x y"), 'D')]);
    }
    check(&fixture, BypassPermissions, &[(&doubling(200, "declare y=$x$x; ls"), 'D')]);
    check(&Fixture::new(), BypassPermissions, &[(&doubling(200, "echo $x"), 'A')]);
}
