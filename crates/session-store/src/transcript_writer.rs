//! Handle for writing to one transcript, in a file or a session store. Cheap to clone; used by the conversation for
//! messages and by the tool scheduler for starts of calls with effects. Tracks failed writes and collects lines for
//! mirroring hosts.

mod call_start;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_wire::RawJson;

use crate::awaited_agents::{self, AwaitedAgent};
use crate::cost_state::{self, CostState};
use crate::held_lines::HeldLines;
use crate::line_appender::{Durability, LineAppender};
use crate::metadata::{MetadataEntries, MetadataEntry, truncate_title};
use crate::mirror::Mirror;
use crate::open_reply::{OpenLine, ReplyEnd};
use crate::rewind_record::RewindRecord;
use crate::store::StoreKey;
use crate::store_writer::{FlushMode, StoreWriter};
pub use crate::write_status::TranscriptNotice;
use crate::write_status::WriteStatus;
pub use call_start::CONFLICT_TEXT;

/// How and where transcripts are stored.
#[derive(Debug, Clone, Default)]
pub struct Persistence {
    pub durability: Durability,
    /// Mirroring of lines to the host.
    pub mirror: Mirror,
    /// Writer to the session store, if transcripts are not stored on disk.
    pub store_writer: Option<StoreWriter>,
    /// Reason why transcripts that should be stored cannot be.
    pub unavailable: Option<Arc<str>>,
}

/// Writes to one transcript, or discards everything if the session is not stored.
#[derive(Debug, Clone)]
pub struct TranscriptWriter {
    session: Arc<str>,
    sink: Sink,
    title: Arc<Mutex<TitleState>>,
}

#[derive(Debug, Default)]
struct TitleState {
    text: Option<String>,
    /// The transcript does not contain this title yet.
    is_unsaved: bool,
}

#[derive(Debug, Clone)]
enum Sink {
    Discard,
    /// Nothing can be stored although durability is strict, so calls with effects must not run; with the reason.
    Unavailable(Arc<str>),
    File(Arc<Mutex<FileSink>>),
    Store {
        store_writer: StoreWriter,
        key: Arc<StoreKey>,
        durability: Durability,
        /// Lines of the reply that is streaming.
        held_lines: Arc<Mutex<HeldLines>>,
    },
}

#[derive(Debug)]
struct FileSink {
    file: LineAppender,
    mirror: Mirror,
    mirrored: Vec<RawJson>,
    /// Reserved spaces of the reply that is streaming: offset and content.
    reserved_spaces: Vec<(u64, String)>,
    /// Lines of that reply for the mirroring host, and those written meanwhile.
    held_lines: HeldLines,
    metadata: MetadataEntries,
    health: WriteStatus,
}

/// New lines of a transcript, for a mirroring host.
#[derive(Debug)]
pub struct MirroredLines {
    /// Path of the transcript.
    pub path: PathBuf,
    pub lines: Vec<RawJson>,
    pub mirror: Mirror,
}

impl TranscriptWriter {
    /// Creates a writer to a file; without a file it discards everything.
    pub fn new(session: &str, file: Option<LineAppender>, mirror: Mirror) -> Self {
        let sink = |file| FileSink {
            file,
            mirror,
            mirrored: Vec::new(),
            reserved_spaces: Vec::new(),
            held_lines: HeldLines::default(),
            metadata: MetadataEntries::default(),
            health: WriteStatus::default(),
        };
        let sink = file.map_or(Sink::Discard, |file| Sink::File(Arc::new(Mutex::new(sink(file)))));
        Self { session: session.into(), sink, title: Arc::default() }
    }

    /// Creates a writer to a file; without one it discards everything, or reports why nothing can be stored if
    /// durability is strict.
    pub(super) fn with_persistence(
        session: &str,
        file: Option<LineAppender>,
        persistence: &Persistence,
    ) -> Self {
        let unavailable =
            persistence.unavailable.clone().filter(|_| persistence.durability == Durability::Strict);
        match (file, unavailable) {
            (None, Some(reason)) => {
                Self { sink: Sink::Unavailable(reason), ..Self::new(session, None, persistence.mirror) }
            }
            (file, _) => Self::new(session, file, persistence.mirror),
        }
    }

