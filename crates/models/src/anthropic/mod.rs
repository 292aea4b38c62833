//! The Messages API: whoever answers at `/v1/messages`, Anthropic or a server that speaks like it.

pub mod body;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod key_refresh;
#[cfg(feature = "http")]
pub mod decode;
#[cfg(feature = "http")]
mod error;
#[cfg(feature = "http")]
mod fast_path;

#[cfg(feature = "http")]
pub use client::Anthropic;
#[cfg(feature = "http")]
pub(crate) use key_refresh::KeyRefreshingModel;
