//! The arguments of a command that may have any option, read once: the operands, and what each option was given.
//!
//! This is the wide reading, for refusing. Bundles of letters are taken apart letter by letter, shortened long options
//! count for every option that they may stand for, and the value of an option that is not known may be a file.

use super::{Value, Word};

/// How many letters of a bundle are told apart. Longer ones are no bundles.
const LONGEST_BUNDLE: usize = 64;

/// No name is longer: what is, has a path in it.
const LONGEST_NAME: usize = 255;

/// How many letters are told apart before a long path.
const FEW: usize = 4;

/// No path is longer.
const LONGEST_PATH: usize = 4_096;

/// What is known of a command's options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Letters without a value. If none are listed, every letter that is not listed elsewhere is one.
    pub(super) flags: &'static str,
    /// Letters with a value that is no file.
    pub(super) values: &'static str,
    /// Long options without a value in the next word, dashes left out.
    pub(super) long: &'static [&'static str],
    /// Long options with a value that is no file, dashes left out.
    pub(super) long_values: &'static [&'static str],
    /// Options whose value is a file that is read.
    pub(super) reads: &'static [&'static str],
    /// Options whose value is a file that is written.
    pub(super) writes: &'static [&'static str],
}

/// Nothing; rows begin from it.
pub(super) const NOTHING: Known =
    Known { flags: "", values: "", long: &[], long_values: &[], reads: &[], writes: &[] };

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Flag,
    Value,
    Read,
    Written,
    Unknown,
}

impl Known {
    fn of_letter(&self, letter: char, option: &str) -> Role {
        match () {
            () if self.reads.contains(&option) => Role::Read,
            () if self.writes.contains(&option) => Role::Written,
            () if self.values.contains(letter) => Role::Value,
            () if self.flags.contains(letter) || letter.is_ascii_digit() => Role::Flag,
            () => Role::Unknown,
        }
    }

    fn of_long(&self, option: &str) -> Role {
        let name = option.trim_start_matches('-');
        match () {
            () if self.reads.contains(&option) => Role::Read,
            () if self.writes.contains(&option) => Role::Written,
            () if self.long_values.contains(&name) => Role::Value,
            () if self.long.contains(&name) => Role::Flag,
            () => Role::Unknown,
        }
    }
}

/// The arguments of a command, sorted.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    /// What is not an option.
    pub(super) operands: Vec<&'a Value>,
    /// Files that options name for reading.
    pub(super) reads: Vec<Value>,
    /// Files that options name for writing.
    pub(super) writes: Vec<Value>,
    /// Values of options that are not known: files perhaps.
    pub(super) guesses: Vec<Value>,
    /// The options seen: letters as `-x`, long ones as `--name`.
    pub(super) seen: Vec<String>,
    /// Whether there was an option that is not known, so that operands may be its value.
    pub(super) unsure: bool,
}

impl Given<'_> {
    /// Whether one of the options was given.
    pub(super) fn has(&self, options: &[&str]) -> bool {
        self.seen.iter().any(|seen| options.contains(&seen.as_str()))
    }

    /// Whether one of the options was given, or a long one that may be short for one of them.
    pub(super) fn may_have(&self, options: &[&str]) -> bool {
        let short_for = |seen: &str| seen.len() > 2 && options.iter().any(|option| option.starts_with(seen));
        self.has(options) || self.seen.iter().any(|seen| seen.starts_with("--") && short_for(seen))
    }

    /// What is read: the files that options name or may name, then the operands from some place on.
    pub(super) fn all_reads(&self, skip: usize) -> Vec<Value> {
        let named = self.reads.iter().chain(&self.guesses);
        named.chain(self.operands.iter().skip(skip).copied()).cloned().collect()
    }
}

/// Sorts the arguments of a command.
pub(super) fn read<'a>(words: &'a [Word], known: &Known) -> Given<'a> {
    let mut given = Given::default();
    let mut rest = words.iter();
    let mut only_operands = false;
    while let Some(word) = rest.next() {
        let text = front(&word.value);
        if only_operands || text == "-" || !text.starts_with('-') {
            given.unsure |= text == "-" && word.value.is_unknown() && !only_operands;
            given.operands.push(&word.value);
        } else if text == "--" {
            only_operands = true;
        } else if text.starts_with("--") {
            given.long(word, text, known, &mut rest);
        } else if text.len() > 2 && (known.reads.contains(&text) || known.writes.contains(&text)) {
            // `-in FILE`: one dash and a whole word.
            let list = if known.reads.contains(&text) { &mut given.reads } else { &mut given.writes };
            list.extend(rest.next().map(|word| word.value.clone()));
        } else {
            given.bundle(word, text, known, &mut rest);
        }
    }
    given
}

