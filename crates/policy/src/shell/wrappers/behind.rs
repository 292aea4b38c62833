//! What is behind a wrapper, whatever its options are.
//!
//! Only an option that the table knows is stepped over. Any other may or may not take a value, so after it every later
//! word may be the command.

use super::table::WRAPPERS;
use super::{Wrapper, split};
use crate::shell::lexer::leading_name;
use crate::shell::{Value, Word};

/// What is behind a wrapper, for the wide reading.
#[derive(Debug, Default)]
pub(in crate::shell) struct Behind {
    /// Where the command begins, if that is certain.
    pub(in crate::shell) start: Option<usize>,
    /// Texts of commands that options carry.
    pub(in crate::shell) texts: Vec<Value>,
    /// Whether every later word may be the command.
    pub(in crate::shell) anywhere: bool,
    /// Words that give the command variables.
    pub(in crate::shell) given: Vec<Word>,
    /// The same command with a text of arguments taken apart.
    pub(in crate::shell) respelled: Option<Vec<Word>>,
}

/// An option with the text of a command.
enum Carried {
    /// In the same word.
    Joined(String),
    /// In the next word.
    Next,
}

/// Looks behind a wrapper, whatever its options are.
pub(in crate::shell) fn behind(name: &str, words: &[Word]) -> Option<Behind> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut behind = Behind { anywhere: wrapper.anywhere, ..Behind::default() };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.value.literal() else { break };
        if text == "--" {
            at += 1;
            break;
        }
        let assigns = wrapper.assigns
            && text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
        if !(text.starts_with('-') || assigns) {
            break;
        }
        if assigns && !text.starts_with('-') {
            behind.given.push(word.clone());
            at += 1;
            continue;
        }
        at += match carried(wrapper, text) {
            Some(carried) => behind.carry(wrapper, carried, words, at),
            None => option(wrapper, text, &mut behind),
        };
        if behind.respelled.is_some() {
            // All that follows is in there.
            return Some(behind);
        }
    }
    if wrapper.assigns {
        while let Some(word) = words.get(at).filter(|word| is_assignment(&word.value)) {
            behind.given.push(word.clone());
            at += 1;
        }
    }
    let mut start = at + wrapper.operands;
    if wrapper.permutes {
        // `flock FILE -c TEXT`, `script FILE -qc TEXT`: options may come after the operands.
        for (later, word) in words.iter().enumerate().skip(at) {
            if let Some(carried) = word.value.literal().and_then(|text| carried(wrapper, text)) {
                behind.carry(wrapper, carried, words, later);
            }
        }
        start += usize::from(words.get(start).is_some_and(|word| word.value.literal() == Some("--")));
    }
    behind.start = (start < words.len()).then_some(start);
    Some(behind)
}

impl Behind {
    /// Takes the text that an option at a place carries; answers how many words the option has.
    fn carry(&mut self, wrapper: &Wrapper, carried: Carried, words: &[Word], at: usize) -> usize {
        let (value, length) = match carried {
            Carried::Joined(text) => (Some(Value::Literal(text)), 1),
            Carried::Next => (words.get(at + 1).map(|word| word.value.clone()), 2),
        };
        match value {
            Some(Value::Literal(text)) if wrapper.splits => {
                let first = words.first().cloned();
                let rest = words.get(at + length..).unwrap_or_default().iter().cloned();
                self.respelled = Some(first.into_iter().chain(split::words(&text)).chain(rest).collect());
            }
            other => self.texts.extend(other),
        }
        length
    }
}

fn is_assignment(value: &Value) -> bool {
    let text = match value {
        Value::Literal(text) | Value::Glob(text) => text.as_str(),
        Value::Unknown { before, .. } => before.as_str(),
    };
    let name = leading_name(text);
    !name.is_empty() && text.get(name.len()..).is_some_and(|rest| rest.starts_with('='))
}

/// Whether an option carries the text of a command: a letter, also behind others, or a long name, also a shortened one.
fn carried(wrapper: &Wrapper, text: &str) -> Option<Carried> {
    let of = |value: &str| match value {
        "" => Carried::Next,
        value => Carried::Joined(value.to_owned()),
    };
    if text.starts_with("--") {
        let (name, joined) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let named = name.len() > 2 && wrapper.texts.iter().any(|option| option.starts_with(name));
        let known = name.strip_prefix("--").is_some_and(|long| wrapper.knows(long));
        return (named && !known)
            .then(|| joined.map_or(Carried::Next, |value| Carried::Joined(value.to_owned())));
    }
    for (at, letter) in text.strip_prefix('-')?.char_indices() {
        if wrapper.texts.iter().any(|option| option.len() == 2 && option.ends_with(letter)) {
            return Some(of(text.get(1 + at + letter.len_utf8()..).unwrap_or_default()));
        }
        if wrapper.values.contains(letter) {
            return None;
        }
    }
    None
}

/// How many words an option takes; one that is not known makes everything after it possible.
fn option(wrapper: &Wrapper, text: &str, behind: &mut Behind) -> usize {
    if let Some(long) = text.strip_prefix("--") {
        let (name, joined) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        behind.anywhere |= !wrapper.knows(name);
        return if joined.is_none() && wrapper.long_values.contains(&name) { 2 } else { 1 };
    }
    for (at, letter) in text.char_indices().skip(1) {
        if wrapper.values.contains(letter) {
            let last = at + letter.len_utf8() == text.len();
            return if last { 2 } else { 1 };
        }
        behind.anywhere |= !wrapper.flags.contains(letter);
    }
    1
}