    /// Creates a writer to a session's own transcript in a store, or to one of its subpaths.
    pub fn for_store(
        session: &str,
        subpath: Option<&str>,
        store_writer: &StoreWriter,
        durability: Durability,
    ) -> Self {
        let session_key = StoreKey::session(store_writer.project(), session);
        let key = Arc::new(
            subpath.map_or_else(|| session_key.clone(), |subpath| session_key.with_subpath(subpath)),
        );
        let sink =
            Sink::Store { store_writer: store_writer.clone(), key, durability, held_lines: Arc::default() };
        Self { session: session.into(), sink, title: Arc::default() }
    }

    /// Path of the file, if the transcript is in one.
    pub fn path(&self) -> Option<PathBuf> {
        self.file_sink().map(|sink| sink.file.path().to_owned())
    }

    /// Writes one line without its newline, after all lines before it. A file is written at once, a store by
    /// [`TranscriptWriter::flush`].
    pub(super) fn write_line(&self, line: serde_json::Result<String>) -> io::Result<()> {
        self.store_held_lines(None);
        self.write_metadata(line)
    }

    /// Writes a line whose position does not matter, as its entry belongs to the whole session. A reply that is
    /// streaming stays open.
    fn write_metadata(&self, line: serde_json::Result<String>) -> io::Result<()> {
        let line = line.map_err(io::Error::other)?;
        if let Sink::Store { store_writer, key, .. } = &self.sink {
            store_writer.push(key, RawJson::parse(line).map_err(io::Error::other)?);
            return Ok(());
        }
        let Some(mut sink) = self.file_sink() else { return Ok(()) };
        if sink.mirror.is_on()
            && let Ok(copy) = RawJson::parse(line.as_str())
        {
            sink.mirror_line(copy);
        }
        sink.append(line)
    }

    /// Writes a line of a reply that is streaming. A file is written at once. A store and a mirroring host get the line
    /// when [`TranscriptWriter::finish_reply`] has completed it, when [`TranscriptWriter::held_lines_due`] has ended, or
    /// before the next line that must follow.
    pub(super) fn write_open_line(&self, line: OpenLine) -> io::Result<()> {
        if let Sink::Store { held_lines, .. } = &self.sink {
            lock(held_lines).push_open(line);
            return Ok(());
        }
        self.file_sink().map_or(Ok(()), |mut sink| sink.append_open(line))
    }

    /// Sets the final stop reason and usage in all lines of the reply that has ended. A line that cannot be changed in
    /// its file, or that was passed on already, keeps the values of the beginning.
    pub fn finish_reply(&self, end: &ReplyEnd) {
        if let Some(mut sink) = self.file_sink() {
            sink.finish_reply(end);
        }
        self.store_held_lines(Some(end));
    }

    /// Passes on the lines of a reply that has not ended.
    pub fn release_held_lines(&self) {
        if let Some(mut sink) = self.file_sink() {
            sink.mirror_held_lines(None);
        }
        self.store_held_lines(None);
    }

