//! Parser for the arguments of any command, for the deny analysis: operands, and the values of options.
//!
//! Bundled letters are split, an abbreviated long option counts as every option it may stand for, and the value of an
//! unknown option may be a file.

use crate::shell::{Word, WordValue};

/// Letters of a bundle that are examined; longer words are not bundles.
const MAX_BUNDLE_LENGTH: usize = 64;

/// Longer words must contain a path, because no file name is longer.
const MAX_NAME_LENGTH: usize = 255;

/// Letters examined in front of a long path.
const MAX_LETTERS_BEFORE_PATH: usize = 4;

/// Longer values cannot be paths.
const MAX_PATH_LENGTH: usize = 4_096;

/// Options of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionSpec {
    /// Letters without value. If empty, every letter not listed elsewhere is one.
    pub(crate) flags: &'static str,
    /// Letters with a value that is not a file.
    pub(crate) values: &'static str,
    /// Long options without a value in the next word, without dashes.
    pub(crate) long: &'static [&'static str],
    /// Long options with a value that is not a file, without dashes.
    pub(crate) long_values: &'static [&'static str],
    /// Options whose value is a file to read.
    pub(crate) reads: &'static [&'static str],
    /// Options whose value is a file to write.
    pub(crate) writes: &'static [&'static str],
}

/// Empty specification, as a base for table rows.
pub(crate) const NO_OPTIONS: OptionSpec =
    OptionSpec { flags: "", values: "", long: &[], long_values: &[], reads: &[], writes: &[] };

/// Role of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionRole {
    Flag,
    WordValue,
    Read,
    Written,
    Unknown,
}

impl OptionSpec {
    fn letter_role(&self, letter: char, option: &str) -> OptionRole {
        match () {
            () if self.reads.contains(&option) => OptionRole::Read,
            () if self.writes.contains(&option) => OptionRole::Written,
            () if self.values.contains(letter) => OptionRole::WordValue,
            () if self.flags.contains(letter) || letter.is_ascii_digit() => OptionRole::Flag,
            () => OptionRole::Unknown,
        }
    }

    fn long_role(&self, option: &str) -> OptionRole {
        let name = option.trim_start_matches('-');
        match () {
            () if self.reads.contains(&option) => OptionRole::Read,
            () if self.writes.contains(&option) => OptionRole::Written,
            () if self.long_values.contains(&name) => OptionRole::WordValue,
            () if self.long.contains(&name) => OptionRole::Flag,
            () => OptionRole::Unknown,
        }
    }
}

/// Parsed arguments of a command.
#[derive(Debug, Default)]
pub(crate) struct ParsedArgs<'a> {
    pub(crate) operands: Vec<&'a WordValue>,
    /// Files to read, from options.
    pub(crate) reads: Vec<WordValue>,
    /// Files to write, from options.
    pub(crate) writes: Vec<WordValue>,
    /// Values of unknown options, which may be files.
    pub(crate) possible_files: Vec<WordValue>,
    /// Options found: letters as `-x`, long ones as `--name`.
    pub(crate) options: Vec<String>,
    /// True if there was an unknown option, so that operands may be its value.
    pub(crate) has_unknown_option: bool,
}

impl ParsedArgs<'_> {
    /// Returns true if one of the options was given.
    pub(crate) fn has_option(&self, options: &[&str]) -> bool {
        self.options.iter().any(|seen| options.contains(&seen.as_str()))
    }

    /// Returns true if one of the options was given, possibly as an abbreviation.
    pub(crate) fn may_have_option(&self, options: &[&str]) -> bool {
        let is_abbreviated =
            |seen: &str| seen.len() > 2 && options.iter().any(|option| option.starts_with(seen));
        self.has_option(options)
            || self.options.iter().any(|seen| seen.starts_with("--") && is_abbreviated(seen))
    }

    /// Files to read: those of options, possible ones included, then the operands after the first `skip`.
    pub(crate) fn all_reads(&self, skip: usize) -> Vec<WordValue> {
        let named = self.reads.iter().chain(&self.possible_files);
        named.chain(self.operands.iter().skip(skip).copied()).cloned().collect()
    }
}

