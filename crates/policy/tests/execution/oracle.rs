//! Oracle: what may happen under a rule setup. Written independently of the tested code.

use std::path::Path;

use whimbrel_wire::permission::PermissionMode;

use crate::harness::{BashHarness, Observed, ProgramRun};
use crate::rule_setup::RuleSetup;

/// Programs that are read-only with harmless arguments.
const READERS: &[&str] = &["ls", "cat", "head", "wc", "grep", "sort", "find", "sed", "uniq", "date", "git"];

/// Programs that change files where edits are accepted.
const EDITORS: &[&str] = &["rm", "touch", "mkdir", "cp", "mv", "sed"];

/// Programs that run another one, which is recorded separately.
const WRAPPERS: &[&str] = &["timeout", "nice", "nohup", "stdbuf", "time", "xargs"];

/// Programs that run command texts.
const SHELLS: &[&str] = &["bash", "sh", "watch"];

/// Arguments that make a reader run or change something; a trailing `*` matches any rest.
const HARMFUL_ARGUMENTS: &[(&str, &[&str])] = &[
    ("find", &["-exec*", "-ok*", "-delete", "-fprint*", "-fls"]),
    ("sort", &["-o*", "--output*", "--compress-program*"]),
    ("git", &["--output*", "-c", "--exec*", "--ext-diff"]),
    ("sed", &["-i*", "--in-place*", "-f*"]),
    ("date", &["-s*", "--set*"]),
];

/// Builtins that can change the meaning of later commands.
const CHANGING: &[&str] = &[
    "eval",
    "exec",
    "source",
    ".",
    "trap",
    "alias",
    "let",
    "hash",
    "enable",
    "bind",
    "complete",
    "compgen",
    "fc",
    "unalias",
    "mapfile",
    "readarray",
    "read",
    "set",
    "shopt",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "pushd",
    "popd",
    "umask",
    "ulimit",
    "getopts",
    "exit",
    "return",
    "shift",
];

/// Names that no project rule lets a command write.
const PROTECTED: &[&str] = &[".git", ".bashrc", ".profile", ".claude"];

/// Describes a violation, if there was one.
pub(crate) fn find_violation(setup: &RuleSetup, seen: &Observed, harness: &BashHarness) -> Option<String> {
    let run_violation = seen.runs.iter().find_map(|run| find_run_violation(setup, run, harness));
    // A rule for a shell covers what the shell writes.
    let unchecked = seen
        .runs
        .iter()
        .any(|run| SHELLS.contains(&run.program.as_str()) && is_allowed_by_rule(setup, &rule_text(run)));
    let written = seen.written.iter().filter(|_| !unchecked);
    let write_violation = written.into_iter().find_map(|path| find_write_violation(setup, path, harness));
    let builtin_violation = seen.builtins.iter().find(|name| {
        let named = |rule: &&&str| {
            rule.strip_prefix("Bash(").is_some_and(|rule| rule.split(' ').next() == Some(name))
        };
        !setup.is_open() && CHANGING.contains(&name.as_str()) && !setup.allow.iter().any(|rule| named(&rule))
    });
    let builtin_violation =
        builtin_violation.map(|name| format!("the builtin {name} ran, but no rule names it"));
    run_violation.or(write_violation).or(builtin_violation)
}

fn find_run_violation(setup: &RuleSetup, run: &ProgramRun, harness: &BashHarness) -> Option<String> {
    let text = rule_text(run);
    if let Some(rule) = setup.deny.iter().find(|rule| rule_covers(rule, &text)) {
        return Some(format!("{run:?} ran although {rule} denies it"));
    }
    let secrets = std::iter::once(&run.input).chain(&run.arguments);
    for secret in secrets.filter(|text| text.contains("MARK-")) {
        let outside = !setup.is_open() && !setup.allow.iter().any(|rule| rule.starts_with("Read("));
        if secret.contains("MARK-outside") && outside {
            return Some(format!("{run:?} read a file outside the working directory"));
        }
        if secret.contains("MARK-secret")
            && setup.deny.contains(&"Read(secret.txt)")
            && setup.deny.contains(&"Read(.env)")
        {
            return Some(format!("{run:?} read a file that a rule denies"));
        }
    }
    // A rule for a program covers whatever that program runs.
    if setup.is_open() || run.ancestors.iter().any(|text| is_allowed_by_rule(setup, text)) {
        return None;
    }
    if !run.directory.starts_with(harness.work_dir()) {
        return Some(format!("{run:?} ran outside the working directory"));
    }
    let program = run.program.as_str();
    let known = is_harmless_reader(run)
        || WRAPPERS.contains(&program)
        || setup.mode == PermissionMode::AcceptEdits && EDITORS.contains(&program);
    let allowed = setup.mode != PermissionMode::Plan && is_allowed_by_rule(setup, &text);
    if !known && !allowed {
        return Some(format!("{run:?} ran, but no rule or mode covers it"));
    }
    // The recorded call, quoted word by word, must be allowed as well.
    let plain = quote_run(run);
    let command = if program == "xargs" { format!("true | {plain}") } else { plain };
    (!setup.allows(&command, &run.directory, harness))
        .then(|| format!("{run:?} ran, but {command} is not allowed"))
}

