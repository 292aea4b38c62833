//! All sessions that are kept on disk: finding them, naming them, removing them. What is in them is read elsewhere.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;
use serde::Serialize;
use uuid::Uuid;
use whimbrel_wire::RawJson;

use super::checkpoint;
use super::lock::{self, Lock, LockError};
use super::place::{project_key, works_elsewhere};
use super::summary::Summary;
use crate::files::{self, Kind};
use crate::permission::{is_unseen, paths};

/// The word for the newest session.
pub const LAST: &str = "last";
/// The shortest beginning of an id that is looked for.
const SHORTEST: usize = 4;
/// How long the name of a project's folder is before a hash, which differs between programs.
const PROJECT: usize = 200;

/// Where sessions are kept.
#[derive(Debug, Clone)]
pub struct Shelf {
    config: PathBuf,
}

/// A session that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// Its transcript.
    pub path: PathBuf,
    /// When that was changed last.
    pub modified: SystemTime,
    /// How many bytes it has.
    pub size: u64,
}

/// Why no session was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is none of that name.
    #[error("No session {0} is kept. `whimbrel sessions` lists those that are.")]
    Unknown(String),
    /// The name is not clear.
    #[error("{0} could be any of {1}. Give more of the id.")]
    Unclear(String, String),
    /// The name cannot be one.
    #[error("{0:?} is no session: give an id, at least four letters of its beginning, or `last`.")]
    NoName(String),
    /// The folder could not be read.
    #[error("The sessions cannot be read: {0}.")]
    Unreadable(#[from] io::Error),
}

impl Shelf {
    /// The sessions below a folder of settings.
    pub fn new(config: PathBuf) -> Self {
        Self { config }
    }

    /// All sessions, or those of one working directory; the newest first. An id that is there twice counts once.
    pub fn sessions(&self, project: Option<&Path>) -> io::Result<Vec<Stored>> {
        let mut newest: HashMap<String, Stored> = HashMap::new();
        let here = project.map(paths::real);
        let is_meant =
            |stored: &Stored| here.as_ref().is_none_or(|here| !works_elsewhere(&stored.path, here));
        for folder in self.projects(project)? {
            for stored in in_folder(&folder).into_iter().filter(is_meant) {
                let known = newest.get(&stored.id).is_some_and(|known| known.modified >= stored.modified);
                if !known {
                    newest.insert(stored.id.clone(), stored);
                }
            }
        }
        let mut sessions: Vec<Stored> = newest.into_values().collect();
        sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(sessions)
    }

    /// The folders of projects.
    fn projects(&self, project: Option<&Path>) -> io::Result<Vec<PathBuf>> {
        let root = self.config.join("projects");
        let names = match files::kind(&root)? {
            Kind::Missing => return Ok(Vec::new()),
            Kind::Folder => files::names(&root, usize::MAX),
            _ => return Err(io::Error::other(format!("{} is not a folder", root.display()))),
        };
        let key = project.map(|folder| project_key(&paths::real(folder).to_string_lossy()));
        let is_meant = |name: &String| match &key {
            None => true,
            Some(key) if key.len() <= PROJECT => name == key,
            Some(key) => name.starts_with(&key[..=PROJECT]),
        };
        Ok(names.into_iter().filter(is_meant).map(|name| root.join(name)).collect())
    }

