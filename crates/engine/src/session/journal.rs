//! The way into a transcript, in a file or a store, for whoever writes there: the conversation its messages, the workshop
//! the start of each call with effects. Cheap to clone. It knows what could not be written, and what the host wants a copy
//! of.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use whimbrel_wire::RawJson;

use super::appender::Appender;
use super::courier::{Courier, Urgency};
use super::durability::Durability;
use super::health::Health;
pub use super::health::News;
use super::labels::Labels;
use super::line::TOOL_START;
use super::shelf::{Label, cut_title};
use super::store::StoreKey;
use crate::clock;

/// How transcripts are kept.
#[derive(Debug, Clone, Default)]
pub struct Keeping {
    /// How safe they are.
    pub durability: Durability,
    /// Whether the host gets a copy of each line.
    pub mirror: Mirror,
    /// The way to the store that keeps them, if that is not the disk.
    pub courier: Option<Courier>,
    /// Why they cannot be kept, where they should be.
    pub lost: Option<Arc<str>>,
}

/// Whether the host gets a copy of each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mirror {
    /// It does not.
    #[default]
    Off,
    /// It does, and cannot read a line of more than a megabyte.
    On,
    /// It does, and reads lines of any length.
    Whole,
}

impl Mirror {
    /// For a host that wants copies. Of the official SDKs, TypeScript's reads lines of any length; Python's ends on a long
    /// one.
    pub fn for_host(entrypoint: Option<&str>) -> Self {
        if entrypoint == Some("sdk-ts") { Self::Whole } else { Self::On }
    }

    /// Whether the host gets copies at all.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }
}

/// The way into a transcript; into nowhere if nothing is kept.
#[derive(Debug, Clone)]
pub struct Journal {
    session: Arc<str>,
    way: Way,
    title: Arc<Mutex<Title>>,
}

/// What the session is called.
#[derive(Debug, Default)]
struct Title {
    text: Option<String>,
    /// Whether the transcript does not say so yet.
    is_due: bool,
}

#[derive(Debug, Clone)]
enum Way {
    Nowhere,
    /// Nowhere, though what cannot be recorded must not be begun; and why.
    Lost(Arc<str>),
    File(Arc<Mutex<Pages>>),
    Store {
        courier: Courier,
        key: Arc<StoreKey>,
        durability: Durability,
    },
}

#[derive(Debug)]
struct Pages {
    file: Appender,
    mirror: Mirror,
    copies: Vec<RawJson>,
    labels: Labels,
    health: Health,
}

/// Lines that were added to a transcript.
#[derive(Debug)]
pub struct Copies {
    /// The transcript.
    pub path: PathBuf,
    /// The lines.
    pub lines: Vec<RawJson>,
    /// Which host they are for.
    pub mirror: Mirror,
}

impl Journal {
    /// The way into a file; none keeps nothing.
    pub fn new(session: &str, file: Option<Appender>, mirror: Mirror) -> Self {
        let pages = |file| Pages {
            file,
            mirror,
            copies: Vec::new(),
            labels: Labels::default(),
            health: Health::default(),
        };
        let way = file.map_or(Way::Nowhere, |file| Way::File(Arc::new(Mutex::new(pages(file)))));
        Self { session: session.into(), way, title: Arc::default() }
    }

    /// The way into a file; where there is none, nothing is kept, or nothing can be.
    pub(super) fn kept(session: &str, file: Option<Appender>, keeping: &Keeping) -> Self {
        let lost = keeping.lost.clone().filter(|_| keeping.durability == Durability::Strict);
        match (file, lost) {
            (None, Some(why)) => Self { way: Way::Lost(why), ..Self::new(session, None, keeping.mirror) },
            (file, _) => Self::new(session, file, keeping.mirror),
        }
    }

    /// The way into a store: to a session's own transcript, or to one below it.
    pub fn in_store(session: &str, below: Option<&str>, courier: &Courier, durability: Durability) -> Self {
        let own = StoreKey::session(courier.project(), session);
        let key = Arc::new(below.map_or_else(|| own.clone(), |below| own.below(below)));
        let way = Way::Store { courier: courier.clone(), key, durability };
        Self { session: session.into(), way, title: Arc::default() }
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.pages().map(|pages| pages.file.path().to_owned())
    }

    /// Writes one line, given without its end. Into a file it is written at once, to a store with [`Journal::deliver`].
    pub(super) fn write(&self, line: serde_json::Result<String>) -> io::Result<()> {
        let line = line.map_err(io::Error::other)?;
        if let Way::Store { courier, key, .. } = &self.way {
            courier.take(key, RawJson::parse(line).map_err(io::Error::other)?);
            return Ok(());
        }
        let Some(mut pages) = self.pages() else { return Ok(()) };
        if pages.mirror.is_on()
            && let Ok(copy) = RawJson::parse(line.as_str())
        {
            pages.copies.push(copy);
        }
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        let written = pages.file.append(bytes);
        pages.note(written)
    }

