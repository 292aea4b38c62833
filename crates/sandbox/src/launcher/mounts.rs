//! Carries out the plan of mounts. The tree of the machine becomes read-only as a whole; what differs is placed on top.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;

use super::mount_calls::{
    NO_DEVICES, NO_SETUID, READ_ONLY, attach, copy_tree, make_file, make_folder, make_memory_folder,
    make_placeholders, open_folder_below, open_path, restrict,
};
use super::{LayerResult, devices, proc_mount};
use crate::plan::{MountPlan, Placeholder, Presence, View, ViewKind};
use crate::request::{LayerError, ProcMount};

const LAYER: &str = "mounts";

/// Copies of the machine's mounts, taken before anything is changed.
enum Source {
    /// The view is mounted from what is there when its turn comes.
    Later,
    Root {
        lower: OwnedFd,
        upper: Option<OwnedFd>,
    },
    Readable(OwnedFd),
    /// The path is gone.
    Gone,
}

/// Makes all mounts of a command. `proc_setup` runs when `/proc` is in place and still writable.
pub(crate) fn apply(
    plan: Option<&MountPlan>,
    proc_kind: ProcMount,
    proc_setup: impl FnOnce() -> LayerResult<()>,
) -> LayerResult<()> {
    let root = open_path(Path::new("/")).map_err(|error| LayerError::new(LAYER, &error))?;
    let Some(plan) = plan else {
        restrict(&root, NO_SETUID).map_err(|error| LayerError::new(LAYER, &error))?;
        return proc_mount::mount(proc_kind, proc_setup);
    };
    let mut sources = Vec::with_capacity(plan.views.len());
    for view in &plan.views {
        sources.push(take_source(view).map_err(|error| LayerError::for_path(LAYER, &view.path, &error))?);
    }
    let devices = devices::take_sources().map_err(|error| LayerError::new("devices", &error))?;
    restrict(&root, READ_ONLY | NO_SETUID).map_err(|error| LayerError::new(LAYER, &error))?;
    let masks = Masks::make().map_err(|error| LayerError::new(LAYER, &error))?;
    devices::mount(devices).map_err(|error| LayerError::new("devices", &error))?;
    proc_mount::mount(proc_kind, proc_setup)?;
    for (view, source) in plan.views.iter().zip(sources) {
        place(view, source, &masks).map_err(|error| LayerError::for_path(LAYER, &view.path, &error))?;
    }
    Ok(())
}

fn take_source(view: &View) -> io::Result<Source> {
    if !matches!(view.kind, ViewKind::Root { .. } | ViewKind::Readable) {
        return Ok(Source::Later);
    }
    let Some(path) = open_present(view)? else { return Ok(Source::Gone) };
    let copy = copy_tree(&path)?;
    let ViewKind::Root { pins } = &view.kind else {
        restrict(&copy, READ_ONLY | NO_SETUID | NO_DEVICES)?;
        return Ok(Source::Readable(copy));
    };
    restrict(&copy, NO_SETUID | NO_DEVICES)?;
    let upper = if pins.is_empty() { None } else { Some(copy_tree(&path)?) };
    if let Some(upper) = &upper {
        restrict(upper, NO_SETUID | NO_DEVICES)?;
    }
    Ok(Source::Root { lower: copy, upper })
}

/// Opens the path of a view; `None` if it is gone and may be.
fn open_present(view: &View) -> io::Result<Option<OwnedFd>> {
    match open_path(&view.path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if view.presence == Presence::Optional && is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn place(view: &View, source: Source, masks: &Masks) -> io::Result<()> {
    if matches!(source, Source::Gone) {
        return Ok(());
    }
    let Some(target) = open_present(view)? else { return Ok(()) };
    match (&view.kind, source) {
        (ViewKind::Root { pins }, Source::Root { lower, upper }) => {
            attach(&lower, &target)?;
            if let Some(upper) = upper {
                pin_folders(&lower, pins)?;
                attach(&upper, &lower)?;
            }
            Ok(())
        }
        (ViewKind::Readable, Source::Readable(copy)) => attach(&copy, &target),
        (ViewKind::ReadOnly | ViewKind::ReadOnlyLink, _) => {
            let copy = copy_tree(&target)?;
            restrict(&copy, READ_ONLY | NO_SETUID | NO_DEVICES)?;
            attach(&copy, &target)
        }
        (ViewKind::HiddenFile, _) => attach(&copy_tree(&masks.file)?, &target),
        (ViewKind::HiddenFolder { placeholders }, _) if placeholders.is_empty() => {
            attach(&copy_tree(&masks.folder)?, &target)
        }
        (ViewKind::HiddenFolder { placeholders }, _) => {
            // Can be passed through, but not listed.
            let folder = make_filled_folder("0111", placeholders, Mode::from_raw_mode(0o111))?;
            restrict(&folder, READ_ONLY)?;
            attach(&folder, &target)
        }
        (ViewKind::Fresh { placeholders }, _) => {
            attach(&make_filled_folder("1777", placeholders, Mode::from_raw_mode(0o755))?, &target)
        }
        (ViewKind::Root { .. } | ViewKind::Readable, _) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Makes folders mount points in a copy that gets covered: look-ups never pass through it, so that files can be moved
/// across these folders, but the kernel refuses to rename or remove a folder that is a mount point anywhere here.
fn pin_folders(tree: impl AsFd, pins: &[std::path::PathBuf]) -> io::Result<()> {
    for pin in pins {
        let folder = match open_folder_below(&tree, pin) {
            Ok(folder) => folder,
            // What is below it is gone too, and its own view decides whether that is an error.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        attach(&copy_tree(&folder)?, &folder)?;
    }
    Ok(())
}

fn make_filled_folder(mode: &str, placeholders: &[Placeholder], folder_mode: Mode) -> io::Result<OwnedFd> {
    let folder = make_memory_folder(mode)?;
    make_placeholders(&folder, placeholders, folder_mode)?;
    Ok(folder)
}

/// What is mounted over hidden files and folders: empty, without any permission, read-only.
struct Masks {
    file: OwnedFd,
    folder: OwnedFd,
}

impl Masks {
    /// The mount is attached below the place of the fresh `/dev`: copies can be made only of mounts that are attached.
    fn make() -> io::Result<Self> {
        let memory = make_memory_folder("0755")?;
        make_file(&memory, Path::new("file"), Mode::empty())?;
        make_folder(&memory, Path::new("folder"), Mode::empty())?;
        attach(&memory, open_path(Path::new("/dev"))?)?;
        restrict(&memory, READ_ONLY)?;
        let file = open_path(Path::new("/dev/file"))?;
        let folder = open_path(Path::new("/dev/folder"))?;
        Ok(Self { file, folder })
    }
}
