//! A command that is one program and its words, and nothing more, needs no shell: it starts in less than half the time
//! without one.
//!
//! Only what has one meaning is read here. Everything else is left to bash: whatever it expands, cuts or connects, its
//! own commands, a program that is not found or not in a format that the system runs, and surroundings that change what
//! bash does. The program sees the same variables as if bash had become it.

#![expect(clippy::disallowed_methods, reason = "this file starts programs")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::process::Order;

/// A program and its words, the first of which is the name that it was called by.
#[derive(Debug, PartialEq)]
pub(super) struct Plain {
    program: PathBuf,
    words: Vec<String>,
}

/// What bash runs itself or takes for grammar.
const OF_BASH: &str = "! . : [ [[ ]] { } alias bg bind break builtin caller case cd command compgen complete compopt \
    continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for \
    function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray \
    readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask \
    unalias unset until wait while";

/// Variables with which bash does something else, or something before.
const GUIDES: [&str; 6] = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT", "EXECIGNORE"];

/// How functions begin that bash finds among its variables.
const FUNCTION: &str = "BASH_FUNC_";

impl Plain {
    /// What bash would become with this command, if that is beyond doubt.
    pub(super) fn of(command: &str, environment: &BTreeMap<String, String>) -> Option<Self> {
        if GUIDES.iter().any(|name| environment.contains_key(*name)) || has_functions(environment) {
            return None;
        }
        let words = words(command)?;
        let name = words.first()?;
        if name.contains('=') || OF_BASH.split_whitespace().any(|own| own == name) {
            return None;
        }
        let program = find(name, environment.get("PATH")?)?;
        Some(Self { program, words })
    }

    /// The program, ready to start.
    pub(super) fn command(&self, order: &Order) -> Command {
        let mut command = Command::new(&self.program);
        command.as_std_mut().env_clear().envs(&order.environment);
        command.env("_", &self.program).env("PWD", folder(order));
        if !order.environment.get("SHLVL").is_some_and(|level| is_level(level)) {
            command.env("SHLVL", "0");
        }
        if order.environment.get("OLDPWD").is_some_and(|before| !Path::new(before).is_dir()) {
            command.env_remove("OLDPWD");
        }
        for (at, word) in self.words.iter().enumerate() {
            if at == 0 {
                command.arg0(word)
            } else {
                command.arg(word)
            };
        }
        command
    }
}

/// The words of a command that has nothing but words, quotes without anything to expand, and comments.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Whether a line with words has ended: another one would be another command.
    let mut over = false;
    let mut rest = command;
    while let Some(next) = rest.chars().next() {
        let (skipped, text) = match next {
            ' ' | '\t' | '\n' => {
                words.extend(word.take());
                over |= next == '\n' && !words.is_empty();
                (1, None)
            }
            '#' if word.is_none() => (rest.find('\n').unwrap_or(rest.len()), None),
            '\'' | '"' => {
                let inside = &rest[1..];
                let inside = &inside[..inside.find(next)?];
                let expands = next == '"' && inside.contains(['$', '`', '\\']);
                if expands || inside.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
                    return None;
                }
                (inside.len() + 2, Some(inside))
            }
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | '/' | ',' | ':' | '=' | '@' | '%' | '+' => {
                (1, Some(&rest[..1]))
            }
            _ => return None,
        };
        if let Some(text) = text {
            if over {
                return None;
            }
            word.get_or_insert_default().push_str(text);
        }
        rest = &rest[skipped..];
    }
    words.extend(word);
    Some(words)
}

/// Where the program is: the first with its name on the path, as bash would find it. A path that is not absolute is left
/// to bash, since a program may look at how it was called.
fn find(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|program| program.is_absolute() && is_program(program));
    }
    for folder in path.split(':') {
        if !folder.starts_with('/') {
            return None;
        }
        let program = Path::new(folder).join(name);
        if is_program(&program) {
            return Some(program);
        }
    }
    None
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
}

fn has_functions(environment: &BTreeMap<String, String>) -> bool {
    let first =
        environment.range::<str, _>((std::ops::Bound::Included(FUNCTION), std::ops::Bound::Unbounded)).next();
    first.is_some_and(|(name, _)| name.starts_with(FUNCTION))
}

/// How bash names the folder: as it was told, if that is true, for there may be links on the way.
fn folder(order: &Order) -> PathBuf {
    let place = |path: &Path| path.metadata().ok().map(|about| (about.dev(), about.ino()));
    let told = order.environment.get("PWD").map(PathBuf::from).filter(|told| told.is_absolute());
    match told {
        Some(told) if place(&told).is_some() && place(&told) == place(&order.cwd) => told,
        _ => order.cwd.canonicalize().unwrap_or_else(|_| order.cwd.clone()),
    }
}

