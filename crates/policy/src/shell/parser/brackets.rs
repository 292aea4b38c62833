//! Finds closing brackets as bash does: by counting, skipping quotes and expansions.

use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};

/// A bracket or quote that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BracketContext {
    close: u8,
    /// Bracket that opens another level; none in quotes.
    open: Option<u8>,
    /// True if single quotes have a meaning here.
    quotes: bool,
}

impl BracketContext {
    fn bracket(open: u8, close: u8, quotes: bool) -> Self {
        Self { close, open: Some(open), quotes }
    }

    fn quote(close: u8) -> Self {
        Self { close, open: None, quotes: false }
    }
}

impl Parser<'_> {
    /// Finds the end of a section whose opening bracket is at `start`.
    pub(crate) fn find_closing(&self, start: usize, open: u8, close: u8) -> ParseResult<usize> {
        let bytes = self.text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied().ok_or(SYNTAX_ERROR);
        let mut inside = vec![BracketContext::bracket(open, close, true)];
        let mut at = start + 1;
        while let Some(here) = inside.last().copied() {
            let this = byte(at)?;
            at += 1;
            match this {
                b'\\' => at += 1,
                _ if this == here.close => {
                    inside.pop();
                }
                // Only a backquote ends text in backquotes.
                _ if here.close == b'`' => {}
                b'`' => inside.push(BracketContext::quote(b'`')),
                b'$' => {
                    let quotes = here.close != b'"';
                    match byte(at)? {
                        b'(' => inside.push(BracketContext::bracket(b'(', b')', true)),
                        b'{' => inside.push(BracketContext::bracket(b'{', b'}', quotes)),
                        b'[' => inside.push(BracketContext::bracket(b'[', b']', quotes)),
                        b'\'' if here.quotes => {
                            at += 1;
                            while byte(at)? != b'\'' {
                                at += if byte(at)? == b'\\' { 2 } else { 1 };
                            }
                        }
                        _ => continue,
                    }
                    at += 1;
                }
                _ if here.close == b'"' => {}
                b'"' => inside.push(BracketContext::quote(b'"')),
                b'\'' if here.quotes => {
                    while byte(at)? != b'\'' {
                        at += 1;
                    }
                    at += 1;
                }
                _ if Some(this) == here.open => inside.push(here),
                _ => {}
            }
        }
        Ok(at)
    }
}
