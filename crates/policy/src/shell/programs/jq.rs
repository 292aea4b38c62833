//! `jq`: a filter, then files.

use super::allowed_options::{AllowedOptions, NONE_ALLOWED, check_args};
use super::effects::CommandEffects;
use crate::shell::{CommandClass, Word, WordValue};

const ALLOWED_OPTIONS: AllowedOptions = AllowedOptions {
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
    ..NONE_ALLOWED
};

/// Options that load files or modules.
const LOADING_OPTIONS: &[&str] =
    &["-f", "--from-file", "-L", "--rawfile", "--slurpfile", "--args", "--jsonargs", "--run-tests"];

/// Determines the effects of a `jq` command.
pub(crate) fn determine_effects(arguments: &[Word]) -> CommandEffects {
    let effects = CommandEffects {
        restricts_paths: true,
        globs_require_permission: true,
        ..super::operands::determine_effects_or_reads("jq", arguments)
    };
    let loads = arguments.iter().any(|word| {
        word.value.as_literal().is_none_or(|text| {
            LOADING_OPTIONS.iter().any(|option| text == *option || text.starts_with(&format!("{option}=")))
                || (text.starts_with("-L")
                    || (text.starts_with('-') && !text.starts_with("--") && text.contains('f')))
        })
    });
    if loads {
        return effects.requiring_exact_rule();
    }
    read_only_effects(arguments).unwrap_or(effects)
}

fn read_only_effects(arguments: &[Word]) -> Option<CommandEffects> {
    // `--arg NAME VALUE` has two values.
    let mut plain = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if matches!(word.value.as_literal(), Some("--arg" | "--argjson")) {
            rest.next()?.value.as_literal()?;
            rest.next()?.value.as_literal()?;
        } else {
            plain.push(word.clone());
        }
    }
    let checked = check_args(&plain, &ALLOWED_OPTIONS)?;
    let certain = arguments.iter().all(|word| word.value.as_literal().is_some());
    let (program, files) = checked.operands.split_first()?;
    let program = program.as_literal()?;
    if !certain || ["env", "$ENV", "import", "include"].iter().any(|word| program.contains(word)) {
        return None;
    }
    let reads: Vec<WordValue> = files.iter().map(|file| (*file).clone()).collect();
    Some(CommandEffects {
        class: CommandClass::ReadOnly,
        reads,
        restricts_paths: true,
        globs_require_permission: true,
        ..CommandEffects::default()
    })
}
