//! Transcripts of sessions: writing, loading, resuming, listing, and file checkpoints.
//!
//! - [`paths`]: locations of transcripts; [`lock`]: one writer per session
//! - writing: [`transcript_recorder`] (builds the entries of one session), [`transcript_writer`] (sink handle shared by all
//!   writers), `line_appender` (appends whole lines to a file), `append_file` (the file trait below it), [`open_reply`]
//!   (lines of a reply that is streaming), `held_lines` (the same for stores and mirroring hosts), `partial_line` (repairs
//!   the last line after a crash), [`store_writer`] (buffered delivery to a session store), [`metadata`] (title, tag and last prompt), [`awaited_agents`],
//!   [`cost_state`], [`rewind_record`], `write_status` (notices for the host), [`mirror`] (frames for the host)
//! - loading: [`load`](mod@load), in the order of its steps: `line_reader`, `entry` and `index` (first pass),
//!   `partial_index` (skips what a compaction replaced), `branch` (selects the active branch), `entry_reader` and
//!   `siblings` (second pass), `tool_calls`, `repair` (makes the history acceptable to providers), `open_calls` (calls
//!   without a result), `rewind` (plans to go back to an earlier entry)
//! - resuming: [`resumed_session`], `fork`, [`import`] (conversations of other programs); [`recorded_transcript`]: reading back the transcript of a running session
//! - [`checkpoint`]: file contents at each prompt
//! - listing and viewing: [`sessions`] (sessions on disk or in a store), [`session_files`] (sessions on disk),
//!   [`summary`], [`transcript_reader`], [`search`]
//! - [`store`]: the `SessionStore` trait and its implementations

mod append_file;
pub mod awaited_agents;
pub mod checkpoint;
pub mod cost_state;
pub(crate) mod entry;
mod fork;
mod held_lines;
pub mod import;
mod line_appender;
pub(crate) mod line_reader;
pub mod load;
pub mod lock;
pub mod metadata;
pub mod mirror;
pub mod open_reply;
mod partial_line;
pub mod paths;
pub mod recorded_transcript;
pub mod resume_error;
pub mod resumed_session;
pub mod rewind_record;
pub mod search;
pub mod session_files;
pub mod sessions;
pub mod store;
pub mod store_writer;
pub mod summary;
pub mod text_diff;
pub mod transcript_reader;
pub mod transcript_recorder;
pub mod transcript_writer;
mod write_status;

pub use line_appender::Durability;
pub use mirror::Mirror;
pub use paths::TranscriptDir;
pub use recorded_transcript::RecordedTranscript;
pub use resumed_session::ResumedSession;
pub use store_writer::StoreWriter;
pub use transcript_recorder::{MessageEntry, TranscriptRecorder};
pub use transcript_writer::{Persistence, TranscriptWriter};
