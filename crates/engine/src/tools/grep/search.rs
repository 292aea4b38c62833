//! Going through the files: which ones, with what pattern, and collecting what they hold.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::DirEntry;

use super::excerpt::{Excerpt, Look, Room, Taker, Want};
use super::output::Page;
use super::pattern::Pattern;
use super::{Input, Mode};
use crate::files::{self, Kind};
use crate::permission::Sight;
use crate::tools::walk::{self, Gaps, Names, Stop, Visit, Walk, Walked};
use crate::tools::{Trouble, target};
use crate::workspace::Workspace;

/// What a thread may hold in memory of one file: a line, or the whole file where matches span lines.
const HEAP: usize = 128 << 20;

/// One search, ready to run.
pub(super) struct Search {
    place: Place,
    cwd: PathBuf,
    pattern: Pattern,
    want: Want,
    searcher: SearcherBuilder,
    /// Whether lines around the matches are shown, so that groups of lines need a mark between them.
    has_context: bool,
}

/// Where to look.
enum Place {
    File(PathBuf),
    Folder(PathBuf, Arc<Names>),
}

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) what: Findings,
    /// What could not be looked at.
    pub(super) gaps: Gaps,
    /// Whether the one file that was asked for is not a text.
    pub(super) is_binary: bool,
}

/// The findings, in the order in which they are shown.
#[derive(Debug)]
pub(super) enum Findings {
    Files(Vec<(SystemTime, PathBuf)>),
    Counts(BTreeMap<PathBuf, u64>),
    Lines { excerpts: Vec<Excerpt>, has_context: bool },
}

impl Search {
    /// Understands a call.
    pub(super) fn of(input: &Input, page: &Page, workspace: &Workspace) -> Result<Self, Trouble> {
        let pattern = Pattern::of(input)?;
        let want = want(input, page.room());
        let around = input.around.or(input.context);
        let (before, after) = match want {
            Want::Lines(_) => (input.before.or(around).unwrap_or(0), input.after.or(around).unwrap_or(0)),
            Want::Match | Want::LineCount | Want::MatchCount | Want::Parts(_) => (0, 0),
        };
        let mut searcher = SearcherBuilder::new();
        searcher
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP))
            .line_number(matches!(want, Want::Lines(_) | Want::Parts(_)) && input.numbers)
            .before_context(before)
            .after_context(after);
        pattern.prepare(&mut searcher);
        let (place, cwd) = (Place::of(input, workspace)?, workspace.cwd());
        Ok(Self { place, cwd, pattern, want, searcher, has_context: before + after > 0 })
    }

    /// Does the work.
    pub(super) fn run(&self, sight: &Sight, stop: &Stop) -> Found {
        let shelf = Mutex::new(Shelf::new(self.want));
        let reader = || Reader::new(self, stop, &shelf);
        match &self.place {
            Place::File(path) if sight.hides(path) => Found {
                what: self.sum_up(Vec::new(), &shelf),
                gaps: Gaps { hidden: true, ..Gaps::default() },
                is_binary: false,
            },
            Place::File(path) => {
                let mut reader = reader();
                reader.read(path.clone());
                let gaps = Gaps { unreadable: reader.unreadable, ..Gaps::default() };
                let is_binary = reader.binary > 0;
                Found { what: self.sum_up(vec![reader], &shelf), gaps, is_binary }
            }
            Place::Folder(root, names) => {
                let walk = Walk { root, names: names.clone(), sight: sight.clone(), depth: None, stop };
                let Walked { visitors, mut gaps } = walk.run(reader);
                gaps.unreadable += visitors.iter().map(|reader| reader.unreadable).sum::<usize>();
                Found { what: self.sum_up(visitors, &shelf), gaps, is_binary: false }
            }
        }
    }

    /// Puts together what the threads found.
    fn sum_up(&self, readers: Vec<Reader<'_>>, shelf: &Mutex<Shelf>) -> Findings {
        match self.want {
            Want::Match => {
                let mut files: Vec<_> = readers.into_iter().flat_map(|reader| reader.files).collect();
                walk::newest_first(&mut files);
                Findings::Files(files)
            }
            Want::LineCount | Want::MatchCount => {
                Findings::Counts(readers.into_iter().flat_map(|reader| reader.counts).collect())
            }
            Want::Lines(_) | Want::Parts(_) => {
                let excerpts = std::mem::take(&mut open(shelf).excerpts).into_values().collect();
                Findings::Lines { excerpts, has_context: self.has_context }
            }
        }
    }
}

fn want(input: &Input, room: Room) -> Want {
    match input.output_mode.unwrap_or(Mode::FilesWithMatches) {
        Mode::FilesWithMatches => Want::Match,
        Mode::Count if input.only_matching => Want::MatchCount,
        Mode::Count => Want::LineCount,
        Mode::Content if input.only_matching => Want::Parts(room),
        Mode::Content => Want::Lines(room),
    }
}

