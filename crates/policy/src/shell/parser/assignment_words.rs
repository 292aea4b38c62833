//! Assignment words in front of a command.

use super::cursor::{ParseResult, SYNTAX_ERROR};
use super::syntax::{AssignmentForm, RawAssignment, RawWord, WordPiece};
use crate::shell::parser::words::leading_name;

/// Returns true if an array may follow: `NAME=` or `NAME+=`.
pub(crate) fn is_array_start(raw: &str) -> bool {
    let name = leading_name(raw);
    !name.is_empty() && matches!(raw.get(name.len()..), Some("=" | "+="))
}

/// Parses a word as an assignment, if it is one.
pub(crate) fn parse_assignment(word: &RawWord) -> ParseResult<Option<RawAssignment>> {
    let name = leading_name(&word.raw);
    let after = word.raw.get(name.len()..).unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let (form, length) = match after.as_bytes() {
        [b'=', ..] => (AssignmentForm::Plain, 1),
        [b'+', b'=', ..] => (AssignmentForm::Appended, 2),
        [b'[', ..] if after.contains("]=") || after.contains("]+=") => {
            return Ok(Some(parse_element(word, name)));
        }
        // A subscript with blanks: the shell reads on to the closing bracket.
        [b'[', ..] if !after.contains(']') => return Err(SYNTAX_ERROR),
        _ => return Ok(None),
    };
    let mut pieces = word.pieces.clone();
    if let Some(WordPiece::Plain(text)) = pieces.first_mut() {
        text.drain(..(name.len() + length).min(text.len()));
    }
    let value = RawWord { raw: after.get(length..).unwrap_or_default().to_owned(), pieces };
    Ok(Some(RawAssignment { name: name.to_owned(), value, raw: word.raw.clone(), form }))
}

/// Parses `NAME[subscript]=value`. The value is known if the whole word is literal.
fn parse_element(word: &RawWord, name: &str) -> RawAssignment {
    let literal = |piece: &WordPiece| match piece {
        WordPiece::Plain(text) | WordPiece::Quoted(text) => Some(text.clone()),
        WordPiece::Variable { .. } | WordPiece::Unknown => None,
    };
    let text: Option<String> = word.pieces.iter().map(literal).collect();
    let known = text.as_deref().and_then(|text| {
        let (subscript, value) = text.get(name.len() + 1..)?.split_once("]=")?;
        Some((subscript.to_owned(), WordPiece::Quoted(value.to_owned())))
    });
    let (subscript, piece) = known.unwrap_or((String::new(), WordPiece::Unknown));
    RawAssignment {
        name: name.to_owned(),
        value: RawWord { raw: word.raw.clone(), pieces: vec![piece] },
        raw: word.raw.clone(),
        form: AssignmentForm::Element(subscript),
    }
}
