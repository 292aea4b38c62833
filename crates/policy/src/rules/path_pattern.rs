//! Patterns of file rules: a gitignore-like body below a base directory.
//!
//! The prefix of the pattern (`//`, `~/`, `/` or none) selects the base; the shape of the body and the rule's
//! behavior select the depth at which it may match. Paths are compared as text after resolution (see `paths`).

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use unicode_normalization::UnicodeNormalization;
use whimbrel_wire::permission::PermissionBehavior;

use crate::paths::folded_path::{FoldedPath, fold_char, fold_path_text, strip_base};
use crate::rules::rule::RuleError;

/// Directories that patterns are anchored at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchors {
    /// The user's home directory, for `~/`.
    pub home: PathBuf,
    /// Directory in which the session started, for patterns without anchor.
    pub original_cwd: PathBuf,
    /// Root directory of the rule's source, for `/`.
    pub source_root: PathBuf,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct PathPattern {
    /// Only paths below these match: the base as written, and its physical path if that differs.
    bases: Vec<PathBuf>,
    folded_bases: Vec<String>,
    /// Globs for the path below the base; one match is enough.
    globs: Vec<GlobMatcher>,
    /// Literal text that every matching path contains; checked first because that is cheap.
    required_literal: Option<String>,
    /// True if only the content of a matching directory matches, not the directory itself.
    contents_only: bool,
    /// True if the pattern matches everything below its base.
    matches_all: bool,
    /// True if case and Unicode composition are ignored.
    folded: bool,
    /// Leading components of an anchored body without wildcard; `None` if the body may match at any depth.
    fixed_prefix: Option<PathBuf>,
    folded_prefix: Option<String>,
    /// The body as a glob with its letters as written, for programs that compare names as the disk does.
    written: Box<str>,
}