impl Place {
    fn of(input: &Input, workspace: &Workspace) -> Result<Self, Trouble> {
        let path = walk::resolve(input.path.as_deref(), workspace);
        let cwd = workspace.cwd();
        let found = walk::begin_at(&path, &cwd)?;
        if target::is_off_limits(&path) {
            return Err(target::off_limits(&path));
        }
        if found != Kind::Folder {
            return Ok(Self::File(path));
        }
        let names = match &input.glob {
            Some(glob) => Names::filtered(glob, &walk::shown(&path, &cwd))?,
            None => Names::default(),
        };
        let names = match input.kind.as_deref() {
            Some(kind) if !kind.is_empty() => names.of_type(kind)?,
            _ => names,
        };
        Ok(Self::Folder(path, Arc::new(names)))
    }
}

/// Reads files on one thread.
struct Reader<'a> {
    search: &'a Search,
    stop: &'a Stop,
    shelf: &'a Mutex<Shelf>,
    searcher: Searcher,
    pattern: Pattern,
    files: Vec<(SystemTime, PathBuf)>,
    counts: BTreeMap<PathBuf, u64>,
    unreadable: usize,
    binary: usize,
}

impl Visit for Reader<'_> {
    fn file(&mut self, file: DirEntry) {
        if !file.path_is_symlink() {
            self.read(file.into_path());
        }
    }
}

impl<'a> Reader<'a> {
    fn new(search: &'a Search, stop: &'a Stop, shelf: &'a Mutex<Shelf>) -> Self {
        Self {
            search,
            stop,
            shelf,
            searcher: search.searcher.build(),
            pattern: search.pattern.clone(),
            files: Vec::new(),
            counts: BTreeMap::new(),
            unreadable: 0,
            binary: 0,
        }
    }

    fn read(&mut self, path: PathBuf) {
        let shows_lines = matches!(self.search.want, Want::Lines(_) | Want::Parts(_));
        if shows_lines && !open(self.shelf).has_room_for(&path) {
            return;
        }
        match self.look_into(&path) {
            Ok(Look::Match(excerpt)) => self.keep(path, excerpt),
            Ok(Look::Nothing) => {}
            Ok(Look::Binary) => self.binary += 1,
            Err(_) if self.stop.asked() => {}
            Err(_) => self.unreadable += 1,
        }
    }

    fn look_into(&mut self, path: &Path) -> io::Result<Look> {
        let (file, _) = files::open(path)?;
        let file = Stoppable { file, stop: self.stop };
        let label = || walk::shown(path, &self.search.cwd);
        let mut taker = Taker::new(&self.pattern.matcher, self.search.want, &label);
        self.searcher.search_reader(&self.pattern.matcher, file, &mut taker)?;
        Ok(taker.into_look())
    }

    fn keep(&mut self, path: PathBuf, excerpt: Excerpt) {
        match self.search.want {
            Want::Match => {
                let modified =
                    path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                self.files.push((modified, path));
            }
            Want::LineCount | Want::MatchCount => {
                self.counts.insert(path, excerpt.hits);
            }
            Want::Lines(_) | Want::Parts(_) => open(self.shelf).put(path, excerpt),
        }
    }
}

/// A panic elsewhere cannot leave the shelf half changed.
fn open(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that ends with an error when the search is told to stop.
struct Stoppable<'a, R> {
    file: R,
    stop: &'a Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.asked() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

/// The excerpts that come first by path, as many as can be shown. Others are let go as soon as they cannot be among
/// them, so that a pattern that matches everywhere neither fills the memory nor reads every file.
struct Shelf {
    excerpts: BTreeMap<PathBuf, Excerpt>,
    lines: usize,
    bytes: usize,
    room: Room,
}

impl Shelf {
    fn new(want: Want) -> Self {
        let room = match want {
            Want::Lines(room) | Want::Parts(room) => room,
            Want::Match | Want::LineCount | Want::MatchCount => Room { lines: 0, bytes: 0 },
        };
        Self { excerpts: BTreeMap::new(), lines: 0, bytes: 0, room }
    }

    /// Whether an excerpt of this file could be shown.
    fn has_room_for(&self, path: &Path) -> bool {
        !self.room.is_filled(self.lines, self.bytes)
            || self.excerpts.last_key_value().is_none_or(|(last, _)| path < last.as_path())
    }

    fn put(&mut self, path: PathBuf, excerpt: Excerpt) {
        self.lines += excerpt.lines;
        self.bytes += excerpt.text.len();
        self.excerpts.insert(path, excerpt);
        while let Some(last) = self.excerpts.last_entry() {
            let (lines, bytes) = (self.lines - last.get().lines, self.bytes - last.get().text.len());
            if !self.room.is_filled(lines, bytes) {
                return;
            }
            last.remove();
            (self.lines, self.bytes) = (lines, bytes);
        }
    }
}