/// Whether bash would leave the depth of shells as it is.
fn is_level(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|level| level < 999) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::process::Command as Program;

    use proptest::prelude::*;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let more = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        [path].into_iter().chain(more).collect()
    }

    #[test]
    fn words_are_read_where_they_have_one_meaning() {
        for (command, expected) in [
            ("ls", Some(&["ls"][..])),
            (" git\tstatus \n", Some(&["git", "status"])),
            (
                "# Look first\n\nls -la --color=never ./a.b # here\n# there",
                Some(&["ls", "-la", "--color=never", "./a.b"]),
            ),
            ("grep -rn 'a  $b' src", Some(&["grep", "-rn", "a  $b", "src"])),
            (
                "git commit -m \"it's\n*new*!\" --a='b'\"c\"d",
                Some(&["git", "commit", "-m", "it's\n*new*!", "--a=bcd"]),
            ),
            ("a '' \"\"", Some(&["a", "", ""])),
            ("a b#c", None),
            ("a; b", None),
            ("a\nb", None),
            ("a #x\nb", None),
            ("a &", None),
            ("a | b", None),
            ("a > b", None),
            ("a <b", None),
            ("a $b", None),
            ("a \"$b\"", None),
            ("a \"`b`\"", None),
            ("a \\b", None),
            ("a \"\\b\"", None),
            ("a *.rs", None),
            ("a b?", None),
            ("a [b]", None),
            ("a {b,c}", None),
            ("a ~/b", None),
            ("a !b", None),
            ("(a)", None),
            ("a 'b", None),
            ("a\rb", None),
            ("a 'b\u{1}'", None),
            ("a \u{a0}b", None),
        ] {
            let words = words(command);
            let words = words.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(words.as_deref(), expected, "{command}");
        }
        assert_eq!(words(" # nothing\n"), Some(Vec::new()));
    }

    #[test]
    fn only_a_program_that_is_found_is_started_without_a_shell() {
        let plain = Plain::of("env -u A", &environment(&[])).unwrap();
        assert_eq!(
            (plain.program.as_path(), &plain.words[..]),
            (Path::new("/usr/bin/env"), &["env", "-u", "A"].map(String::from)[..])
        );
        for command in [
            "",
            "# x",
            "echo a",
            "'test' a",
            "A=b env",
            "time env",
            "no-such-program",
            "/usr",
            "usr/bin/env",
            "/etc/passwd",
        ] {
            assert_eq!(Plain::of(command, &environment(&[])), None, "{command}");
        }
        assert!(Plain::of("/usr/bin/env", &environment(&[])).is_some());
        for (name, value) in [
            ("BASH_ENV", "/dev/null"),
            ("BASH_FUNC_env%%", "() { :; }"),
            ("SHELLOPTS", "noexec"),
            ("EXECIGNORE", "*"),
            ("PATH", "bin:/usr/bin"),
            ("PATH", ":/usr/bin"),
            ("PATH", "/nowhere"),
        ] {
            assert_eq!(Plain::of("env", &environment(&[(name, value)])), None, "{name}={value}");
        }
        assert_eq!(Plain::of("env", &BTreeMap::new()), None);
    }

    #[tokio::test]
    async fn the_program_sees_what_bash_would_have_given_it() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let link = link.to_str().unwrap();
        for variables in [
            &[("A", "1"), ("b-c", "2")][..],
            &[("SHLVL", "3"), ("PWD", link), ("OLDPWD", "/usr")],
            &[("SHLVL", "x"), ("PWD", "/usr"), ("OLDPWD", "/nowhere"), ("_", "y")],
        ] {
            let order =
                Order { command: "env".into(), cwd: link.into(), environment: environment(variables) };
            let plain = Plain::of(&order.command, &order.environment).unwrap();
            let ours = plain.command(&order).current_dir(&order.cwd).output().await.unwrap();
            let mut bash = Program::new("/bin/bash");
            bash.args(["-c", "--", "env"]).env_clear().envs(&order.environment).current_dir(&order.cwd);
            assert_eq!(lines(&ours.stdout), lines(&bash.output().unwrap().stdout), "{variables:?}");
        }
    }

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Pieces of which commands are made, mostly such that are read here.
    const PIECES: [&str; 32] = [
        "a", "b/c", "--d=e", "f.g", "%h", "i:j@k", " ", " ", " ", "\t", "\n", "'l m'", "'$n'", "\"o  p\"",
        "\"*'q\"", "''", "#", " # r's", "é", "'é\n'", "s,+t", "=", "-", "'", "\"", "$u", "~", "\\", "*",
        "{v,w}", "!", ";",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever is read as words here is read as the same words by bash.
        #[test]
        fn bash_reads_the_same_words(
            before in prop::sample::select(vec!["", " \n\t", "# first 'so\n"]),
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..8),
        ) {
            let command = format!("{before}/usr/bin/printf '%s\\0' {}", pieces.concat());
            if let Some(read) = words(&command) {
                let said = Program::new("/bin/bash").args(["-c", "--", &command]).output().unwrap();
                let expected: String = read[2..].iter().map(|word| format!("{word}\0")).collect();
                let expected = if read.len() == 2 { "\0".into() } else { expected };
                prop_assert_eq!(String::from_utf8_lossy(&said.stdout), expected, "{}", command);
            }
        }
    }
}
