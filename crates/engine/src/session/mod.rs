//! What is kept of a session on disk.
//!
//! Rooms: [`place`] (where transcripts lie), [`log`] (one session's transcript, append only), [`appender`] (its file).

pub mod appender;
pub mod log;
pub mod place;

pub use log::{Entry, Log};
pub use place::Place;
