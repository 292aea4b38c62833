//! Variables and the values they may have. All commands are allowed, with some deny rules.

use super::*;

/// Commands that require permission, because a file they name is unknown.
const UNKNOWN_FILES: &[&str] = &[
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
    "HOME=$Y; cat ~/key.txt",
    "for HOME in $Y; do cat ~/key.txt; done",
    "read PWD <<< a; cat $PWD/key.txt",
    "read HOME <<< a; cat ~/key.txt",
    "export IFS=:; X=a:b; cat $X",
    "X=src/m; printf $'-v' X $Y; cat $X",
    "o=-v; X=src/m; printf $o X $Y; cat $X",
    "export -z X=src/m; cat $X",
    "declare -p X=src/m; cat $X",
    "declare -i X=src/m; cat $X",
    "f(){ local -p X=src/m; cat $X; }; f",
    "export X-=src/m; cat $X",
    "set -k; export X=src/m; cat $X",
    "export(){ :; }; export X=src/m; cat $X",
    "enable -n export; export X=src/m; cat $X",
    "for e in true export; do $e X=src/m; cat $X; done",
    "f(){ export X=src/m; cat $X; }; readonly X; f",
    "{ X=src/m; } >&9; cat $X",
    "export X=src/m <&8; cat $X",
    "while break; X=src/m; do :; done; cat $X",
    "bash <<< 'cat $X'; X=src/m",
    "echo 'cat $X' | bash; X=src/m",
    "X=src/m; time read X <<< $Y; cat $X",
    "X=src/m; f(){ cat $X; }; \"export\" X=$Y; f",
    "X=src/m; for i in 1 2; do cat $X; \\read X <<< $Y; done",
    "X=src/m; trap 'cat $X' EXIT; X=$Y",
    "trap 'read X <<< $Y' DEBUG; X=src/m; cat $X",
    "eval 'f(){ read X; }'; X=src/m; f <<< $Y; cat $X",
    "shopt -s expand_aliases\nalias s='read X'\nX=src/m\ns <<< $Y\ncat $X",
    "if true; then X=src/m; fi; cat $X",
    "case a in a) X=src/m;; *) ;; esac; cat $X",
    "(if true; then X=src/m; else X=src/n; fi); cat $X",
    "if true; then X=src/m; elif false; then :; else X=src/n; fi; cat $X",
    "f(){ local X=src/m; }; f; cat $X",
    "f(){ return; X=src/m; }; f; cat $X",
    "(f(){ X=src/m; }); f; cat $X",
    "f(){ X=src/m; }; f > /none/y; cat $X",
    "true && X=src/m || true; cat $X",
];

/// Commands whose files are known.
const KNOWN_FILES: &[&str] = &[
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
    "if [ -f src/m ]; then X=src/m; else X=src/n; fi; cat \"$X\"",
    "if a; then X=src/m; elif b; then X=src/n; else X=src/o; fi; cat $X",
    "case $Y in a) X=src/m;; *) X=src/n;; esac; cat $X",
    "[ -d src ] && X=src || X=docs; cat $X/m",
    "setup() { X=src/m; mkdir -p src; }; setup; cat $X",
    "export X=src/m 2>/dev/null; cat $X",
    "set -euo pipefail; X=src/m; cat $X",
    "trap 'rm -f src/t' EXIT; X=src/m; cat $X",
];

/// Commands that use something denied through one of the values they assign to a variable.
const DENIED: &[&str] = &[
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
    "HOME=secrets; cat ~/key.txt",
    "HOME=$PWD/secrets; cat ~/key.txt",
    "export HOME=secrets; cat ~/key.txt",
    "HOME=secrets bash -c 'cat ~/key.txt'",
    "export IFS=:; X=zap:a; $X",
    "for IFS in :; do X=zap:a; $X; done",
    "readonly X=secrets/key.txt; export X=src/m; Y=$X; cat $Y",
    "X=secrets/key.txt; readonly X; export X=src/m; Y=$X; cat $Y",
    "X=secrets/key.txt; export X=src/m <&9; Y=$X; cat $Y",
    "q=src/m; f(){ cat $q; }; \"export\" q=secrets/key.txt; f",
    "X=src/m; trap 'cat $X' EXIT; X=secrets/key.txt",
    "trap 'cat $X' EXIT; X=secrets/key.txt",
    "eval 'f(){ cat $X; }'; X=secrets/key.txt; f",
    "p=src/m; q=$p; for i in 1 2 3; do cat \"$p\"; export p=$q; export q=secrets/key.txt; done",
    "p=src/m; q=$p; r=$p; s=$p; t=$p; u=$p; for i in 1 2 3 4 5 6 7; do cat $p; p=$q; q=$r; r=$s; s=$t; t=$u; u=secrets/key.txt; done",
    "for d in secret*; do cat \"$d/key.txt\"; done",
    "git ${X:-\"push\"} x",
    "cat \"${X:-'secrets/key.txt'}\"",
    "f(){ git $1 x; }; \"f\" push",
    "f(){ shift; git $1 x; }; f a push",
    "f(){ for a in \"$@\"; do git $a x; done; }; f push",
];

/// Commands that use something denied if an unknown part is empty.
const DENIED_IF_EMPTY: &[&str] = &[
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
    "true && P=push; git $n $P x",
    "X=push; if false; then X=pull; fi; git $none $X z",
    "true && F=secrets; cat $none$F/key.txt",
    "for P in push pull; do git $n $P x; done",
    "for F in secrets src; do cat $none$F/key.txt; done",
    "for F in docs/key src/o; do echo x > $none$F; done",
    "f(){ git $X y; }; X=push$none; f",
    "X=push$n; true || X=a$n; git $X y",
    "git \"$@\" push x",
    "git \"${a[@]}\" push x",
];

/// Commands that do not, whatever they would access or remove with an empty part.
const HARMLESS: &[&str] = &[
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
];

#[test]
fn possibly_unassigned_variable_is_unknown() {
    for row in UNKNOWN_FILES {
        check(&restricted_fixture(), Default, &[(row, '?')]);
    }
    for row in KNOWN_FILES {
        check(&restricted_fixture(), Default, &[(row, 'A')]);
    }
}

#[test]
fn every_assigned_value_is_checked() {
    for row in DENIED {
        check_denied(row);
    }
    check(&restricted_fixture(), Default, &[("for X in docs/x src/m; do echo a > $X; done", 'A')]);
}

#[test]
fn unknown_value_may_be_empty() {
    for row in DENIED_IF_EMPTY {
        check_denied(row);
    }
    for row in HARMLESS {
        check(&restricted_fixture(), BypassPermissions, &[(row, 'A')]);
    }
}
