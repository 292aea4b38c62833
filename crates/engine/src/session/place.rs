//! Where transcripts lie: the same place and names as the official engine uses, so that its readers find them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use super::line::Line;
use super::lines::{Lines, Step};
use super::lock::{Lock, LockError};
use super::medium;
use crate::files::{self, Kind};

/// How long a folder name may be before it is cut.
const LONGEST: usize = 200;

/// The folder of long tool output, below that of its session.
pub(super) const TOOL_RESULTS: &str = "tool-results";

/// The folder of subagents' transcripts, below that of their session.
pub(super) const SUBAGENTS: &str = "subagents";

/// How many lines of a transcript are looked at for the folder of its session.
const HEAD: usize = 100;

/// How many names of a folder are looked at.
const MANY: usize = 1_000_000;

/// The folder of all sessions of one working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

impl Place {
    /// The place for sessions that work in `cwd`, below the configuration folder.
    pub fn new(config: &Path, cwd: &Path) -> Self {
        Self { folder: config.join("projects").join(project_key(&cwd.to_string_lossy())) }
    }

    /// The transcript of a session.
    pub fn transcript(&self, session: &str) -> PathBuf {
        self.folder.join(format!("{session}.jsonl"))
    }

    /// The place that has a session, and its id as it is spelled there.
    pub fn holding(&self, session: &str) -> Option<(Self, String)> {
        spellings(session).into_iter().find_map(|session| Some((self.holding_spelled(&session)?, session)))
    }

    /// The place that has a session: this one or, where the folder's name had to be cut, another with the same
    /// beginning, because engines differ in how they tell cut names apart.
    fn holding_spelled(&self, session: &str) -> Option<Self> {
        let holds = |place: &Self| matches!(files::kind(&place.transcript(session)), Ok(Kind::File(_)));
        if holds(self) {
            return Some(self.clone());
        }
        let name = self.folder.file_name()?.to_str()?;
        let (beginning, _) = name.split_at_checked(LONGEST)?;
        let others = files::names(self.folder.parent()?, MANY);
        let alike = others.into_iter().filter(|other| other.starts_with(beginning) && other.len() > LONGEST);
        alike.map(|other| Self { folder: self.folder.with_file_name(other) }).find(holds)
    }

    /// Whether an id is a session's already: of another folder, or here in another spelling. What is kept beside transcripts
    /// goes by the id alone.
    pub fn is_taken_elsewhere(&self, session: &str) -> bool {
        let is_used = |path: PathBuf| {
            match files::kind(&path) {
                // An empty one is somebody's only as long as it is held.
                Ok(Kind::File(stamp)) => {
                    stamp.size > 0 || matches!(Lock::take(&path), Err(LockError::Busy(_)))
                }
                _ => false,
            }
        };
        // Here by the names that there are: on some disks every spelling finds the session's own file.
        let own = self.transcript(session);
        let other_spelling = |name: &String| {
            let path = self.folder.join(name);
            path != own && path.as_os_str().eq_ignore_ascii_case(&own)
        };
        let folders = self.folder.parent().map(|projects| files::names(projects, MANY)).unwrap_or_default();
        let places = folders.into_iter().map(|name| Self { folder: self.folder.with_file_name(name) });
        let mut elsewhere = places
            .filter(|place| place != self)
            .flat_map(|place| spellings(session).map(|spelled| place.transcript(&spelled)));
        elsewhere.any(is_used)
            || files::names(&self.folder, MANY)
                .iter()
                .filter(|name| other_spelling(name))
                .any(|name| is_used(self.folder.join(name)))
    }

    /// The sessions here, the last one first.
    pub fn sessions(&self) -> Vec<String> {
        let mut found: Vec<_> = files::names(&self.folder, MANY)
            .into_iter()
            .filter_map(|name| {
                let session = name.strip_suffix(".jsonl").filter(|id| is_id(id))?;
                match files::kind(&self.transcript(session)) {
                    Ok(Kind::File(stamp)) => Some((stamp.modified, session.to_owned())),
                    _ => None,
                }
            })
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, session)| session).collect()
    }

    /// Whether a session here says that it works in another folder than this one. Two folders may have one flat name; a
    /// session that was brought here from a folder of another name is at home here.
    pub fn is_of_another_folder(&self, session: &str, folder: &Path) -> bool {
        works_elsewhere(&self.transcript(session), folder)
    }

    /// The folder for the transcripts of a session's subagents.
    pub fn subagents(&self, session: &str) -> PathBuf {
        self.folder.join(session).join(SUBAGENTS)
    }

    /// The folder for a session's long tool output.
    pub fn tool_results(&self, session: &str) -> PathBuf {
        self.folder.join(session).join(TOOL_RESULTS)
    }
}

