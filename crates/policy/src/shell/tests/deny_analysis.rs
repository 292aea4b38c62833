//! Deny analysis: every command that might run is found, however it is written.

use super::*;

/// Constructs that run the command `@`.
const CONSTRUCTS: &[&str] = &[
    "@",
    "x; @",
    "x && @",
    "x || @",
    "x | @",
    "x & @",
    "x\n@",
    "@ # c",
    "! @",
    "(@)",
    "{ @; }",
    "if x; then @; fi",
    "if @; then x; fi",
    "while @; do x; done",
    "until x; do @; done",
    "for i in 1; do @; done",
    "case x in x) @;; esac",
    "select i in a; do @; done",
    "for ((;;)); do @; done",
    "f() { @; }; f",
    "function f { @; }",
    "coproc @",
    "coproc n { @; }",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "cat <(@)",
    "x > >(@)",
    "echo ${x:-$(@)}",
    "echo ${x:=`@`}",
    "x=$(@)",
    "a=($(@))",
    "a[$(@)]=1",
    "echo $(( $(@) ))",
    "echo $[ $(@) ]",
    "(( $(@) ))",
    "((@);x)",
    "echo $(((@); x))",
    "[[ -n $(@) ]]",
    "cat <<E\n$(@)\nE",
    "cat <<E\n`@`\nE",
    "sh <<'E'\n@\nE",
    "cat <<'E' | sh\n@\nE",
    "bash <<< '@'",
    "echo '@' | sh",
    "A=1 @",
    "A=1 B=$(x) @",
    "> f @",
    "timeout 5 @",
    "timeout -k 1 --foreground 5 @",
    "timeout --odd 5 @",
    "time @",
    "time -p @",
    "nice @",
    "nice -n 5 @",
    "nohup @",
    "nohup -- @",
    "stdbuf -oL @",
    "command @",
    "command -p @",
    "builtin @",
    "xargs @",
    "x | xargs -n1 -I{} @",
    "env @",
    "env A=1 @",
    "env -i A=1 @",
    "env -u B -- @",
    "env -S '@'",
    "awk 'BEGIN { system(\"@\") }'",
    "awk 'BEGIN { \"@\" | getline }'",
    "awk '{ print | \"@\" }' f",
    "sed '1e @' f",
    "sed -n '$e @' f",
    "sed 's|x|@|e' f",
    "sed '1e@' f",
    "sed '1e\t@' f",
    "sed -e p -e 's|x|@|ge;p' f",
    "perl -e 'system(\"@\")'",
    "perl -e 'print `@`'",
    "python3 -c 'import os; os.system(\"@\")'",
    "ruby -e 'exec \"@\"'",
    "node -e 'require(\"child_process\").execSync(\"@\")'",
    "php -r 'passthru(\"@\");'",
    "awk 'BEGIN { system(\"true\\n@\") }'",
    "git -c core.pager='@' log",
    "git -c alias.q='!@' q",
    "git config alias.q '!@'",
    "git config core.pager '@'",
    "git config --global core.pager '@'",
    "git submodule --quiet foreach '@'",
    "git submodule --quiet foreach --recursive '@'",
    "make SHELL='@'",
    "git rebase --exec '@' main",
    "git rebase -x '@' main",
    "git bisect run @",
    "git submodule foreach --recursive '@'",
    "git difftool --extcmd='@'",
    "git filter-branch --tree-filter '@'",
    "tar -xf a --to-command='@'",
    "tar -cf a --checkpoint=1 --checkpoint-action=exec='@' f",
    "tar -I '@' -cf a f",
    "tar cfI a '@' f",
    "ssh -o 'ProxyCommand @' h",
    "rsync -e '@' a h:b",
    "split --filter='@' f",
    "ssh -o ProxyCommand='@' h",
    "ssh -oProxyCommand='@' h",
    "ncat -c '@' h 1",
    "socat - EXEC:'@'",
    "vim -c ':!@' f",
    "vim +':!@' f",
    "man -P '@' ls",
    "tmux new-session -d '@'",
    "screen -dm @",
    "xvfb-run -a @",
    "bwrap --ro-bind / / @",
    "env --split-string='@'",
    "sudo @",
    "sudo -u root @",
    "sudo -E A=1 @",
    "sudo -Z @",
    "doas @",
    "pkexec @",
    "su -c '@'",
    "su root -c '@'",
    "runuser -u x @",
    "setpriv --reuid 1 @",
    "setsid @",
    "ionice -c3 @",
    "ionice -c 3 -n 2 @",
    "chrt -f 5 @",
    "taskset -c 0 @",
    "flock /l @",
    "flock /l -c '@'",
    "watch @",
    "watch -n1 '@'",
    "script -c '@' f",
    "strace -f -e trace=x @",
    "ltrace @",
    "unshare -r @",
    "nsenter -t 1 @",
    "chroot / @",
    "prlimit --nofile=1 @",
    "systemd-run --scope @",
    "unbuffer @",
    "valgrind -q @",
    "perf stat @",
    "gdb --args @",
    "parallel @ ::: a",
    "busybox @",
    "nocorrect @",
    "noglob @",
    "exec @",
    "exec -a x @",
    "sh -c '@'",
    "bash -lc '@'",
    "bash -o errexit -c '@'",
    "/bin/sh -c '@'",
    "eval '@'",
    "eval @",
    "trap '@' EXIT",
    "alias x='@'",
    "find . -exec @ ';'",
    "find . -execdir @ +",
    "find . -ok @ ';'",
    "timeout 5 sudo nice env A=1 sh -c '@'",
    "sh -c \"sh -c '@'\"",
    "mapfile -C '@' a",
    "if x\nthen\n@\nfi",
    "x |\n@",
    "x &&\n@",
    "x \\\n&& @",
    "unclosed 'x; @",
    "x ) @",
    "echo \"`echo \\`@\\``\"",
    "FOO=bar sh -ec '@'",
    "case x in (x) y ;; *) @ ;& z) w ;;& esac",
    "{ { { @; }; }; }",
];

