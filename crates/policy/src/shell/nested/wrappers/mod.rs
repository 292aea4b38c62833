//! Wrappers: commands that run another command, such as `timeout` or `sudo`. Finds the command behind a wrapper,
//! whatever its options, for the deny analysis.
//!
//! Only options in the table are skipped. Any other option may or may not take a value, so every later word may be
//! the command. `table` lists the wrappers, `allowed_forms` has the forms that an allow rule looks through,
//! `env_split` splits the text of `env -S`.

mod allowed_forms;
mod env_split;
mod table;

pub(crate) use allowed_forms::strip_length;
use table::{WRAPPERS, Wrapper};

use crate::shell::parser::words::extract_leading_name;
use crate::shell::{Word, WordValue};

/// Returns true if only an exact rule may allow the wrapper.
pub(crate) fn is_exact_rule_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name && wrapper.requires_exact_rule)
}

/// Returns true if the command runs another one.
pub(crate) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// The command behind a wrapper, for the deny analysis.
#[derive(Debug, Default)]
pub(crate) struct WrappedCommand {
    /// Index of its first word, if that is certain.
    pub(crate) start: Option<usize>,
    /// Texts of commands in option values.
    pub(crate) command_texts: Vec<WordValue>,
    /// True if every later word may be the command.
    pub(crate) may_start_anywhere: bool,
    /// Assignments that set variables for the command.
    pub(crate) variables: Vec<Word>,
    /// The command with the text of `env -S` split into words.
    pub(crate) resplit_words: Option<Vec<Word>>,
}

/// Position of a command text in an option.
enum CommandText {
    /// In the same word.
    Joined(String),
    /// In the next word.
    Next,
}

/// Finds the command behind a wrapper.
pub(crate) fn find_wrapped(name: &str, words: &[Word]) -> Option<WrappedCommand> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut wrapped =
        WrappedCommand { may_start_anywhere: wrapper.may_start_anywhere, ..WrappedCommand::default() };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.value.as_literal() else { break };
        if text == "--" {
            at += 1;
            break;
        }
        let assigns = wrapper.takes_assignments
            && text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
        if !(text.starts_with('-') || assigns) {
            break;
        }
        if assigns && !text.starts_with('-') {
            wrapped.variables.push(word.clone());
            at += 1;
            continue;
        }
        at += match find_command_text(wrapper, text) {
            Some(position) => wrapped.add_command_text(wrapper, position, words, at),
            None => skip_option(wrapper, text, &mut wrapped),
        };
        if wrapped.resplit_words.is_some() {
            // The resplit words contain everything that follows.
            return Some(wrapped);
        }
    }
    if wrapper.takes_assignments {
        while let Some(word) = words.get(at).filter(|word| is_assignment(&word.value)) {
            wrapped.variables.push(word.clone());
            at += 1;
        }
    }
    let mut start = at + wrapper.operands;
    if wrapper.permutes_options {
        // `flock FILE -c TEXT`, `script FILE -qc TEXT`: options may follow the operands.
        for (later, word) in words.iter().enumerate().skip(at) {
            if let Some(position) = word.value.as_literal().and_then(|text| find_command_text(wrapper, text))
            {
                wrapped.add_command_text(wrapper, position, words, later);
            }
        }
        start += usize::from(words.get(start).is_some_and(|word| word.value.as_literal() == Some("--")));
    }
    wrapped.start = (start < words.len()).then_some(start);
    Some(wrapped)
}

impl WrappedCommand {
    /// Adds the command text of an option. Returns the number of words of the option.
    fn add_command_text(
        &mut self,
        wrapper: &Wrapper,
        command_text: CommandText,
        words: &[Word],
        at: usize,
    ) -> usize {
        let (value, length) = match command_text {
            CommandText::Joined(text) => (Some(WordValue::Literal(text)), 1),
            CommandText::Next => (words.get(at + 1).map(|word| word.value.clone()), 2),
        };
        match value {
            Some(WordValue::Literal(text)) if wrapper.splits_text => {
                let first = words.first().cloned();
                let rest = words.get(at + length..).unwrap_or_default().iter().cloned();
                self.resplit_words =
                    Some(first.into_iter().chain(env_split::split_env_text(&text)).chain(rest).collect());
            }
            other => self.command_texts.extend(other),
        }
        length
    }
}

fn is_assignment(value: &WordValue) -> bool {
    let text = value.known_start();
    let name = extract_leading_name(text);
    !name.is_empty() && text.get(name.len()..).is_some_and(|rest| rest.starts_with('='))
}

/// Finds the command text of an option: a letter, also in a bundle, or a long name, also abbreviated.
fn find_command_text(wrapper: &Wrapper, text: &str) -> Option<CommandText> {
    let text_position = |value: &str| match value {
        "" => CommandText::Next,
        value => CommandText::Joined(value.to_owned()),
    };
    if text.starts_with("--") {
        let (name, joined) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let named = name.len() > 2 && wrapper.command_options.iter().any(|option| option.starts_with(name));
        let known = name.strip_prefix("--").is_some_and(|long| wrapper.knows_long_option(long));
        return (named && !known)
            .then(|| joined.map_or(CommandText::Next, |value| CommandText::Joined(value.to_owned())));
    }
    for (at, letter) in text.strip_prefix('-')?.char_indices() {
        if wrapper.command_options.iter().any(|option| option.len() == 2 && option.ends_with(letter)) {
            return Some(text_position(text.get(1 + at + letter.len_utf8()..).unwrap_or_default()));
        }
        if wrapper.values.contains(letter) {
            return None;
        }
    }
    None
}

/// Returns the number of words of an option. After an unknown one, every word may be the command.
fn skip_option(wrapper: &Wrapper, text: &str, wrapped: &mut WrappedCommand) -> usize {
    if let Some(long) = text.strip_prefix("--") {
        let (name, joined) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        wrapped.may_start_anywhere |= !wrapper.knows_long_option(name);
        return if joined.is_none() && wrapper.long_values.contains(&name) { 2 } else { 1 };
    }
    for (at, letter) in text.char_indices().skip(1) {
        if wrapper.values.contains(letter) {
            let last = at + letter.len_utf8() == text.len();
            return if last { 2 } else { 1 };
        }
        wrapped.may_start_anywhere |= !wrapper.flags.contains(letter);
    }
    1
}
