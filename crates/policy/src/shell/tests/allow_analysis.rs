//! Allow analysis: commands that may be allowed, and their class.

use super::*;

fn class(text: &str) -> CommandClass {
    only_checked_command(text).class
}

#[test]
fn read_only_commands() {
    let rows = [
        "ls",
        "ls -la src",
        "pwd",
        "pwd -P",
        "head -5 notes.txt",
        "tail -n 2 x",
        "wc -l src/*.ts",
        "du -sh src",
        "diff a b",
        "find . -name '*.ts'",
        "find src -type f -newer x -print0",
        "git log --oneline -5",
        "git diff",
        "git status -s",
        "git branch -a",
        "git branch --list x",
        "git tag -l 'v*'",
        "git show HEAD:x",
        "git blame -L 1,2 f",
        "git stash list",
        "git remote -v",
        "git config --get user.name",
        "git cat-file -p HEAD",
        "git reflog",
        "git rev-parse --short HEAD",
        "git ls-files -o --exclude-standard",
        "git grep -n x",
        "git worktree list",
        "echo hi",
        "echo *",
        "printf '%s\\n' a",
        "test -f x",
        "[ -f x ]",
        "[[ -f x && 1 -eq 2 ]]",
        "[[ a =~ ^(b|c)$ ]]",
        "grep -rn x .",
        "grep -A3 x *.ts",
        "rg -i x src",
        "sort -k2 -t: f",
        "sort -nr f",
        "uniq -c",
        "sed -n 1,5p f",
        "sed 's/a/b/g'",
        "jq -r .a f",
        "jq --arg a b .x f",
        "tree -L 2",
        "file x",
        "date",
        "date +%s",
        "date -d yesterday",
        "date -Iseconds",
        "hostname",
        "base64 -d f",
        "md5sum f",
        "sha256sum f",
        "ps aux",
        "ps -ef",
        "node --version",
        "node -v",
        "python3 --version",
        "timeout 5 ls",
        "command ls",
        "builtin echo x",
        "NODE_ENV=test ls",
        "history 5",
        "sleep 1",
        "cd src",
        "tr / _",
        "cut -d/ -f2 x",
        "type ls",
        "which ls",
        "cat <<'E'\n$(id)\nE",
        "cat <<E\nx\nE",
        "cat <<< x",
        "echo $((1+2))",
        "echo \"a b\"",
        "ls ~/x",
        "ls \"$HOME/x\"",
        "ls 2>&1",
        "! ls",
        "ls # c",
    ];
    for text in rows {
        assert_eq!(class(text), CommandClass::ReadOnly, "{text}");
    }
    let analysis = analyze_text("ls | xargs -n 1 echo");
    assert!(analysis.checked_commands().all(|command| command.class == CommandClass::ReadOnly));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row each")]
fn commands_that_are_not_read_only() {
    let rows = [
        "find . -name *.ts",
        "git diff *.txt",
        "find . -exec rm {} ';'",
        "find . -fprintf f x",
        "find . -delete",
        "sort --compress-program=x f",
        "sort -o f g",
        "sort -no f",
        "sed 'w f' g",
        "sed 's/a/b/w f' g",
        "sed -n '1e id' f",
        "sed -i s/a/b/",
        "sed -n 1p -s f",
        "awk 1",
        "rg --pre x y",
        "rg -z x",
        "git log --output=f",
        "git diff --ext-diff",
        "git -c a=b z",
        "git --exec-path=x status",
        "git --no-pager log",
        "git grep -O x",
        "git grep --open-files-in-pager=x y",
        "git ls-remote",
        "git branch -D main",
        "git branch x",
        "git branch -v x",
        "git tag x",
        "git config --global a b",
        "git config --get",
        "git reflog expire --all",
        "git log --format=%G?",
        "git log --outpu=f",
        "git stash drop",
        "git cat-file --batch",
        "git",
        "tree -o f",
        "file -f f",
        "hostname evil",
        "date -s x",
        "date 1",
        "uniq f",
        "md5sum -c f",
        "ps e",
        "ps -o pid",
        "node -e 1",
        "python3 x",
        "history -a f",
        "env",
        "printenv",
        "less f",
        "pwd x",
        "printf -v x y",
        // A file could have the name of an option or an operator.
        "printf -[v]*",
        "printf -- *",
        "printf a%n PATH",
        "printf '%s%-5.2ln' a PATH",
        "printf *",
        "test *",
        "[ -f * ]",
        "test -v x",
        "nice ls",
        "time ls",
        "nohup ls",
        "/bin/ls",
        "./ls",
        "LS",
        "PATH=. ls",
        "cd",
        "cd -",
        "cd a b",
        "cd -P a",
        "strings @f",
        "wc --files0-from=f",
        "wc --files0=f",
        "diff -l a b",
        "jq -f x",
        "jq env",
        "jq '$ENV.a'",
        "jq --slurpfile a b .",
        "grep -R x .",
        "grep -D read x",
        "rg -r x y",
        "xargs echo",
        "ls -la && x",
        "base64 a b",
        "[ -f x",
        "[ x -eq 1 ]",
        "kill 1",
        "sed -e p f",
        "tee f",
        "docker ps",
        "xxd f",
    ];
    for text in rows {
        let analysis = analyze_text(text);
        let all = analysis.unanalyzable.is_empty()
            && analysis.checked_commands().all(|command| command.class == CommandClass::ReadOnly);
        assert!(!all, "{text}");
    }
}

#[test]
fn edit_commands_are_classified_by_flags() {
    let rows = [
        ("mkdir -p a b", true),
        ("touch a", true),
        ("rm -rf src", true),
        ("rm --recursive x", true),
        ("rmdir -p a", true),
        ("cp a b", true),
        ("mv -- a b", true),
        ("sed -i s/a/b/ f", true),
        ("sed -E s/a/b/ f g", true),
        ("timeout 5 mkdir a", true),
        ("nice mkdir a", true),
        ("touch -r a b", false),
        ("cp -r a b", false),
        ("mv -t a b", false),
        ("rm", false),
        ("rm *", false),
        ("cp a", false),
        ("sed -i.bak s/a/b/ f", false),
        ("sed -i -f s f", false),
        ("sed -i -e s/a/b/ f", false),
        ("FOO=1 touch a", false),
        ("chmod +x a", false),
        ("xargs rm a", false),
    ];
    for (text, expected) in rows {
        assert_eq!(class(text) == CommandClass::AcceptEdits, expected, "{text}");
    }
    let command = only_checked_command("mv a b c");
    assert_eq!((literals(&command.reads), literals(&command.writes)), (vec!["a", "b"], vec!["c", "a", "b"]));
}

#[test]
fn unanalyzable_constructs_are_reported() {
    let rows = [
        ("ls 'x", UnanalyzableCause::Syntax),
        ("ls;;", UnanalyzableCause::Syntax),
        ("{ls;}", UnanalyzableCause::Syntax),
        ("echo a; }", UnanalyzableCause::Syntax),
        ("a & & b", UnanalyzableCause::Syntax),
        ("a | ! b", UnanalyzableCause::Syntax),
        ("in x", UnanalyzableCause::Syntax),
        ("time time fi", UnanalyzableCause::Syntax),
        ("time a[1 2]=3 ls", UnanalyzableCause::Syntax),
        ("time a[1]=3 ls", UnanalyzableCause::CompoundSyntax),
        ("ls > #f", UnanalyzableCause::Syntax),
        ("ls <<< 2>&1", UnanalyzableCause::Syntax),
        ("time fi", UnanalyzableCause::Syntax),
        ("cat <<E\nx", UnanalyzableCause::Syntax),
        ("", UnanalyzableCause::Syntax),
        ("echo $(id)", UnanalyzableCause::Substitution),
        ("echo `id`", UnanalyzableCause::Substitution),
        ("cat <(id)", UnanalyzableCause::Substitution),
        ("echo $x", UnanalyzableCause::Variable),
        ("echo ${x:-y}", UnanalyzableCause::Variable),
        ("echo $((x))", UnanalyzableCause::Variable),
        ("echo $[1]", UnanalyzableCause::Variable),
        ("echo ~root", UnanalyzableCause::Variable),
        ("echo ~+", UnanalyzableCause::Variable),
        ("HOME=x ls ~", UnanalyzableCause::Variable),
        ("make CC=~/x", UnanalyzableCause::Variable),
        ("for x; do ls; done", UnanalyzableCause::Variable),
        ("echo {a,b}", UnanalyzableCause::Braces),
        ("echo {1..3}", UnanalyzableCause::Braces),
        ("echo $'a'", UnanalyzableCause::Quoting),
        ("echo $\"a\"", UnanalyzableCause::Quoting),
        ("echo a\\ b", UnanalyzableCause::Quoting),
        ("ls \\\n-la", UnanalyzableCause::Quoting),
        ("(ls)", UnanalyzableCause::CompoundSyntax),
        ("{ ls; }", UnanalyzableCause::CompoundSyntax),
        ("((1))", UnanalyzableCause::CompoundSyntax),
        ("case x in x) ls;; esac", UnanalyzableCause::CompoundSyntax),
        ("select x in a; do ls; done", UnanalyzableCause::CompoundSyntax),
        ("for ((;;)); do ls; done", UnanalyzableCause::CompoundSyntax),
        ("f() { ls; }", UnanalyzableCause::CompoundSyntax),
        ("function f { ls; }", UnanalyzableCause::CompoundSyntax),
        ("coproc ls", UnanalyzableCause::CompoundSyntax),
        ("a=(b c)", UnanalyzableCause::CompoundSyntax),
        ("a[1]=x ls", UnanalyzableCause::CompoundSyntax),
        ("a+=x ls", UnanalyzableCause::CompoundSyntax),
        ("x=1", UnanalyzableCause::Assignment),
        ("for PATH in .; do ls; done", UnanalyzableCause::Assignment),
        ("ls > ~/f", UnanalyzableCause::RedirectTarget),
        ("ls > *", UnanalyzableCause::RedirectTarget),
        ("ls > $x", UnanalyzableCause::RedirectTarget),
        ("ls >&-", UnanalyzableCause::RedirectTarget),
        ("ls {fd}> f", UnanalyzableCause::RedirectTarget),
        ("[[ -v x ]]", UnanalyzableCause::Test),
        ("[[ a -eq 1 ]]", UnanalyzableCause::Test),
        ("cat <<E\n$x\nE", UnanalyzableCause::Heredoc),
        ("lüs", UnanalyzableCause::NonAsciiCommand),
        ("ls\u{200b}", UnanalyzableCause::HiddenCharacter),
        ("git commit -m \"x$(cat <<'E'\na\nE\n)\"", UnanalyzableCause::Substitution),
        ("git commit -m \"$(cat <<E\n$(id)\nE\n)\"", UnanalyzableCause::Substitution),
    ];
    for (text, cause) in rows {
        assert!(
            analyze_text(text).unanalyzable.contains(&cause),
            "{text}: {:?}",
            analyze_text(text).unanalyzable
        );
    }
    assert_eq!(
        analyze_text(&format!("echo {}", "a".repeat(MAX_ANALYZED_LENGTH))).unanalyzable,
        [UnanalyzableCause::TooLong]
    );
    let nested = format!("{}ls{}", "(".repeat(200), ")".repeat(200));
    assert!(analyze_text(&nested).unanalyzable.contains(&UnanalyzableCause::TooDeep));
}

#[test]
fn plain_constructs_are_analyzed() {
    let rows = [
        ("a && b || c; d | e |& f\ng", vec!["a", "b", "c", "d", "e", "f", "g"]),
        ("if a; then b; elif c; then d; else e; fi", vec!["a", "b", "c", "d", "e"]),
        ("while a; do b; done", vec!["a", "b"]),
        ("until a; do b; done", vec!["a", "b"]),
        ("for x in 1 2; do a; done", vec!["a"]),
        ("for x in a; do if b; then c; fi done", vec!["b", "c"]),
        ("a;#c\nb # d\n", vec!["a", "b"]),
        (
            "git commit -m \"$(cat <<'E'\nit's (a) \"b\"\nE\n)\"",
            vec!["git commit -m it's\u{1f}(a)\u{1f}\"b\""],
        ),
        ("cat <<A <<'B'\nx\nA\ny\nB\nls", vec!["cat", "ls"]),
        ("time a", vec!["a"]),
        ("time { a; }", vec!["a"]),
    ];
    for (text, expected) in rows {
        let analysis = analyze_text(text);
        let known = analysis.unanalyzable.iter().all(|cause| *cause == UnanalyzableCause::CompoundSyntax);
        assert!(known, "{text}: {:?}", analysis.unanalyzable);
        let found: Vec<&str> = analysis
            .checked_commands()
            .filter_map(|command| command.allow_texts.first())
            .map(|allow_text| allow_text.text.as_str())
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn texts_for_allow_rules() {
    use RequiredRule::{AnyRule, ExactRule, NamingRule};
    let rows: &[(&str, &[(&str, RequiredRule)])] = &[
        ("npm  run \t build", &[("npm run build", AnyRule)]),
        ("npm 'run' build", &[("npm run build", AnyRule), ("npm 'run' build", AnyRule)]),
        ("npm 'run build'", &[("npm run\u{1f}build", AnyRule), ("npm 'run build'", AnyRule)]),
        ("NODE_ENV=test npm test", &[("npm test", AnyRule), ("NODE_ENV=test npm test", ExactRule)]),
        ("FOO=1 npm test", &[("FOO=1 npm test", ExactRule)]),
        ("timeout 30 nohup npm test", &[("npm test", AnyRule), ("timeout 30 nohup npm test", ExactRule)]),
        (
            "timeout -k 5 -s TERM 1.5m npm test",
            &[("npm test", AnyRule), ("timeout -k 5 -s TERM 1.5m npm test", ExactRule)],
        ),
        ("timeout --bad 5 npm test", &[("timeout --bad 5 npm test", AnyRule)]),
        ("nice -n 5 npm test", &[("npm test", AnyRule), ("nice -n 5 npm test", ExactRule)]),
        ("xargs mytool run", &[("mytool run \u{1e}", AnyRule), ("xargs mytool run", ExactRule)]),
        ("xargs -n1 mytool", &[("xargs -n1 mytool", AnyRule)]),
        ("xargs rm", &[("xargs rm", AnyRule)]),
        ("xargs sh", &[("xargs sh", AnyRule)]),
        ("watch -n1 make", &[("watch -n1 make", ExactRule)]),
        ("find . -exec x ';'", &[("find . -exec x ;", ExactRule), ("find . -exec x ';'", ExactRule)]),
        ("find . -print", &[("find . -print", AnyRule)]),
        ("sort -o f g", &[("sort -o f g", ExactRule)]),
        ("awk -f x", &[("awk -f x", ExactRule)]),
        ("awk 1 f", &[("awk 1 f", AnyRule)]),
        ("git -c a=b x", &[("git -c a=b x", ExactRule)]),
        ("git -C x log", &[("git -C x log", AnyRule)]),
        ("eval ls", &[("eval ls", ExactRule)]),
        ("export A=b", &[("export A=b", NamingRule)]),
        ("env A=1 npm test", &[("env A=1 npm test", AnyRule)]),
        ("bash <<'E'\nls\nE", &[("bash \u{1e}", AnyRule)]),
    ];
    for (text, expected) in rows {
        let command = only_checked_command(text);
        let found: Vec<(&str, RequiredRule)> = command
            .allow_texts
            .iter()
            .map(|allow_text| (allow_text.text.as_str(), allow_text.required_rule))
            .collect();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn redirects_and_directories() {
    let command =
        only_checked_command("ls > a 2>> b < c &> d >| e <> f >/dev/null 2>/dev/stderr > /dev/tcp/h/1 2>&1");
    let found: Vec<(RedirectDirection, &str, RedirectTargetKind)> = command
        .redirects
        .iter()
        .map(|redirect| (redirect.direction, redirect.target.as_literal().unwrap(), redirect.target_kind))
        .collect();
    use RedirectDirection::{Read, Write};
    use RedirectTargetKind::{File, Network, Null, Stream};
    assert_eq!(
        found,
        [
            (Write, "a", File),
            (Write, "b", File),
            (Read, "c", File),
            (Write, "d", File),
            (Write, "e", File),
            (Write, "f", File),
            (Write, "/dev/null", Null),
            (Write, "/dev/stderr", Stream),
            (Write, "/dev/tcp/h/1", Network),
        ]
    );
    assert_eq!(only_checked_command("> f").class, CommandClass::NoCommand);
    let loops = analyze_text("for i in 1; do echo x; done > f");
    assert!(
        loops
            .checked_commands()
            .any(|command| command.class == CommandClass::NoCommand && command.redirects.len() == 1)
    );
    assert_eq!(analyze_text("cd a && cd -").cd_targets, [Some(WordValue::Literal("a".into())), None]);
    assert!(analyze_text("a & b").background);
    assert!(!analyze_text("a && b").background);
}

#[test]
fn suggestions_for_rules() {
    let rows = [
        ("npm run build", Some("npm run")),
        ("git push origin dev", Some("git push")),
        ("make all", Some("make all")),
        ("NODE_ENV=x npm test", Some("npm test")),
        ("make", None),
        ("./x.sh", None),
        ("python3 x.py", None),
        ("curl http://x.invalid/a", None),
        ("git -C src commit", None),
        ("FOO=1 npm test", None),
        ("timeout 5 npm test", None),
        ("npm test <<'E'\nE", None),
    ];
    for (text, prefix) in rows {
        let suggestion = only_checked_command(text).suggestion;
        assert_eq!(suggestion.prefix.as_deref(), prefix, "{text}");
        assert!(!suggestion.suppressed, "{text}");
    }
    assert_eq!(only_checked_command("NODE_ENV=x FOO=1 npm test").suggestion.exact, "FOO=1 npm test");
    for text in ["watch x", "find . -delete", "eval x", "bash <<'E'\nE"] {
        assert!(only_checked_command(text).suggestion.suppressed, "{text}");
    }
}
