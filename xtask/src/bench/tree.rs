//! The files that the tools search: the same ones each time.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::lab::Lab;

/// How many files there are.
const FILES: usize = 20_000;

/// How large each one is.
const SIZE: usize = 10 * 1024;

const ENDINGS: [&str; 5] = ["rs", "py", "ts", "md", "json"];

/// Stands in one file of two thousand.
pub(super) const NEEDLE: &str = "needle_in_the_haystack";

/// A file with the needle.
pub(super) const WITH_NEEDLE: &str = "m0/p0/f0.rs";

/// Makes the tree, unless it is there: 20,000 files of 10 KB in 1,000 folders.
pub(super) fn grow(lab: &Lab) -> Result<PathBuf> {
    let root = lab.folder("tree")?;
    if root.join(WITH_NEEDLE).exists() {
        return Ok(root);
    }
    let mut chance = Chance(7);
    let words: Vec<String> = (0..4000).map(|_| chance.word()).collect();
    for number in 0..FILES {
        let path = root.join(place(number));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text(number, &words, &mut chance))?;
    }
    Ok(root)
}

/// Writes the file of 2,000 lines that is edited.
pub(super) fn lines(path: &Path) -> Result<()> {
    let mut text = String::new();
    for number in 0..2000 {
        writeln!(text, "line {number} alpha beta gamma")?;
    }
    Ok(fs::write(path, text)?)
}

fn place(number: usize) -> String {
    let ending = ENDINGS[number % ENDINGS.len()];
    format!("m{}/p{}/f{number}.{ending}", number % 40, number / 40 % 25)
}

fn text(number: usize, words: &[String], chance: &mut Chance) -> String {
    let mut text = String::with_capacity(SIZE + 64);
    if number.is_multiple_of(2000) {
        text += &format!("{NEEDLE} here\n");
    }
    while text.len() < SIZE {
        text += &words[chance.below(words.len())];
        text.push(if chance.below(10) == 0 { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}

/// A source of numbers that are always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn word(&mut self) -> String {
        let length = 2 + self.below(10);
        (0..length).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}
