//! The Messages API (`/v1/messages`) of Anthropic and compatible servers.

pub mod body;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod credential;
#[cfg(feature = "http")]
pub mod decode;
#[cfg(feature = "http")]
mod error;
pub mod extra_body;
#[cfg(feature = "http")]
mod fast_path;
#[cfg(feature = "http")]
mod key_refresh;

#[cfg(feature = "http")]
pub use client::Anthropic;
#[cfg(feature = "http")]
pub(crate) use key_refresh::KeyRefreshingModel;
