//! `whimbrel serve`: agent sessions behind HTTP, a WebSocket and a web page.
//!
//! The host uses only the public SDK. What the browser gets are the wire's frames, numbered. The conversation is the engine's
//! transcript; who asked, answered and waits is in the host's own database.
//!
//! Modules:
//! - `serve`: start and end of a host; `config`: what it is told; `host`: what its parts share
//! - `session_actor`: one task per session that is in use
//! - `terminal_sessions`: sessions of other programs
//! - `api`: HTTP and WebSocket; `page`: the files of the page; `error`: errors as clients get them
//! - `access`, `origin`: who may do what, and from where
//! - `store`: the database; `message`: messages of people; `uploads`: their files
//! - `hub`: news for lists; `metrics`: counters; `histogram`; `clock`: time and random ids; `log`: lines on stderr

mod access;
mod api;
mod clock;
mod config;
mod error;
mod folder_settings;
mod histogram;
mod host;
mod hub;
mod log;
mod message;
mod metrics;
mod origin;
mod page;
mod serve;
mod session_actor;
mod store;
mod terminal_sessions;
mod uploads;

pub use config::{ConfigFile, HostConfig, Limits};
pub use serve::{ServeError, new_bearer_key, new_login_link, serve};
