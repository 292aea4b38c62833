//! Parser of shell text: a closed grammar, one pass, bounded depth. It yields a [`syntax::ParsedScript`].

pub(crate) mod ansi_quotes;
pub(crate) mod brackets;
pub(crate) mod commands;
pub(crate) mod compound;
pub(crate) mod cursor;
pub(crate) mod expansions;
pub(crate) mod hidden_characters;
pub(crate) mod redirects;
pub(crate) mod syntax;
pub(crate) mod words;
