//! What a command prints: both ends of it in memory, the whole in a file, each up to a limit.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::readable::{readable, size};

/// Output up to this many bytes is shown whole and needs no file.
const SHORT: usize = 30_000;
/// What the model sees of longer output: the beginning, and more of the end, where errors are.
const SHOWN_FIRST: usize = 4_000;
const SHOWN_LAST: usize = 8_000;
/// What the host gets of longer output, at each end.
const HOST_END: usize = 200_000;
/// What is kept in memory, at each end.
const KEPT_END: usize = 256 * 1024;
/// What is kept on disk, apart from the last bytes.
const FILE_LIMIT: u64 = 64 * 1024 * 1024;

/// Takes what a command prints, as it comes.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    total: u64,
    file: Spill,
    /// Who wants to hear each line.
    lines: Option<Lines>,
}

/// The file of an output.
#[derive(Debug)]
enum Spill {
    /// Not needed so far.
    Later(PathBuf),
    /// Being written; `room` bytes are still allowed.
    Open { path: PathBuf, file: File, room: u64 },
    /// It could not be written, and why.
    Lost(String),
}

/// All that a command printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    kept: Kept,
    total: u64,
    file: Option<PathBuf>,
    lost: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Whole(Vec<u8>),
    Ends { head: Vec<u8>, tail: Vec<u8> },
}

impl Capture {
    /// Keeps short output in memory; longer output goes to `path` as well.
    pub(crate) fn in_memory(path: PathBuf) -> Self {
        Self::new(KEPT_END, Spill::Later(path))
    }

    /// Writes all output to `path`, from the first byte on.
    pub(crate) fn in_file(path: PathBuf) -> io::Result<Self> {
        let (path, file) = make(path)?;
        Ok(Self::new(0, Spill::Open { path, file, room: FILE_LIMIT }))
    }

    /// Where the output goes, if that is known yet.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.file {
            Spill::Open { path, .. } => Some(path),
            Spill::Later(_) | Spill::Lost(_) => None,
        }
    }

    /// The file that the output goes to, if it is open.
    pub(super) fn file(&self) -> Option<&File> {
        match &self.file {
            Spill::Open { file, .. } => Some(file),
            Spill::Later(_) | Spill::Lost(_) => None,
        }
    }

    /// From now on everything goes to a file, with what came before: to `path`, unless there is one already. Gives where
    /// it is.
    pub(super) fn go_on_in(&mut self, path: PathBuf) -> PathBuf {
        if matches!(self.file, Spill::Later(_)) {
            self.file = Spill::Later(path.clone());
            self.file.open(&self.head);
        }
        self.path().map_or(path, Path::to_path_buf)
    }

    fn new(head_limit: usize, file: Spill) -> Self {
        Self { head: Vec::new(), head_limit, tail: VecDeque::new(), total: 0, file, lines: None }
    }

    /// The same, and each line is heard as it comes.
    pub(super) fn heard_by(self, lines: Lines) -> Self {
        Self { lines: Some(lines), ..self }
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if matches!(self.file, Spill::Later(_)) && self.total > SHORT as u64 {
            self.file.open(&self.head);
        }
        self.file.append(bytes);
        if let Some(lines) = &mut self.lines {
            lines.take(bytes);
        }
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(first);
        self.keep_last(rest);
    }

    fn keep_last(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_END)..];
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(KEPT_END);
        self.tail.drain(..surplus);
        self.tail.extend(bytes);
    }

    /// The output is complete.
    pub(crate) fn finish(mut self) -> Captured {
        let tail = Vec::from(self.tail);
        self.file.close(self.total, &tail);
        let (file, lost) = match self.file {
            Spill::Later(_) => (None, None),
            Spill::Open { path, .. } => (Some(path), None),
            Spill::Lost(reason) => (None, Some(reason)),
        };
        let kept = if self.total == (self.head.len() + tail.len()) as u64 {
            self.head.extend(tail);
            Kept::Whole(self.head)
        } else {
            Kept::Ends { head: self.head, tail }
        };
        Captured { kept, total: self.total, file, lost }
    }
}

impl Spill {
    fn open(&mut self, so_far: &[u8]) {
        let Self::Later(path) = self else { return };
        *self = match make(std::mem::take(path)) {
            Ok((path, file)) => Self::Open { path, file, room: FILE_LIMIT },
            Err(error) => Self::Lost(error.to_string()),
        };
        self.append(so_far);
    }

