//! File tree for the search tools, identical in every run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::context::BenchContext;

/// Number of files.
const FILE_COUNT: usize = 20_000;

/// Size of each file in bytes.
const FILE_BYTES: usize = 10 * 1024;

const EXTENSIONS: [&str; 5] = ["rs", "py", "ts", "md", "json"];

/// Text that occurs in one of two thousand files.
pub(super) const NEEDLE: &str = "needle_in_the_haystack";

/// A file with the needle.
pub(super) const NEEDLE_FILE: &str = "m0/p0/f0.rs";

/// Creates the tree unless it exists: 20,000 files of 10 KB in 1,000 directories.
pub(super) fn create(context: &BenchContext) -> Result<PathBuf> {
    let root = context.create_dir("tree")?;
    if root.join(NEEDLE_FILE).exists() {
        return Ok(root);
    }
    let mut rng = FixedRng(7);
    let words: Vec<String> = (0..4000).map(|_| rng.next_word()).collect();
    for number in 0..FILE_COUNT {
        let path = root.join(file_path(number));
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(path, file_text(number, &words, &mut rng))?;
    }
    Ok(root)
}

/// Writes the file of 2,000 lines that the Edit tool changes.
pub(super) fn write_numbered_lines(path: &Path) -> Result<()> {
    let mut text = String::new();
    for number in 0..2000 {
        writeln!(text, "line {number} alpha beta gamma")?;
    }
    Ok(fs::write(path, text)?)
}

fn file_path(number: usize) -> String {
    let extension = EXTENSIONS[number % EXTENSIONS.len()];
    format!("m{}/p{}/f{number}.{extension}", number % 40, number / 40 % 25)
}

fn file_text(number: usize, words: &[String], rng: &mut FixedRng) -> String {
    let mut text = String::with_capacity(FILE_BYTES + 64);
    if number.is_multiple_of(2000) {
        text += &format!("{NEEDLE} here\n");
    }
    while text.len() < FILE_BYTES {
        text += &words[rng.next_below(words.len())];
        text.push(if rng.next_below(10) == 0 { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}

/// Random numbers with a fixed seed.
struct FixedRng(u64);

impl FixedRng {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn next_word(&mut self) -> String {
        let length = 2 + self.next_below(10);
        (0..length).map(|_| char::from(b'a' + self.next_below(26) as u8)).collect()
    }
}