    /// Finds a session by its id, the beginning of it, or `last`.
    pub fn find(&self, name: &str) -> Result<Stored, FindError> {
        let name = name.trim().to_lowercase();
        let is_id = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if name != LAST && (!is_id || name.len() < SHORTEST) {
            return Err(FindError::NoName(name));
        }
        let mut sessions = self.sessions(None)?;
        if name == LAST {
            let has_words = |stored: &Stored| matches!(stored.summary(), Ok(Some(_)));
            return sessions.into_iter().find(has_words).ok_or(FindError::Unknown(name));
        }
        sessions.retain(|stored| stored.id.to_lowercase().starts_with(&name));
        match sessions.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(FindError::Unknown(name)),
            several => {
                let ids: Vec<&str> = several.iter().take(5).map(|stored| stored.id.as_str()).collect();
                Err(FindError::Unclear(name, ids.join(", ")))
            }
        }
    }

    /// Removes a session and all that belongs to it: what its subagents said, long output, copies of files. The
    /// transcript goes last, so that a removal that broke off can be repeated. A session that an engine has is not removed.
    pub fn delete(&self, stored: &Stored) -> io::Result<()> {
        self.delete_within(stored, lock::PATIENCE)
    }

    fn delete_within(&self, stored: &Stored, patience: Duration) -> io::Result<()> {
        let _lock = match files::kind(&stored.path)? {
            Kind::File(_) => Some(Lock::take_within(&stored.path, patience).map_err(not_had)?),
            _ => None,
        };
        files::remove_folder(&checkpoint::folder(&self.config, &stored.id))?;
        files::remove_folder(&stored.path.with_extension(""))?;
        files::remove(&stored.path)
    }
}

fn not_had(error: LockError) -> io::Error {
    match error {
        LockError::Busy(busy) => {
            io::Error::new(io::ErrorKind::ResourceBusy, format!("it is {busy}; end that first"))
        }
        LockError::Io(error) => error,
    }
}

/// The sessions in the folder of a project.
fn in_folder(folder: &Path) -> Vec<Stored> {
    let stored = |name: String| {
        let id = name.strip_suffix(".jsonl").filter(|id| id.len() == 36 && Uuid::try_parse(id).is_ok())?;
        let path = folder.join(&name);
        match files::kind(&path) {
            Ok(Kind::File(stamp)) => {
                Some(Stored { id: id.to_owned(), path, modified: stamp.modified, size: stamp.size })
            }
            _ => None,
        }
    };
    files::names(folder, usize::MAX).into_iter().filter_map(stored).collect()
}

/// How many characters a title or a tag may have: lists read only the ends of a transcript.
const LONGEST_NAME: usize = 1_000;