/// Parses the arguments of a command.
pub(crate) fn parse_args<'a>(words: &'a [Word], spec: &OptionSpec) -> ParsedArgs<'a> {
    let mut args = ParsedArgs::default();
    let mut rest = words.iter();
    let mut only_operands = false;
    while let Some(word) = rest.next() {
        let text = word.value.known_start();
        if only_operands || text == "-" || !text.starts_with('-') {
            args.has_unknown_option |= text == "-" && word.value.is_unknown() && !only_operands;
            args.operands.push(&word.value);
        } else if text == "--" {
            only_operands = true;
        } else if text.starts_with("--") {
            args.parse_long(word, text, spec, &mut rest);
        } else if text.len() > 2 && (spec.reads.contains(&text) || spec.writes.contains(&text)) {
            // `-in FILE`: one dash and a whole word.
            let list = if spec.reads.contains(&text) { &mut args.reads } else { &mut args.writes };
            list.extend(rest.next().map(|word| word.value.clone()));
        } else {
            args.parse_bundle(word, text, spec, &mut rest);
        }
    }
    args
}

impl<'a> ParsedArgs<'a> {
    fn parse_long(
        &mut self,
        word: &'a Word,
        text: &str,
        spec: &OptionSpec,
        rest: &mut impl Iterator<Item = &'a Word>,
    ) {
        let at = text.find('=');
        let name = text.get(..at.unwrap_or(text.len())).unwrap_or(text);
        let joined = at.map(|at| strip_value_start(&word.value, at + 1));
        self.options.push(name.to_owned());
        let role = spec.long_role(name);
        let is_abbreviation = |list: &[&str]| {
            role == OptionRole::Unknown
                && name.len() > 2
                && list.iter().any(|option| option.starts_with(name))
        };
        let (read, written) = (is_abbreviation(spec.reads), is_abbreviation(spec.writes));
        self.has_unknown_option |= role == OptionRole::Unknown;
        match role {
            OptionRole::Flag => {}
            OptionRole::WordValue => {
                if joined.is_none() {
                    rest.next();
                }
            }
            OptionRole::Unknown if !read && !written => self.possible_files.extend(joined),
            OptionRole::Read | OptionRole::Written | OptionRole::Unknown => {
                let value = joined.or_else(|| rest.next().map(|word| word.value.clone()));
                if read || role == OptionRole::Read {
                    self.reads.extend(value.clone());
                }
                if written || role == OptionRole::Written {
                    self.writes.extend(value);
                }
            }
        }
    }

    fn parse_bundle(
        &mut self,
        word: &'a Word,
        text: &str,
        spec: &OptionSpec,
        rest: &mut impl Iterator<Item = &'a Word>,
    ) {
        let mut guessed = false;
        let letters = if text.len() > MAX_NAME_LENGTH { MAX_LETTERS_BEFORE_PATH } else { MAX_BUNDLE_LENGTH };
        for (at, letter) in text.char_indices().skip(1).take(letters) {
            let option = format!("-{letter}");
            let role = spec.letter_role(letter, &option);
            self.options.push(option);
            let end = at + letter.len_utf8();
            let joined = (end < text.len() || word.value.as_literal().is_none())
                .then(|| strip_value_start(&word.value, end));
            match role {
                OptionRole::Flag => {}
                OptionRole::Unknown => {
                    if !guessed || !spec.flags.is_empty() {
                        self.add_possible_value(joined, spec);
                    }
                    guessed = true;
                }
                OptionRole::WordValue => {
                    if joined.is_none() {
                        rest.next();
                    }
                    return;
                }
                OptionRole::Read | OptionRole::Written => {
                    let value = joined.or_else(|| rest.next().map(|word| word.value.clone()));
                    let list = if role == OptionRole::Read { &mut self.reads } else { &mut self.writes };
                    list.extend(value);
                    return;
                }
            }
        }
    }

