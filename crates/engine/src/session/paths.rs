//! Where transcripts lie: the same place and names as the official engine uses, so that its readers find them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use super::entry::TranscriptEntry;
use super::line_reader::{LineReader, ScannedLine};
use super::lock::{TranscriptLock, LockError};
use super::append_file;
use crate::files::{self, FileKind};

/// How long a folder name may be before it is cut.
const MAX_KEY_LEN: usize = 200;

/// The folder of long tool output, below that of its session.
pub(super) const TOOL_RESULTS: &str = "tool-results";

/// The folder of subagents' transcripts, below that of their session.
pub(super) const SUBAGENTS: &str = "subagents";

/// How many lines of a transcript are looked at for the folder of its session.
const MAX_CWD_SEARCH_LINES: usize = 100;

/// How many names of a folder are looked at.
const MAX_DIR_ENTRIES: usize = 1_000_000;

/// The folder of all sessions of one working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDir {
    path: PathBuf,
}

impl ProjectDir {
    /// The place for sessions that work in `cwd`, below the configuration folder.
    pub fn new(config: &Path, cwd: &Path) -> Self {
        Self { path: config.join("projects").join(project_key(&cwd.to_string_lossy())) }
    }

    /// The transcript of a session.
    pub fn transcript(&self, session: &str) -> PathBuf {
        self.path.join(format!("{session}.jsonl"))
    }

    /// The place that has a session, and its id as it is spelled there.
    pub fn find_session(&self, session: &str) -> Option<(Self, String)> {
        id_spellings(session).into_iter().find_map(|session| Some((self.find_exact(&session)?, session)))
    }

    /// The place that has a session: this one or, where the folder's name had to be cut, another with the same
    /// beginning, because engines differ in how they tell cut names apart.
    fn find_exact(&self, session: &str) -> Option<Self> {
        let holds = |place: &Self| matches!(files::file_kind(&place.transcript(session)), Ok(FileKind::File(_)));
        if holds(self) {
            return Some(self.clone());
        }
        let name = self.path.file_name()?.to_str()?;
        let (beginning, _) = name.split_at_checked(MAX_KEY_LEN)?;
        let others = files::entry_names(self.path.parent()?, MAX_DIR_ENTRIES);
        let alike = others.into_iter().filter(|other| other.starts_with(beginning) && other.len() > MAX_KEY_LEN);
        alike.map(|other| Self { path: self.path.with_file_name(other) }).find(holds)
    }

    /// Whether an id is a session's already: of another folder, or here in another spelling. What is kept beside transcripts
    /// goes by the id alone.
    pub fn is_id_used_elsewhere(&self, session: &str) -> bool {
        let is_used = |path: PathBuf| {
            match files::file_kind(&path) {
                // An empty one is somebody's only as long as it is held.
                Ok(FileKind::File(stamp)) => {
                    stamp.size > 0 || matches!(TranscriptLock::acquire(&path), Err(LockError::Busy(_)))
                }
                _ => false,
            }
        };
        // Here by the names that there are: on some disks every spelling finds the session's own file.
        let own = self.transcript(session);
        let other_spelling = |name: &String| {
            let path = self.path.join(name);
            path != own && path.as_os_str().eq_ignore_ascii_case(&own)
        };
        let folders = self.path.parent().map(|projects| files::entry_names(projects, MAX_DIR_ENTRIES)).unwrap_or_default();
        let places = folders.into_iter().map(|name| Self { path: self.path.with_file_name(name) });
        let mut elsewhere = places
            .filter(|place| place != self)
            .flat_map(|place| id_spellings(session).map(|spelled| place.transcript(&spelled)));
        elsewhere.any(is_used)
            || files::entry_names(&self.path, MAX_DIR_ENTRIES)
                .iter()
                .filter(|name| other_spelling(name))
                .any(|name| is_used(self.path.join(name)))
    }

    /// The sessions here, the last one first.
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

    /// Whether a session here says that it works in another folder than this one. Two folders may have one flat name; a
    /// session that was brought here from a folder of another name is at home here.
    pub fn belongs_to_other_dir(&self, session: &str, folder: &Path) -> bool {
        has_other_cwd(&self.transcript(session), folder)
    }

    /// The folder for the transcripts of a session's subagents.
    pub fn subagents_dir(&self, session: &str) -> PathBuf {
        self.path.join(session).join(SUBAGENTS)
    }

    /// The folder for a session's long tool output.
    pub fn tool_results_dir(&self, session: &str) -> PathBuf {
        self.path.join(session).join(TOOL_RESULTS)
    }
}

