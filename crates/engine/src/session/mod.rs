//! What is kept of a session on disk.
//!
//! Rooms:
//! - [`place`]: where transcripts lie; [`lock`]: one writer per session
//! - writing: [`log`] (one session's transcript, append only), [`journal`] (the way into it), [`appender`] (a file, by
//!   whole lines), `medium` (what that writes to), [`courier`] (the way to a store), [`durability`] (how safe lines are),
//!   `health` and `bulletin` (what the host is told about it)
//! - reading: [`load`](mod@load) (a conversation, read back), in the order of its steps: `lines`, `line` and `index`
//!   (what is there), `cut` and `path` (what counts), `reader` and `beside` (what was said), `loaded` (which tools
//!   were), `refused` (what providers did not take), `mend` (in an order that providers take)
//! - going on: [`past`] (a session that is gone on with), [`fork`] (a copy of it)
//! - [`checkpoint`]: files as they were at each prompt
//! - for whoever looks back: [`library`] (all that is kept, wherever), [`shelf`] (all sessions on disk), [`summary`] (what
//!   one is about), [`transcript`] (what was said in it), [`search`]
//! - [`store`]: transcripts of many sessions behind one door, in files or elsewhere

pub mod appender;
mod beside;
pub(crate) mod bulletin;
pub mod checkpoint;
pub mod courier;
mod cut;
pub mod durability;
pub mod fork;
mod health;
mod hollow;
mod index;
pub mod journal;
pub mod library;
mod line;
mod lines;
pub mod load;
mod loaded;
pub mod lock;
pub mod log;
mod medium;
pub(crate) mod mend;
pub mod past;
mod path;
pub mod place;
mod reader;
pub(crate) mod refused;
pub mod search;
pub mod shelf;
pub mod store;
pub mod summary;
pub mod transcript;

pub use courier::Courier;
pub use durability::Durability;
pub use journal::{Journal, Keeping, Mirror};
pub use log::{Entry, Log};
pub use past::Past;
pub use place::Place;