#[test]
fn command_is_found_in_every_construct() {
    for construct in CONSTRUCTS {
        let text = construct.replace('@', "git clean -fd");
        assert!(is_found(&analyze_text(&text), "git clean -fd"), "{text}");
    }
}

#[test]
fn variable_in_a_text_hides_no_command() {
    let rows = [
        "sh -c \"@\"",
        "git -c core.pager=\"@\" log",
        "git -c alias.q=\"!@\" q",
        "git rebase --exec \"@\" main",
        "git submodule foreach \"@\"",
        "git config core.pager \"@\"",
        "awk \"BEGIN { system(\\\"@\\\") }\"",
        "sed \"1e @\" f",
        "sed \"s|x|@|e\" f",
        "perl -e \"system('@')\"",
        "tar -I \"@\" -cf a f",
        "tar cfI a \"@\" f",
        "rsync -e \"@\" a h:b",
        "split --filter=\"@\" f",
        "ssh -o ProxyCommand=\"@\" h",
        "ssh -o \"ProxyCommand @\" h",
        "socat - EXEC:\"@\"",
        "vim -c \":!@\" f",
        "vim +\":!@\" f",
        "man -P \"@\" ls",
        "make SHELL=\"@\"",
    ];
    for row in rows {
        for command in ["git clean -fd $X", "git clean $X -fd", "git clean -fd $(x)"] {
            let text = row.replace('@', command);
            assert!(is_found(&analyze_text(&text), "git clean"), "{text}");
        }
    }
}

#[test]
fn word_lists_in_code_are_commands() {
    for text in [
        "python3 -c 'import subprocess; subprocess.run([\"git\", \"clean\", \"-fd\"])'",
        "perl -e 'system(\"git\", \"clean\", \"-fd\")'",
        "sed 's/x/git clean -fd/e;p' f",
    ] {
        assert!(is_found(&analyze_text(text), "git clean -fd"), "{text}");
    }
}

#[test]
fn removal_is_found_in_every_construct() {
    for construct in CONSTRUCTS {
        let text = construct.replace('@', "rm -rf /usr");
        let found = analyze_text(&text).commands.iter().any(|command| {
            command.removals.iter().any(|value| {
                value.as_literal().is_some_and(|text| text.trim_end_matches(['\'', ')']) == "/usr")
            })
        });
        assert!(found, "{text}");
    }
}

#[test]
fn command_is_found_in_every_form() {
    let rows = [
        "'rm' -rf x",
        "\\rm -rf x",
        "r\\m -rf x",
        "r''m -rf x",
        "\"rm\" -rf x",
        "$'rm' -rf x",
        "$'\\x72m' -rf x",
        "{rm,-rf,x}",
        "/bin/rm -rf x",
        "./../../bin/rm -rf x",
        "RM -rf x",
        "rm.exe -rf x",
        "x=rm; $x -rf x",
        "c='rm -rf x'; $c",
        "for c in ls rm; do $c -rf x; done",
        "export c=rm; $c -rf x",
        "rm${IFS}-rf${IFS}x",
        "r\\\nm -rf x",
        "a=r; b=m; $a$b -rf x",
        "a=ls; a=rm; $a -rf x",
        "rm\t-rf x",
        "eval r'm' -rf x",
    ];
    for text in rows {
        assert!(is_found(&analyze_text(text), "rm -rf x"), "{text}");
    }
    for text in ["git -C . clean", "git --no-pager -c a=b clean", "/usr/bin/git -C x clean"] {
        assert!(is_found(&analyze_text(text), "git clean"), "{text}");
    }
}

