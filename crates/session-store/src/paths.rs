//! Paths of transcripts. Layout and names are those of the official engine, so that its tools find them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;
use whimbrel_os::files::{self, FileKind};

use crate::append_file;
use crate::entry::{TranscriptEntry, parse_uuid};
use crate::line_reader::{LineReader, ScannedLine};
use crate::lock::{self, LockProbe};

/// Longer keys are truncated and get a hash.
pub(crate) const MAX_KEY_LEN: usize = 200;

/// Directory of long tool output, below the session's directory.
pub(super) const TOOL_RESULTS: &str = "tool-results";

/// Directory of subagent transcripts, below the session's directory.
pub(super) const SUBAGENTS: &str = "subagents";

/// Lines searched for the working directory of a session.
const MAX_CWD_SEARCH_LINES: usize = 100;

const MAX_DIR_ENTRIES: usize = 1_000_000;

/// The directory of all sessions of one working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptDir {
    path: PathBuf,
}

impl TranscriptDir {
    /// The directory for sessions that work in `cwd`.
    pub fn new(config: &Path, cwd: &Path) -> Self {
        Self { path: config.join("projects").join(project_key(&cwd.to_string_lossy())) }
    }

    /// Path of a session's transcript.
    pub fn transcript(&self, session: &str) -> PathBuf {
        self.path.join(format!("{session}.jsonl"))
    }

    /// Finds the directory that contains a session, and the capitalization of its id there.
    pub fn find_session(&self, session: &str) -> Option<(Self, String)> {
        id_capitalizations(session)
            .into_iter()
            .find_map(|session| Some((self.find_exact(&session)?, session)))
    }

    /// Finds the directory that contains a session: this one or, for truncated keys, another one with the same prefix,
    /// because engines differ in the hash they append.
    fn find_exact(&self, session: &str) -> Option<Self> {
        let has_session =
            |project: &Self| matches!(files::file_kind(&project.transcript(session)), Ok(FileKind::File(_)));
        if has_session(self) {
            return Some(self.clone());
        }
        let name = self.path.file_name()?.to_str()?;
        let (prefix, _) = name.split_at_checked(MAX_KEY_LEN)?;
        let others = files::entry_names(self.path.parent()?, MAX_DIR_ENTRIES);
        let candidates =
            others.into_iter().filter(|other| other.starts_with(prefix) && other.len() > MAX_KEY_LEN);
        candidates.map(|other| Self { path: self.path.with_file_name(other) }).find(has_session)
    }

    /// Finds a transcript in another project, or here in another capitalization, that uses a session id. Checkpoints
    /// and other files next to transcripts are named by the id alone. Probes the locks of empty transcripts.
    pub fn find_id_conflict(&self, session: &str) -> Option<PathBuf> {
        let is_used = |path: &PathBuf| match files::file_kind(path) {
            // An empty transcript counts only while it is locked.
            Ok(FileKind::File(stamp)) => stamp.size > 0 || lock::probe(path) == LockProbe::Busy,
            _ => false,
        };
        // Compares names, because on case-insensitive filesystems every capitalization opens the same file.
        let own_path = self.transcript(session);
        let other_capitalization = |name: &String| {
            let path = self.path.join(name);
            path != own_path && path.as_os_str().eq_ignore_ascii_case(&own_path)
        };
        let siblings = self.path.parent().map(|projects| files::entry_names(projects, MAX_DIR_ENTRIES));
        let projects =
            siblings.into_iter().flatten().map(|name| Self { path: self.path.with_file_name(name) });
        let mut elsewhere = projects
            .filter(|project| project != self)
            .flat_map(|project| id_capitalizations(session).map(|id| project.transcript(&id)));
        let here = || {
            let names =
                files::entry_names(&self.path, MAX_DIR_ENTRIES).into_iter().filter(other_capitalization);
            names.map(|name| self.path.join(name)).find(is_used)
        };
        elsewhere.find(is_used).or_else(here)
    }

    /// Ids of the sessions here, newest first.
    pub fn sessions(&self) -> Vec<String> {
        let mut found: Vec<_> = files::entry_names(&self.path, MAX_DIR_ENTRIES)
            .into_iter()
            .filter_map(|name| {
                let session = name.strip_suffix(".jsonl").filter(|id| is_session_id(id))?;
                match files::file_kind(&self.transcript(session)) {
                    Ok(FileKind::File(stamp)) => Some((stamp.modified, session.to_owned())),
                    _ => None,
                }
            })
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, session)| session).collect()
    }

    /// Checks whether a session here belongs to another directory with the same key. A session moved here from a
    /// directory with another key belongs here.
    pub fn belongs_to_other_dir(&self, session: &str, dir: &Path) -> bool {
        has_other_cwd(&self.transcript(session), dir)
    }

    /// Directory of a session's subagent transcripts.
    pub fn subagents_dir(&self, session: &str) -> PathBuf {
        self.path.join(session).join(SUBAGENTS)
    }

    /// Directory of a session's long tool output.
    pub fn tool_results_dir(&self, session: &str) -> PathBuf {
        self.path.join(session).join(TOOL_RESULTS)
    }
}

/// Checks for a UUID in its hyphenated form.
pub fn is_session_id(text: &str) -> bool {
    parse_uuid(text).is_some()
}

/// Possible capitalizations of an id, the given one first; some systems write uppercase.
fn id_capitalizations(session: &str) -> [String; 3] {
    [session.to_owned(), session.to_ascii_lowercase(), session.to_ascii_uppercase()]
}

