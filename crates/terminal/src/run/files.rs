//! Effects on files, each on a thread for blocking work.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;

use super::edge::ReplySender;
use crate::app::event::Reply;
use crate::editor::Picture;
use crate::history;
use crate::pickers::NoteTarget;

/// Largest picture that is sent.
const MAX_PICTURE_BYTES: u64 = 20 * 1024 * 1024;

fn spawn(replies: ReplySender, work: impl FnOnce() -> Option<Reply> + Send + 'static) {
    tokio::task::spawn_blocking(move || {
        if let Some(reply) = work() {
            let _ = replies.send(reply);
        }
    });
}

pub(super) fn load_history(path: Option<PathBuf>, replies: ReplySender) {
    spawn(replies, move || path.map(|path| Reply::History(history::file::read(&path))));
}

pub(super) fn append_history(path: Option<PathBuf>, text: String, replies: ReplySender) {
    spawn(replies, move || {
        let path = path?;
        let failed = history::file::append(&path, &text).err()?;
        Some(Reply::Failed(format!("cannot keep the prompt in {}: {failed}", path.display())))
    });
}

pub(super) fn write_file(path: PathBuf, text: String, replies: ReplySender) {
    spawn(replies, move || {
        Some(match write_new(&path, &text) {
            Ok(()) => Reply::Done(format!("written to {}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Reply::Failed(format!("{} exists already: give another name", path.display()))
            }
            Err(error) => Reply::Failed(format!("cannot write {}: {error}", path.display())),
        })
    });
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

pub(super) fn append_note(
    target: NoteTarget,
    note: String,
    cwd: &Path,
    config_dir: Option<&Path>,
    replies: ReplySender,
) {
    let dir = match target {
        NoteTarget::Project => Some(cwd.to_owned()),
        NoteTarget::User => config_dir.map(Path::to_owned),
    };
    spawn(replies, move || {
        let Some(dir) = dir else {
            return Some(Reply::Failed("the configuration directory is unknown: set HOME".into()));
        };
        let path = dir.join("CLAUDE.md");
        Some(match append_line(&path, &note) {
            Ok(()) => Reply::Appended(target),
            Err(error) => Reply::Failed(format!("cannot write {}: {error}", path.display())),
        })
    });
}

/// Appends a note as an entry of a list, on a line of its own.
fn append_line(path: &Path, note: &str) -> io::Result<()> {
    let before = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    io::Write::write_all(&mut file, format!("{gap}- {note}\n").as_bytes())
}

/// Reads the picture that a pasted path names. A path of anything else stays text.
pub(super) fn read_picture(path: PathBuf, pasted: String, replies: ReplySender) {
    spawn(replies, move || {
        let is_small =
            std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_PICTURE_BYTES);
        let bytes = if is_small { std::fs::read(&path).ok() } else { None };
        Some(Reply::PastedPicture { pasted, picture: bytes.as_deref().and_then(to_picture) })
    });
}

/// Makes a picture of its bytes; `None` if their format is not known.
pub(super) fn to_picture(bytes: &[u8]) -> Option<Picture> {
    let media_type = match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return None,
    };
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(Picture { media_type: media_type.into(), data: data.into() })
}

pub(super) fn find_branch(cwd: PathBuf, replies: ReplySender) {
    spawn(replies, move || Some(Reply::Branch(read_branch(&cwd))));
}

/// The branch of the repository around a folder, from its HEAD file.
fn read_branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    let git = match std::fs::read_to_string(&git) {
        // A worktree has a file that names its directory.
        Ok(text) => git.parent()?.join(text.trim().strip_prefix("gitdir: ")?),
        Err(_) => git,
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(7).collect(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_is_read_from_above_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(read_branch(&below).as_deref(), Some("feature/x"));
    }

    #[test]
    fn notes_are_entries_on_lines_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("CLAUDE.md");
        std::fs::write(&path, "# Rules").unwrap();
        append_line(&path, "use tabs").unwrap();
        append_line(&path, "be kind").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# Rules\n- use tabs\n- be kind\n");
    }

    #[test]
    fn pictures_are_recognized_by_their_bytes() {
        assert_eq!(to_picture(b"\x89PNG\r\n").unwrap().media_type, "image/png");
        assert_eq!(to_picture(b"text"), None);
    }
}