#[test]
fn unknown_commands_are_opaque() {
    let rows = [
        ("$x y", true),
        ("$(echo rm) -rf x", true),
        ("/bin/r? -rf x", true),
        ("eval $x", true),
        ("sh -c \"$x\"", true),
        ("bash -c 'ls'", false),
        ("ls $x", false),
        ("sudo $x", true),
        ("echo $(ls)", false),
        ("read x; $x", true),
    ];
    for (text, expected) in rows {
        assert_eq!(analyze_text(text).is_opaque(), expected, "{text}");
    }
}

#[test]
fn files_of_commands() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("cat a b", &["a", "b"], &[]),
        ("cat -- -a", &["-a"], &[]),
        ("grep x a", &["a"], &[]),
        ("grep -e x a", &["a"], &[]),
        ("grep -f p a", &["p", "a"], &[]),
        ("grep -fp a", &["p", "a"], &[]),
        ("grep -R x a", &["a"], &[]),
        ("rg x", &["."], &[]),
        ("sed -n 1p a", &["a"], &[]),
        ("sed -i s/a/b/ a", &["a"], &["a"]),
        ("awk 1 a", &["a"], &[]),
        ("cp a b c", &["a", "b"], &["c"]),
        ("cp -t d a b", &["a", "b"], &["d"]),
        ("cp --target-directory=d a", &["a"], &["d"]),
        ("install a b", &["a"], &["b"]),
        ("ln -s a b", &["a"], &["b"]),
        ("dd if=a of=b", &["a"], &["b"]),
        ("tee a", &[], &["a"]),
        ("chmod +x a", &[], &["a"]),
        ("sort -o b a", &["a"], &["b"]),
        ("curl -o a http://x -d @b", &["b"], &["a"]),
        ("curl file:///etc/passwd", &["/etc/passwd"], &[]),
        ("wget -O a http://x", &[], &["a"]),
        ("tar cf - s", &["cf", "-", "s"], &[]),
        ("source x", &["x"], &[]),
        ("bash x", &["x"], &[]),
        ("python3.11 x", &["x"], &[]),
        ("git show HEAD:s", &["HEAD:s", "s"], &[]),
        ("git diff --no-index a b", &["a", "b"], &[]),
        ("git checkout -- a", &[], &["a"]),
        ("/bin/cat a", &["a"], &[]),
        ("find a b -newer c", &["a", "b", "c"], &[]),
        ("find -name x", &["."], &[]),
        ("diff --from-file=a b", &["a", "b"], &[]),
        ("openssl x -in a", &["a"], &[]),
        ("test -f a", &[], &[]),
    ];
    for (text, reads, writes) in rows {
        let analysis = analyze_text(text);
        let command = &analysis.commands[0];
        assert_eq!(literals(&command.reads), *reads, "{text}");
        assert_eq!(literals(&command.writes), *writes, "{text}");
    }
    assert!(
        only_checked_command("grep -r x .").recursive
            && only_checked_command("ls -R").recursive
            && only_checked_command("cp -r a b").recursive
    );
    assert!(!only_checked_command("ls a").recursive);
}

#[test]
fn values_of_removed_paths() {
    let unknown = |before: &str, after: &str, nonempty| WordValue::Unknown {
        before: before.into(),
        after: after.into(),
        nonempty,
    };
    let rows = [
        ("rm -rf ~", WordValue::Literal("/home/u".into())),
        ("rm -rf \"$HOME\"", WordValue::Literal("/home/u".into())),
        ("rm -rf $D/", unknown("", "/", false)),
        ("rm -rf \"$D\"/*", unknown("", "/*", false)),
        ("rm -rf ${D:?}/*", unknown("", "/*", true)),
        ("rm -rf a$D/b", unknown("a", "/b", false)),
        ("rm -rf /*", WordValue::Glob("/*".into())),
        ("rm -rf '*'", WordValue::Literal("*".into())),
        ("rm -rf '*'*", WordValue::Glob("\\**".into())),
        ("D=/usr; rm -rf $D", WordValue::Literal("/usr".into())),
        ("find / -delete", WordValue::Literal("/".into())),
        ("find /usr -exec rm {} ';'", WordValue::Literal("/usr".into())),
    ];
    for (text, expected) in rows {
        let analysis = analyze_text(text);
        let found: Vec<&WordValue> = analysis.commands.iter().flat_map(|command| &command.removals).collect();
        assert_eq!(found.first(), Some(&&expected), "{text}");
    }
}
