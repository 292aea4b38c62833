//! The model's Markdown as styled lines.
//!
//! - [`StreamingMarkdown`]: text that arrives in pieces; what cannot change any more is handed out to be committed
//! - `render`: a text as lines
//! - `table`: tables that fit the screen
//! - [`highlight`]: colors of code

pub(crate) mod highlight;
mod render;
mod streaming;
mod table;

pub(crate) use render::{code_blocks, render};
pub(crate) use streaming::StreamingMarkdown;