    /// Waits until the lines of the reply that is streaming have been held back long enough; forever if there are none.
    pub async fn held_lines_due(&self) {
        let due = match &self.sink {
            Sink::Discard | Sink::Unavailable(_) => None,
            Sink::File(_) => self.file_sink().and_then(|sink| sink.held_lines.due()),
            Sink::Store { held_lines, .. } => lock(held_lines).due(),
        };
        match due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Passes the held lines to the store writer.
    fn store_held_lines(&self, end: Option<&ReplyEnd>) {
        if let Sink::Store { store_writer, key, held_lines, .. } = &self.sink {
            lock(held_lines).take(end).into_iter().for_each(|line| store_writer.push(key, line));
        }
    }

    /// Records the content of a sidecar file as a line, for stores and mirroring hosts, which have no sidecar files.
    pub fn write_sidecar_line(&self, line: RawJson) {
        match &self.sink {
            Sink::Store { store_writer, key, .. } => store_writer.push(key, line),
            Sink::File(_) | Sink::Discard | Sink::Unavailable(_) => self.mirror_lines(vec![line]),
        }
    }

    pub fn title(&self) -> Option<String> {
        self.title_state().text.clone()
    }

    /// Sets the title that a resumed session already has.
    pub fn restore_title(&self, title: Option<String>) {
        self.title_state().text = title;
    }

    /// Sets the title; it is written after the next message. Blank titles are ignored, long ones truncated.
    pub fn set_title(&self, title: &str) {
        if let Some(title) = truncate_title(title) {
            *self.title_state() = TitleState { text: Some(title), is_unsaved: true };
        }
    }

    /// Sets the title and writes it at once.
    pub async fn rename(&self, title: &str) -> io::Result<()> {
        self.set_title(title);
        self.write_title()?;
        match &self.sink {
            Sink::Store { store_writer, .. } => store_writer.flush(FlushMode::Once).await,
            Sink::Discard | Sink::Unavailable(_) | Sink::File(_) => Ok(()),
        }
    }

    /// Writes the title if it has changed.
    pub(crate) fn write_title(&self) -> io::Result<()> {
        let stale_entries = {
            let mut title = self.title_state();
            std::mem::take(&mut title.is_unsaved).then(|| title.text.clone()).flatten()
        };
        match stale_entries {
            Some(title) => self.write_metadata(Ok(MetadataEntry::title(&title, &self.session)?
                .to_line()?
                .as_str()
                .to_owned())),
            None => Ok(()),
        }
    }

    /// Sets the metadata entries of a resumed session.
    pub fn restore_metadata(&self, metadata: MetadataEntries) {
        if let Some(mut sink) = self.file_sink() {
            sink.metadata = metadata;
        }
    }

    /// Writes metadata entries again that are too far from the end of the file to be found by lists. Not needed in
    /// stores, where all lines are read.
    pub(super) fn rewrite_metadata(&self) {
        let stale_entries = self.file_sink().map(|mut sink| {
            let FileSink { file, metadata, .. } = &mut *sink;
            file.open_file().map_or(Ok(Vec::new()), |file| metadata.entries_to_rewrite(file))
        });
        // A read error is not reported; the next turn tries again.
        for line in stale_entries.and_then(Result::ok).unwrap_or_default() {
            let _ = self.write_metadata(Ok(line));
        }
    }

    fn title_state(&self) -> MutexGuard<'_, TitleState> {
        self.title.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes the store writer, if there is one. Errors become notices.
    pub async fn flush(&self) {
        if let Sink::Store { store_writer, .. } = &self.sink {
            let _ = store_writer.flush(FlushMode::RespectBackoff).await;
        }
    }

    /// Records the background agents whose reports are awaited. A failed write stays pending like any other line. A
    /// store gets the entry with the next [`TranscriptWriter::flush`].
    pub fn record_awaited_agents(&self, agents: &[AwaitedAgent]) {
        let _ = self.write_metadata(Ok(awaited_agents::render_entry(agents, &self.session)));
    }

    /// Records the cost of the session so far. A failed write stays pending like any other line. A store gets the entry
    /// with the next [`TranscriptWriter::flush`].
    pub fn record_cost(&self, cost: &CostState) {
        let _ = self.write_metadata(cost_state::render_entry(cost));
    }

    /// Ends a turn: writes all lines, and syncs them if durability requires it. Errors become notices.
    pub async fn end_turn(&self) {
        self.release_held_lines();
        if let Sink::Store { store_writer, .. } = &self.sink {
            let _ = store_writer.flush(FlushMode::WithRetries).await;
        }
        if let Some(mut sink) = self.file_sink() {
            let written = sink.file.end_turn();
            let _ = sink.record_write(written).and_then(|()| sink.restore_if_detached());
        }
    }

    /// Writes the lines that record a rewind, and waits until they are stored.
    pub(super) async fn write_rewind(
        &self,
        cwd: &str,
        left: Option<&str>,
        rewind: &RewindRecord,
    ) -> io::Result<()> {
        for line in rewind.render(&self.session, cwd, left) {
            self.write_line(Ok(line.to_string()))?;
        }
        self.write_pending().await
    }

    /// Writes the lines that still wait. An error means that the transcript is incomplete.
    pub async fn write_pending(&self) -> io::Result<()> {
        match &self.sink {
            Sink::Discard => Ok(()),
            Sink::Unavailable(reason) => Err(io::Error::other(reason.to_string())),
            Sink::File(_) => self.file_sink().map_or(Ok(()), |mut sink| {
                let written = sink.file.end_turn();
                sink.record_write(written)
            }),
            Sink::Store { store_writer, .. } => {
                store_writer.flush(FlushMode::Once).await?;
                match store_writer.undelivered_count() {
                    0 => Ok(()),
                    count => Err(io::Error::other(format!("the session store has not got {count} lines"))),
                }
            }
        }
    }

    /// Returns whether another engine has continued the session in its store, so that it must not go on here.
    pub fn has_conflict(&self) -> bool {
        matches!(&self.sink, Sink::Store { store_writer, .. } if store_writer.has_conflict())
    }

    pub fn take_notice(&self) -> Option<TranscriptNotice> {
        match &self.sink {
            Sink::Discard | Sink::Unavailable(_) => None,
            Sink::File(_) => self.file_sink()?.health.take_notice(),
            Sink::Store { store_writer, .. } => store_writer.take_notice(),
        }
    }

    /// Takes the lines not yet mirrored to the host.
    pub fn take_mirrored(&self) -> Option<MirroredLines> {
        let mut sink = self.file_sink()?;
        let lines = std::mem::take(&mut sink.mirrored);
        (!lines.is_empty()).then(|| MirroredLines {
            path: sink.file.path().to_owned(),
            lines,
            mirror: sink.mirror,
        })
    }

    /// Adds lines to mirror that the file already contains.
    pub fn mirror_lines(&self, lines: Vec<RawJson>) {
        if let Some(mut sink) = self.file_sink().filter(|sink| sink.mirror.is_on()) {
            lines.into_iter().for_each(|line| sink.mirror_line(line));
        }
    }

    fn file_sink(&self) -> Option<MutexGuard<'_, FileSink>> {
        match &self.sink {
            Sink::File(sink) => Some(sink.lock().unwrap_or_else(PoisonError::into_inner)),
            Sink::Discard | Sink::Unavailable(_) | Sink::Store { .. } => None,
        }
    }
}

