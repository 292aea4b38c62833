//! The Messages API: whoever answers at `/v1/messages`, Anthropic or a server that speaks like it.

pub mod body;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod keyed;
#[cfg(feature = "http")]
pub mod read;
#[cfg(feature = "http")]
mod refusal;
#[cfg(feature = "http")]
mod usual;

#[cfg(feature = "http")]
pub use client::Anthropic;
#[cfg(feature = "http")]
pub(crate) use keyed::Keyed;
