//! Checks arguments against a list of allowed options, for the allow analysis. `argv` serves the deny analysis.

use crate::shell::{Word, WordValue};

/// Options allowed for a command with checked flags.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedOptions {
    /// Letters without value, which may be bundled.
    pub(crate) flags: &'static str,
    /// Letters with a value, joined or in the next word.
    pub(crate) values: &'static str,
    /// Letters whose value is a file to read.
    pub(crate) paths: &'static str,
    /// Long options without a value.
    pub(crate) long: &'static [&'static str],
    /// Long options with a value, after `=` or in the next word.
    pub(crate) long_values: &'static [&'static str],
    /// Long options with an optional value after `=`.
    pub(crate) long_optional: &'static [&'static str],
    /// Long options whose value is a file to read.
    pub(crate) long_paths: &'static [&'static str],
    /// True if `-5` is an option.
    pub(crate) digits: bool,
}

/// No options, as a base for table rows.
pub(crate) const NONE_ALLOWED: AllowedOptions = AllowedOptions {
    flags: "",
    values: "",
    paths: "",
    long: &[],
    long_values: &[],
    long_optional: &[],
    long_paths: &[],
    digits: false,
};

/// Arguments of a command that passed the check.
#[derive(Debug, Default)]
pub(crate) struct CheckedArgs<'a> {
    pub(crate) operands: Vec<&'a WordValue>,
    /// Files to read, from options.
    pub(crate) paths: Vec<WordValue>,
    /// Options found: letters as `-x`, long ones as `--name`.
    pub(crate) options: Vec<String>,
}

impl CheckedArgs<'_> {
    /// Returns true if one of the options was given.
    pub(crate) fn has_option(&self, options: &[&str]) -> bool {
        self.options.iter().any(|seen| options.contains(&seen.as_str()))
    }

    /// Files to read: those of options, then the operands after the first `skip`.
    pub(crate) fn read_values(&self, skip: usize) -> Vec<WordValue> {
        self.paths
            .iter()
            .cloned()
            .chain(self.operands.iter().skip(skip).map(|value| (*value).clone()))
            .collect()
    }
}

/// Checks the arguments. `None` if there is an option that is not listed, an abbreviated one, or an unknown word.
pub(crate) fn check_args<'a>(words: &'a [Word], options: &AllowedOptions) -> Option<CheckedArgs<'a>> {
    let mut arguments = CheckedArgs::default();
    let mut rest = words.iter();
    let mut only_operands = false;
    while let Some(word) = rest.next() {
        let text = match &word.value {
            WordValue::Literal(text) => text.as_str(),
            WordValue::Glob(pattern) if pattern.starts_with('-') => return None,
            WordValue::Glob(_) => {
                arguments.operands.push(&word.value);
                continue;
            }
            WordValue::Unknown { .. } => return None,
        };
        if only_operands || text == "-" || !text.starts_with('-') {
            arguments.operands.push(&word.value);
        } else if text == "--" {
            only_operands = true;
        } else if let Some(long) = text.strip_prefix("--") {
            check_long(long, options, &mut rest, &mut arguments)?;
        } else {
            check_short(text.get(1..)?, options, &mut rest, &mut arguments)?;
        }
    }
    Some(arguments)
}

fn check_long<'a>(
    text: &str,
    options: &AllowedOptions,
    rest: &mut impl Iterator<Item = &'a Word>,
    arguments: &mut CheckedArgs<'a>,
) -> Option<()> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    arguments.options.push(format!("--{name}"));
    if options.long_paths.contains(&name) || options.long_values.contains(&name) {
        let value = match value {
            Some(value) => WordValue::Literal(value.to_owned()),
            None => WordValue::Literal(rest.next()?.value.as_literal()?.to_owned()),
        };
        if options.long_paths.contains(&name) {
            arguments.paths.push(value);
        }
        return Some(());
    }
    let known = options.long_optional.contains(&name) || (value.is_none() && options.long.contains(&name));
    known.then_some(())
}

fn check_short<'a>(
    text: &str,
    options: &AllowedOptions,
    rest: &mut impl Iterator<Item = &'a Word>,
    arguments: &mut CheckedArgs<'a>,
) -> Option<()> {
    for (at, letter) in text.char_indices() {
        arguments.options.push(format!("-{letter}"));
        if options.values.contains(letter) || options.paths.contains(letter) {
            let joined = text.get(at + letter.len_utf8()..)?;
            let value = if joined.is_empty() { rest.next()?.value.as_literal()? } else { joined };
            if options.paths.contains(letter) {
                arguments.paths.push(WordValue::Literal(value.to_owned()));
            }
            return Some(());
        }
        if !(options.flags.contains(letter) || (options.digits && letter.is_ascii_digit())) {
            return None;
        }
    }
    Some(())
}
