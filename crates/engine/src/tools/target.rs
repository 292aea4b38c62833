//! A file that a call wants to change: what stands there, and whether the model knows it as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Trouble;
use super::encoding::{Decoded, Encoding, decode};
use super::fault::{not_a_file, unreadable};
use crate::files::{self, Kind, Stamp};
use crate::workspace::{Seen, Workspace};

/// What stands where a call wants to write.
pub(super) enum Target {
    /// Nothing yet.
    Nothing,
    /// A file.
    File(Existing),
}

/// A file that stands there.
pub(super) struct Existing {
    /// What is in it.
    pub(super) body: Body,
    /// Whether the model knows it.
    pub(super) standing: Standing,
}

/// What is in a file.
pub(super) enum Body {
    /// Text.
    Text(Decoded),
    /// Bytes that are no text.
    Binary,
    /// More than can be handled as a whole.
    TooLarge,
}

/// Whether the model knows a file as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It never saw it.
    Unread,
    /// It saw it, but somebody changed it since.
    Changed,
    /// It saw it as it is.
    AsSeen,
}

/// The largest file that is edited or compared.
const LARGEST: u64 = 32 * 1024 * 1024;
/// The longest text that is remembered of a file.
const REMEMBERED: usize = 256 * 1024;

/// A path as the model wrote it, absolute and without dots.
pub(super) fn place(workspace: &Workspace, path: &str) -> PathBuf {
    files::tidy(&workspace.resolve(path))
}

/// Looks at what a call wants to change.
pub(super) fn open(workspace: &Workspace, path: &Path) -> Result<Target, Trouble> {
    let stamp = match files::kind(path).map_err(|error| unreadable(path, &error))? {
        Kind::Missing => return Ok(Target::Nothing),
        Kind::File(stamp) => stamp,
        other => return Err(Trouble::Refused(not_a_file(path, other))),
    };
    let (body, stamp) = match files::read(path, LARGEST) {
        Ok((bytes, stamp)) => (decode(bytes).map_or(Body::Binary, Body::Text), stamp),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => (Body::TooLarge, stamp),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let text = match &body {
        Body::Text(decoded) => Some(decoded.text.as_str()),
        Body::Binary | Body::TooLarge => None,
    };
    let standing = standing(workspace.seen(path).as_ref(), stamp, text);
    Ok(Target::File(Existing { body, standing }))
}

/// Compares a file with what the model saw of it: by its text if that was kept, otherwise by time and size.
fn standing(seen: Option<&Seen>, stamp: Stamp, text: Option<&str>) -> Standing {
    let Some(seen) = seen else { return Standing::Unread };
    let same = match (&seen.text, text) {
        (Some(seen), Some(text)) => **seen == *text,
        _ => seen.modified == stamp.modified && seen.size == stamp.size,
    };
    if same { Standing::AsSeen } else { Standing::Changed }
}

/// Notes that the model knows a file as it is now. `text` is the whole text, if the model saw or wrote all of it.
pub(super) fn note(workspace: &Workspace, path: &Path, stamp: Stamp, text: Option<&str>) {
    let text = text.filter(|text| text.len() <= REMEMBERED).map(Arc::from);
    workspace.note_seen(path, Seen { modified: stamp.modified, size: stamp.size, text });
}

impl Existing {
    /// The text, if it can be changed and written back.
    pub(super) fn editable(&self, path: &Path) -> Result<&Decoded, Trouble> {
        let refused = |why| Err(Trouble::Refused(format!("{} {why}", path.display())));
        match &self.body {
            Body::Text(Decoded { encoding: Encoding::Broken, .. }) => {
                refused("has bytes that are no characters in any known encoding. Change it with a program.")
            }
            Body::Text(decoded) => Ok(decoded),
            Body::Binary => refused("is not a text file."),
            Body::TooLarge => refused("is too large to be edited here. Change it with a program."),
        }
    }

    /// Refuses to change what the model does not know.
    pub(super) fn must_be_known(&self, path: &Path) -> Result<(), Trouble> {
        match self.standing {
            Standing::Unread => Err(unread(path)),
            Standing::Changed => Err(changed(path)),
            Standing::AsSeen => Ok(()),
        }
    }
}

/// The model has not read it.
pub(super) fn unread(path: &Path) -> Trouble {
    Trouble::Refused(format!("{} has not been read yet. Read it before you change it.", path.display()))
}

/// Somebody else changed it.
pub(super) fn changed(path: &Path) -> Trouble {
    Trouble::Refused(format!(
        "{} was changed since it was read. Read it again before you change it.",
        path.display()
    ))
}

/// Places where files do not end, wait, or tell about the engine's own process: links to them count too.
pub(super) fn is_off_limits(path: &Path) -> bool {
    is_of_the_system(path) || files::real_path(path).is_some_and(|real| is_of_the_system(&real))
}

fn is_of_the_system(path: &Path) -> bool {
    if let Ok(rest) = path.strip_prefix("/proc") {
        let first = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let first = first.unwrap_or_default();
        return matches!(first.as_str(), "self" | "thread-self" | "kmsg" | "kcore")
            || first.bytes().all(|byte| byte.is_ascii_digit());
    }
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// It is not for the model to read.
pub(super) fn off_limits(path: &Path) -> Trouble {
    Trouble::Refused(format!("{} belongs to the system and is not read here.", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_file_is_known_if_its_text_or_else_its_stamp_is_what_was_seen() {
        let then = SystemTime::UNIX_EPOCH;
        let later = then + Duration::from_secs(1);
        let seen = |text: Option<&str>| Some(Seen { modified: then, size: 1, text: text.map(Arc::from) });
        let stamp = |modified, size| Stamp { modified, size };
        for (name, seen, stamp, text, expected) in [
            ("never seen", None, stamp(then, 1), Some("a"), Standing::Unread),
            ("same text, only touched", seen(Some("a")), stamp(later, 1), Some("a"), Standing::AsSeen),
            ("other text in the same instant", seen(Some("a")), stamp(then, 1), Some("b"), Standing::Changed),
            ("text not kept, same stamp", seen(None), stamp(then, 1), Some("a"), Standing::AsSeen),
            ("text not kept, touched", seen(None), stamp(later, 1), Some("a"), Standing::Changed),
            ("text not kept, other size", seen(None), stamp(then, 2), Some("a"), Standing::Changed),
            ("was text, is binary, touched", seen(Some("a")), stamp(later, 1), None, Standing::Changed),
        ] {
            assert_eq!(standing(seen.as_ref(), stamp, text), expected, "{name}");
        }
    }
}