impl PathPattern {
    /// Compiles the specifier of a rule. `real` returns the physical path of a base.
    ///
    /// # Errors
    ///
    /// If the pattern begins with `!`, or if an allow rule has an invalid glob.
    pub fn new(
        content: &str,
        behavior: PermissionBehavior,
        anchors: &Anchors,
        real: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<Self, RuleError> {
        let content = content.trim();
        if content.starts_with('!') {
            return Err(RuleError::Negation(content.to_owned()));
        }
        let (base, body, rooted) = split_anchor(content, anchors);
        let folded = behavior != PermissionBehavior::Allow;
        let shape = BodyShape::new(body, rooted, behavior);
        let mut globs = Vec::with_capacity(shape.bodies.len());
        for body in &shape.bodies {
            globs.push(compile_glob(body, content, behavior)?);
        }
        let mut bases = vec![base.clone()];
        bases.extend(Some(real(&base)).filter(|real| *real != base));
        let fixed_prefix = (!shape.any_depth).then(|| extract_fixed_prefix(body));
        let written = shape.bodies.first().map(|body| escape_braces(body)).unwrap_or_default();
        let matches_all = matches!(body.trim_end_matches('/'), "" | "**" | "**/*");
        Ok(Self {
            folded_bases: bases.iter().map(|base| fold_path_text(base)).collect(),
            bases,
            globs,
            required_literal: find_longest_literal(body, folded),
            contents_only: shape.below_only,
            matches_all,
            folded,
            folded_prefix: fixed_prefix.as_deref().map(fold_path_text),
            fixed_prefix,
            written: written.into(),
        })
    }

    /// Returns true if the path or one of its parent directories matches. Deny and ask rules of a project also apply
    /// in its worktrees.
    pub fn matches(&self, path: &Path) -> bool {
        if self.folded {
            return self.matches_folded(&FoldedPath::new(path));
        }
        self.may_match(path.as_os_str().as_encoded_bytes())
            && self
                .bases
                .iter()
                .any(|base| path.strip_prefix(base).is_ok_and(|below| self.matches_below(below)))
    }

    /// Like `matches`, for a deny or ask pattern and a path that is already folded.
    pub(crate) fn matches_folded(&self, path: &FoldedPath) -> bool {
        let matches = |text: &str| {
            let mut below = self.folded_bases.iter().filter_map(|base| strip_base(text, base));
            self.may_match(text.as_bytes()) && below.any(|below| self.matches_below(Path::new(below)))
        };
        path.texts().any(matches)
    }

    /// Returns true if the path contains the required literal, so that a match is possible.
    fn may_match(&self, path: &[u8]) -> bool {
        self.required_literal.as_ref().is_none_or(|literal| contains_bytes(path, literal.as_bytes()))
    }

    /// Returns true if something below this directory might match, determined without disk access.
    pub fn may_match_below(&self, directory: &Path) -> bool {
        self.may_match_below_folded(&FoldedPath::new(directory))
    }

    /// Like `may_match_below`, for a directory that is already folded.
    pub(crate) fn may_match_below_folded(&self, directory: &FoldedPath) -> bool {
        let may_contain = |directory: &str| {
            self.folded_bases.iter().any(|base| {
                let leads_to = |path: &str| {
                    let prefix = self.folded_prefix.as_deref();
                    prefix
                        .is_none_or(|prefix| strip_base(prefix, path).or(strip_base(path, prefix)).is_some())
                };
                strip_base(base, directory).is_some() || strip_base(directory, base).is_some_and(leads_to)
            })
        };
        directory.texts().any(may_contain)
    }

    /// The fixed start of an anchored pattern, up to its first wildcard; empty if it may match at any depth.
    pub fn fixed_paths(&self) -> Vec<PathBuf> {
        let prefix = self.fixed_prefix.iter();
        prefix.flat_map(|prefix| self.bases.iter().map(move |base| base.join(prefix))).collect()
    }

    /// The pattern as an absolute glob, below the physical base; the base itself if it matches everything there.
    pub fn absolute_glob(&self) -> String {
        let base = self.bases.last().map_or("/".into(), |base| base.display().to_string());
        let base = base.trim_end_matches('/');
        if self.matches_all && self.written.is_empty() || matches!(&*self.written, "**" | "**/*") {
            return if base.is_empty() { "/".into() } else { globset::escape(base) };
        }
        format!("{}/{}", globset::escape(base), self.written)
    }

    /// The one path that the pattern names, if it has no wildcard and may not match at any depth.
    pub fn literal_path(&self) -> Option<PathBuf> {
        let is_literal = !self.written.contains(['*', '?', '[', ']', '{', '}', '\\']);
        (is_literal && self.fixed_prefix.is_some())
            .then(|| self.bases.last().map(|base| base.join(&*self.written)))
            .flatten()
    }

    fn matches_below(&self, below: &Path) -> bool {
        if self.matches_all {
            return true;
        }
        let mut candidates = below.ancestors().filter(|part| !part.as_os_str().is_empty());
        if self.contents_only {
            candidates.next();
        }
        candidates.any(|part| self.globs.iter().any(|glob| glob.is_match(part)))
    }
}

/// Returns true if a byte string contains another.
fn contains_bytes(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return true };
    let mut text = text;
    while let Some(at) = text.iter().position(|byte| byte == first) {
        let (_, after) = text.split_at(at + 1);
        if after.starts_with(rest) {
            return true;
        }
        text = after;
    }
    false
}

/// Splits a pattern into its base, its body, and whether the body matches only at the top of the base.
fn split_anchor<'a>(content: &'a str, anchors: &Anchors) -> (PathBuf, &'a str, bool) {
    if let Some(body) = content.strip_prefix("//") {
        return (PathBuf::from("/"), body.trim_start_matches('/'), true);
    }
    if let Some(body) = content.strip_prefix("~/") {
        return (anchors.home.clone(), body.trim_start_matches('/'), true);
    }
    if content == "~" {
        return (anchors.home.clone(), "", true);
    }
    if let Some(body) = content.strip_prefix('/') {
        return (anchors.source_root.clone(), body, true);
    }
    let mut body = content;
    while let Some(rest) = body.strip_prefix("./") {
        body = rest.trim_start_matches('/');
    }
    let mut base = anchors.original_cwd.clone();
    while let Some(rest) = body.strip_prefix("../") {
        base.pop();
        body = rest.trim_start_matches('/');
    }
    let is_above_cwd = base != anchors.original_cwd;
    match body {
        "." => (base, "", is_above_cwd),
        ".." => (base.parent().map_or_else(|| base.clone(), Path::to_owned), "", true),
        _ => (base, body, is_above_cwd),
    }
}

