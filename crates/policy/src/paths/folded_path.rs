//! The form of a path that deny and ask rules compare: case-folded, in composed Unicode, with worktree paths mapped
//! to the main checkout. It is built once and shared by all rules.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::paths::ResolvedPath;
use crate::paths::worktree_paths::map_to_main_checkout;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldedPath {
    /// Without doubled slashes and single dots, so that it can be compared as text.
    text: String,
    /// The corresponding paths in the main checkout, if the path lies in a worktree.
    main_checkout_texts: Vec<String>,
}

impl FoldedPath {
    pub(crate) fn new(path: &Path) -> Self {
        let text = fold_text(&normalize_separators(path).to_string_lossy());
        let main_checkout_texts = map_to_main_checkout(&text);
        Self { text, main_checkout_texts }
    }

    /// The path itself and its paths in the main checkout.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_str()).chain(self.main_checkout_texts.iter().map(String::as_str))
    }

    /// Folds all forms of a path.
    pub(crate) fn all_forms(path: &ResolvedPath) -> impl Iterator<Item = Self> {
        path.forms().map(Self::new)
    }
}

/// Returns the part of a folded path below a folded base; `None` if it lies elsewhere.
pub(crate) fn strip_base<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    if base.is_empty() {
        return Some(path);
    }
    let rest = path.strip_prefix(base)?;
    if rest.is_empty() || base.ends_with('/') { Some(rest) } else { rest.strip_prefix('/') }
}

/// Folds case and Unicode composition of a path.
pub(crate) fn fold_path(path: &Path) -> PathBuf {
    PathBuf::from(fold_text(&path.to_string_lossy()))
}

/// Folds a path and normalizes its separators.
pub(crate) fn fold_path_text(path: &Path) -> String {
    fold_text(&normalize_separators(path).to_string_lossy())
}

fn fold_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // Folded character by character, as patterns are; whole-string lowering would treat a final sigma differently.
    text.nfc().flat_map(fold_char).nfc().collect()
}

/// Folds one character.
pub(crate) fn fold_char(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase().map(|character| if character == 'ς' { 'σ' } else { character })
}

/// Removes doubled slashes, single dots and a trailing slash.
fn normalize_separators(path: &Path) -> Cow<'_, Path> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut names = bytes.strip_prefix(b"/").unwrap_or(bytes).split(|byte| *byte == b'/');
    let needs_cleanup = bytes.len() > 1 && names.any(|name| matches!(name, b"" | b"."));
    if needs_cleanup { Cow::Owned(path.components().collect()) } else { Cow::Borrowed(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_fold_to_the_same_text() {
        let rows = [
            ("/w/A/b", "/w/a/b"),
            ("/w//a/./b/", "/w/a/b"),
            ("/w/a/.", "/w/a"),
            ("/", "/"),
            ("//", "/"),
            ("/w/Cafe\u{301}", "/w/caf\u{e9}"),
            ("/w/\u{212a}ey", "/w/key"),
            ("/w/ΟΔΟΣ", "/w/οδοσ"),
            ("/w/οδος", "/w/οδοσ"),
            ("/w/../x", "/w/../x"),
            ("", ""),
        ];
        for (path, expected) in rows {
            assert_eq!(FoldedPath::new(Path::new(path)).texts().next(), Some(expected), "{path}");
        }
    }

    #[test]
    fn worktree_path_is_folded_before_it_is_mapped() {
        let path = FoldedPath::new(Path::new("/w/.Claude//Worktrees/one/A"));
        assert_eq!(path.texts().collect::<Vec<_>>(), ["/w/.claude/worktrees/one/a", "/w/a"]);
    }

    #[test]
    fn strip_base_of_a_path() {
        let rows = [
            ("/w/a", "/w", Some("a")),
            ("/w", "/w", Some("")),
            ("/wa", "/w", None),
            ("/w", "/", Some("w")),
            ("/", "/", Some("")),
            ("a/b", "", Some("a/b")),
            ("/", "/w", None),
        ];
        for (path, base, expected) in rows {
            assert_eq!(strip_base(path, base), expected, "{path} {base}");
        }
    }
}
