//! What is kept of a session on disk.
//!
//! Rooms:
//! - [`place`]: where transcripts lie; [`lock`]: one writer per session
//! - writing: [`log`] (one session's transcript, append only), [`journal`] (the way into it), [`appender`] (a file, by
//!   whole lines), `medium` (what that writes to), [`courier`] (the way to a store), [`durability`] (how safe lines are),
//!   `labels` (what lists look for), `health`, `bulletin` and `copies` (what the host is told about it)
//! - reading: [`load`](mod@load) (a conversation, read back), in the order of its steps: `lines`, `line` and `index`
//!   (what is there), `live` (what of it still counts), `cut` and `path` (what counts), `reader` and `beside` (what was
//!   said), `starts` (which calls had begun), `loaded` (which tools were), `refused` (what providers did not take), `mend`
//!   (in an order that providers take)
//! - going on: [`past`] (a session that is gone on with), [`fork`] (a copy of it)
//! - [`checkpoint`]: files as they were at each prompt
//! - for whoever looks back: [`library`] (all that is kept, wherever), [`shelf`] (all sessions on disk), [`summary`] (what
//!   one is about), [`transcript`] (what was said in it), [`search`]
//! - [`store`]: transcripts of many sessions behind one door, in files or elsewhere

pub mod appender;
mod siblings;
pub(crate) mod notices;
pub mod checkpoint;
mod mirror;
pub mod store_writer;
mod truncate;
pub mod durability;
pub mod fork;
mod health;
mod index;
pub mod writer;
mod metadata;
pub mod catalog;
mod entry;
mod line_reader;
mod partial_index;
pub mod load;
mod tool_searches;
pub mod lock;
pub mod transcript_log;
mod append_file;
pub(crate) mod repair;
pub mod resume;
mod branch;
pub mod paths;
mod entry_reader;
pub(crate) mod rejected;
pub mod search;
pub mod session_files;
mod started_calls;
pub mod store;
pub mod summary;
pub mod transcript;

pub use store_writer::StoreWriter;
pub use durability::Durability;
pub use writer::{TranscriptWriter, Persistence, Mirror};
pub use transcript_log::{MessageEntry, TranscriptLog};
pub use resume::ResumedSession;
pub use paths::ProjectDir;