/// A line that names a session; the official SDKs write and read the same.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Label<'a> {
    CustomTitle { custom_title: String, session_id: &'a str },
    Tag { tag: String, session_id: &'a str },
}

impl<'a> Label<'a> {
    /// A title. One without any letters is refused, and so is one that no list could show.
    pub(super) fn title(text: &str, session_id: &'a str) -> io::Result<Self> {
        Ok(Self::CustomTitle { custom_title: title(text)?, session_id })
    }

    /// A tag, or that there is none any more.
    pub(super) fn tag(tag: Option<&str>, session_id: &'a str) -> io::Result<Self> {
        let tag = match tag {
            Some(tag) => named("A tag", tag)?,
            None => String::new(),
        };
        Ok(Self::Tag { tag, session_id })
    }

    pub(super) fn to_line(&self) -> io::Result<RawJson> {
        Ok(RawJson::of(self)?)
    }
}

impl Stored {
    /// What it is about; none if there is nothing to recognise it by.
    pub fn summary(&self) -> io::Result<Option<Summary>> {
        Summary::read(&self.id, &self.path)
    }

    /// Gives it a title. A title without any letters is refused.
    pub fn rename(&self, title: &str) -> io::Result<()> {
        self.append(&Label::title(title, &self.id)?)
    }

    /// Gives it a tag, or takes it away.
    pub fn tag(&self, tag: Option<&str>) -> io::Result<()> {
        self.append(&Label::tag(tag, &self.id)?)
    }

    /// Appends a line in one write. The file is never made anew: a session that is gone stays gone.
    fn append(&self, label: &Label<'_>) -> io::Result<()> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let mut file = OpenOptions::new().append(true).custom_flags(flags.bits()).open(&self.path)?;
        let end = files::ends(&self.path, 1)?.tail;
        // The last line may be cut off.
        let mut line = if end.is_empty() || end == b"\n" { Vec::new() } else { vec![b'\n'] };
        serde_json::to_writer(&mut line, label)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

/// A text on one line, without letters that show nothing; none if nothing is left.
pub(super) fn words(text: &str) -> Option<String> {
    let is_hidden = |letter: char| is_unseen(letter) || matches!(letter, '\u{e000}'..='\u{f8ff}');
    let shown: String = text.chars().filter(|letter| !is_hidden(*letter)).collect();
    let line = shown.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// A title as it is kept.
pub(crate) fn title(text: &str) -> io::Result<String> {
    named("A title", text)
}

/// The same, but one that is too long is cut; none if nothing is left.
pub(super) fn cut_title(text: &str) -> Option<String> {
    Some(words(text)?.chars().take(LONGEST_NAME).collect())
}

fn named(what: &str, text: &str) -> io::Result<String> {
    let bad = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what} {why}.")));
    match words(text) {
        None => bad("needs at least one letter".into()),
        Some(words) if words.chars().count() > LONGEST_NAME => {
            bad(format!("may have {LONGEST_NAME} characters; this one has {}", words.chars().count()))
        }
        Some(words) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const ONE: &str = "11111111-2222-4333-8444-555555555555";
    const TWO: &str = "11111111-aaaa-4333-8444-555555555555";

    /// A folder of settings with sessions: project, id, text, age.
    fn shelf(sessions: &[(&str, &str, &str, u64)]) -> (tempfile::TempDir, Shelf) {
        let folder = tempfile::tempdir().unwrap();
        for (project, id, text, age) in sessions {
            let path = folder.path().join("projects").join(project).join(format!("{id}.jsonl"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let time = fs::metadata(&path).unwrap().modified().unwrap() - Duration::from_secs(*age);
            OpenOptions::new().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        let shelf = Shelf::new(folder.path().to_path_buf());
        (folder, shelf)
    }

    fn prompt(text: &str) -> String {
        format!("{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n")
    }

    #[test]
    fn sessions_are_found_by_project_and_by_name_the_newest_first() {
        let hi = prompt("hi");
        let (folder, shelf) = shelf(&[
            ("-w", ONE, &hi, 20),
            ("-x", TWO, &hi, 10),
            ("-x", ONE, &hi, 30),
            ("-w", "notes", "", 0),
        ]);
        symlink("gone", folder.path().join(format!("projects/-w/{}.jsonl", TWO.replace('1', "3")))).unwrap();
        let ids = |sessions: Vec<Stored>| sessions.into_iter().map(|stored| stored.id).collect::<Vec<_>>();
        assert_eq!(ids(shelf.sessions(None).unwrap()), [TWO, ONE]);
        assert_eq!(ids(shelf.sessions(Some(Path::new("/w"))).unwrap()), [ONE]);
        assert_eq!(ids(shelf.sessions(Some(Path::new("/gone"))).unwrap()), [""; 0]);
        assert_eq!(shelf.find(ONE).unwrap().path, folder.path().join(format!("projects/-w/{ONE}.jsonl")));
        assert_eq!(shelf.find("11111111-A").unwrap().id, TWO);
        assert_eq!(shelf.find("last").unwrap().id, TWO);
        for (name, words) in
            [("1111", "any of"), ("9999", "No session"), ("11", "is no session"), ("../x", "is no session")]
        {
            let error = shelf.find(name).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        let nobody = Shelf::new(folder.path().join("gone"));
        assert_eq!(nobody.sessions(None).unwrap(), []);
    }

    #[test]
    fn a_title_and_a_tag_are_lines_of_their_own_also_after_a_torn_one() {
        let (_folder, shelf) = shelf(&[("-w", ONE, &format!("{}{{\"type\":\"assi", prompt("hi")), 0)]);
        let stored = shelf.find(ONE).unwrap();
        stored.rename("  My\n title\u{202e} ").unwrap();
        stored.tag(Some("work")).unwrap();
        let text = fs::read_to_string(&stored.path).unwrap();
        let expected = format!(
            "{{\"type\":\"custom-title\",\"customTitle\":\"My title\",\"sessionId\":\"{ONE}\"}}\n{{\"type\":\"tag\",\"tag\":\"work\",\"sessionId\":\"{ONE}\"}}\n"
        );
        assert!(text.ends_with(&format!("assi\n{expected}")), "{text}");
        let summary = stored.summary().unwrap().unwrap();
        assert_eq!((summary.summary.as_str(), summary.tag.as_deref()), ("My title", Some("work")));
        stored.tag(None).unwrap();
        assert_eq!(stored.summary().unwrap().unwrap().tag, None);
        for text in ["", " \n", "\u{200b}"] {
            assert_eq!(stored.rename(text).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        fs::remove_file(&stored.path).unwrap();
        assert_eq!(stored.rename("late").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!stored.path.exists());
    }

    #[test]
    fn a_copy_has_the_long_output_of_its_own() {
        let (folder, shelf) = shelf(&[("-w", ONE, "", 0)]);
        let old = folder.path().join(format!("projects/-w/{ONE}/tool-results"));
        fs::create_dir_all(old.join("tasks")).unwrap();
        fs::write(old.join("o1.txt"), "long").unwrap();
        fs::write(old.join("tasks/b1.output"), "longer").unwrap();
        let line = serde_json::json!({"type": "user", "uuid": "a", "parentUuid": null,
            "message": {"role": "user", "content": format!("all of it is in {}", old.join("o1.txt").display())}});
        let stored = shelf.find(ONE).unwrap();
        fs::write(&stored.path, format!("{line}\n")).unwrap();
        let elsewhere =
            serde_json::json!({"type": "content-replacement", "sessionId": ONE, "replacements": [1]});
        fs::write(&stored.path, format!("{line}\n{elsewhere}\n")).unwrap();
        let copy = stored.fork(None, None).unwrap();
        shelf.delete(&stored).unwrap();
        let text = fs::read_to_string(&copy.path).unwrap();
        let line_of_copy = elsewhere.to_string().replace(ONE, &copy.id);
        assert!(text.contains(&line_of_copy), "which parts lie elsewhere is copied: {text}");
        let new = copy.path.with_extension("").join("tool-results");
        assert!(text.contains(new.join("o1.txt").to_str().unwrap()) && !text.contains(old.to_str().unwrap()));
        assert_eq!(fs::read_to_string(new.join("o1.txt")).unwrap(), "long");
        assert_eq!(fs::read_to_string(new.join("tasks/b1.output")).unwrap(), "longer");
    }

    #[test]
    fn a_session_that_an_engine_has_is_not_removed() {
        let (_folder, shelf) = shelf(&[("-w", ONE, &prompt("hi"), 0)]);
        let stored = shelf.find(ONE).unwrap();
        let held = Lock::take(&stored.path).unwrap();
        let error = shelf.delete_within(&stored, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert!(stored.path.exists() && held.is_seen());
        drop(held);
        shelf.delete(&stored).unwrap();
        assert_eq!(files::names(stored.path.parent().unwrap(), 9), [""; 0]);
    }

    #[test]
    fn a_session_goes_with_all_that_belongs_to_it_and_nothing_else() {
        let (folder, shelf) = shelf(&[("-w", ONE, &prompt("hi"), 0), ("-w", TWO, &prompt("ho"), 0)]);
        let below = [
            format!("projects/-w/{ONE}/subagents"),
            format!("file-history/{ONE}"),
            format!("file-history/{TWO}"),
        ];
        for name in &below {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("x"), "x").unwrap();
        }
        let stored = shelf.find(ONE).unwrap();
        shelf.delete(&stored).unwrap();
        shelf.delete(&stored).unwrap();
        let left: Vec<bool> = below.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [false, false, true]);
        assert_eq!(files::names(&folder.path().join("projects/-w"), 9), [format!("{TWO}.jsonl")]);
    }
}
