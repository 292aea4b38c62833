//! Styled text that is safe to print: spans and lines, columns, wrapping.

mod line;
mod sanitize;
mod style;
mod width;
mod wrap;

pub(crate) use line::{Flow, Line};
pub(crate) use sanitize::{sanitize, sanitize_lines};
pub(crate) use style::{Color, Style};
pub(crate) use width::{graphemes, is_disputed, width};
