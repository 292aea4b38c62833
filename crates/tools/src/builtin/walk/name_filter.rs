//! Selects files by name: globs, file types and hidden files.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::types::{Types, TypesBuilder};

use crate::api::ToolError;

/// Name filter of a walk. All paths are relative to its root.
#[derive(Debug, Default)]
pub(in crate::builtin) struct NameFilter {
    /// One of these must match, if there are any.
    included: GlobSet,
    /// None of these may match the file or a directory above it.
    excluded: GlobSet,
    /// Hidden names that the globs mention. Other hidden names do not match.
    hidden_names: GlobSet,
    types: Option<Types>,
}

impl NameFilter {
    /// Files whose whole path matches the pattern.
    pub(in crate::builtin) fn from_pattern(pattern: &str) -> Result<Self, ToolError> {
        Ok(Self {
            included: build_glob_set(&[pattern.to_owned()])?,
            hidden_names: build_glob_set(&hidden_name_globs(pattern))?,
            ..Self::default()
        })
    }

    /// Files selected by a filter in `.gitignore` style: a glob without a slash matches at every depth, `!` excludes, a
    /// name may be a directory. Globs are separated by spaces or commas. `dir` is the root relative to the working
    /// directory; globs may begin with it.
    pub(in crate::builtin) fn from_filter(filter: &str, dir: &str) -> Result<Self, ToolError> {
        let (excluded, included): (Vec<&str>, Vec<&str>) =
            split_globs(filter).into_iter().partition(|glob| glob.starts_with('!'));
        let hidden_names: Vec<String> = included.iter().flat_map(|glob| hidden_name_globs(glob)).collect();
        let expand =
            |list: &[&str]| list.iter().flat_map(|glob| expand_filter_glob(glob, dir)).collect::<Vec<_>>();
        Ok(Self {
            included: build_glob_set(&expand(&included))?,
            excluded: build_glob_set(&expand(&excluded))?,
            hidden_names: build_glob_set(&hidden_names)?,
            types: None,
        })
    }

    /// Restricts to a file type by ripgrep's name.
    pub(in crate::builtin) fn with_file_type(self, name: &str) -> Result<Self, ToolError> {
        let types = TypesBuilder::new().add_defaults().select(name).build().map_err(|_| {
            ToolError::Rejected(format!(
                "`{name}` is not a file type that ripgrep knows. Use glob instead: `*.{name}`."
            ))
        })?;
        Ok(Self { types: Some(types), ..self })
    }

    pub(in crate::builtin) fn includes_hidden(&self) -> bool {
        !self.hidden_names.is_empty()
    }

    /// Returns whether matching files can be in this directory.
    pub(in crate::builtin) fn may_enter(&self, dir: &Path) -> bool {
        self.is_visible(dir) && !self.excluded.is_match(dir)
    }

    pub(in crate::builtin) fn matches(&self, file: &Path) -> bool {
        (self.included.is_empty() || self.included.is_match(file))
            && self.is_visible(file)
            && !self.excluded.is_match(file)
            && self.types.as_ref().is_none_or(|types| !types.matched(file, false).is_ignore())
    }

    /// The walk skips hidden names itself; this is needed only where some of them match. `.git` never matches, even if
    /// an ignore file contains `!.*`.
    fn is_visible(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return true };
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        !is_hidden
            || (name != ".git" && (!self.includes_hidden() || self.hidden_names.is_match(Path::new(name))))
    }
}

/// Returns whether a glob has no wildcards.
pub(in crate::builtin) fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{', '\\'])
}

fn build_glob_set(patterns: &[String]) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build().map_err(
            |error| ToolError::Rejected(format!("`{pattern}` is not a valid glob: {}.", error.kind())),
        )?;
        set.add(glob);
    }
    set.build()
        .map_err(|error| ToolError::Rejected(format!("The globs cannot be combined: {}.", error.kind())))
}

/// Splits a filter at spaces and commas outside of braces and brackets.
fn split_globs(filter: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_separator = |c: char| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    };
    filter.split(is_separator).filter(|glob| !glob.is_empty()).collect()
}

/// Converts a filter glob to globs on the whole path.
fn expand_filter_glob(glob: &str, dir: &str) -> Vec<String> {
    let glob = glob.trim_start_matches('!').trim_start_matches("./");
    let inner = glob.strip_prefix(dir).filter(|inner| inner.starts_with('/') && !dir.is_empty());
    let glob = inner.unwrap_or(glob);
    let name = glob.trim_end_matches('/');
    let anchored = match name.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None if name.contains('/') => name.to_owned(),
        None => format!("**/{name}"),
    };
    let contents = format!("{anchored}/**");
    if glob.ends_with('/') {
        vec![contents]
    } else if is_literal(name) {
        vec![anchored, contents]
    } else {
        vec![anchored]
    }
}

