//! What is behind a wrapper, whatever its options are.

use super::Wrapper;
use super::table::WRAPPERS;
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
}

/// Looks behind a wrapper, whatever its options are.
pub(in crate::shell) fn behind(name: &str, words: &[Word]) -> Option<Behind> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut behind = Behind {
        anywhere: matches!(name, "perf" | "gdb" | "parallel" | "valgrind" | "busybox"),
        ..Behind::default()
    };
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
            at += 1;
            continue;
        }
        at += option(wrapper, text, words.get(at + 1), &mut behind);
    }
    if wrapper.assigns {
        while words.get(at).is_some_and(|word| is_assignment(&word.value)) {
            at += 1;
        }
    }
    let start = at + wrapper.operands;
    behind.start = (start < words.len()).then_some(start);
    // `flock FILE -c TEXT` and `su USER -c TEXT`: the text may come after the operand.
    for pair in words.get(at..).unwrap_or_default().windows(2) {
        if let [option, text] = pair
            && option.value.literal().is_some_and(|option| wrapper.texts.contains(&option))
        {
            behind.texts.push(text.value.clone());
        }
    }
    Some(behind)
}

fn is_assignment(value: &Value) -> bool {
    let text = match value {
        Value::Literal(text) | Value::Glob(text) => text.as_str(),
        Value::Unknown { before, .. } => before.as_str(),
    };
    let name = leading_name(text);
    !name.is_empty() && text.get(name.len()..).is_some_and(|rest| rest.starts_with('='))
}

/// How many words an option takes; one that is not known makes everything after it possible.
fn option(wrapper: &Wrapper, text: &str, next: Option<&Word>, behind: &mut Behind) -> usize {
    let (name, joined) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if let Some(option) = wrapper.texts.iter().find(|option| {
        text == **option || name == **option || (option.len() == 2 && text.starts_with(**option))
    }) {
        let joined = joined
            .filter(|_| option.len() > 2)
            .or_else(|| text.get(2..).filter(|rest| option.len() == 2 && !rest.is_empty()));
        match joined {
            Some(value) => behind.texts.push(Value::Literal(value.to_owned())),
            None => behind.texts.extend(next.map(|word| word.value.clone())),
        }
        return if joined.is_some() { 1 } else { 2 };
    }
    if let Some(long) = name.strip_prefix("--") {
        let takes_next = joined.is_none() && wrapper.long_values.contains(&long);
        behind.anywhere |= !(wrapper.long.contains(&long) || wrapper.long_values.contains(&long));
        return if takes_next { 2 } else { 1 };
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