    /// Adds what stands in a file beside the transcript: a store, and a host that wants copies, have it as a line.
    pub(crate) fn beside(&self, line: RawJson) {
        match &self.way {
            Way::Store { courier, key, .. } => courier.take(key, line),
            Way::File(_) | Way::Nowhere | Way::Lost(_) => self.copy(vec![line]),
        }
    }

    /// What the session is called, if it is called anything.
    pub fn title(&self) -> Option<String> {
        self.called().text.clone()
    }

    /// What the session was called before.
    pub(crate) fn recall_title(&self, title: Option<String>) {
        self.called().text = title;
    }

    /// Calls the session something. It is written behind the next message; a title without any letters is none, and one that
    /// is too long is cut.
    pub(crate) fn call_it(&self, title: &str) {
        if let Some(title) = cut_title(title) {
            *self.called() = Title { text: Some(title), is_due: true };
        }
    }

    /// Calls the session something, and writes that down at once.
    pub(crate) async fn rename(&self, title: &str) -> io::Result<()> {
        self.call_it(title);
        self.write_title()?;
        match &self.way {
            Way::Store { courier, .. } => courier.deliver(Urgency::Now).await,
            Way::Nowhere | Way::Lost(_) | Way::File(_) => Ok(()),
        }
    }

    /// Writes down what the session is called, if it was called something since.
    pub(crate) fn write_title(&self) -> io::Result<()> {
        let due = {
            let mut title = self.called();
            std::mem::take(&mut title.is_due).then(|| title.text.clone()).flatten()
        };
        match due {
            Some(title) => {
                self.write(Ok(Label::title(&title, &self.session)?.to_line()?.as_str().to_owned()))
            }
            None => Ok(()),
        }
    }

    /// What the transcript of a session that goes on is recognised by.
    pub(crate) fn recall_labels(&self, labels: Labels) {
        if let Some(mut pages) = self.pages() {
            pages.labels = labels;
        }
    }

    /// Writes again what lists would not find any more. A store reads all lines, so there it is found.
    pub(super) fn renew_labels(&self) {
        let due = self.pages().map(|mut pages| {
            let Pages { file, labels, .. } = &mut *pages;
            file.medium().map_or(Ok(Vec::new()), |file| labels.due(file))
        });
        // What cannot be read now is looked at again after the next turn.
        for line in due.and_then(Result::ok).unwrap_or_default() {
            let _ = self.write(Ok(line));
        }
    }

    fn called(&self) -> MutexGuard<'_, Title> {
        self.title.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that what was written is in the store, if that is where it goes. What went wrong is news.
    pub(crate) async fn deliver(&self) {
        if let Way::Store { courier, .. } = &self.way {
            let _ = courier.deliver(Urgency::Soon).await;
        }
    }

    /// Notes that a call with effects is about to run. The error says why it must not.
    pub async fn begin(&self, call: &str, tool: &str) -> Result<(), String> {
        let line = json!({
            "type": TOOL_START,
            "toolUseID": call,
            "tool": tool,
            "sessionId": &*self.session,
            "timestamp": clock::timestamp(),
        });
        let looked = self.pages().map_or(Ok(()), |mut pages| pages.look());
        let written = looked.and(self.write(Ok(line.to_string())));
        let (written, durability) = match &self.way {
            Way::Nowhere => return Ok(()),
            Way::Lost(why) => (Err(io::Error::other(why.to_string())), Durability::Strict),
            Way::File(_) => (written, self.pages().map(|pages| pages.file.durability()).unwrap_or_default()),
            Way::Store { courier, durability, .. } => {
                let urgency = if *durability == Durability::Strict { Urgency::Now } else { Urgency::Soon };
                (courier.deliver(urgency).await, *durability)
            }
        };
        match written {
            Err(error) if durability == Durability::Strict => Err(format!(
                "Not made: its start cannot be recorded ({error}), and {} is strict. {}",
                Durability::VARIABLE,
                match &self.way {
                    Way::Store { .. } => "Mend the session store first.",
                    Way::File(_) => "Make room on the disk first.",
                    Way::Lost(_) | Way::Nowhere =>
                        "Set HOME or CLAUDE_CONFIG_DIR to a folder that can be written.",
                }
            )),
            _ => Ok(()),
        }
    }

    /// Notes which agent makes a call that has begun. What could not be written is kept like any other line.
    pub(crate) async fn entrust(&self, call: &str, agent: &str) {
        let line = json!({
            "type": TOOL_START,
            "toolUseID": call,
            "agentId": agent,
            "sessionId": &*self.session,
            "timestamp": clock::timestamp(),
        });
        let _ = self.write(Ok(line.to_string()));
        self.deliver().await;
    }

