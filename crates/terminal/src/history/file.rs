//! The history file of a project. Each line is a JSON string; several processes append to it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Part of the file that is read: its end.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// Size from which the file is cut to its end.
const MAX_FILE_BYTES: u64 = 4 * MAX_READ_BYTES;
/// Longer prompts are not kept.
const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// Path of the history file of a project below a configuration directory.
pub(crate) fn path(config: &Path, project: &Path) -> PathBuf {
    let project = project.to_string_lossy();
    let readable: String = project.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let tail: String = readable.chars().skip(readable.chars().count().saturating_sub(60)).collect();
    config.join("prompt-history").join(format!(
        "{}-{:016x}.jsonl",
        tail.trim_matches('-'),
        hash(project.as_bytes())
    ))
}

/// FNV-1a: the same on every machine and in every version.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads the newest prompts, oldest first. A missing file is empty; lines that cannot be read are left out.
pub(crate) fn read(path: &Path) -> Vec<String> {
    let Ok((text, is_cut)) = read_end(path) else { return Vec::new() };
    text.split(|byte| *byte == b'\n')
        .skip(usize::from(is_cut))
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// The end of the file, and whether it begins within a line.
fn read_end(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let start = size.saturating_sub(MAX_READ_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, start > 0))
}

/// Returns whether a prompt is kept. One that begins with a blank may hold a secret.
pub(crate) fn is_kept(prompt: &str) -> bool {
    !prompt.starts_with(' ') && !prompt.starts_with("! ") && prompt.len() <= MAX_ENTRY_BYTES
}

/// Appends a prompt with one write, so that processes do not mix their lines.
pub(crate) fn append(path: &Path, prompt: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut file = open_private(path)?;
    if file.metadata()?.len() > MAX_FILE_BYTES {
        shorten(path)?;
        file = open_private(path)?;
    }
    let mut line = serde_json::to_vec(prompt)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Opens the file for appending; other users cannot read it.
fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Replaces the file by its end.
fn shorten(path: &Path) -> io::Result<()> {
    let (text, is_cut) = read_end(path)?;
    let start =
        if is_cut { text.iter().position(|byte| *byte == b'\n').map_or(0, |newline| newline + 1) } else { 0 };
    let new = path.with_extension(format!("{}.new", std::process::id()));
    open_private(&new)?.write_all(&text[start..])?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_several_processes_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), Path::new("/home/ann/project"));
        assert_eq!(read(&path), Vec::<String>::new());
        for prompt in ["one", "two\nlines", "\u{1b}[2J"] {
            append(&path, prompt).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{broken\n").unwrap();
        append(&path, "four").unwrap();
        assert_eq!(read(&path), ["one", "two\nlines", "\u{1b}[2J", "four"]);
    }

    #[test]
    fn long_file_is_cut_and_keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.jsonl");
        let line = format!("\"{}\"\n", "x".repeat(1000));
        fs::write(&path, line.repeat(4300)).unwrap();
        append(&path, "newest").unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 2 * MAX_READ_BYTES);
        assert_eq!(read(&path).last().map(String::as_str), Some("newest"));
    }

    #[test]
    fn projects_have_files_of_their_own() {
        let config = Path::new("/c");
        assert_ne!(path(config, Path::new("/a/b")), path(config, Path::new("/a-b")));
        let name = path(config, Path::new("/home/ann/project")).display().to_string();
        assert!(name.starts_with("/c/prompt-history/home-ann-project-"), "{name}");
    }

    #[test]
    fn lines_with_a_leading_blank_are_not_kept() {
        for (prompt, expected) in [("ls", true), (" ls", false), ("!ls", true), ("! export KEY=1", false)] {
            assert_eq!(is_kept(prompt), expected, "{prompt}");
        }
    }
}
