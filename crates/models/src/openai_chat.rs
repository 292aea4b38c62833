//! The Chat Completions dialect.
