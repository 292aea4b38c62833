//! Captured output of a command: both ends in memory, the whole in a file, each up to a limit.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use whimbrel_os::byte_size::format_size;
use whimbrel_os::files;

use crate::plain_text::to_plain_text;

/// Output up to this size is shown whole and needs no file.
const MAX_INLINE_BYTES: usize = 30_000;
/// What the model sees of longer output: the head, and more of the tail, where errors are.
const SHOWN_HEAD_BYTES: usize = 4_000;
const SHOWN_TAIL_BYTES: usize = 8_000;
/// What the host receives of longer output, at each end.
const HOST_END_BYTES: usize = 200_000;
/// What is kept in memory, at each end.
const KEPT_END_BYTES: usize = 256 * 1024;
/// What is kept on disk, apart from the tail.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Collects output as it arrives.
#[derive(Debug)]
pub struct OutputCapture {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    total: u64,
    file: OutputFile,
    observers: Vec<Box<dyn OutputObserver>>,
}

/// Sees the output of a command as it is read. It is dropped when the output has ended.
pub trait OutputObserver: fmt::Debug + Send {
    /// Handles the next bytes. Must not block: the command waits meanwhile.
    fn observe(&mut self, bytes: &[u8]);
}

/// The output file.
#[derive(Debug)]
enum OutputFile {
    /// Not needed so far.
    Pending(PathBuf),
    /// Open for writing; `room` bytes are left.
    Open { path: PathBuf, file: File, room: u64 },
    /// Could not be written; the reason.
    Failed(String),
}

/// The complete output of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedOutput {
    kept: KeptBytes,
    total: u64,
    file: Option<PathBuf>,
    save_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum KeptBytes {
    Whole(Vec<u8>),
    Ends { head: Vec<u8>, tail: Vec<u8> },
}

impl OutputCapture {
    /// Keeps short output in memory; longer output also goes to `path`.
    pub fn in_memory(path: PathBuf) -> Self {
        Self::new(KEPT_END_BYTES, OutputFile::Pending(path))
    }

    /// Writes all output to `path`.
    pub fn in_file(path: PathBuf) -> io::Result<Self> {
        let (path, file) = create_or_fall_back(path)?;
        Ok(Self::new(0, OutputFile::Open { path, file, room: MAX_FILE_BYTES }))
    }

    pub fn path(&self) -> Option<&Path> {
        match &self.file {
            OutputFile::Open { path, .. } => Some(path),
            OutputFile::Pending(_) | OutputFile::Failed(_) => None,
        }
    }

    pub fn file(&self) -> Option<&File> {
        match &self.file {
            OutputFile::Open { file, .. } => Some(file),
            OutputFile::Pending(_) | OutputFile::Failed(_) => None,
        }
    }

    /// From now on writes everything to a file, including previous output: to `path` unless a file is already open.
    /// Returns its path.
    pub fn continue_in_file(&mut self, path: PathBuf) -> PathBuf {
        if matches!(self.file, OutputFile::Pending(_)) {
            self.file = OutputFile::Pending(path.clone());
            self.file.open_with(&self.head);
        }
        self.path().map_or(path, Path::to_path_buf)
    }

    fn new(head_limit: usize, file: OutputFile) -> Self {
        Self { head: Vec::new(), head_limit, tail: VecDeque::new(), total: 0, file, observers: Vec::new() }
    }

    /// Also shows all further output to `observer`.
    #[must_use]
    pub fn with_observer(mut self, observer: impl OutputObserver + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if matches!(self.file, OutputFile::Pending(_)) && self.total > MAX_INLINE_BYTES as u64 {
            self.file.open_with(&self.head);
        }
        self.file.append(bytes);
        for observer in &mut self.observers {
            observer.observe(bytes);
        }
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(first);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_END_BYTES)..];
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(KEPT_END_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend(bytes);
    }

    /// Returns the end of the output as text, at most `limit` bytes of it and at most what is kept in memory.
    pub fn last_text(&self, limit: usize) -> String {
        let from_tail = self.tail.len().min(limit);
        let from_head = (limit - from_tail).min(self.head.len());
        let head =
            if self.total == (self.head.len() + self.tail.len()) as u64 { &self.head[..] } else { &[] };
        let head = &head[head.len().saturating_sub(from_head)..];
        let tail = self.tail.iter().skip(self.tail.len() - from_tail);
        to_plain_text(&head.iter().chain(tail).copied().collect::<Vec<_>>())
    }

    pub fn finish(mut self) -> CapturedOutput {
        let tail = Vec::from(self.tail);
        self.file.close(self.total, &tail);
        let (file, save_error) = match self.file {
            OutputFile::Pending(_) => (None, None),
            OutputFile::Open { path, .. } => (Some(path), None),
            OutputFile::Failed(reason) => (None, Some(reason)),
        };
        let kept = if self.total == (self.head.len() + tail.len()) as u64 {
            self.head.extend(tail);
            KeptBytes::Whole(self.head)
        } else {
            KeptBytes::Ends { head: self.head, tail }
        };
        CapturedOutput { kept, total: self.total, file, save_error }
    }
}

