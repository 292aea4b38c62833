//! Searches files and collects their results.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::DirEntry;
use whimbrel_os::files::{self, FileKind};

use super::excerpt::{Excerpt, ExcerptSink, FileOutcome, OutputLimit, SearchGoal};
use super::output::ResultPage;
use super::pattern::SearchPattern;
use super::{GrepInput, Mode};
use crate::api::ToolError;
use crate::builtin::file_target;
use crate::builtin::walk::{self, CancelFlag, DirWalk, FileVisitor, NameFilter, SkippedFiles, WalkOutcome};
use crate::permission::SearchFilter;
use crate::workspace::Workspace;

/// Memory limit per thread for one file: a line, or the whole file for multi-line patterns.
const MAX_HEAP_BYTES: usize = 128 << 20;

/// One search, ready to run.
pub(super) struct GrepSearch {
    target: SearchTarget,
    cwd: PathBuf,
    pattern: SearchPattern,
    goal: SearchGoal,
    searcher: SearcherBuilder,
    /// Whether context lines are shown, so that groups need a separator.
    has_context: bool,
}

enum SearchTarget {
    File(PathBuf),
    Directory(PathBuf, Arc<NameFilter>),
}

#[derive(Debug)]
pub(super) struct GrepMatches {
    pub(super) findings: GrepFindings,
    pub(super) skipped: SkippedFiles,
    /// Whether the single searched file is binary.
    pub(super) is_binary: bool,
}

/// The results in display order.
#[derive(Debug)]
pub(super) enum GrepFindings {
    Files(Vec<(SystemTime, PathBuf)>),
    Counts(BTreeMap<PathBuf, u64>),
    Lines { excerpts: Vec<Excerpt>, has_context: bool },
}

impl GrepSearch {
    /// Prepares the search of a call.
    pub(super) fn new(
        input: &GrepInput,
        page: &ResultPage,
        workspace: &Workspace,
    ) -> Result<Self, ToolError> {
        let pattern = SearchPattern::from_input(input)?;
        let goal = search_goal(input, page.collection_limit());
        let context_lines = input.around.or(input.context);
        let (before, after) = match goal {
            SearchGoal::Lines(_) => {
                (input.before.or(context_lines).unwrap_or(0), input.after.or(context_lines).unwrap_or(0))
            }
            SearchGoal::Match | SearchGoal::LineCount | SearchGoal::MatchCount | SearchGoal::Parts(_) => {
                (0, 0)
            }
        };
        let mut searcher = SearcherBuilder::new();
        searcher
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP_BYTES))
            .line_number(matches!(goal, SearchGoal::Lines(_) | SearchGoal::Parts(_)) && input.numbers)
            .before_context(before)
            .after_context(after);
        pattern.configure(&mut searcher);
        let (target, cwd) = (SearchTarget::resolve(input, workspace)?, workspace.cwd());
        Ok(Self { target, cwd, pattern, goal, searcher, has_context: before + after > 0 })
    }

    pub(super) fn run(&self, read_filter: &SearchFilter, stop: &CancelFlag) -> GrepMatches {
        let buffer = Mutex::new(ExcerptBuffer::new(self.goal));
        let reader = || FileReader::new(self, stop, &buffer);
        match &self.target {
            SearchTarget::File(path) if read_filter.hides(path) => GrepMatches {
                findings: self.collect_findings(Vec::new(), &buffer),
                skipped: SkippedFiles { denied: true, ..SkippedFiles::default() },
                is_binary: false,
            },
            SearchTarget::File(path) => {
                let mut reader = reader();
                reader.search_file(path.clone());
                let skipped = SkippedFiles { unreadable: reader.unreadable, ..SkippedFiles::default() };
                let is_binary = reader.binary > 0;
                GrepMatches { findings: self.collect_findings(vec![reader], &buffer), skipped, is_binary }
            }
            SearchTarget::Directory(root, name_filter) => {
                let walk = DirWalk {
                    root,
                    name_filter: name_filter.clone(),
                    read_filter: read_filter.clone(),
                    max_depth: None,
                    stop,
                };
                let WalkOutcome { visitors, mut skipped } = walk.run(reader);
                skipped.unreadable += visitors.iter().map(|reader| reader.unreadable).sum::<usize>();
                GrepMatches { findings: self.collect_findings(visitors, &buffer), skipped, is_binary: false }
            }
        }
    }

    /// Combines the results of all threads.
    fn collect_findings(&self, readers: Vec<FileReader<'_>>, buffer: &Mutex<ExcerptBuffer>) -> GrepFindings {
        match self.goal {
            SearchGoal::Match => {
                let mut files: Vec<_> = readers.into_iter().flat_map(|reader| reader.files).collect();
                walk::sort_newest_first(&mut files);
                GrepFindings::Files(files)
            }
            SearchGoal::LineCount | SearchGoal::MatchCount => {
                GrepFindings::Counts(readers.into_iter().flat_map(|reader| reader.counts).collect())
            }
            SearchGoal::Lines(_) | SearchGoal::Parts(_) => {
                let excerpts = std::mem::take(&mut lock(buffer).excerpts).into_values().collect();
                GrepFindings::Lines { excerpts, has_context: self.has_context }
            }
        }
    }
}

fn search_goal(input: &GrepInput, limit: OutputLimit) -> SearchGoal {
    match input.output_mode.unwrap_or(Mode::FilesWithMatches) {
        Mode::FilesWithMatches => SearchGoal::Match,
        Mode::Count if input.only_matching => SearchGoal::MatchCount,
        Mode::Count => SearchGoal::LineCount,
        Mode::Content if input.only_matching => SearchGoal::Parts(limit),
        Mode::Content => SearchGoal::Lines(limit),
    }
}

