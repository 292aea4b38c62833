//! Indirect access to a denied file: repetition, counting, and detours through other directories.

use super::*;

/// This many commands without effect.
fn padding(count: usize) -> String {
    (0..count).map(|number| format!("echo p{number}; ")).collect()
}

/// This many words that are not numbers.
fn words(count: usize) -> String {
    (0..count).map(|number| format!(" w{number}")).collect()
}

#[test]
fn repeated_directory_changes_are_followed() {
    let padding = padding(210);
    let up = "shopt -s expand_aliases\nalias up='cd ..'\nup && up && up && up && up && cat fx/proj/secrets/key.txt";
    let rows = [
        format!("{padding}for C in cd :; do $C ..; $C ..; cat fx/home/.ssh/id_rsa; done"),
        format!("for A in 'cd ..' :; do {padding}$A; $A; cat fx/home/.ssh/id_rsa; done"),
        up.to_owned(),
        "for i in 1 2; do cd ..; done; cat fx/proj/secrets/key.txt".to_owned(),
        "f() { cd ..; }; f; f; cat fx/home/.ssh/id_rsa".to_owned(),
        "env -C .. env -C .. cat fx/home/.ssh/id_rsa".to_owned(),
        "env -C src env -C .. cat secrets/key.txt".to_owned(),
    ];
    for row in &rows {
        check_denied(row);
    }
    check(&restricted_fixture(), Default, &[("cd src; cat secrets/key.txt", 'D')]);
    check(&restricted_fixture(), Default, &[("for d in src docs; do cd $d; ls; cd ..; done", 'A')]);
}

#[test]
fn values_beyond_the_limit_are_not_forgotten() {
    let (few, many) = (words(100), words(200));
    let aliases: String = (0..200).map(|number| format!("alias g='a{number}'\n")).collect();
    let given: String = (0..200).map(|number| format!("X=w{number}; ")).collect();
    let rows = [
        format!("for g in{few} push; do git $g x; done"),
        format!("for g in{many} push; do git $g x; done"),
        format!("for X in{many} secrets; do cat $X/key.txt; done"),
        format!("{given}X=zap; $X foo"),
        format!("shopt -s expand_aliases\n{aliases}alias g=git\ng push x"),
    ];
    for row in &rows {
        check(&restricted_fixture(), BypassPermissions, &[(row, 'D')]);
        assert_ne!(decision_letter(&restricted_fixture().decide_bash(Default, row)), 'A', "{row}");
    }
    let counted = "for i in {1..300}; do ls $i; done";
    check(&restricted_fixture(), BypassPermissions, &[(counted, 'A')]);
    let allowed = Fixture::new().with_rules(&["Bash"], &[], &[]);
    check(&allowed, BypassPermissions, &[(&format!("for g in{many}; do git $g x; done"), 'A')]);
}

#[test]
fn too_many_dir_targets_hide_nothing() {
    let much: String = (0..18)
        .map(|round| {
            let names: String = (0..250).map(|number| format!(" f{round}_{number}")).collect();
            format!("cp{names} /fx/outside; ")
        })
        .collect();
    let rows = [format!("{much}cp src/key docs"), format!("cp{} src/key docs", words(300))];
    for row in &rows {
        check(&restricted_fixture(), BypassPermissions, &[(row, 'D')]);
        assert_ne!(decision_letter(&restricted_fixture().decide_bash(Default, row)), 'A');
    }
    check(&restricted_fixture(), BypassPermissions, &[(&format!("cp{} src", words(300)), 'A')]);
}

#[test]
fn earlier_value_of_a_variable_still_counts() {
    for row in [
        "(HOME=/x); cat $HOME/.ssh/id_rsa",
        "false && HOME=/x; cat $HOME/.ssh/id_rsa",
        "false && PWD=/x; cat $PWD/secrets/key.txt",
        "f() { local HOME=/x; }; f; cat $HOME/.ssh/id_rsa",
        "bash -c 'HOME=/x'; cat $HOME/.ssh/id_rsa",
    ] {
        check_denied(row);
    }
}