fn find_write_violation(setup: &RuleSetup, path: &Path, harness: &BashHarness) -> Option<String> {
    let Ok(inside) = path.strip_prefix(harness.work_dir()) else {
        return (!setup.is_open()).then(|| format!("{path:?} was written, outside the working directory"));
    };
    let name = path.file_name().unwrap().to_string_lossy();
    let covers = |rule: &&str| match *rule {
        "Edit(out/**)" => inside.starts_with("out"),
        "Edit(out/keep.txt)" => inside == Path::new("out/keep.txt"),
        "Edit(x.txt)" => name == "x.txt",
        "Edit(*.log)" => name.ends_with(".log"),
        "Read(secret.txt)" => name == "secret.txt",
        "Read(.env)" => name == ".env",
        _ => false,
    };
    if setup.deny.iter().any(&covers) {
        return Some(format!("{path:?} was written although a rule denies it"));
    }
    if inside.components().any(|part| PROTECTED.iter().any(|name| part.as_os_str() == *name)) {
        return Some(format!("{path:?} was written although it is protected"));
    }
    let allowed = setup.is_open()
        || setup.mode == PermissionMode::AcceptEdits
        || setup.mode != PermissionMode::Plan && setup.allow.iter().any(covers);
    (!allowed).then(|| format!("{path:?} was written, but no rule or mode covers it"))
}

/// Returns true for a reader without harmful arguments.
fn is_harmless_reader(run: &ProgramRun) -> bool {
    let harmful =
        HARMFUL_ARGUMENTS.iter().filter(|(program, _)| *program == run.program).flat_map(|(_, words)| *words);
    let mut harmful = harmful.flat_map(|word| run.arguments.iter().map(move |argument| (*word, argument)));
    let asks_version = run.program == "python3" && run.arguments == ["--version"];
    asks_version
        || READERS.contains(&run.program.as_str())
            && !harmful.any(|(word, argument)| match word.strip_suffix('*') {
                Some(prefix) => argument.starts_with(prefix),
                None => argument == word,
            })
}

/// The words joined by blanks. A blank inside a word is replaced, because rules do not match it.
fn rule_text(run: &ProgramRun) -> String {
    let words = std::iter::once(&run.program).chain(&run.arguments);
    words.map(|word| word.replace([' ', '\t', '\n'], "\u{1f}")).collect::<Vec<_>>().join(" ")
}

/// Returns true if a rule allows a call.
fn is_allowed_by_rule(setup: &RuleSetup, text: &str) -> bool {
    setup.allow.iter().any(|rule| rule_covers(rule, text))
}

/// Returns true if a command rule covers a text.
fn rule_covers(rule: &str, text: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rule| rule.strip_suffix(')')) else {
        return false;
    };
    let pattern =
        pattern.strip_suffix(":*").map_or_else(|| pattern.to_owned(), |prefix| format!("{prefix} *"));
    pattern_matches(&pattern, text)
        || pattern.strip_suffix(" *").is_some_and(|prefix| pattern_matches(prefix, text))
}

/// Returns true if a pattern with stars matches a text.
fn pattern_matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The call with every word quoted.
fn quote_run(run: &ProgramRun) -> String {
    let words = std::iter::once(&run.program).chain(&run.arguments);
    words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ")
}

#[test]
fn rules_cover_commands() {
    let rows = [
        ("Bash(tool *)", "tool", true),
        ("Bash(tool *)", "tool a b", true),
        ("Bash(tool *)", "toolbox", false),
        ("Bash(too*)", "toolbox", true),
        ("Bash(make * all)", "make a all", true),
        ("Bash(make * all)", "make all", false),
        ("Bash(npm run test:*)", "npm run test x", true),
        ("Bash(* --version)", "evil --version", true),
        ("Bash(make all)", "make all x", false),
        ("Edit(out/**)", "out/x", false),
    ];
    for (rule, text, expected) in rows {
        assert_eq!(rule_covers(rule, text), expected, "{rule} {text}");
    }
}
