//! Suggests files for a partly typed name, for hosts that complete `@` mentions. Ignored files and files that the model
//! may not read are left out.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::DirEntry;
use tokio_util::sync::CancellationToken;

use super::walk::{self, CancelFlag, DirWalk, FileVisitor, NameFilter};
use crate::api::ToolError;
use crate::permission::SearchFilter;

/// Maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 15;

/// Files and directories below a directory that match what was typed, best first. Directories end with a slash. An
/// empty query lists the directory itself.
pub async fn suggest_files(
    root: PathBuf,
    read_filter: SearchFilter,
    query: String,
    cancel: &CancellationToken,
) -> Result<Vec<String>, ToolError> {
    let search = move |stop: &CancelFlag| {
        let name_filter = Arc::new(NameFilter::from_pattern("**/*")?);
        let walk = DirWalk { root: &root, name_filter, read_filter, max_depth: None, stop };
        let outcome = walk.run(|| PathCollector { root: root.clone(), paths: BTreeSet::new() });
        let paths: BTreeSet<String> =
            outcome.visitors.into_iter().flat_map(|collector| collector.paths).collect();
        Ok(select_best(paths, &query))
    };
    Ok(walk::run_search(cancel, search).await?.found)
}

/// Collects files and the directories above them, relative to the root.
struct PathCollector {
    root: PathBuf,
    paths: BTreeSet<String>,
}

impl FileVisitor for PathCollector {
    fn visit_file(&mut self, file: DirEntry) {
        let Ok(path) = file.path().strip_prefix(&self.root) else { return };
        let dirs = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
        for dir in dirs.filter_map(Path::to_str) {
            if !self.paths.insert(format!("{dir}/")) {
                break;
            }
        }
        self.paths.extend(path.to_str().map(str::to_owned));
    }
}

fn select_best(paths: BTreeSet<String>, query: &str) -> Vec<String> {
    let query = query.trim_start_matches("./").to_lowercase();
    let mut ranked: Vec<(MatchRank, usize, String)> = paths
        .into_iter()
        .filter_map(|path| Some((rank_match(&path.to_lowercase(), &query)?, path.len(), path)))
        .collect();
    ranked.sort_by(|one, other| (Reverse(one.0), one.1, &one.2).cmp(&(Reverse(other.0), other.1, &other.2)));
    ranked.into_iter().take(MAX_SUGGESTIONS).map(|(_, _, path)| path).collect()
}

/// How well a path matches, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchRank {
    /// The characters occur in order.
    Scattered,
    /// The path contains the query.
    Path,
    /// The name contains the query.
    Name,
    /// The name or the path begins with the query.
    Prefix,
    /// The name is the query, with or without its extension.
    Exact,
}

/// Ranks a path; `None` if it does not match. Both are in lower case.
fn rank_match(path: &str, query: &str) -> Option<MatchRank> {
    let trimmed = path.trim_end_matches('/');
    if query.is_empty() {
        return (!trimmed.contains('/')).then_some(MatchRank::Prefix);
    }
    let name = trimmed.rsplit('/').next().unwrap_or(trimmed);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    if name == query || stem == query || trimmed == query {
        Some(MatchRank::Exact)
    } else if name.starts_with(query) || path.starts_with(query) {
        Some(MatchRank::Prefix)
    } else if name.contains(query) {
        Some(MatchRank::Name)
    } else if path.contains(query) {
        Some(MatchRank::Path)
    } else {
        let mut rest = path.chars();
        query.chars().all(|wanted| rest.any(|c| c == wanted)).then_some(MatchRank::Scattered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_ranked_by_how_well_they_match() {
        use MatchRank::*;
        let rows = [
            ("src/main.rs", "main", Some(Exact)),
            ("src/main.rs", "main.rs", Some(Exact)),
            ("src/main_loop.rs", "main", Some(Prefix)),
            ("src/main.rs", "src/m", Some(Prefix)),
            ("src/domain.rs", "main", Some(Name)),
            ("main/src/a.rs", "n/s", Some(Path)),
            ("src/tools/bash.rs", "stb", Some(Scattered)),
            ("src/main.rs", "xyz", None),
            ("src/", "", Some(Prefix)),
            ("src/main.rs", "", None),
        ];
        for (path, query, expected) in rows {
            assert_eq!(rank_match(path, query), expected, "{path} for {query:?}");
        }
    }

    #[test]
    fn best_and_shortest_match_comes_first() {
        let paths = ["src/", "src/main.rs", "src/domain.rs", "a/b/main.rs", "Main.md"].map(str::to_owned);
        let best = select_best(paths.into(), "MAIN");
        assert_eq!(best, ["Main.md", "a/b/main.rs", "src/main.rs", "src/domain.rs"]);
    }

    #[tokio::test]
    async fn ignored_files_are_not_suggested() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [(".gitignore", "*.log\n"), ("a.log", ""), ("deep/er/a.txt", ""), ("b.txt", "")] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let suggest = async |query: &str| {
            let (root, cancel) = (dir.path().to_owned(), CancellationToken::new());
            suggest_files(root, SearchFilter::default(), query.to_owned(), &cancel).await.unwrap()
        };
        assert_eq!(suggest("").await, ["b.txt", "deep/"]);
        assert_eq!(suggest("a").await, ["deep/er/a.txt"]);
        assert_eq!(suggest("deep/").await, ["deep/", "deep/er/", "deep/er/a.txt"]);
    }
}