#[test]
fn globstar_and_followed_links_lead_through_links() {
    let mut fixture = restricted_fixture();
    fixture.fs = fixture
        .fs
        .clone()
        .with_link("/fx/proj/away", "/fx/proj/secrets")
        .with_link("/fx/proj/src/home", "/fx/home");
    check(
        &fixture,
        BypassPermissions,
        &[
            ("shopt -s globstar; cat away/**/key.txt", 'D'),
            ("shopt -s globstar; cat aw*/**", 'D'),
            ("echo globstar; cat away/**/key.txt", 'D'),
            ("grep -R x src", '?'),
            ("cat /dev/fd/3/secrets/key.txt 3<.", 'D'),
            ("exec 3<.; cat /proc/self/fd/3/secrets/key.txt", 'D'),
            ("cat /dev/fd/3", 'A'),
        ],
    );
    check(&fixture, Default, &[("grep -R x src", '?'), ("grep -r x src", 'A'), ("grep -R x docs", 'A')]);
}

#[test]
fn letters_are_folded_one_by_one() {
    let mut fixture = Fixture::new().with_rules(&["Bash"], &[], &["Read(/ΟΔΟΣ/**)"]);
    fixture.fs = FakeFs::with_files(["/fx/proj/ΟΔΟΣ/a"]);
    for name in ["ΟΔΟΣ", "οδοσ", "οδος"] {
        check(&fixture, Default, &[(&format!("cat {name}/a"), 'D')]);
    }
}

#[test]
fn alias_with_trailing_blank_expands_next_word() {
    let row = "shopt -s expand_aliases\nalias g='git '\nalias p=push\ng p x";
    check_denied(row);
}

#[test]
fn worktrees_map_to_the_project() {
    let mut fixture = restricted_fixture();
    fixture.fs =
        FakeFs::with_files(["/fx/proj/.claude/worktrees/one/secrets/key.txt", "/fx/proj/src/app.ts"]);
    check(
        &fixture,
        BypassPermissions,
        &[
            ("cat .claude/worktrees/one/secrets/key.txt", 'D'),
            ("grep -r x .claude/worktrees", '?'),
            ("grep -r x .claude/worktrees/one", '?'),
            ("grep -r x src", 'A'),
        ],
    );
}

#[test]
fn glob_below_proc_matches_what_the_command_sees() {
    let rows = [("cat /proc/sel?/cwd/secrets/key.txt", 'D'), ("cat /proc/self/cw[d]/secrets/key.txt", 'D')];
    let mut fixture = restricted_fixture();
    fixture.fs = FakeFs::with_files(["/proc/self/cwd", "/fx/proj/secrets/key.txt"]);
    check(&fixture, BypassPermissions, &rows);
    check(&fixture, BypassPermissions, &[("cat /proc/self/cwd/secret[s]/key.txt", 'D')]);
}

#[test]
fn proc_cwd_is_followed_once_per_directory() {
    let through = |count| -> String { (0..count).map(|n| format!("cd /proc/self/cwd/d{n}; ")).collect() };
    check(&restricted_fixture(), BypassPermissions, &[(&format!("{}cat x", through(4)), 'A')]);
    // More than are tracked.
    check(&restricted_fixture(), BypassPermissions, &[(&format!("{}cat x", through(200)), 'D')]);
    let row = "cd src; cd /proc/self/cwd/..; cd /proc/self/cwd/secrets; cat key.txt";
    check(&restricted_fixture(), BypassPermissions, &[(row, 'D')]);
}

#[test]
fn functions_see_their_arguments() {
    for row in [
        "g() { git \"$@\"; }; g push x",
        "g() { git $1 x; }; g push",
        "g() { $*; }; g zap foo",
        "f() { cat $2; }; f x secrets/key.txt",
    ] {
        check_denied(row);
    }
    check(&restricted_fixture(), BypassPermissions, &[("g() { git \"$@\"; }; g log x", 'A')]);
}