    fn append(&mut self, bytes: &[u8]) {
        let Self::Open { file, room, .. } = self else { return };
        let allowed = usize::try_from(*room).unwrap_or(usize::MAX).min(bytes.len());
        *room -= allowed as u64;
        if let Err(error) = file.write_all(&bytes[..allowed]) {
            *self = Self::Lost(error.to_string());
        }
    }

    /// A file that could not take everything gets at least the end.
    fn close(&mut self, total: u64, tail: &[u8]) {
        let Self::Open { file, .. } = self else { return };
        let missing = total.saturating_sub(FILE_LIMIT);
        let end = match usize::try_from(missing) {
            Ok(0) => return,
            Ok(missing) if missing <= tail.len() => tail[tail.len() - missing..].to_vec(),
            _ => [gap(missing - tail.len() as u64).as_bytes(), tail].concat(),
        };
        if let Err(error) = file.write_all(&end) {
            *self = Self::Lost(error.to_string());
        }
    }
}

impl Captured {
    /// How many bytes were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The file that holds the output, if it was too long to be shown.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The output as the model reads it: whole if it is short, otherwise both ends and where the rest is.
    pub fn for_model(&self) -> String {
        match &self.kept {
            Kept::Whole(bytes) if bytes.len() <= SHORT => readable(bytes).trim_end().into(),
            Kept::Whole(_) | Kept::Ends { .. } => format!(
                "<persisted-output>\n{}\n\n{}\n</persisted-output>",
                self.whereabouts(),
                self.both_ends(SHOWN_FIRST, SHOWN_LAST).trim_end()
            ),
        }
    }

    /// The output as the host gets it.
    pub fn for_host(&self) -> String {
        match &self.kept {
            Kept::Whole(bytes) if bytes.len() <= 2 * HOST_END => readable(bytes),
            Kept::Whole(_) | Kept::Ends { .. } => self.both_ends(HOST_END, HOST_END),
        }
    }

    fn whereabouts(&self) -> String {
        let total = size(self.total);
        match (&self.file, &self.lost) {
            (Some(path), _) if self.total > FILE_LIMIT => {
                format!("{total} of output; the first 64 MB and the end are in {}.", path.display())
            }
            (Some(path), _) => format!("{total} of output; all of it is in {}.", path.display()),
            (None, Some(reason)) => format!("{total} of output; it could not be saved ({reason})."),
            (None, None) => format!("{total} of output."),
        }
    }

    fn both_ends(&self, first: usize, last: usize) -> String {
        let (head, tail) = match &self.kept {
            Kept::Whole(bytes) => (&bytes[..], &bytes[..]),
            Kept::Ends { head, tail } => (&head[..], &tail[..]),
        };
        let head = beginning(head, first);
        let tail = end(tail, last);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        format!("{}{}{}", readable(head), gap(left_out), readable(tail))
    }
}

/// The last part of an output file, as a text; and how many bytes came before it.
pub(crate) fn last_of(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(SHORT as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(SHORT as u64).read_to_end(&mut bytes)?;
    let shown = if start == 0 { &bytes[..] } else { end(&bytes, SHORT - 1) };
    Ok((readable(shown), length.saturating_sub(shown.len() as u64)))
}

/// Makes the file of an output: where it belongs or, if that cannot be, in a temporary folder.
fn make(path: PathBuf) -> io::Result<(PathBuf, File)> {
    match create(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => make_elsewhere(&path).map_err(|_| {
            io::Error::new(
                error.kind(),
                format!("its output cannot be written to {}: {error}", path.display()),
            )
        }),
    }
}

fn make_elsewhere(path: &Path) -> io::Result<(PathBuf, File)> {
    let folder = tempfile::Builder::new().prefix("whimbrel-").tempdir()?;
    let path = folder.path().join(path.file_name().unwrap_or_default());
    let file = create(&path)?;
    // What was printed is to be found there as long as somebody may look for it.
    let _ = folder.keep();
    Ok((path, file))
}

/// Only the user may read what commands print.
fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn gap(bytes: u64) -> String {
    format!("\n[... {} left out ...]\n", size(bytes))
}

/// At most `limit` bytes from the beginning: whole lines if possible, otherwise whole characters.
fn beginning(bytes: &[u8], limit: usize) -> &[u8] {
    let part = &bytes[..limit.min(bytes.len())];
    match part.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => &part[..at],
        None => &part[..part.len() - split_character(part)],
    }
}

/// At most `limit` bytes from the end: whole lines if possible, otherwise whole characters.
fn end(bytes: &[u8], limit: usize) -> &[u8] {
    let part = &bytes[bytes.len().saturating_sub(limit)..];
    match part.iter().position(|byte| *byte == b'\n') {
        Some(at) if at + 1 < part.len() => &part[at + 1..],
        _ => &part[part.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()..],
    }
}