fn lock(held_lines: &Mutex<HeldLines>) -> MutexGuard<'_, HeldLines> {
    held_lines.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileSink {
    fn append(&mut self, line: String) -> io::Result<()> {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        let written = self.file.append(bytes);
        self.record_write(written)
    }

    fn append_open(&mut self, line: OpenLine) -> io::Result<()> {
        let (start, reserved) = (line.end_fields_offset() as u64, line.end_fields().to_owned());
        if self.mirror.is_on() {
            self.held_lines.push_open(line.clone());
        }
        let text = line.into_text();
        let length = text.len() + 1;
        self.append(text)?;
        // A pending line keeps the values of the beginning.
        self.reserved_spaces
            .extend(self.file.last_line_offset(length).map(|offset| (offset + start, reserved)));
        Ok(())
    }

    fn finish_reply(&mut self, end: &ReplyEnd) {
        for (offset, reserved) in std::mem::take(&mut self.reserved_spaces) {
            if let Ok(Some(fields)) = end.render_padded(reserved.len()) {
                // After an error the line is still complete, with the values of the beginning.
                let _ = self.file.overwrite(offset, reserved.as_bytes(), fields.as_bytes());
            }
        }
        self.mirror_held_lines(Some(end));
    }

    /// Passes a complete line to the mirroring host, after the lines that are held back.
    fn mirror_line(&mut self, line: RawJson) {
        self.mirrored.extend(self.held_lines.push_after(line));
    }

    /// Passes the lines that were held back to the mirroring host.
    fn mirror_held_lines(&mut self, end: Option<&ReplyEnd>) {
        let lines = self.held_lines.take(end);
        self.mirrored.extend(lines);
    }

    /// Writes the file again if it was removed or replaced.
    fn restore_if_detached(&mut self) -> io::Result<()> {
        match self.file.restore_if_detached() {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.health.record_rewrite();
                Ok(())
            }
            Err(error) => self.record_write(Err(error)),
        }
    }

    /// Records the result of a write.
    fn record_write(&mut self, written: io::Result<()>) -> io::Result<()> {
        if let Some(error) = self.file.take_lock_error() {
            self.health.record_unlocked(error);
        }
        self.health.record_write(&written, 0);
        written
    }
}

