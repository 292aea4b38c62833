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

fn room() -> Room {
    Room::new().rules(
        &["Bash"],
        &[],
        &["Read(/secrets/**)", "Read(~/.ssh/**)", "Edit(/docs/key)", "Bash(git push *)", "Bash(zap *)"],
    )
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
        check(&room(), Default, &[(row, 'D')]);
        check(&room(), BypassPermissions, &[(row, 'D')]);
    }
    check(&room(), Default, &[("cd src; cat secrets/key.txt", 'D')]);
    check(&room(), Default, &[("for d in src docs; do cd $d; ls; cd ..; done", 'A')]);
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
        check(&room(), BypassPermissions, &[(row, 'D')]);
        assert_ne!(answer(&room().bash(Default, row)), 'A', "{row}");
    }
    let counted = "for i in {1..300}; do ls $i; done";
    check(&room(), BypassPermissions, &[(counted, 'A')]);
    let free = Room::new().rules(&["Bash"], &[], &[]);
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
        check(&room(), BypassPermissions, &[(row, 'D')]);
        assert_ne!(answer(&room().bash(Default, row)), 'A');
    }
    check(&room(), BypassPermissions, &[(&format!("cp{} src", words(300)), 'A')]);
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
        check(&room(), Default, &[(row, 'D')]);
        check(&room(), BypassPermissions, &[(row, 'D')]);
    }
}

/// With a grant of all commands: what is asked about where it is not known what is read, and what is not.
#[test]
fn what_may_not_have_been_assigned_is_not_known() {
    for row in [
        "cat $X",
        "(X=src/m); cat $X",
        "(X=src/m); cat < $X",
        "(X=src/m); Y=$X; cat $Y",
        "(X=src/m); export Y=$X; cat $Y",
        "(X=src/m); Y=; Y+=$X; cat $Y",
        "X=src/m; bash -c 'cat $X'",
        "(X='echo hi'); echo $X | sh",
        "false && X=src/m; cat $X",
        "true && X=src/m || cat $X",
        "true || X=src/m && cat $X",
        "X=src/m & cat $X",
        "X=src/m | true; cat $X",
        "true | X=src/m; cat $X",
        "ls $(X=src/m); cat $X",
        "ls `X=src/m`; cat $X",
        "f() { X=src/m; }; cat $X",
        "f() { cat $X; }; X=src/m",
        "if false; then X=src/m; fi; cat $X",
        "if true; then :; elif X=src/m; then :; else cat $X; fi; cat $X",
        "case a in b) X=src/m;; esac; cat $X",
        "while false; do X=src/m; done; cat $X",
        "cat $X; for X in src/m; do :; done",
        "coproc X=src/m; cat $X",
        "bash -c 'X=src/m'; cat $X",
        "alias X=src/m; cat $X",
        "local X=src/m; cat $X",
        "X=src/m > /none/y; cat $X",
        "{ X=src/m; } > /none/y; cat $X",
        "export X=src/m > /none/y; cat $X",
        "readonly X\nX=src/m\ncat $X",
        "_=src/m; : docs; cat $_",
        "x=a; for i in 1 2 3; do x=$x/b; cat $x; done",
    ] {
        check(&room(), Default, &[(row, '?')]);
    }
    for row in [
        "X=src/m; cat $X",
        "X=src/m && cat $X",
        "true && X=src/m && cat $X",
        "{ X=src/m; }; cat $X",
        "(X=src/m; cat $X)",
        "export X=src/m; cat $X",
        "readonly X=src/m; cat $X",
        "f() { local X=src/m; cat $X; }; f",
        "if true; then X=src/m; cat $X; fi",
        "case a in b) X=src/m; cat $X;; esac",
        "while false; do X=src/m; cat $X; done",
        "for X in src/m src/n; do Y=$X; cat $X $Y; done",
        "X=src; X+=/m; cat $X",
        "X=$(date); X=src/m; Y=$X; echo $Y",
    ] {
        check(&room(), Default, &[(row, 'A')]);
    }
}

#[test]
fn every_value_counts_wherever_it_goes() {
    for row in [
        "for X in secrets src; do cat < $X/key.txt; done",
        "X=secrets; (X=src); cat < $X/key.txt",
        "X=secrets; (X=src); Y=$X; cat $Y/key.txt",
        "for X in docs/key src/m; do echo a > $X; done",
        "X='zap foo'; (X='echo hi'); echo $X | sh",
        "X='zap foo'; (X='echo hi'); sh <<< $X",
        "for d in a secrets; do cat $z/key.txt; z=$y; y=$x; x=$d; done",
        "for d in secrets a; do cat $z/key.txt; export z=$d; done",
        "X=secrets/key.txt; (X=src/m); Y=$X; Z=$Y; cat $Z",
        "X=secrets/key.txt; (X=src/m); export Y=$X; Z=$Y; cat $Z",
        "X=secrets; (X=src); Y=; Y+=$X; cat $Y/key.txt",
        "Y=foo; X=secrets; (X=src); Y=$X bash -c 'cat $Y/key.txt'",
        "X=src/m; X=secrets/key.txt bash -c 'Y=$X; cat $Y'",
        "X=src/m; X=secrets/key.txt eval 'Y=$X; cat $Y'",
        "X=src/m; X=secrets/key.txt export X; Y=$X; cat $Y",
        "readonly X=secrets/key.txt\nX=src/m\nY=$X\ncat $Y",
        "declare -r X=secrets/key.txt\nX=src/m\nY=$X\ncat $Y",
        "X=; : ${X:=secrets/key.txt}; Y=$X; cat $Y",
        "trap 'X=secrets/key.txt' DEBUG; X=src/m; Y=$X; cat $Y",
        "X='zap foo'; (X=$(date)); echo $X | sh",
        "X='zap foo'; sh <<< $X; X=ls",
    ] {
        check(&room(), Default, &[(row, 'D')]);
        check(&room(), BypassPermissions, &[(row, 'D')]);
    }
    check(&room(), Default, &[("for X in docs/x src/m; do echo a > $X; done", 'A')]);
}

