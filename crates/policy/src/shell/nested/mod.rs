//! Commands inside commands: wrappers, options whose value is a command, text piped into shells, code of other
//! languages.

pub(crate) mod foreign_code;
pub(crate) mod options;
pub(crate) mod placeholders;
pub(crate) mod shells;
pub(crate) mod stdin;
pub(crate) mod stdout;
pub(crate) mod unparsed_text;
pub(crate) mod wrapped;
pub(crate) mod wrappers;