#[cfg(test)]
mod held_lines_tests;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::append_file;

    /// A writer whose file cannot be opened until the switch is on.
    pub(super) fn failing_writer(
        path: PathBuf,
        durability: Durability,
    ) -> (TranscriptWriter, Arc<AtomicBool>) {
        let works = Arc::new(AtomicBool::new(false));
        let works_now = Arc::clone(&works);
        let open = move |path: &std::path::Path| match works_now.load(Ordering::Relaxed) {
            true => Ok(Box::new(append_file::open_for_append(path)?) as Box<dyn append_file::AppendFile>),
            false => Err(io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32)),
        };
        (
            TranscriptWriter::new(
                "s",
                Some(LineAppender::with_opener(path, durability, Box::new(open))),
                Mirror::SizeLimited,
            ),
            works,
        )
    }

    #[test]
    fn filesystem_without_locks_is_reported_once() {
        /// A file on a filesystem without locks.
        struct UnlockableFile(std::fs::File);

        impl append_file::AppendFile for UnlockableFile {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                append_file::AppendFile::write(&mut self.0, bytes)
            }
            fn position(&mut self) -> io::Result<u64> {
                self.0.position()
            }
            fn length(&mut self) -> io::Result<u64> {
                self.0.length()
            }
            fn truncate(&mut self, length: u64) -> io::Result<()> {
                self.0.truncate(length)
            }
            fn sync(&mut self) -> io::Result<()> {
                self.0.sync()
            }
            fn is_at(&self, path: &std::path::Path) -> bool {
                self.0.is_at(path)
            }
            fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
                append_file::AppendFile::read_at(&self.0, offset, into)
            }
            fn overwrite(&mut self, path: &std::path::Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
                self.0.overwrite(path, offset, bytes)
            }
            fn take_lock_error(&mut self) -> Option<io::Error> {
                Some(nix::errno::Errno::ENOLCK.into())
            }
        }

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let open = |path: &std::path::Path| {
            Ok(Box::new(UnlockableFile(append_file::open_for_append(path)?))
                as Box<dyn append_file::AppendFile>)
        };
        let file = LineAppender::with_opener(path.clone(), Durability::System, Box::new(open));
        let writer = TranscriptWriter::new("s", Some(file), Mirror::Off);
        writer.write_line(Ok("1".to_owned())).unwrap();
        assert!(matches!(writer.take_notice(), Some(TranscriptNotice::Unlocked(_))));
        std::fs::remove_file(&path).unwrap();
        writer.file_sink().unwrap().restore_if_detached().unwrap();
        writer.write_line(Ok("2".to_owned())).unwrap();
        assert!(matches!(writer.take_notice(), Some(TranscriptNotice::Rewritten)));
        assert!(writer.take_notice().is_none());
        assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n2\n");
    }

    #[test]
    fn write_failure_and_recovery_are_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let (writer, works) = failing_writer(path.clone(), Durability::System);
        let write = |line: &str| writer.write_line(Ok(line.to_owned())).is_ok();
        assert!(!write("1"));
        assert!(
            matches!(writer.take_notice(), Some(TranscriptNotice::WriteFailed(error)) if error.raw_os_error().is_some())
        );
        assert!(!write("2"));
        assert!(writer.take_notice().is_none());
        works.store(true, Ordering::Relaxed);
        assert!(write("3"));
        assert!(matches!(writer.take_notice(), Some(TranscriptNotice::Recovered)));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n2\n3\n");
        assert_eq!(writer.take_mirrored().unwrap().lines.len(), 3);
        assert!(writer.take_mirrored().is_none());
    }
}