/// Directory name for a working directory, normalized to NFC: everything but ASCII letters and digits becomes `-`; long
/// names get a hash.
pub fn project_key(path: &str) -> String {
    let path: &str = &path.nfc().collect::<String>();
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if key.len() <= MAX_KEY_LEN {
        return key;
    }
    format!("{}-{}", &key[..MAX_KEY_LEN], base36(sdk_path_hash(path)))
}

/// Checks whether a transcript records a different working directory with the same key.
pub(super) fn has_other_cwd(transcript: &Path, dir: &Path) -> bool {
    let Some(cwd) = append_file::open_for_reading(transcript).ok().and_then(first_cwd) else { return false };
    let composed = |path: &Path| path.to_string_lossy().nfc().collect::<String>();
    let (here, there) = (composed(dir), composed(Path::new(&cwd)));
    project_key(&here) == project_key(&there)
        && here != there
        && files::real_path(Path::new(&cwd)).is_none_or(|real| composed(&real) != here)
}

/// The first working directory recorded in a transcript.
fn first_cwd(transcript: File) -> Option<String> {
    let mut lines = LineReader::new(BufReader::new(transcript));
    for _ in 0..MAX_CWD_SEARCH_LINES {
        let (ScannedLine::Complete(_, line) | ScannedLine::Unterminated(_, line)) =
            lines.read_line().ok()??
        else {
            continue;
        };
        if let Some(cwd) = TranscriptEntry::parse(line).and_then(|(line, _)| Some(line.cwd()?.into_owned())) {
            return Some(cwd);
        }
    }
    None
}

/// The hash of the official SDKs: 32-bit `h * 31 + c` over UTF-16 units.
fn sdk_path_hash(path: &str) -> u32 {
    path.encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
        .unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::TranscriptLock;

    #[test]
    fn working_directory_becomes_project_key() {
        assert_eq!(project_key("/home/ann/my.app"), "-home-ann-my-app");
        assert_eq!(
            project_key("/cafe\u{301}"),
            project_key("/caf\u{e9}"),
            "however its characters are spelled"
        );
    }

    #[test]
    fn sessions_are_listed_by_time_and_found_by_truncated_key() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!("/{}", "x".repeat(250));
        let project = TranscriptDir::new(dir.path(), Path::new(&long));
        let name = project.path.file_name().unwrap().to_str().unwrap();
        let other = project.path.with_file_name(format!("{}-other", &name[..MAX_KEY_LEN]));
        let ids = ["aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555"];
        std::fs::create_dir_all(&other).unwrap();
        for (age, id) in ids.iter().enumerate() {
            let path = other.join(format!("{id}.jsonl"));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 - age as u64);
            File::create(path).unwrap().set_modified(time).unwrap();
        }
        std::fs::write(other.join("notes.jsonl"), "").unwrap();
        assert_eq!(project.sessions(), Vec::<String>::new());
        let (holding, id) = project.find_session(&ids[1].to_uppercase()).unwrap();
        assert_eq!((&holding.path, id.as_str()), (&other, ids[1]));
        assert_eq!(holding.sessions(), ids.map(str::to_owned).to_vec());
        assert_eq!(TranscriptDir::new(dir.path(), Path::new("/x")).find_session(ids[0]), None);
    }

    #[test]
    fn id_in_use_is_found_across_projects_and_capitalizations() {
        let config = tempfile::tempdir().unwrap();
        let [here, there] = ["/a", "/b"].map(|dir| TranscriptDir::new(config.path(), Path::new(dir)));
        let id = "aaaaaaaa-2222-4333-8444-555555555555";
        assert!(here.find_id_conflict(id).is_none(), "no transcript");
        let lock = TranscriptLock::claim(&there.transcript(id)).unwrap().unwrap();
        assert!(here.find_id_conflict(id).is_some() && here.find_id_conflict(&id.to_uppercase()).is_some());
        assert!(there.find_id_conflict(id).is_none(), "its own project is no conflict");
        assert!(there.find_id_conflict(&id.to_uppercase()).is_some(), "another capitalization");
        drop(lock);
        std::fs::write(there.transcript(id), "").unwrap();
        assert!(here.find_id_conflict(id).is_none(), "an empty transcript of a killed engine");
        std::fs::write(there.transcript(id), "{}\n").unwrap();
        assert!(here.find_id_conflict(id).is_some());
        for (text, expected) in [(id, true), (&id.replace('-', ""), false), (&format!("{{{id}}}"), false)] {
            assert_eq!(is_session_id(text), expected, "{text}");
        }
    }

    #[test]
    fn directories_with_equal_keys_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("app/api")).unwrap();
        std::fs::create_dir_all(top.join("app-api")).unwrap();
        std::os::unix::fs::symlink("app-api", top.join("app.api")).unwrap();
        let path = top.join("t.jsonl");
        let here = top.join("app-api");
        let rows = [
            (here.clone(), false),
            (top.join("app/api"), true),
            (top.join("app.api"), false),
            (top.join("app_api"), true),
            ("/x".into(), false),
        ];
        for (cwd, expected) in rows {
            let hidden_text = serde_json::json!({"type": "brief", "text": "x"});
            let entry = serde_json::json!({"type": "user", "cwd": cwd});
            std::fs::write(&path, format!("{hidden_text}\n{entry}\n")).unwrap();
            assert_eq!(has_other_cwd(&path, &here), expected, "{}", cwd.display());
        }
        std::fs::write(&path, "no line\n").unwrap();
        assert!(!has_other_cwd(&path, &here));
    }

    #[test]
    fn long_keys_are_truncated_and_distinct() {
        let (one, two) = ("/x".repeat(150), format!("{}/y", "/x".repeat(150)));
        let (one, two) = (project_key(&one), project_key(&two));
        assert!(one.len() < 210 && one[..200] == two[..200] && one != two);
    }
}
