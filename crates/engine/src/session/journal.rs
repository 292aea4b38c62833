//! The way into a transcript's file, for whoever writes there: the conversation its messages, the workshop the start of
//! each call with effects. Cheap to clone. It knows what could not be written, and what the host wants a copy of.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use whimbrel_wire::RawJson;

use super::appender::Appender;
use super::durability::Durability;
use super::line::TOOL_START;
use crate::clock;

/// How transcripts are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keeping {
    /// How safe they are.
    pub durability: Durability,
    /// Whether the host gets a copy of each line.
    pub mirror: Mirror,
}

/// Whether the host gets a copy of each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mirror {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On,
}

/// The way into a transcript's file; into nowhere if nothing is kept.
#[derive(Debug, Clone)]
pub struct Journal {
    session: Arc<str>,
    pages: Option<Arc<Mutex<Pages>>>,
}

#[derive(Debug)]
struct Pages {
    file: Appender,
    mirror: Mirror,
    copies: Vec<RawJson>,
    health: Health,
    news: Option<News>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    Failing,
}

/// What the host should know about a transcript.
#[derive(Debug)]
pub enum News {
    /// It cannot be written.
    Lost(io::Error),
    /// It could not be written, and is complete again.
    Complete,
}

/// Lines that were added to a transcript.
#[derive(Debug)]
pub struct Copies {
    /// The transcript.
    pub path: PathBuf,
    /// The lines.
    pub lines: Vec<RawJson>,
}

impl Journal {
    /// The way into a file; none keeps nothing.
    pub fn new(session: &str, file: Option<Appender>, mirror: Mirror) -> Self {
        let pages = |file| Pages { file, mirror, copies: Vec::new(), health: Health::Good, news: None };
        Self { session: session.into(), pages: file.map(|file| Arc::new(Mutex::new(pages(file)))) }
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.pages().map(|pages| pages.file.path().to_owned())
    }

    /// Writes one line, given without its end.
    pub(super) fn write(&self, line: serde_json::Result<String>) -> io::Result<()> {
        let Some(mut pages) = self.pages() else { return Ok(()) };
        let line = line.map_err(io::Error::other)?;
        if pages.mirror == Mirror::On
            && let Ok(copy) = RawJson::parse(line.as_str())
        {
            pages.copies.push(copy);
        }
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        let written = pages.file.append(bytes);
        pages.note(written)
    }

    /// Notes that a call with effects is about to run. The error says why it must not.
    pub fn begin(&self, call: &str, tool: &str) -> Result<(), String> {
        let line = json!({
            "type": TOOL_START,
            "toolUseID": call,
            "tool": tool,
            "sessionId": &*self.session,
            "timestamp": clock::timestamp(),
        });
        let written = self.write(Ok(line.to_string()));
        let strict = self.pages().is_some_and(|pages| pages.file.durability() == Durability::Strict);
        match written {
            Err(error) if strict => Err(format!(
                "Not made: its start cannot be recorded ({error}), and {} is strict. Make room on the disk first.",
                Durability::VARIABLE
            )),
            _ => Ok(()),
        }
    }

    /// Ends a turn: everything is written, and on the disk if that is wanted.
    pub fn end_turn(&self) {
        if let Some(mut pages) = self.pages() {
            let written = pages.file.end_turn();
            // What went wrong is news.
            let _ = pages.note(written);
        }
    }

    /// What the host does not know yet about the transcript.
    pub fn take_news(&self) -> Option<News> {
        self.pages()?.news.take()
    }

    /// The lines that the host wants a copy of and has not got yet.
    pub fn take_copies(&self) -> Option<Copies> {
        let mut pages = self.pages()?;
        let lines = std::mem::take(&mut pages.copies);
        (!lines.is_empty()).then(|| Copies { path: pages.file.path().to_owned(), lines })
    }

    /// Lines that are in the file already, for the host that wants a copy.
    pub(crate) fn copy(&self, lines: Vec<RawJson>) {
        if let Some(mut pages) = self.pages().filter(|pages| pages.mirror == Mirror::On) {
            pages.copies.extend(lines);
        }
    }

    fn pages(&self) -> Option<MutexGuard<'_, Pages>> {
        self.pages.as_ref().map(|pages| pages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pages {
    /// Notes how a write went: the first failure is told at once, and so is the end of failing.
    fn note(&mut self, written: io::Result<()>) -> io::Result<()> {
        match (&written, self.health) {
            (Err(error), Health::Good) => {
                self.health = Health::Failing;
                self.news = Some(News::Lost(same(error)));
            }
            (Ok(()), Health::Failing) => {
                self.health = Health::Good;
                // A host that has not heard of the failure need not hear of its end.
                self.news = if self.news.is_some() { None } else { Some(News::Complete) };
            }
            (Err(_), Health::Failing) | (Ok(()), Health::Good) => {}
        }
        written
    }
}

/// The same error once more.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::session::medium;

    /// A journal whose file cannot be opened as long as the switch is off.
    fn journal(path: PathBuf, durability: Durability) -> (Journal, Arc<AtomicBool>) {
        let works = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&works);
        let open = move |path: &std::path::Path| match switch.load(Ordering::Relaxed) {
            true => Ok(Box::new(medium::open(path)?) as Box<dyn medium::Medium>),
            false => Err(io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32)),
        };
        (Journal::new("s", Some(Appender::opened_by(path, durability, Box::new(open))), Mirror::On), works)
    }

    #[test]
    fn what_cannot_be_recorded_is_made_all_the_same_unless_strict() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, made) in
            [(Durability::System, true), (Durability::Turn, true), (Durability::Strict, false)]
        {
            let (journal, _) = journal(folder.path().join("x.jsonl"), durability);
            assert_eq!(journal.begin("t1", "Bash").is_ok(), made, "{durability:?}");
        }
    }

    #[test]
    fn a_failure_is_told_once_and_its_end_too_and_nothing_is_missing_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let (journal, works) = journal(path.clone(), Durability::System);
        let write = |line: &str| journal.write(Ok(line.to_owned())).is_ok();
        assert!(!write("1"));
        assert!(matches!(journal.take_news(), Some(News::Lost(error)) if error.raw_os_error().is_some()));
        assert!(!write("2"));
        assert!(journal.take_news().is_none());
        works.store(true, Ordering::Relaxed);
        assert!(write("3"));
        assert!(matches!(journal.take_news(), Some(News::Complete)));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n2\n3\n");
        assert_eq!(journal.take_copies().unwrap().lines.len(), 3);
        assert!(journal.take_copies().is_none());
    }
}
