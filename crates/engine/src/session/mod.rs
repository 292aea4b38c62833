//! What is kept of a session on disk.
//!
//! Rooms: [`place`] (where transcripts lie), [`log`] (one session's transcript, append only), [`appender`] (its file),
//! [`checkpoint`] (files as they were at each prompt); for people who look back: [`shelf`] (all sessions on disk),
//! [`summary`] (what one is about), [`transcript`] (what was said in it), [`search`].

pub mod appender;
pub mod checkpoint;
pub mod log;
pub mod place;
pub mod search;
pub mod shelf;
pub mod summary;
pub mod transcript;

pub use log::{Entry, Log};
pub use place::Place;
