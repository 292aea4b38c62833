//! The file that a call is about: where it lies, what stands there, and whether the model knows it as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_policy::Place;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::paths::physical;

use super::encoding::{Decoded, Encoding, decode};
use super::fault::{not_a_file, unreadable, unwritable};
use super::{Call, Trouble};
use crate::files::{self, Kind, Spot, Stamp};
use crate::workspace::{Seen, Workspace};

/// Where a call reads or writes.
pub(super) struct Site {
    /// How the model and the host know it: absolute and without dots.
    pub(super) path: PathBuf,
    real: PathBuf,
    spot: Spot,
}

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

impl Site {
    /// The place that the call was judged by. Only a call that nobody judged looks for it here.
    pub(super) fn of(call: &Call, written: &str) -> Result<Self, Trouble> {
        let Place { shown, real } = call.place.clone().unwrap_or_else(|| {
            let shown = files::tidy(&call.workspace.resolve(written));
            Place { real: physical(&shown, &RealFs), shown }
        });
        match Spot::find(&real) {
            Ok(spot) => Ok(Self { path: shown, real, spot }),
            Err(error) => Err(unreadable(&shown, &error)),
        }
    }

    /// Looks what stands there.
    pub(super) fn kind(&self) -> Result<Kind, Trouble> {
        self.spot.kind().map_err(|error| unreadable(&self.path, &error))
    }

    /// Looks at a file that the call wants to change.
    pub(super) fn open(&self, workspace: &Workspace) -> Result<Target, Trouble> {
        let stamp = match self.kind()? {
            Kind::Missing => return Ok(Target::Nothing),
            Kind::File(stamp) => stamp,
            other => return Err(Trouble::Refused(not_a_file(&self.path, other))),
        };
        let (body, stamp) = match self.spot.read(LARGEST) {
            Ok((bytes, stamp)) => (decode(bytes).map_or(Body::Binary, Body::Text), stamp),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => (Body::TooLarge, stamp),
            Err(error) => return Err(unreadable(&self.path, &error)),
        };
        let text = match &body {
            Body::Text(decoded) => Some(decoded.text.as_str()),
            Body::Binary | Body::TooLarge => None,
        };
        let standing = standing(workspace.seen(&self.path).as_ref(), stamp, text);
        Ok(Target::File(Existing { body, standing }))
    }

    /// Makes the file.
    pub(super) fn create(&self, bytes: &[u8]) -> Result<Stamp, Trouble> {
        self.spot.create(bytes).map_err(|error| unwritable(&self.path, &error))
    }

    /// Replaces the file.
    pub(super) fn replace(&self, bytes: &[u8]) -> Result<Stamp, Trouble> {
        self.spot.replace(bytes).map_err(|error| unwritable(&self.path, &error))
    }

    /// Notes that the model knows the file as it is now. `text` is the whole text, if the model saw or wrote all of it.
    pub(super) fn note(&self, workspace: &Workspace, stamp: Stamp, text: Option<&str>) {
        let text = text.filter(|text| text.len() <= REMEMBERED).map(Arc::from);
        let seen = Seen { real: self.real.clone(), modified: stamp.modified, size: stamp.size, text };
        workspace.note_seen(&self.path, seen);
    }

    /// Whether it is one of those places that [`is_off_limits`].
    pub(super) fn is_off_limits(&self) -> bool {
        is_of_the_system(&self.path) || is_of_the_system(&self.real)
    }

    /// What is on disk there.
    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }
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
pub(crate) fn is_off_limits(path: &Path) -> bool {
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
        let seen = |text: Option<&str>| {
            Some(Seen { real: "/f".into(), modified: then, size: 1, text: text.map(Arc::from) })
        };
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
