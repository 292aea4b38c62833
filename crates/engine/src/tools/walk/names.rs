//! Which files a search is about, told by their names alone: globs, file types, and whether hidden files count.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::types::{Types, TypesBuilder};

use crate::tools::Trouble;

/// Which files count. All paths are relative to the folder where the walk begins.
#[derive(Debug, Default)]
pub(in crate::tools) struct Names {
    /// One of these must match, if there are any.
    wanted: GlobSet,
    /// None of these may match, neither a file nor a folder above it.
    unwanted: GlobSet,
    /// The names with a leading dot that the globs speak of. Other hidden names do not count.
    dotted: GlobSet,
    types: Option<Types>,
}

impl Names {
    /// Files whose whole path matches the pattern.
    pub(in crate::tools) fn matching(pattern: &str) -> Result<Self, Trouble> {
        Ok(Self {
            wanted: globs(&[pattern.to_owned()])?,
            dotted: globs(&dotted_names(pattern))?,
            ..Self::default()
        })
    }

    /// Files as a filter names them, in the manner of a `.gitignore`: a glob without a slash counts at every depth, `!`
    /// takes away, a name may be a folder. Several globs stand apart by spaces or commas. `folder` is what leads from
    /// the current folder to where the walk begins; globs may begin with it.
    pub(in crate::tools) fn filtered(filter: &str, folder: &str) -> Result<Self, Trouble> {
        let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
            split_globs(filter).into_iter().partition(|glob| glob.starts_with('!'));
        let dotted: Vec<String> = wanted.iter().flat_map(|glob| dotted_names(glob)).collect();
        let spread = |list: &[&str]| list.iter().flat_map(|glob| spread(glob, folder)).collect::<Vec<_>>();
        Ok(Self {
            wanted: globs(&spread(&wanted))?,
            unwanted: globs(&spread(&unwanted))?,
            dotted: globs(&dotted)?,
            types: None,
        })
    }

    /// Only files of this type, by ripgrep's names.
    pub(in crate::tools) fn of_type(self, name: &str) -> Result<Self, Trouble> {
        let types = TypesBuilder::new().add_defaults().select(name).build().map_err(|_| {
            Trouble::Refused(format!(
                "`{name}` is no file type that ripgrep knows. Use glob instead: `*.{name}`."
            ))
        })?;
        Ok(Self { types: Some(types), ..self })
    }

    /// Whether hidden files can count at all.
    pub(in crate::tools) fn name_hidden(&self) -> bool {
        !self.dotted.is_empty()
    }

    /// Whether files that count can lie in this folder.
    pub(in crate::tools) fn lead_into(&self, folder: &Path) -> bool {
        self.is_visible(folder) && !self.unwanted.is_match(folder)
    }

    /// Whether this file counts.
    pub(in crate::tools) fn include(&self, file: &Path) -> bool {
        (self.wanted.is_empty() || self.wanted.is_match(file))
            && self.is_visible(file)
            && !self.unwanted.is_match(file)
            && self.types.as_ref().is_none_or(|types| !types.matched(file, false).is_ignore())
    }

    /// The walk leaves hidden names out by itself; only where some of them count must we look. What git keeps for itself
    /// never counts, even where an ignore file says `!.*`.
    fn is_visible(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return true };
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        !is_hidden || (name != ".git" && (!self.name_hidden() || self.dotted.is_match(Path::new(name))))
    }
}

/// Whether a glob names just one file.
pub(in crate::tools) fn is_plain(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{', '\\'])
}

fn globs(patterns: &[String]) -> Result<GlobSet, Trouble> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build().map_err(
            |error| Trouble::Refused(format!("`{pattern}` is not a valid glob: {}.", error.kind())),
        )?;
        set.add(glob);
    }
    set.build().map_err(|error| Trouble::Refused(format!("These globs cannot be used: {}.", error.kind())))
}

/// The globs of a filter, split at spaces and commas that are not within braces or brackets.
fn split_globs(filter: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_gap = |letter: char| {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (letter == ',' || letter.is_whitespace())
    };
    filter.split(is_gap).filter(|glob| !glob.is_empty()).collect()
}

