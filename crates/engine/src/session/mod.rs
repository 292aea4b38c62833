//! What is kept of a session on disk.
//!
//! Rooms: [`place`] (where transcripts lie), [`log`] (one session's transcript, append only), [`appender`] (its file),
//! [`checkpoint`] (files as they were at each prompt).

pub mod appender;
pub mod checkpoint;
pub mod log;
pub mod place;

pub use log::{Entry, Log};
pub use place::Place;
