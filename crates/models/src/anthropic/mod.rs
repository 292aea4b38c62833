//! The Messages API: whoever answers at `/v1/messages`, Anthropic or a server that speaks like it.

pub mod body;
pub mod read;
mod refusal;

#[cfg(feature = "http")]
mod client;

#[cfg(feature = "http")]
pub use client::Anthropic;
