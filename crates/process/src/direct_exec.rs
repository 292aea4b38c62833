//! Runs a command without a shell if it is just a program and literal words; that halves the start time.
//!
//! Only unambiguous commands are accepted. Everything else is left to bash: expansions, redirections and operators,
//! builtins, unknown programs, and environments that bash interprets or changes. The program then sees exactly what it
//! would see if bash had exec'ed it; the only difference is that bash's own warnings (such as an unknown locale) are
//! missing.

#![expect(clippy::disallowed_methods, reason = "this file starts programs")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::shell_command::CommandSpec;

/// Builtins and reserved words of bash.
const BASH_BUILTINS: &str = "! . : [ [[ ]] { } alias bg bind break builtin caller case cd command compgen complete compopt \
    continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for \
    function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray \
    readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask \
    unalias unset until wait while";

/// Variables that bash interprets or changes; with one of them, or any other that begins with `BASH`, bash is used.
const BASH_VARIABLES: &str = "COMP_WORDBREAKS EPOCHREALTIME EPOCHSECONDS EXECIGNORE HISTCMD IFS LINENO OPTERR OPTIND \
    POSIXLY_CORRECT PPID PS4 RANDOM SHELLOPTS SRANDOM";

/// Variables of ours that begin like those of bash.
const OWN_VARIABLES: &str = "BASH_DEFAULT_TIMEOUT_MS BASH_MAX_TIMEOUT_MS";

/// With one of these, a top-level bash assumes a remote shell and reads a startup file.
const SSH_VARIABLES: [&str; 2] = ["SSH_CLIENT", "SSH2_CLIENT"];

/// Builds the command that bash would exec, if that is certain.
pub(super) fn build_command(script: &str, spec: &CommandSpec) -> Option<Command> {
    let environment = &spec.environment;
    let level = shell_level(environment)?;
    let words = split_words(script)?;
    let (name, arguments) = words.split_first()?;
    if name.starts_with('%') || name.contains('=') || contains_word(BASH_BUILTINS, name) {
        return None;
    }
    let program = find_program(name, environment.get("PATH")?)?;
    let mut command = Command::new(&program);
    command.arg0(name).args(arguments).env_clear().envs(environment);
    command.env("_", program).env("PWD", reported_pwd(spec)).env("SHLVL", level.to_string());
    command.env_remove("PS1").env_remove("PS2");
    Some(command)
}

/// The shell level (SHLVL), if bash passes the environment on unchanged.
fn shell_level(environment: &BTreeMap<String, String>) -> Option<u16> {
    let is_interpreted = |name: &String| {
        name.starts_with("BASH") && !contains_word(OWN_VARIABLES, name) || contains_word(BASH_VARIABLES, name)
    };
    let path = |name| environment.get(name).map(Path::new);
    let old_dir_is_missing = path("OLDPWD").is_some_and(|path| !path.is_absolute() || !path.is_dir());
    // In `/proc/self`, each process sees itself.
    let is_in_proc = path("PWD").is_some_and(|path| path.starts_with("/proc"));
    if environment.keys().any(is_interpreted) || old_dir_is_missing || is_in_proc {
        return None;
    }
    let level = environment.get("SHLVL").map_or(Some(0), |text| parse_shell_level(text))?;
    let reads_start_file = level == 0 && SSH_VARIABLES.iter().any(|name| environment.contains_key(*name));
    (!reads_start_file).then_some(level)
}

fn contains_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|listed| listed == word)
}

/// Parses a shell level in bash's own notation and range.
fn parse_shell_level(text: &str) -> Option<u16> {
    text.parse().ok().filter(|level: &u16| *level < 999 && level.to_string() == text)
}

/// Splits a command that consists of literal words, quotes without expansions, and comments.
fn split_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command;
    while let Some(next) = rest.chars().next() {
        let (skipped, text) = match next {
            ' ' | '\t' | '\n' => {
                words.extend(word.take());
                // If more text followed, bash would not exec the last command.
                if next == '\n' && !words.is_empty() {
                    return (rest.len() == 1).then_some(words);
                }
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
            word.get_or_insert_default().push_str(text);
        }
        rest = &rest[skipped..];
    }
    words.extend(word);
    Some(words)
}

/// Finds a program on the PATH like bash. Relative paths are left to bash, because a program may inspect how it was
/// called.
fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|program| program.is_absolute() && is_executable(program));
    }
    for dir in path.split(':') {
        if !dir.starts_with('/') {
            return None;
        }
        let program = Path::new(dir).join(name);
        if is_executable(&program) {
            return Some(program);
        }
    }
    None
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

/// The directory as bash reports it in PWD: the inherited value if it is the same directory, because it may contain
/// symlinks.
fn reported_pwd(spec: &CommandSpec) -> PathBuf {
    let file_id = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let inherited =
        spec.environment.get("PWD").map(PathBuf::from).filter(|inherited| inherited.is_absolute());
    inherited
        .filter(|inherited| file_id(inherited).is_some_and(|there| file_id(&spec.cwd) == Some(there)))
        .unwrap_or_else(|| spec.cwd.canonicalize().unwrap_or_else(|_| spec.cwd.clone()))
}

#[cfg(test)]
mod tests {
    use std::process::Command as Program;

    use proptest::prelude::*;

    use super::*;

    fn spec(variables: &[(&str, &str)]) -> CommandSpec {
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let more = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment: BTreeMap<String, String> = [path].into_iter().chain(more).collect();
        CommandSpec { command: String::new(), cwd: "/".into(), environment }
    }