impl<'a> Given<'a> {
    fn long(&mut self, word: &'a Word, text: &str, known: &Known, rest: &mut impl Iterator<Item = &'a Word>) {
        let at = text.find('=');
        let name = text.get(..at.unwrap_or(text.len())).unwrap_or(text);
        let joined = at.map(|at| after(&word.value, at + 1));
        self.seen.push(name.to_owned());
        let role = known.of_long(name);
        let shortened = |list: &[&str]| {
            role == Role::Unknown && name.len() > 2 && list.iter().any(|option| option.starts_with(name))
        };
        let (read, written) = (shortened(known.reads), shortened(known.writes));
        self.unsure |= role == Role::Unknown;
        match role {
            Role::Flag => {}
            Role::Value => {
                if joined.is_none() {
                    rest.next();
                }
            }
            Role::Unknown if !read && !written => self.guesses.extend(joined),
            Role::Read | Role::Written | Role::Unknown => {
                let value = joined.or_else(|| rest.next().map(|word| word.value.clone()));
                if read || role == Role::Read {
                    self.reads.extend(value.clone());
                }
                if written || role == Role::Written {
                    self.writes.extend(value);
                }
            }
        }
    }

    fn bundle(
        &mut self,
        word: &'a Word,
        text: &str,
        known: &Known,
        rest: &mut impl Iterator<Item = &'a Word>,
    ) {
        let mut guessed = false;
        let letters = if text.len() > LONGEST_NAME { FEW } else { LONGEST_BUNDLE };
        for (at, letter) in text.char_indices().skip(1).take(letters) {
            let option = format!("-{letter}");
            let role = known.of_letter(letter, &option);
            self.seen.push(option);
            let end = at + letter.len_utf8();
            let joined =
                (end < text.len() || word.value.literal().is_none()).then(|| after(&word.value, end));
            match role {
                Role::Flag => {}
                Role::Unknown => {
                    if !guessed || !known.flags.is_empty() {
                        self.guess(joined, known);
                    }
                    guessed = true;
                }
                Role::Value => {
                    if joined.is_none() {
                        rest.next();
                    }
                    return;
                }
                Role::Read | Role::Written => {
                    let value = joined.or_else(|| rest.next().map(|word| word.value.clone()));
                    let list = if role == Role::Read { &mut self.reads } else { &mut self.writes };
                    list.extend(value);
                    return;
                }
            }
        }
    }

    /// What follows a letter that is not known may be its value.
    fn guess(&mut self, joined: Option<Value>, known: &Known) {
        let all_listed = !known.flags.is_empty();
        self.unsure |= all_listed;
        let Some(joined) = joined.filter(|value| front(value).len() <= LONGEST_PATH) else { return };
        if all_listed {
            self.guesses.push(joined);
        } else if let Some(at) = front(&joined).find('/') {
            // Letters that nobody has listed are flags, unless a path follows them.
            self.guesses.push(after(&joined, at));
        }
    }
}

/// The text that a word begins with, as far as it is known.
fn front(value: &Value) -> &str {
    match value {
        Value::Literal(text) | Value::Glob(text) => text,
        Value::Unknown { before, .. } => before,
    }
}

/// The value without its first bytes.
fn after(value: &Value, at: usize) -> Value {
    let cut = |text: &str| text.get(at..).unwrap_or_default().to_owned();
    match value {
        Value::Literal(text) => Value::Literal(cut(text)),
        Value::Glob(text) => Value::Glob(cut(text)),
        Value::Unknown { before, after, guarded } => {
            Value::Unknown { before: cut(before), after: after.clone(), guarded: *guarded }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known = Known {
        flags: "qs",
        values: "n",
        long: &["quiet"],
        long_values: &["count"],
        reads: &["-f", "--file"],
        writes: &["-o", "--output"],
    };

    fn words(text: &str) -> Vec<Word> {
        let word = |raw: &str| Word { raw: raw.to_owned(), value: Value::Literal(raw.to_owned()) };
        text.split(' ').map(word).collect()
    }

    fn texts<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
        values.into_iter().map(|value| front(value).to_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn however_an_option_is_written_its_value_is_found() {
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
            let given = read(&words, &KNOWN);
            assert_eq!((texts(&given.writes).as_str(), texts(&given.reads).as_str()), ("V", ""), "{writes}");
            assert_eq!(texts(given.operands.iter().copied()), operands, "{writes}");
        }
    }

    #[test]
    fn what_is_not_known_may_name_files() {
        for (text, guesses) in
            [("--strange=V", "V"), ("-xV", "V"), ("-qxV", "V"), ("-x", ""), ("--strange", "")]
        {
            let words = words(text);
            let given = read(&words, &KNOWN);
            assert!(given.unsure, "{text}");
            assert!(texts(&given.guesses).starts_with(guesses), "{text}");
        }
        let sure = words("-q -s --quiet --quiet=x -5 a");
        assert!(!read(&sure, &KNOWN).unsure);
        let loose = words("-xy/etc/passwd");
        assert_eq!(texts(&read(&loose, &NOTHING).guesses), "/etc/passwd");
    }

    #[test]
    fn a_value_that_is_not_known_is_still_that_options_value() {
        let unknown =
            |before: &str| Value::Unknown { before: before.to_owned(), after: String::new(), guarded: false };
        let words = [Word { raw: "--output=$X".to_owned(), value: unknown("--output=") }];
        assert_eq!(read(&words, &KNOWN).writes, [unknown("")]);
        let words = [Word { raw: "-qod$X".to_owned(), value: unknown("-qod") }];
        assert_eq!(read(&words, &KNOWN).writes, [unknown("d")]);
    }
}