    /// Ends a turn: everything is written, and on the disk if that is wanted. What went wrong is news.
    pub async fn end_turn(&self) {
        if let Way::Store { courier, .. } = &self.way {
            let _ = courier.deliver(Urgency::Last).await;
        }
        if let Some(mut pages) = self.pages() {
            let written = pages.file.end_turn();
            let _ = pages.note(written).and_then(|()| pages.look());
        }
    }

    /// What the host does not know yet about the transcript.
    pub fn take_news(&self) -> Option<News> {
        match &self.way {
            Way::Nowhere | Way::Lost(_) => None,
            Way::File(_) => self.pages()?.health.take_news(),
            Way::Store { courier, .. } => courier.take_news(),
        }
    }

    /// The lines that the host wants a copy of and has not got yet.
    pub fn take_copies(&self) -> Option<Copies> {
        let mut pages = self.pages()?;
        let lines = std::mem::take(&mut pages.copies);
        (!lines.is_empty()).then(|| Copies {
            path: pages.file.path().to_owned(),
            lines,
            mirror: pages.mirror,
        })
    }

    /// Lines that are in the file already, for the host that wants a copy.
    pub(crate) fn copy(&self, lines: Vec<RawJson>) {
        if let Some(mut pages) = self.pages().filter(|pages| pages.mirror.is_on()) {
            pages.copies.extend(lines);
        }
    }

    fn pages(&self) -> Option<MutexGuard<'_, Pages>> {
        match &self.way {
            Way::File(pages) => Some(pages.lock().unwrap_or_else(PoisonError::into_inner)),
            Way::Nowhere | Way::Lost(_) | Way::Store { .. } => None,
        }
    }
}

impl Pages {
    /// Sees to it that the file is where it belongs.
    fn look(&mut self) -> io::Result<()> {
        match self.file.look() {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.health.renew();
                Ok(())
            }
            Err(error) => self.note(Err(error)),
        }
    }

    /// Notes how a write went.
    fn note(&mut self, written: io::Result<()>) -> io::Result<()> {
        if let Some(error) = self.file.take_unguarded() {
            self.health.unguard(error);
        }
        self.health.note(&written, 0);
        written
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
    fn a_disk_without_locks_is_told_of_once_and_written_to() {
        /// A file on a disk that has no locks.
        struct Bare(std::fs::File);

        impl medium::Medium for Bare {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                medium::Medium::write(&mut self.0, bytes)
            }
            fn position(&mut self) -> io::Result<u64> {
                self.0.position()
            }
            fn length(&mut self) -> io::Result<u64> {
                self.0.length()
            }
            fn cut(&mut self, length: u64) -> io::Result<()> {
                self.0.cut(length)
            }
            fn sync(&mut self) -> io::Result<()> {
                self.0.sync()
            }
            fn is_at(&self, path: &std::path::Path) -> bool {
                self.0.is_at(path)
            }
            fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
                medium::Medium::read_at(&self.0, offset, into)
            }
            fn take_fault(&mut self) -> Option<io::Error> {
                Some(nix::errno::Errno::ENOLCK.into())
            }
        }

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let open =
            |path: &std::path::Path| Ok(Box::new(Bare(medium::open(path)?)) as Box<dyn medium::Medium>);
        let file = Appender::opened_by(path.clone(), Durability::System, Box::new(open));
        let journal = Journal::new("s", Some(file), Mirror::Off);
        journal.write(Ok("1".to_owned())).unwrap();
        assert!(matches!(journal.take_news(), Some(News::Unguarded(_))));
        std::fs::remove_file(&path).unwrap();
        journal.pages().unwrap().look().unwrap();
        journal.write(Ok("2".to_owned())).unwrap();
        assert!(matches!(journal.take_news(), Some(News::Renewed)));
        assert!(journal.take_news().is_none());
        assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n2\n");
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_is_made_all_the_same_unless_strict() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, made) in
            [(Durability::System, true), (Durability::Turn, true), (Durability::Strict, false)]
        {
            let (journal, _) = journal(folder.path().join("x.jsonl"), durability);
            assert_eq!(journal.begin("t1", "Bash").await.is_ok(), made, "{durability:?}");
            let nowhere = |lost: Option<&str>| {
                let keeping = Keeping { durability, lost: lost.map(Into::into), ..Keeping::default() };
                Journal::kept("s", None, &keeping)
            };
            let lost = nowhere(Some("no home")).begin("t1", "Bash").await;
            assert_eq!(
                lost.as_ref().map_err(|why| why.contains("(no home)")),
                if made { Ok(&()) } else { Err(true) }
            );
            assert!(nowhere(None).begin("t1", "Bash").await.is_ok(), "nothing was to be kept");
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
