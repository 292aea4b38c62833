//! The Chat Completions dialect.

mod chunk;
mod raw;
mod refusal;
mod request;
mod stream;