    #[test]
    fn words_are_split_if_unambiguous() {
        for (command, expected) in [
            ("ls", Some(&["ls"][..])),
            (" git\tstatus \n", Some(&["git", "status"])),
            (
                "# Look first\n\nls -la --color=never ./a.b # here\n",
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
            ("a\n\n", None),
            ("a #x\nb", None),
            ("a\n# x", None),
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
            let words = split_words(command);
            let words = words.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(words.as_deref(), expected, "{command}");
        }
        assert_eq!(split_words(" # nothing\n"), Some(Vec::new()));
    }

    #[test]
    fn only_existing_programs_run_without_a_shell() {
        let direct = build_command("env -u A", &spec(&[])).unwrap();
        assert_eq!(direct.as_std().get_program(), "/usr/bin/env");
        assert_eq!(direct.as_std().get_args().collect::<Vec<_>>(), ["-u", "A"]);
        assert!(build_command("/usr/bin/env", &spec(&[])).is_some());
        for script in [
            "",
            "# x",
            "echo a",
            "'test' a",
            "A=b env",
            "time env",
            "%env",
            "no-such-program",
            "/usr",
            "usr/bin/env",
            "/etc/passwd",
        ] {
            assert!(build_command(script, &spec(&[])).is_none(), "{script}");
        }
        for path in ["bin:/usr/bin", ":/usr/bin", "/nowhere"] {
            assert!(build_command("env", &spec(&[("PATH", path)])).is_none(), "{path}");
        }
        let without_path = CommandSpec { environment: BTreeMap::new(), ..spec(&[]) };
        assert!(build_command("env", &without_path).is_none());
    }

    /// For each variable: the program sees what bash would pass on, or bash is used; the flag tells which.
    #[tokio::test]
    async fn the_environment_equals_that_of_bash() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let link = link.to_str().unwrap();
        for (name, value, is_direct) in [
            ("A", "1", true),
            ("b-c", "2", true),
            ("BASH_MAX_TIMEOUT_MS", "9", true),
            ("BASH_ENV", "/dev/null", false),
            ("BASH_FUNC_env%%", "() { :; }", false),
            ("BASH_VERSION", "1", false),
            ("EXECIGNORE", "*", false),
            ("HOME", "/nowhere", true),
            ("IFS", "x", false),
            ("LINENO", "7", false),
            ("OLDPWD", "/usr", true),
            ("OLDPWD", "/nowhere", false),
            ("OLDPWD", ".", false),
            ("OPTIND", "3", false),
            ("PPID", "3", false),
            ("PS1", "(x) ", true),
            ("PS2", "> ", true),
            ("PWD", link, true),
            ("PWD", "/usr", true),
            ("PWD", ".", true),
            ("PWD", "/proc/self/cwd", false),
            ("RANDOM", "3", false),
            ("SHELL", "/bin/sh", true),
            ("SHELLOPTS", "noexec", false),
            ("SHLVL", "0", true),
            ("SHLVL", "3", true),
            ("SHLVL", "007", false),
            ("SHLVL", "+3", false),
            ("SHLVL", "x", false),
            ("SHLVL", "-1", false),
            ("SHLVL", "1005", false),
            ("SSH_CLIENT", "1 2 3", false),
            ("TERM", "dumb", true),
            ("TMOUT", "3", true),
            ("UID", "3", true),
            ("_", "y", true),
        ] {
            let spec = CommandSpec { cwd: link.into(), ..spec(&[(name, value)]) };
            let direct = build_command("env", &spec);
            assert_eq!(direct.is_some(), is_direct, "{name}={value}");
            let Some(mut direct) = direct else { continue };
            let ours = direct.current_dir(&spec.cwd).output().await.unwrap();
            let mut bash = Program::new("/bin/bash");
            bash.args(["-c", "--", "env"]).env_clear().envs(&spec.environment).current_dir(&spec.cwd);
            assert_eq!(
                sorted_lines(&ours.stdout),
                sorted_lines(&bash.output().unwrap().stdout),
                "{name}={value}"
            );
        }
        let deep = spec(&[("SSH_CLIENT", "1 2 3"), ("SHLVL", "1")]);
        assert!(build_command("env", &deep).is_some());
    }

    fn sorted_lines(bytes: &[u8]) -> Vec<String> {
        let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Building blocks of commands, mostly such that are accepted.
    const PIECES: [&str; 32] = [
        "a", "b/c", "--d=e", "f.g", "%h", "i:j@k", " ", " ", " ", "\t", "\n", "'l m'", "'$n'", "\"o  p\"",
        "\"*'q\"", "''", "#", " # r's", "é", "'é\n'", "s,+t", "=", "-", "'", "\"", "$u", "~", "\\", "*",
        "{v,w}", "!", ";",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn bash_splits_the_same_words(
            before in prop::sample::select(vec!["", " \n\t", "# first 'so\n"]),
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..8),
        ) {
            let command = format!("{before}/usr/bin/printf '%s\\0' {}", pieces.concat());
            if let Some(read) = split_words(&command) {
                let output = Program::new("/bin/bash").args(["-c", "--", &command]).output().unwrap();
                let expected: String = read[2..].iter().map(|word| format!("{word}\0")).collect();
                let expected = if read.len() == 2 { "\0".into() } else { expected };
                prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", command);
            }
        }
    }
}
