//! Puts files back to how they were when a prompt came. Each file changes as a whole or not at all; if we are killed in
//! between, the same wish does the rest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use similar::DiffTag;

use super::history::{Past, State, nanoseconds};
use super::{Checkpoints, copies};
use crate::files::{self, Kind, Stamp};
use crate::permission::paths;
use crate::{clock, compare};

/// How long lines are compared, for all files together; after that the rest of a file counts as changed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether files are really put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Only say what would change.
    Look,
    /// Put them back.
    PutBack,
}

/// What was put back, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewound {
    /// The files, as the calls that changed them named them.
    pub changed: Vec<PathBuf>,
    /// Lines that come back.
    pub insertions: usize,
    /// Lines that go.
    pub deletions: usize,
    /// Files whose place is behind a link now; they are left alone.
    pub skipped_links: usize,
    /// Files that cannot be put back, each with the reason.
    pub left: Vec<String>,
}

/// What must be done with a file.
enum Step {
    Nothing,
    Remove,
    Create { bytes: Vec<u8>, mode: u32 },
    Replace { bytes: Vec<u8> },
}

impl Checkpoints {
    /// Puts the files back to how they were when a prompt came; none if there was no such prompt.
    pub fn rewind(&self, prompt: &str, wish: Wish) -> Option<Rewound> {
        let mut guard = self.lock();
        let book = self.book(&mut guard);
        let files = book.history.at(prompt)?;
        let deadline = clock::monotonic() + PATIENCE;
        let mut rewound = Rewound::default();
        for past in &files {
            if is_behind_a_link(&past.place) {
                rewound.skipped_links += 1;
                continue;
            }
            match self.put_back(past, wish, deadline, &mut rewound) {
                Ok(()) => {}
                Err(why) => rewound.left.push(format!("{}: {why}", past.path.display())),
            }
            book.looked.remove(&past.place);
        }
        if wish == Wish::PutBack {
            files.iter().for_each(remove_folders);
        }
        Some(rewound)
    }

    /// Puts one file back; the error says why that cannot be.
    fn put_back(
        &self,
        past: &Past,
        wish: Wish,
        deadline: Instant,
        rewound: &mut Rewound,
    ) -> Result<(), String> {
        let place = &past.place;
        let found = match files::kind(place).map_err(|error| format!("it cannot be looked at: {error}"))? {
            Kind::Missing => None,
            Kind::File(stamp) => Some(stamp),
            Kind::Folder | Kind::Pipe | Kind::Socket | Kind::Device => {
                return Err("something that is no file stands there now. Move it away".into());
            }
        };
        // A file that is too large to be compared is one that no copy was made of, so it is another one now.
        let now = found.and_then(|_| files::read(place, copies::LARGEST).ok()).map(|(bytes, _)| bytes);
        let step = self.step(&past.state, found, now.as_deref())?;
        if wish == Wish::PutBack {
            take(&step, place).map_err(|error| format!("it cannot be written: {error}"))?;
        }
        let then = match &step {
            Step::Nothing => return Ok(()),
            Step::Remove => &[],
            Step::Create { bytes, .. } | Step::Replace { bytes } => bytes.as_slice(),
        };
        let (insertions, deletions) = changed_lines(now.as_deref().unwrap_or_default(), then, deadline);
        rewound.insertions += insertions;
        rewound.deletions += deletions;
        rewound.changed.push(past.path.clone());
        Ok(())
    }

    /// What leads from how a file is to how it was.
    fn step(&self, then: &State, found: Option<Stamp>, now: Option<&[u8]>) -> Result<Step, String> {
        Ok(match (then, found) {
            (State::Missing { .. }, None) => Step::Nothing,
            (State::Missing { .. }, Some(_)) => Step::Remove,
            (State::NotKept { size, modified, .. }, Some(stamp))
                if (*size, *modified) == (stamp.size, nanoseconds(stamp)) =>
            {
                Step::Nothing
            }
            (State::NotKept { why, .. }, _) => return Err(format!("no copy was kept: {why}")),
            (State::Kept { hash, mode, .. }, found) => {
                if now.is_some_and(|now| blake3::hash(now).to_hex().as_str() == hash) {
                    return Ok(Step::Nothing);
                }
                let bytes = copies::fetch(&self.folder, hash)
                    .map_err(|error| format!("its copy cannot be read: {error}"))?;
                match found {
                    Some(_) => Step::Replace { bytes },
                    None => Step::Create { bytes, mode: *mode },
                }
            }
        })
    }
}

/// Whether a link leads to a file, or stands in its place: what is behind it is not what was changed.
fn is_behind_a_link(place: &Path) -> bool {
    files::link_target(place).is_some() || paths::real(place) != place
}

/// Removes the folders that were made for a file that is gone, if they are empty. Files that were made later may have lain in
/// them, so this comes last.
fn remove_folders(past: &Past) {
    if let State::Missing { above: Some(above) } = &past.state
        && matches!(files::kind(&past.place), Ok(Kind::Missing))
        && !is_behind_a_link(&past.place)
    {
        files::remove_empty(&past.place, above);
    }
}

fn take(step: &Step, place: &Path) -> std::io::Result<()> {
    match step {
        Step::Nothing => Ok(()),
        Step::Remove => files::remove(place),
        Step::Create { bytes, mode } => files::create_with_mode(place, bytes, *mode).map(drop),
        Step::Replace { bytes } => files::Spot::find(place)?.replace(bytes).map(drop),
    }
}

/// How many lines come and go on the way from one text to another.
fn changed_lines(from: &[u8], to: &[u8], deadline: Instant) -> (usize, usize) {
    let lines = |bytes| <[u8]>::split_inclusive(bytes, |byte| *byte == b'\n').collect::<Vec<_>>();
    let (from, to) = (lines(from), lines(to));
    let changes = compare::changes(&from, &to, deadline);
    let changes = changes.iter().filter(|change| change.tag() != DiffTag::Equal);
    changes.fold((0, 0), |(came, went), change| {
        (came + change.new_range().len(), went + change.old_range().len())
    })
}