/// A glob of a filter as globs on the whole path.
fn spread(glob: &str, folder: &str) -> Vec<String> {
    let glob = glob.trim_start_matches('!').trim_start_matches("./");
    let inner = glob.strip_prefix(folder).filter(|inner| inner.starts_with('/') && !folder.is_empty());
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
    } else if is_plain(name) {
        vec![anchored, contents]
    } else {
        vec![anchored]
    }
}

/// The names with a leading dot in a glob, as globs on single names. May name more than the glob can match.
fn dotted_names(glob: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in glob.split(['/', ',', '}']) {
        for (at, _) in part.match_indices('.') {
            let begins = at == 0 || part[..at].ends_with(['{', '!']);
            let name = &part[at..];
            if begins && name != "." && name != ".." {
                let known = name.split('{').next().unwrap_or(name);
                names.push(if known == name { name.to_owned() } else { format!("{known}*") });
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(names: &Names, file: &str) -> bool {
        let path = Path::new(file);
        path.ancestors().skip(1).all(|folder| names.lead_into(folder)) && names.include(path)
    }

    #[test]
    fn a_pattern_matches_the_whole_path() {
        let rows = [
            ("a star stays in its folder", "*.py", "a.py", true),
            ("a star does not go deeper", "*.py", "d/a.py", false),
            ("two stars match no folder too", "**/*.py", "a.py", true),
            ("two stars go deeper", "**/*.py", "d/e/a.py", true),
            ("two stars in the middle", "src/**/a.py", "src/a.py", true),
            ("braces choose", "**/*.{ts,tsx}", "d/a.tsx", true),
            ("braces may hold folders", "{a/b,c}/*.rs", "a/b/x.rs", true),
            ("brackets choose", "[ab].rs", "b.rs", true),
            ("a hidden name that is spoken of", "**/.env", "d/.env", true),
            ("a hidden folder that is spoken of", "**/.github/*.yml", ".github/a.yml", true),
            ("a hidden name cut by braces", "**/.git{hub,lab}/*.yml", ".gitlab/a.yml", true),
            ("a hidden name within braces", "**/{.env,*.py}", ".env", true),
            ("another hidden name beside it", "**/{.env,*.py}", ".x.py", false),
            ("the repository's own folder", "**/.*/HEAD", ".git/HEAD", false),
        ];
        for (name, pattern, file, expected) in rows {
            assert_eq!(admits(&Names::matching(pattern).unwrap(), file), expected, "{name}");
        }
    }

    #[test]
    fn a_filter_reads_like_a_gitignore() {
        let rows = [
            ("no slash means any depth", "*.py", "", "d/a.py", true),
            ("another ending", "*.py", "", "d/a.rs", false),
            ("a slash means from the top", "src/*.py", "", "src/a.py", true),
            ("not from below the top", "src/*.py", "", "x/src/a.py", false),
            ("a leading slash", "/*.py", "", "d/a.py", false),
            ("commas", "*.ts, *.tsx", "", "a.tsx", true),
            ("spaces", "*.ts *.tsx", "", "a.ts", true),
            ("commas within braces", "*.{ts,tsx}", "", "a.tsx", true),
            ("a folder with a slash", "src/", "", "d/src/x/a.py", true),
            ("a folder without", "src", "", "src/a.py", true),
            ("the search folder's own name", "src/x/*.py", "src", "x/a.py", true),
            ("taken away", "!*.py", "", "a.py", false),
            ("the rest stays", "!*.py", "", "a.rs", true),
            ("a folder taken away", "!target", "", "target/a.rs", false),
            ("wanted but taken away", "*.rs,!**/gen/**", "", "gen/a.rs", false),
            ("a hidden folder", ".github/**", "", ".github/w/a.yml", true),
        ];
        for (name, filter, folder, file, expected) in rows {
            assert_eq!(admits(&Names::filtered(filter, folder).unwrap(), file), expected, "{name}");
        }
    }

    #[test]
    fn types_have_ripgreps_names() {
        let names = Names::default().of_type("py").unwrap();
        assert_eq!((admits(&names, "d/a.py"), admits(&names, "d/a.rs")), (true, false));
        assert!(Names::default().of_type("tsx").unwrap_err().reason().contains("`*.tsx`"));
    }

    #[test]
    fn a_broken_glob_is_refused() {
        assert!(Names::matching("a{b").unwrap_err().reason().contains("not a valid glob"));
    }
}