#[test]
fn what_is_not_known_may_be_nothing() {
    for row in [
        "git $none push x",
        "git pu${none}sh x",
        "git pu$(true)sh x",
        "git pu``sh x",
        "git ${none:-} push x",
        "$none zap foo",
        "za${none}p foo",
        "X=za; Y=$X$none; Z=${Y}p; $Z foo",
        "export X=zap$none; $X foo",
        "for X in zap$none; do $X foo; done",
        "bash -c \"$none zap foo\"",
        "eval \"za${none}p foo\"",
        "echo \"$none zap foo\" | sh",
        "(X=log); git $X push x",
        "x=foo; for i in 1 2; do git $x push; x=$(true); done",
        "cat sec${none}rets/key.txt",
        "cat < sec$(true)rets/key.txt",
        "cat $none/fx/proj/secrets/key.txt",
        "X=src; unset X; cat $X/fx/proj/secrets/key.txt",
        "X=src; f() { local X; cat $X/fx/proj/secrets/key.txt; }; f",
        "echo a > docs/k${none}ey",
        "cd $none/fx/proj/secrets; cat key.txt",
        "cd $opt $none/fx/proj/secrets; cat key.txt",
        "$none cd secrets; cat key.txt",
        "env -C $none/fx/proj/secrets cat key.txt",
        "X=$(true); (X=log); Y=$X; git $Y push x",
        "X=src/m; X=$(true) bash -c 'git $X push x'",
        "X=log; bash -c 'git $X push x'",
        "sh <<< \"$N zap foo\"; N=x",
        "Y=log$none; Y=$(true); git $Y push x",
        "Y=log$none; unset Y; git $Y push x",
        "for X in zap$none log$none; do $X foo; done",
    ] {
        check(&room(), Default, &[(row, 'D')]);
        check(&room(), BypassPermissions, &[(row, 'D')]);
    }
    // How much a command would touch then is no matter, nor what it would remove.
    for row in [
        "git \"$none\" push x",
        "git ${none:?} push x",
        "x=$(date); x=foo; git $x push",
        "git $X x",
        "grep -r foo $DIR",
        "cat $X*",
        "cd $X; ls",
        "T=$(mktemp -d)/work; rm -rf $T",
        "rm -rf build/$X",
        "echo a > $T/.git/config",
    ] {
        check(&room(), BypassPermissions, &[(row, 'A')]);
    }
}

#[test]
fn two_stars_and_followed_links_lead_through_links() {
    let mut room = room();
    room.fs = room.fs.clone().link("/fx/proj/away", "/fx/proj/secrets").link("/fx/proj/src/home", "/fx/home");
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
    let mut room = Room::new().rules(&["Bash"], &[], &["Read(/ΟΔΟΣ/**)"]);
    room.fs = FakeFs::with_files(["/fx/proj/ΟΔΟΣ/a"]);
    for name in ["ΟΔΟΣ", "οδοσ", "οδος"] {
        check(&room, Default, &[(&format!("cat {name}/a"), 'D')]);
    }
}

#[test]
fn an_alias_that_ends_in_a_blank_lets_the_next_word_be_one() {
    let row = "shopt -s expand_aliases\nalias g='git '\nalias p=push\ng p x";
    check(&room(), Default, &[(row, 'D')]);
    check(&room(), BypassPermissions, &[(row, 'D')]);
}

#[test]
fn work_trees_stand_for_the_project() {
    let mut room = room();
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
    let mut room = room();
    room.fs = FakeFs::with_files(["/proc/self/cwd", "/fx/proj/secrets/key.txt"]);
    check(&room, BypassPermissions, &rows);
    check(&room, BypassPermissions, &[("cat /proc/self/cwd/secret[s]/key.txt", 'D')]);
}

#[test]
fn a_way_through_a_process_is_gone_once_from_each_directory() {
    let through = |count| -> String { (0..count).map(|n| format!("cd /proc/self/cwd/d{n}; ")).collect() };
    check(&room(), BypassPermissions, &[(&format!("{}cat x", through(4)), 'A')]);
    // More than are followed.
    check(&room(), BypassPermissions, &[(&format!("{}cat x", through(200)), 'D')]);
    let row = "cd src; cd /proc/self/cwd/..; cd /proc/self/cwd/secrets; cat key.txt";
    check(&room(), BypassPermissions, &[(row, 'D')]);
}

#[test]
fn functions_see_what_they_are_called_with() {
    for row in [
        "g() { git \"$@\"; }; g push x",
        "g() { git $1 x; }; g push",
        "g() { $*; }; g zap foo",
        "f() { cat $2; }; f x secrets/key.txt",
    ] {
        check(&room(), Default, &[(row, 'D')]);
        check(&room(), BypassPermissions, &[(row, 'D')]);
    }
    check(&room(), BypassPermissions, &[("g() { git \"$@\"; }; g log x", 'A')]);
}
