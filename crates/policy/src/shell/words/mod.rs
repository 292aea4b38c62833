//! Words of a command: expansion of a raw word to its value, and the spellings that rules are compared with.

pub(crate) mod arithmetic;
pub(crate) mod braces;
pub(crate) mod expand;
pub(crate) mod spelling;
pub(crate) mod value;