/// How many bytes at the end belong to a character that is not complete.
fn split_character(bytes: &[u8]) -> usize {
    let followers = bytes.iter().rev().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let length = match bytes.iter().rev().nth(followers) {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 0,
    };
    if length > followers + 1 { followers + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(chunks: &[&[u8]]) -> (Captured, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::in_memory(folder.path().join("deep/output.txt"));
        chunks.iter().for_each(|chunk| capture.take(chunk));
        (capture.finish(), folder)
    }

    #[test]
    fn short_output_is_shown_whole_and_needs_no_file() {
        let (output, folder) = captured(&[b"one\n", b"two\n\n"]);
        assert_eq!((output.for_model().as_str(), output.for_host().as_str()), ("one\ntwo", "one\ntwo\n\n"));
        assert_eq!((output.file(), folder.path().join("deep").exists()), (None, false));
    }

    #[test]
    fn long_output_is_shown_by_its_ends_and_kept_in_a_file() {
        let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
        let (output, _folder) = captured(&text.as_bytes().chunks(4096).collect::<Vec<_>>());
        let file = output.file().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
        let shown = output.for_model();
        for part in ["108 kB", file.to_str().unwrap(), "\n20\n", "left out", "\n20000\n</persisted-output>"] {
            assert!(shown.contains(part), "{part} is missing in {shown}");
        }
        assert!(shown.len() < 13_000);
        assert_eq!(output.for_host(), text);
    }

    #[test]
    fn the_host_gets_both_ends_of_what_would_make_its_line_too_long() {
        let text: String = (1..=100_000).map(|line| format!("{line}\n")).collect();
        let (output, _folder) = captured(&[text.as_bytes()]);
        let told = output.for_host();
        assert!(told.len() > 390_000 && told.len() <= 2 * HOST_END + 100, "{}", told.len());
        assert!(told.starts_with("1\n2\n") && told.ends_with("\n100000\n") && told.contains("left out"));
    }

    #[test]
    fn memory_stays_bounded_and_both_ends_are_kept() {
        let (output, _folder) = captured(&[b"first\n", &[b'x'; 900_000], &[b'y'; 10], b"\nlast"]);
        let Kept::Ends { head, tail } = &output.kept else { panic!("too much is kept") };
        assert_eq!((head.len(), tail.len()), (KEPT_END, KEPT_END));
        assert!(head.starts_with(b"first\nx") && tail.ends_with(b"xyyyyyyyyyy\nlast"));
        assert_eq!(output.total(), 900_021);
    }

    #[test]
    fn a_file_has_a_limit_and_keeps_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut capture = Capture::in_file(path.clone()).unwrap();
        let chunk = vec![b'x'; 1024 * 1024];
        (0..70).for_each(|_| capture.take(&chunk));
        capture.take(b"\nthe end\n");
        capture.finish();
        let length = std::fs::metadata(&path).unwrap().len();
        assert!(length > FILE_LIMIT && length < FILE_LIMIT + 2 * KEPT_END as u64, "{length}");
        assert!(last_of(&path).unwrap().0.ends_with("the end\n"));
    }

    #[test]
    fn a_file_that_cannot_be_where_it_belongs_is_elsewhere() {
        let mut capture = Capture::in_memory("/proc/nowhere/output.txt".into());
        capture.take(&[b'x'; 40_000]);
        let output = capture.finish();
        let file = output.file().unwrap();
        assert!(output.for_model().contains(&file.display().to_string()), "{output:?}");
        assert_eq!(std::fs::read(file).unwrap(), [b'x'; 40_000]);
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    #[test]
    fn output_that_cannot_be_saved_is_told() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = Spill::Open { path: "/dev/full".into(), file: full, room: FILE_LIMIT };
        let mut capture = Capture::new(KEPT_END, file);
        capture.take(&[b'x'; 40_000]);
        assert!(capture.finish().for_model().contains("could not be saved"));
    }

    #[test]
    fn cuts_fall_between_lines_or_characters() {
        for (name, first, last, text) in [
            ("lines", "ab", "ef", "ab\ncd\nef"),
            ("characters", "aü", "üb", "aüüüüb"),
            ("everything fits", "ab", "ab", "ab"),
        ] {
            assert_eq!(beginning(text.as_bytes(), 4), first.as_bytes(), "{name}");
            assert_eq!(end(text.as_bytes(), 4), last.as_bytes(), "{name}");
        }
    }
}
