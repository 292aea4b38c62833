//! `jq`: a program, then files.

use super::facts::Facts;
use super::options::{NONE, Options, check};
use super::{Class, Value, Word};

const OPTIONS: Options = Options {
    flags: "rjacsneSMCR",
    long: &[
        "tab",
        "seq",
        "stream",
        "raw-output",
        "join-output",
        "ascii-output",
        "compact-output",
        "slurp",
        "null-input",
        "exit-status",
        "sort-keys",
        "monochrome-output",
        "color-output",
        "raw-input",
    ],
    long_values: &["indent"],
    ..NONE
};

/// Options that load files or modules.
const LOADING: &[&str] =
    &["-f", "--from-file", "-L", "--rawfile", "--slurpfile", "--args", "--jsonargs", "--run-tests"];

/// What a `jq` command does.
pub(super) fn facts(arguments: &[Word]) -> Facts {
    let wide = Facts { scoped: true, minds_globs: true, ..super::operands::loose("jq", arguments) };
    let loads = arguments.iter().any(|word| {
        word.value.literal().is_none_or(|text| {
            LOADING.iter().any(|option| text == *option || text.starts_with(&format!("{option}=")))
                || (text.starts_with("-L")
                    || (text.starts_with('-') && !text.starts_with("--") && text.contains('f')))
        })
    });
    if loads {
        return wide.exact_only();
    }
    read_only(arguments).unwrap_or(wide)
}

fn read_only(arguments: &[Word]) -> Option<Facts> {
    // `--arg NAME VALUE` has two values.
    let mut plain = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if matches!(word.value.literal(), Some("--arg" | "--argjson")) {
            rest.next()?.value.literal()?;
            rest.next()?.value.literal()?;
        } else {
            plain.push(word.clone());
        }
    }
    let sorted = check(&plain, &OPTIONS)?;
    let certain = arguments.iter().all(|word| word.value.literal().is_some());
    let (program, files) = sorted.operands.split_first()?;
    let program = program.literal()?;
    if !certain || ["env", "$ENV", "import", "include"].iter().any(|word| program.contains(word)) {
        return None;
    }
    let reads: Vec<Value> = files.iter().map(|file| (*file).clone()).collect();
    Some(Facts { class: Class::ReadOnly, reads, scoped: true, minds_globs: true, ..Facts::default() })
}