    /// Records the text after an unknown letter as its possible value.
    fn add_possible_value(&mut self, joined: Option<WordValue>, spec: &OptionSpec) {
        let all_listed = !spec.flags.is_empty();
        self.has_unknown_option |= all_listed;
        let Some(joined) = joined.filter(|value| value.known_start().len() <= MAX_PATH_LENGTH) else {
            return;
        };
        if all_listed {
            self.possible_files.push(joined);
        } else if let Some(at) = joined.known_start().find('/') {
            // Unlisted letters are flags, unless a path follows them.
            self.possible_files.push(strip_value_start(&joined, at));
        }
    }
}

/// Strips the first bytes of a value.
fn strip_value_start(value: &WordValue, at: usize) -> WordValue {
    let suffix = |text: &str| text.get(at..).unwrap_or_default().to_owned();
    match value {
        WordValue::Literal(text) => WordValue::Literal(suffix(text)),
        WordValue::Glob(text) => WordValue::Glob(suffix(text)),
        WordValue::Unknown { before, after, nonempty } => {
            WordValue::Unknown { before: suffix(before), after: after.clone(), nonempty: *nonempty }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: OptionSpec = OptionSpec {
        flags: "qs",
        values: "n",
        long: &["quiet"],
        long_values: &["count"],
        reads: &["-f", "--file"],
        writes: &["-o", "--output"],
    };

    fn words(text: &str) -> Vec<Word> {
        let word = |raw: &str| Word { raw: raw.to_owned(), value: WordValue::Literal(raw.to_owned()) };
        text.split(' ').map(word).collect()
    }

    fn texts<'a>(values: impl IntoIterator<Item = &'a WordValue>) -> String {
        values.into_iter().map(|value| value.known_start().to_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn option_value_is_found_in_every_form() {
        for (writes, operands) in [
            ("-o V", ""),
            ("-oV", ""),
            ("-qo V", ""),
            ("-qsoV", ""),
            ("--output V", ""),
            ("--output=V", ""),
            ("--out=V", ""),
            ("--outp V", ""),
            ("-n 3 -o V a", "a"),
            ("-qn 3 -o V a", "a"),
            ("-n3 a --count 7 b -o V", "a b"),
            ("-o V -- -o W", "-o W"),
        ] {
            let words = words(writes);
            let args = parse_args(&words, &KNOWN);
            assert_eq!((texts(&args.writes).as_str(), texts(&args.reads).as_str()), ("V", ""), "{writes}");
            assert_eq!(texts(args.operands.iter().copied()), operands, "{writes}");
        }
    }

    #[test]
    fn unknown_options_may_name_files() {
        for (text, guesses) in
            [("--strange=V", "V"), ("-xV", "V"), ("-qxV", "V"), ("-x", ""), ("--strange", "")]
        {
            let words = words(text);
            let args = parse_args(&words, &KNOWN);
            assert!(args.has_unknown_option, "{text}");
            assert!(texts(&args.possible_files).starts_with(guesses), "{text}");
        }
        let known_only = words("-q -s --quiet --quiet=x -5 a");
        assert!(!parse_args(&known_only, &KNOWN).has_unknown_option);
        let bundle = words("-xy/etc/passwd");
        assert_eq!(texts(&parse_args(&bundle, &NO_OPTIONS).possible_files), "/etc/passwd");
    }

    #[test]
    fn unknown_value_keeps_its_option() {
        let unknown = |before: &str| WordValue::Unknown {
            before: before.to_owned(),
            after: String::new(),
            nonempty: false,
        };
        let words = [Word { raw: "--output=$X".to_owned(), value: unknown("--output=") }];
        assert_eq!(parse_args(&words, &KNOWN).writes, [unknown("")]);
        let words = [Word { raw: "-qod$X".to_owned(), value: unknown("-qod") }];
        assert_eq!(parse_args(&words, &KNOWN).writes, [unknown("d")]);
    }
}
