//! Ways to a refused file that are long rather than clever: repeated, counted, or by way of another directory.

use super::*;

/// So many commands that say nothing.
fn padding(count: usize) -> String {
    (0..count).map(|number| format!("echo p{number}; ")).collect()
}

/// Words from 1 on that are no numbers.
fn words(count: usize) -> String {
    (0..count).map(|number| format!(" w{number}")).collect()
}

#[test]
fn a_directory_counts_however_often_and_in_whatever_form_it_is_changed() {
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
fn a_value_beyond_those_that_are_followed_is_not_forgotten() {
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
    let free = Fixture::new().with_rules(&["Bash"], &[], &[]);
    check(&free, BypassPermissions, &[(&format!("for g in{many}; do git $g x; done"), 'A')]);
}

#[test]
fn whoever_puts_much_somewhere_gains_nothing_by_it() {
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
fn what_a_variable_was_before_still_counts() {
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
fn two_stars_and_followed_links_lead_through_links() {
    let mut room = restricted_fixture();
    room.fs = room.fs.clone().with_link("/fx/proj/away", "/fx/proj/secrets").with_link("/fx/proj/src/home", "/fx/home");
    check(
        &room,
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
    check(&room, Default, &[("grep -R x src", '?'), ("grep -r x src", 'A'), ("grep -R x docs", 'A')]);
}

#[test]
fn letters_are_compared_one_by_one() {
    let mut room = Fixture::new().with_rules(&["Bash"], &[], &["Read(/ΟΔΟΣ/**)"]);
    room.fs = FakeFs::with_files(["/fx/proj/ΟΔΟΣ/a"]);
    for name in ["ΟΔΟΣ", "οδοσ", "οδος"] {
        check(&room, Default, &[(&format!("cat {name}/a"), 'D')]);
    }
}

#[test]
fn an_alias_that_ends_in_a_blank_lets_the_next_word_be_one() {
    let row = "shopt -s expand_aliases\nalias g='git '\nalias p=push\ng p x";
    check_denied(row);
}

#[test]
fn work_trees_stand_for_the_project() {
    let mut room = restricted_fixture();
    room.fs = FakeFs::with_files(["/fx/proj/.claude/worktrees/one/secrets/key.txt", "/fx/proj/src/app.ts"]);
    check(
        &room,
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
fn below_processes_a_glob_is_not_what_we_would_see() {
    let rows = [("cat /proc/sel?/cwd/secrets/key.txt", 'D'), ("cat /proc/self/cw[d]/secrets/key.txt", 'D')];
    let mut room = restricted_fixture();
    room.fs = FakeFs::with_files(["/proc/self/cwd", "/fx/proj/secrets/key.txt"]);
    check(&room, BypassPermissions, &rows);
    check(&room, BypassPermissions, &[("cat /proc/self/cwd/secret[s]/key.txt", 'D')]);
}

#[test]
fn a_way_through_a_process_is_gone_once_from_each_directory() {
    let through = |count| -> String { (0..count).map(|n| format!("cd /proc/self/cwd/d{n}; ")).collect() };
    check(&restricted_fixture(), BypassPermissions, &[(&format!("{}cat x", through(4)), 'A')]);
    // More than are followed.
    check(&restricted_fixture(), BypassPermissions, &[(&format!("{}cat x", through(200)), 'D')]);
    let row = "cd src; cd /proc/self/cwd/..; cd /proc/self/cwd/secrets; cat key.txt";
    check(&restricted_fixture(), BypassPermissions, &[(row, 'D')]);
}

#[test]
fn functions_see_what_they_are_called_with() {
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