/// Depth at which a body matches.
struct BodyShape {
    bodies: Vec<String>,
    below_only: bool,
    any_depth: bool,
}

impl BodyShape {
    fn new(body: &str, rooted: bool, behavior: PermissionBehavior) -> Self {
        let below_only = body.ends_with('/');
        let body = body.trim_end_matches('/');
        let top = body.strip_suffix("/**");
        let one_segment = |text: &str| !text.contains('/');
        let any_depth = !rooted
            && (one_segment(body) || behavior != PermissionBehavior::Allow && top.is_some_and(one_segment));
        let any_depth_written = body.starts_with("**/");
        let mut bodies = Vec::new();
        // `a/**` also matches `a` itself; its content follows from that.
        let stem = top.unwrap_or(body);
        for stem in [stem, body] {
            if any_depth {
                bodies.push(format!("**/{stem}"));
            } else {
                bodies.push(stem.to_owned());
            }
        }
        bodies.dedup();
        Self { bodies, below_only, any_depth: any_depth || any_depth_written }
    }
}

fn compile_glob(body: &str, content: &str, behavior: PermissionBehavior) -> Result<GlobMatcher, RuleError> {
    let folded = behavior != PermissionBehavior::Allow;
    let build = |text: &str| {
        GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(folded)
            .build()
            .map(|glob| glob.compile_matcher())
    };
    let text = escape_braces(&if folded { fold_non_ascii(body) } else { body.to_owned() });
    match build(&text) {
        Ok(matcher) => Ok(matcher),
        // An invalid glob allows nothing; a deny or ask rule then matches its literal text.
        Err(_) if folded => {
            let literal = match body.strip_prefix("**/") {
                Some(stem) => format!("**/{}", globset::escape(stem)),
                None => globset::escape(body),
            };
            build(&literal).map_err(|_| RuleError::InvalidGlob(content.to_owned()))
        }
        Err(_) => Err(RuleError::InvalidGlob(content.to_owned())),
    }
}

/// Folds the non-ASCII letters of a body like those of a folded path; the glob matcher ignores the case of ASCII.
fn fold_non_ascii(body: &str) -> String {
    if body.is_ascii() {
        return body.to_owned();
    }
    let composed: String = body.nfc().collect();
    let folded = composed.chars().flat_map(|c| {
        let ascii = c.is_ascii().then_some(c);
        ascii.into_iter().chain(fold_char(c).filter(move |_| !c.is_ascii()))
    });
    folded.nfc().collect()
}

/// Escapes braces, which the glob library would expand as alternatives.
pub(crate) fn escape_braces(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut escaped = false;
    let mut class = false;
    for character in body.chars() {
        match character {
            '{' | '}' | ',' if !escaped && !class => {
                out.push('[');
                out.push(character);
                out.push(']');
            }
            _ => {
                class = if escaped { class } else { character == '[' || class && character != ']' };
                out.push(character);
            }
        }
        escaped = character == '\\' && !escaped;
    }
    out
}

/// Finds the longest literal run of a body.
fn find_longest_literal(body: &str, folded: bool) -> Option<String> {
    let body = if folded { fold_non_ascii(body).to_ascii_lowercase() } else { body.to_owned() };
    // Text between the first and the last bracket may be a character class.
    let before = body.split('[').next().unwrap_or_default();
    let after = body.rsplit(']').next().filter(|after| after.len() < body.len()).unwrap_or_default();
    let plain = if before.len() == body.len() { [before, ""] } else { [before, after] };
    let literals = plain.into_iter().flat_map(|text| {
        text.split(|c: char| {
            !c.is_ascii() || matches!(c, '*' | '?' | '/' | '\\' | '{' | '}' | ',' | '[' | ']')
        })
    });
    literals.max_by_key(|literal| literal.len()).filter(|literal| !literal.is_empty()).map(str::to_owned)
}

fn extract_fixed_prefix(body: &str) -> PathBuf {
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', '\\']);
    body.split('/').filter(|part| !part.is_empty()).take_while(is_literal).collect()
}

#[cfg(test)]
mod tests;
