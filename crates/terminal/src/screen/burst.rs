//! Pastes of terminals without bracketed paste: several lines that arrive at once are no messages. Pure.

use super::key::{Key, KeyCode, Modifiers};
use super::parser::Input;

/// Joins typed characters that came in one read and contain a line break before their end into a paste.
pub(super) fn merge_bursts(inputs: Vec<Input>) -> Vec<Input> {
    let mut merged = Vec::with_capacity(inputs.len());
    let mut burst: Vec<Input> = Vec::new();
    for input in inputs {
        if typed_character(&input).is_some() {
            burst.push(input);
        } else {
            end_burst(&mut burst, &mut merged);
            merged.push(input);
        }
    }
    end_burst(&mut burst, &mut merged);
    merged
}

fn end_burst(burst: &mut Vec<Input>, merged: &mut Vec<Input>) {
    let text: String = burst.iter().filter_map(typed_character).collect();
    if text.trim_matches('\n').contains('\n') {
        burst.clear();
        merged.push(Input::Paste(text));
    } else {
        merged.append(burst);
    }
}

/// The character that a key types, if it is one that a paste may contain.
fn typed_character(input: &Input) -> Option<char> {
    match input {
        Input::Key(Key { code: KeyCode::Char(character), modifiers, .. })
            if *modifiers == Modifiers::NONE =>
        {
            Some(*character)
        }
        Input::Key(Key { code: KeyCode::Enter, modifiers, .. }) if *modifiers == Modifiers::NONE => {
            Some('\n')
        }
        Input::Key(Key { code: KeyCode::Tab, modifiers, .. }) if *modifiers == Modifiers::NONE => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Input> {
        let code = |character| match character {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            character => KeyCode::Char(character),
        };
        text.chars().map(|character| Input::Key(Key::plain(code(character)))).collect()
    }

    #[test]
    fn several_lines_at_once_are_a_paste() {
        let rows = [("hello", false), ("hello\n", false), ("\n", false), ("a\nb", true), ("a\n\tb\n", true)];
        for (text, is_paste) in rows {
            let merged = merge_bursts(keys(text));
            assert_eq!(merged == [Input::Paste(text.into())], is_paste, "{text:?}");
        }
    }
}
