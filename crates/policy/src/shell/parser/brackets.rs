//! Finds closing brackets as bash does: by counting, skipping quotes and expansions.

use super::cursor::{ParseResult, Parser, SYNTAX_ERROR};

/// A bracket or quote that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BracketContext {
    close: u8,
    /// Bracket that opens another level; `None` in quotes.
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
        let byte_at = |at: usize| bytes.get(at).copied().ok_or(SYNTAX_ERROR);
        let mut stack = vec![BracketContext::bracket(open, close, true)];
        let mut at = start + 1;
        while let Some(current) = stack.last().copied() {
            let byte = byte_at(at)?;
            at += 1;
            match byte {
                b'\\' => at += 1,
                _ if byte == current.close => {
                    stack.pop();
                }
                // Only a backquote ends text in backquotes.
                _ if current.close == b'`' => {}
                b'`' => stack.push(BracketContext::quote(b'`')),
                b'$' => {
                    let quotes = current.close != b'"';
                    match byte_at(at)? {
                        b'(' => stack.push(BracketContext::bracket(b'(', b')', true)),
                        b'{' => stack.push(BracketContext::bracket(b'{', b'}', quotes)),
                        b'[' => stack.push(BracketContext::bracket(b'[', b']', quotes)),
                        b'\'' if current.quotes => {
                            at += 1;
                            while byte_at(at)? != b'\'' {
                                at += if byte_at(at)? == b'\\' { 2 } else { 1 };
                            }
                        }
                        _ => continue,
                    }
                    at += 1;
                }
                _ if current.close == b'"' => {}
                b'"' => stack.push(BracketContext::quote(b'"')),
                b'\'' if current.quotes => {
                    while byte_at(at)? != b'\'' {
                        at += 1;
                    }
                    at += 1;
                }
                _ if Some(byte) == current.open => stack.push(current),
                _ => {}
            }
        }
        Ok(at)
    }
}