/// Whether a text can be the id of a session: a UUID in its usual form.
pub fn is_id(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// The ways to spell an id, beginning with the one that is given: some systems use capitals.
fn spellings(session: &str) -> [String; 3] {
    [session.to_owned(), session.to_ascii_lowercase(), session.to_ascii_uppercase()]
}

/// The folder name for a working directory, its characters put together as most systems do (NFC): everything but letters
/// and digits becomes `-`; long names get a hash.
pub fn project_key(path: &str) -> String {
    let path: &str = &path.nfc().collect::<String>();
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if key.len() <= LONGEST {
        return key;
    }
    format!("{}-{}", &key[..LONGEST], base36(path_hash(path)))
}

/// Whether a transcript says that its session works in another folder of the same flat name.
pub(super) fn works_elsewhere(transcript: &Path, folder: &Path) -> bool {
    let Some(cwd) = medium::read(transcript).ok().and_then(first_folder) else { return false };
    let spelled = |path: &Path| path.to_string_lossy().nfc().collect::<String>();
    let (here, there) = (spelled(folder), spelled(Path::new(&cwd)));
    project_key(&here) == project_key(&there)
        && here != there
        && files::real_path(Path::new(&cwd)).is_none_or(|real| spelled(&real) != here)
}

/// The folder that a session began to work in.
fn first_folder(transcript: File) -> Option<String> {
    let mut lines = Lines::new(BufReader::new(transcript));
    for _ in 0..HEAD {
        let (Step::Line(_, line) | Step::Tail(_, line)) = lines.next().ok()?? else { continue };
        if let Some(cwd) = Line::read(line).and_then(|(line, _)| Some(line.cwd()?.into_owned())) {
            return Some(cwd);
        }
    }
    None
}

/// The hash of the official SDKs: 32-bit `h * 31 + c` over UTF-16 units.
fn path_hash(path: &str) -> u32 {
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
        let place = Place::new(folder.path(), Path::new(&long));
        let name = place.folder.file_name().unwrap().to_str().unwrap();
        let other = place.folder.with_file_name(format!("{}-other", &name[..LONGEST]));
        let ids = ["aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555"];
        std::fs::create_dir_all(&other).unwrap();
        for (age, id) in ids.iter().enumerate() {
            let path = other.join(format!("{id}.jsonl"));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 - age as u64);
            File::create(path).unwrap().set_modified(time).unwrap();
        }
        std::fs::write(other.join("notes.jsonl"), "").unwrap();
        assert_eq!(place.sessions(), Vec::<String>::new());
        let (holding, spelled) = place.holding(&ids[1].to_uppercase()).unwrap();
        assert_eq!((&holding.folder, spelled.as_str()), (&other, ids[1]));
        assert_eq!(holding.sessions(), ids.map(str::to_owned).to_vec());
        assert_eq!(Place::new(folder.path(), Path::new("/x")).holding(ids[0]), None);
    }

    #[test]
    fn an_id_is_one_sessions_in_all_folders_and_spellings() {
        let config = tempfile::tempdir().unwrap();
        let [here, there] = ["/a", "/b"].map(|folder| Place::new(config.path(), Path::new(folder)));
        let id = "aaaaaaaa-2222-4333-8444-555555555555";
        assert!(!here.is_taken_elsewhere(id), "nothing is there");
        let lock = Lock::claim(&there.transcript(id)).unwrap().unwrap();
        assert!(here.is_taken_elsewhere(id) && here.is_taken_elsewhere(&id.to_uppercase()));
        assert!(!there.is_taken_elsewhere(id), "its own place is not elsewhere");
        assert!(there.is_taken_elsewhere(&id.to_uppercase()), "the same in other letters");
        drop(lock);
        std::fs::write(there.transcript(id), "").unwrap();
        assert!(!here.is_taken_elsewhere(id), "what a killed engine left is free");
        std::fs::write(there.transcript(id), "{}\n").unwrap();
        assert!(here.is_taken_elsewhere(id));
        for (text, expected) in [(id, true), (&id.replace('-', ""), false), (&format!("{{{id}}}"), false)] {
            assert_eq!(is_id(text), expected, "{text}");
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
            assert_eq!(works_elsewhere(&path, &here), expected, "{}", cwd.display());
        }
        std::fs::write(&path, "no line\n").unwrap();
        assert!(!works_elsewhere(&path, &here));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let (one, two) = ("/x".repeat(150), format!("{}/y", "/x".repeat(150)));
        let (one, two) = (project_key(&one), project_key(&two));
        assert!(one.len() < 210 && one[..200] == two[..200] && one != two);
    }
}