/// Hidden names in a glob, as globs on single names. May contain more than the glob can match.
fn hidden_name_globs(glob: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in glob.split(['/', ',', '}']) {
        for (index, _) in part.match_indices('.') {
            let is_start = index == 0 || part[..index].ends_with(['{', '!']);
            let name = &part[index..];
            if is_start && name != "." && name != ".." {
                let literal = name.split('{').next().unwrap_or(name);
                names.push(if literal == name { name.to_owned() } else { format!("{literal}*") });
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(names: &NameFilter, file: &str) -> bool {
        let path = Path::new(file);
        path.ancestors().skip(1).all(|dir| names.may_enter(dir)) && names.matches(path)
    }

    #[test]
    fn a_pattern_matches_the_whole_path() {
        let rows = [
            ("a star stays in its directory", "*.py", "a.py", true),
            ("a star does not go deeper", "*.py", "d/a.py", false),
            ("two stars match no directory too", "**/*.py", "a.py", true),
            ("two stars go deeper", "**/*.py", "d/e/a.py", true),
            ("two stars in the middle", "src/**/a.py", "src/a.py", true),
            ("braces choose", "**/*.{ts,tsx}", "d/a.tsx", true),
            ("braces may hold directories", "{a/b,c}/*.rs", "a/b/x.rs", true),
            ("brackets choose", "[ab].rs", "b.rs", true),
            ("a hidden name in the pattern", "**/.env", "d/.env", true),
            ("a hidden directory in the pattern", "**/.github/*.yml", ".github/a.yml", true),
            ("a hidden name cut by braces", "**/.git{hub,lab}/*.yml", ".gitlab/a.yml", true),
            ("a hidden name within braces", "**/{.env,*.py}", ".env", true),
            ("another hidden name beside it", "**/{.env,*.py}", ".x.py", false),
            ("the repository's own directory", "**/.*/HEAD", ".git/HEAD", false),
        ];
        for (name, pattern, file, expected) in rows {
            assert_eq!(admits(&NameFilter::from_pattern(pattern).unwrap(), file), expected, "{name}");
        }
    }

    #[test]
    fn a_filter_works_like_a_gitignore() {
        let rows = [
            ("no slash means any depth", "*.py", "", "d/a.py", true),
            ("another extension", "*.py", "", "d/a.rs", false),
            ("a slash means from the top", "src/*.py", "", "src/a.py", true),
            ("not from below the top", "src/*.py", "", "x/src/a.py", false),
            ("a leading slash", "/*.py", "", "d/a.py", false),
            ("commas", "*.ts, *.tsx", "", "a.tsx", true),
            ("spaces", "*.ts *.tsx", "", "a.ts", true),
            ("commas within braces", "*.{ts,tsx}", "", "a.tsx", true),
            ("a directory with a slash", "src/", "", "d/src/x/a.py", true),
            ("a directory without", "src", "", "src/a.py", true),
            ("the search directory's own name", "src/x/*.py", "src", "x/a.py", true),
            ("excluded", "!*.py", "", "a.py", false),
            ("the rest stays", "!*.py", "", "a.rs", true),
            ("an excluded directory", "!target", "", "target/a.rs", false),
            ("included but excluded", "*.rs,!**/gen/**", "", "gen/a.rs", false),
            ("a hidden directory", ".github/**", "", ".github/w/a.yml", true),
        ];
        for (name, filter, dir, file, expected) in rows {
            assert_eq!(admits(&NameFilter::from_filter(filter, dir).unwrap(), file), expected, "{name}");
        }
    }

    #[test]
    fn types_have_the_names_of_ripgrep() {
        let names = NameFilter::default().with_file_type("py").unwrap();
        assert_eq!((admits(&names, "d/a.py"), admits(&names, "d/a.rs")), (true, false));
        assert!(NameFilter::default().with_file_type("tsx").unwrap_err().reason().contains("`*.tsx`"));
    }

    #[test]
    fn an_invalid_glob_is_rejected() {
        assert!(NameFilter::from_pattern("a{b").unwrap_err().reason().contains("not a valid glob"));
    }
}