impl OutputFile {
    fn open_with(&mut self, so_far: &[u8]) {
        let Self::Pending(path) = self else { return };
        *self = match create_or_fall_back(std::mem::take(path)) {
            Ok((path, file)) => Self::Open { path, file, room: MAX_FILE_BYTES },
            Err(error) => Self::Failed(error.to_string()),
        };
        self.append(so_far);
    }

    fn append(&mut self, bytes: &[u8]) {
        let Self::Open { file, room, .. } = self else { return };
        let allowed = usize::try_from(*room).unwrap_or(usize::MAX).min(bytes.len());
        *room -= allowed as u64;
        if let Err(error) = file.write_all(&bytes[..allowed]) {
            *self = Self::Failed(error.to_string());
        }
    }

    /// Appends the tail to a file that reached its limit.
    fn close(&mut self, total: u64, tail: &[u8]) {
        let Self::Open { file, .. } = self else { return };
        let missing = total.saturating_sub(MAX_FILE_BYTES);
        let end = match usize::try_from(missing) {
            Ok(0) => return,
            Ok(missing) if missing <= tail.len() => tail[tail.len() - missing..].to_vec(),
            _ => [omission_note(missing - tail.len() as u64).as_bytes(), tail].concat(),
        };
        if let Err(error) = file.write_all(&end) {
            *self = Self::Failed(error.to_string());
        }
    }
}

impl CapturedOutput {
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The file with the output, if the output was too long to show.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Renders the output for the model: whole if short, otherwise both ends and the path of the file.
    pub fn render_for_model(&self) -> String {
        match &self.kept {
            KeptBytes::Whole(bytes) if bytes.len() <= MAX_INLINE_BYTES => {
                to_plain_text(bytes).trim_end().into()
            }
            KeptBytes::Whole(_) | KeptBytes::Ends { .. } => format!(
                "<persisted-output>\n{}\n\n{}\n</persisted-output>",
                self.describe_location(),
                self.render_ends(SHOWN_HEAD_BYTES, SHOWN_TAIL_BYTES).trim_end()
            ),
        }
    }

    pub fn render_for_host(&self) -> String {
        match &self.kept {
            KeptBytes::Whole(bytes) if bytes.len() <= 2 * HOST_END_BYTES => to_plain_text(bytes),
            KeptBytes::Whole(_) | KeptBytes::Ends { .. } => self.render_ends(HOST_END_BYTES, HOST_END_BYTES),
        }
    }

    fn describe_location(&self) -> String {
        let total = format_size(self.total);
        match (&self.file, &self.save_error) {
            (Some(path), _) if self.total > MAX_FILE_BYTES => {
                format!("{total} of output; the first 64 MB and the end are in {}.", path.display())
            }
            (Some(path), _) => format!("{total} of output; all of it is in {}.", path.display()),
            (None, Some(reason)) => format!("{total} of output; it could not be saved ({reason})."),
            (None, None) => format!("{total} of output."),
        }
    }

    fn render_ends(&self, first: usize, last: usize) -> String {
        let (head, tail) = match &self.kept {
            KeptBytes::Whole(bytes) => (&bytes[..], &bytes[..]),
            KeptBytes::Ends { head, tail } => (&head[..], &tail[..]),
        };
        let head = head_part(head, first);
        let tail = tail_part(tail, last);
        let omitted = self.total - (head.len() + tail.len()) as u64;
        format!("{}{}{}", to_plain_text(head), omission_note(omitted), to_plain_text(tail))
    }
}

/// Reads the tail of an output file as text; also returns the number of bytes before it.
pub fn read_tail(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(MAX_INLINE_BYTES as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_INLINE_BYTES as u64).read_to_end(&mut bytes)?;
    let shown = if start == 0 { &bytes[..] } else { tail_part(&bytes, MAX_INLINE_BYTES - 1) };
    Ok((to_plain_text(shown), length.saturating_sub(shown.len() as u64)))
}

/// Creates the output file at `path` or, if that fails, in a temporary directory.
fn create_or_fall_back(path: PathBuf) -> io::Result<(PathBuf, File)> {
    match create_private(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => create_in_temp_dir(&path).map_err(|_| {
            io::Error::new(
                error.kind(),
                format!("its output cannot be written to {}: {error}", path.display()),
            )
        }),
    }
}

fn create_in_temp_dir(path: &Path) -> io::Result<(PathBuf, File)> {
    let dir = tempfile::Builder::new().prefix("whimbrel-").tempdir()?;
    let path = dir.path().join(path.file_name().unwrap_or_default());
    let file = create_private(&path)?;
    // Keep the directory: the user or the model may look for the output later.
    let _ = dir.keep();
    Ok((path, file))
}