/// Whether a text can be the id of a session: a UUID in its usual form.
pub fn is_session_id(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// The ways to spell an id, beginning with the one that is given: some systems use capitals.
fn id_spellings(session: &str) -> [String; 3] {
    [session.to_owned(), session.to_ascii_lowercase(), session.to_ascii_uppercase()]
}

/// The folder name for a working directory, its characters put together as most systems do (NFC): everything but letters
/// and digits becomes `-`; long names get a hash.
pub fn project_key(path: &str) -> String {
    let path: &str = &path.nfc().collect::<String>();
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if key.len() <= MAX_KEY_LEN {
        return key;
    }
    format!("{}-{}", &key[..MAX_KEY_LEN], base36(sdk_path_hash(path)))
}

/// Whether a transcript says that its session works in another folder of the same flat name.
pub(super) fn has_other_cwd(transcript: &Path, folder: &Path) -> bool {
    let Some(cwd) = append_file::open_for_reading(transcript).ok().and_then(first_cwd) else { return false };
    let spelled = |path: &Path| path.to_string_lossy().nfc().collect::<String>();
    let (here, there) = (spelled(folder), spelled(Path::new(&cwd)));
    project_key(&here) == project_key(&there)
        && here != there
        && files::real_path(Path::new(&cwd)).is_none_or(|real| spelled(&real) != here)
}

/// The folder that a session began to work in.
fn first_cwd(transcript: File) -> Option<String> {
    let mut lines = LineReader::new(BufReader::new(transcript));
    for _ in 0..MAX_CWD_SEARCH_LINES {
        let (ScannedLine::Complete(_, line) | ScannedLine::Unterminated(_, line)) = lines.read_line().ok()?? else { continue };
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

    #[test]
    fn a_working_directory_becomes_a_flat_name() {
        assert_eq!(project_key("/home/ann/my.app"), "-home-ann-my-app");
        assert_eq!(
            project_key("/cafe\u{301}"),
            project_key("/caf\u{e9}"),
            "however its characters are spelled"
        );
    }

    #[test]
    fn sessions_are_found_by_time_and_by_the_beginning_of_a_long_name() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("/{}", "x".repeat(250));
        let place = ProjectDir::new(folder.path(), Path::new(&long));
        let name = place.path.file_name().unwrap().to_str().unwrap();
        let other = place.path.with_file_name(format!("{}-other", &name[..MAX_KEY_LEN]));
        let ids = ["aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555"];
        std::fs::create_dir_all(&other).unwrap();
        for (age, id) in ids.iter().enumerate() {
            let path = other.join(format!("{id}.jsonl"));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 - age as u64);
            File::create(path).unwrap().set_modified(time).unwrap();
        }
        std::fs::write(other.join("notes.jsonl"), "").unwrap();
        assert_eq!(place.sessions(), Vec::<String>::new());
        let (holding, spelled) = place.find_session(&ids[1].to_uppercase()).unwrap();
        assert_eq!((&holding.path, spelled.as_str()), (&other, ids[1]));
        assert_eq!(holding.sessions(), ids.map(str::to_owned).to_vec());
        assert_eq!(ProjectDir::new(folder.path(), Path::new("/x")).find_session(ids[0]), None);
    }

    #[test]
    fn an_id_is_one_sessions_in_all_folders_and_spellings() {
        let config = tempfile::tempdir().unwrap();
        let [here, there] = ["/a", "/b"].map(|folder| ProjectDir::new(config.path(), Path::new(folder)));
        let id = "aaaaaaaa-2222-4333-8444-555555555555";
        assert!(!here.is_id_used_elsewhere(id), "nothing is there");
        let lock = TranscriptLock::claim(&there.transcript(id)).unwrap().unwrap();
        assert!(here.is_id_used_elsewhere(id) && here.is_id_used_elsewhere(&id.to_uppercase()));
        assert!(!there.is_id_used_elsewhere(id), "its own place is not elsewhere");
        assert!(there.is_id_used_elsewhere(&id.to_uppercase()), "the same in other letters");
        drop(lock);
        std::fs::write(there.transcript(id), "").unwrap();
        assert!(!here.is_id_used_elsewhere(id), "what a killed engine left is free");
        std::fs::write(there.transcript(id), "{}\n").unwrap();
        assert!(here.is_id_used_elsewhere(id));
        for (text, expected) in [(id, true), (&id.replace('-', ""), false), (&format!("{{{id}}}"), false)] {
            assert_eq!(is_session_id(text), expected, "{text}");
        }
    }

    #[test]
    fn a_folder_of_the_same_flat_name_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
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
            let brief = serde_json::json!({"type": "brief", "text": "x"});
            let said = serde_json::json!({"type": "user", "cwd": cwd});
            std::fs::write(&path, format!("{brief}\n{said}\n")).unwrap();
            assert_eq!(has_other_cwd(&path, &here), expected, "{}", cwd.display());
        }
        std::fs::write(&path, "no line\n").unwrap();
        assert!(!has_other_cwd(&path, &here));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let (one, two) = ("/x".repeat(150), format!("{}/y", "/x".repeat(150)));
        let (one, two) = (project_key(&one), project_key(&two));
        assert!(one.len() < 210 && one[..200] == two[..200] && one != two);
    }
}