impl SearchTarget {
    fn resolve(input: &GrepInput, workspace: &Workspace) -> Result<Self, ToolError> {
        let path = walk::resolve_root(input.path.as_deref(), workspace);
        let cwd = workspace.cwd();
        let found = walk::check_start(&path, &cwd)?;
        if files::is_special_path(&path) {
            return Err(file_target::special_path_error(&path));
        }
        if found != FileKind::Directory {
            return Ok(Self::File(path));
        }
        let names = match &input.glob {
            Some(glob) => NameFilter::from_filter(glob, &walk::display_path(&path, &cwd))?,
            None => NameFilter::default(),
        };
        let names = match input.kind.as_deref() {
            Some(kind) if !kind.is_empty() => names.with_file_type(kind)?,
            _ => names,
        };
        Ok(Self::Directory(path, Arc::new(names)))
    }
}

/// Searches files on one thread.
struct FileReader<'a> {
    search: &'a GrepSearch,
    stop: &'a CancelFlag,
    buffer: &'a Mutex<ExcerptBuffer>,
    searcher: Searcher,
    pattern: SearchPattern,
    files: Vec<(SystemTime, PathBuf)>,
    counts: BTreeMap<PathBuf, u64>,
    unreadable: usize,
    binary: usize,
}

impl FileVisitor for FileReader<'_> {
    fn visit_file(&mut self, file: DirEntry) {
        if !file.path_is_symlink() {
            self.search_file(file.into_path());
        }
    }
}

impl<'a> FileReader<'a> {
    fn new(search: &'a GrepSearch, stop: &'a CancelFlag, buffer: &'a Mutex<ExcerptBuffer>) -> Self {
        Self {
            search,
            stop,
            buffer,
            searcher: search.searcher.build(),
            pattern: search.pattern.clone(),
            files: Vec::new(),
            counts: BTreeMap::new(),
            unreadable: 0,
            binary: 0,
        }
    }

    fn search_file(&mut self, path: PathBuf) {
        let shows_lines = matches!(self.search.goal, SearchGoal::Lines(_) | SearchGoal::Parts(_));
        if shows_lines && !lock(self.buffer).accepts(&path) {
            return;
        }
        match self.search_contents(&path) {
            Ok(FileOutcome::Match(excerpt)) => self.keep_match(path, excerpt),
            Ok(FileOutcome::NoMatch) => {}
            Ok(FileOutcome::Binary) => self.binary += 1,
            Err(_) if self.stop.is_cancelled() => {}
            Err(_) => self.unreadable += 1,
        }
    }

    fn search_contents(&mut self, path: &Path) -> io::Result<FileOutcome> {
        let (file, _) = files::open(path)?;
        let file = StoppableFile { file, stop: self.stop };
        let label = || walk::display_path(path, &self.search.cwd);
        let mut sink = ExcerptSink::new(&self.pattern.matcher, self.search.goal, &label);
        self.searcher.search_reader(&self.pattern.matcher, file, &mut sink)?;
        Ok(sink.into_outcome())
    }

    fn keep_match(&mut self, path: PathBuf, excerpt: Excerpt) {
        match self.search.goal {
            SearchGoal::Match => {
                let modified = path
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .unwrap_or(SystemTime::UNIX_EPOCH);
                self.files.push((modified, path));
            }
            SearchGoal::LineCount | SearchGoal::MatchCount => {
                self.counts.insert(path, excerpt.hits);
            }
            SearchGoal::Lines(_) | SearchGoal::Parts(_) => lock(self.buffer).insert(path, excerpt),
        }
    }
}

/// Changes are complete when the lock is released, so a poisoned lock holds valid data.
fn lock(buffer: &Mutex<ExcerptBuffer>) -> MutexGuard<'_, ExcerptBuffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader that fails once the search is cancelled.
struct StoppableFile<'a, R> {
    file: R,
    stop: &'a CancelFlag,
}

impl<R: Read> Read for StoppableFile<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

/// The first excerpts by path, as many as can be shown. Others are dropped as soon as they cannot be among them, so
/// that a pattern that matches everywhere neither fills the memory nor reads every file.
struct ExcerptBuffer {
    excerpts: BTreeMap<PathBuf, Excerpt>,
    lines: usize,
    bytes: usize,
    limit: OutputLimit,
}

impl ExcerptBuffer {
    fn new(goal: SearchGoal) -> Self {
        let limit = match goal {
            SearchGoal::Lines(limit) | SearchGoal::Parts(limit) => limit,
            SearchGoal::Match | SearchGoal::LineCount | SearchGoal::MatchCount => {
                OutputLimit { lines: 0, bytes: 0 }
            }
        };
        Self { excerpts: BTreeMap::new(), lines: 0, bytes: 0, limit }
    }

    /// Returns whether an excerpt of this file could be shown.
    fn accepts(&self, path: &Path) -> bool {
        !self.limit.is_reached(self.lines, self.bytes)
            || self.excerpts.last_key_value().is_none_or(|(last, _)| path < last.as_path())
    }

    fn insert(&mut self, path: PathBuf, excerpt: Excerpt) {
        self.lines += excerpt.lines;
        self.bytes += excerpt.text.len();
        self.excerpts.insert(path, excerpt);
        while let Some(last) = self.excerpts.last_entry() {
            let (lines, bytes) = (self.lines - last.get().lines, self.bytes - last.get().text.len());
            if !self.limit.is_reached(lines, bytes) {
                return;
            }
            last.remove();
            (self.lines, self.bytes) = (lines, bytes);
        }
    }
}