/// Creates a file that only the user can read.
fn create_private(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        files::create_private_dir(dir)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn omission_note(bytes: u64) -> String {
    format!("\n[... {} left out ...]\n", format_size(bytes))
}

/// At most `limit` bytes from the start: whole lines if they fill half of it, otherwise whole characters.
fn head_part(bytes: &[u8], limit: usize) -> &[u8] {
    let part = &bytes[..limit.min(bytes.len())];
    match part.iter().rposition(|byte| *byte == b'\n') {
        Some(at) if at >= part.len() / 2 => &part[..at],
        _ => &part[..part.len() - incomplete_char_len(part)],
    }
}

/// At most `limit` bytes from the end: whole lines if they fill half of it, otherwise whole characters.
fn tail_part(bytes: &[u8], limit: usize) -> &[u8] {
    let part = &bytes[bytes.len().saturating_sub(limit)..];
    match part.iter().position(|byte| *byte == b'\n') {
        Some(at) if at < part.len() / 2 => &part[at + 1..],
        _ => &part[part.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()..],
    }
}

/// Number of bytes at the end that belong to an incomplete character.
fn incomplete_char_len(bytes: &[u8]) -> usize {
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

    fn capture_all(chunks: &[&[u8]]) -> (CapturedOutput, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut capture = OutputCapture::in_memory(dir.path().join("deep/output.txt"));
        chunks.iter().for_each(|chunk| capture.push(chunk));
        (capture.finish(), dir)
    }

    #[test]
    fn short_output_is_shown_whole_without_a_file() {
        let (output, dir) = capture_all(&[b"one\n", b"two\n\n"]);
        assert_eq!(
            (output.render_for_model().as_str(), output.render_for_host().as_str()),
            ("one\ntwo", "one\ntwo\n\n")
        );
        assert_eq!((output.file(), dir.path().join("deep").exists()), (None, false));
    }

    #[test]
    fn long_output_is_shortened_and_kept_in_a_file() {
        let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
        let (output, _dir) = capture_all(&text.as_bytes().chunks(4096).collect::<Vec<_>>());
        let file = output.file().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
        let shown = output.render_for_model();
        for part in ["108 kB", file.to_str().unwrap(), "\n20\n", "left out", "\n20000\n</persisted-output>"] {
            assert!(shown.contains(part), "{part} is missing in {shown}");
        }
        assert!(shown.len() < 13_000);
        assert_eq!(output.render_for_host(), text);
    }

    #[test]
    fn the_host_gets_both_ends_of_long_output() {
        let text: String = (1..=100_000).map(|line| format!("{line}\n")).collect();
        let (output, _dir) = capture_all(&[text.as_bytes()]);
        let shown = output.render_for_host();
        assert!(shown.len() > 390_000 && shown.len() <= 2 * HOST_END_BYTES + 100, "{}", shown.len());
        assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n100000\n") && shown.contains("left out"));
    }

    #[test]
    fn memory_is_bounded_and_both_ends_are_kept() {
        let (output, _dir) = capture_all(&[b"first\n", &[b'x'; 900_000], &[b'y'; 10], b"\nlast"]);
        let KeptBytes::Ends { head, tail } = &output.kept else { panic!("too much is kept") };
        assert_eq!((head.len(), tail.len()), (KEPT_END_BYTES, KEPT_END_BYTES));
        assert!(head.starts_with(b"first\nx") && tail.ends_with(b"xyyyyyyyyyy\nlast"));
        assert_eq!(output.total(), 900_021);
    }

    #[test]
    fn the_file_has_a_limit_and_keeps_the_tail() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output");
        let mut capture = OutputCapture::in_file(path.clone()).unwrap();
        let chunk = vec![b'x'; 1024 * 1024];
        (0..70).for_each(|_| capture.push(&chunk));
        capture.push(b"\nthe end\n");
        capture.finish();
        let length = std::fs::metadata(&path).unwrap().len();
        assert!(length > MAX_FILE_BYTES && length < MAX_FILE_BYTES + 2 * KEPT_END_BYTES as u64, "{length}");
        assert!(read_tail(&path).unwrap().0.ends_with("the end\n"));
    }

    #[test]
    fn an_unwritable_path_falls_back_to_a_temp_dir() {
        let mut capture = OutputCapture::in_memory("/proc/nowhere/output.txt".into());
        capture.push(&[b'x'; 40_000]);
        let output = capture.finish();
        let file = output.file().unwrap();
        assert!(output.render_for_model().contains(&file.display().to_string()), "{output:?}");
        assert_eq!(std::fs::read(file).unwrap(), [b'x'; 40_000]);
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_failed_save_is_reported() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = OutputFile::Open { path: "/dev/full".into(), file: full, room: MAX_FILE_BYTES };
        let mut capture = OutputCapture::new(KEPT_END_BYTES, file);
        capture.push(&[b'x'; 40_000]);
        assert!(capture.finish().render_for_model().contains("could not be saved"));
    }

    #[test]
    fn cuts_fall_between_lines_or_characters() {
        for (name, first, last, text) in [
            ("lines", "ab", "ef", "ab\ncd\nef"),
            ("characters", "aü", "üb", "aüüüüb"),
            ("one long line among short ones", "a\nxx", "xx\nb", "a\nxxxxxxxx\nb"),
            ("everything fits", "ab", "ab", "ab"),
        ] {
            assert_eq!(head_part(text.as_bytes(), 4), first.as_bytes(), "{name}");
            assert_eq!(tail_part(text.as_bytes(), 4), last.as_bytes(), "{name}");
        }
    }
}
