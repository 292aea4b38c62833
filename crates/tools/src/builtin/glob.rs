//! Glob: finds files by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ignore::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::clock;
use whimbrel_os::files::{self, FileKind};

use super::walk::{self, CancelFlag, DirWalk, FileVisitor, NameFilter, SearchOutcome, SkippedFiles};
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::permission::SearchFilter;
use crate::workspace::Workspace;

/// Maximum number of files in a result.
const MAX_RESULTS: usize = 100;

pub(super) struct GlobTool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GlobInput {
    /// e.g. `src/**/*.{ts,tsx}`; `*.py` matches in one directory only
    pattern: String,
    /// Directory; default: current directory
    path: Option<String>,
}

impl Tool for GlobTool {
    type Input = GlobInput;

    const NAME: &'static str = "Glob";

    const DESCRIPTION: &'static str = "Finds files by name pattern, newest first, at most 100. Skips gitignored files, \
        and hidden ones unless named.";

    fn effects(input: &GlobInput) -> Effects {
        let (dir, _) = split_literal_prefix(&input.pattern);
        let path = input.path.as_deref().filter(|path| !path.is_empty());
        let root = match (path, dir.trim_end_matches('/')) {
            (path, "") if !dir.starts_with('/') => path.unwrap_or(".").to_owned(),
            (_, "") => "/".to_owned(),
            (None, dir) => dir.to_owned(),
            (Some(path), dir) => Path::new(path).join(dir).to_string_lossy().into_owned(),
        };
        Effects::Reads(vec![root])
    }

    async fn run(&self, input: GlobInput, call: ToolContext) -> ToolResult {
        let started = clock::monotonic();
        let cwd = call.workspace.cwd();
        let (workspace, read_filter) = (call.workspace.clone(), call.read_filter.clone());
        let search = move |stop: &CancelFlag| {
            GlobSearch::new(&input, &workspace, read_filter).map(|search| search.run(stop))
        };
        let outcome = walk::run_search(&call.cancel, search).await?;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(search_result(outcome, &cwd, millis))
    }

    fn examples() -> Vec<Example> {
        const FILES: &[(&str, &str)] = &[
            ("a.py", ""),
            ("d/b.py", ""),
            ("d/e/c.ts", ""),
            (".github/ci.yml", ""),
            (".gitignore", "*.log\n"),
            ("x.log", ""),
        ];
        vec![
            Example::new("two stars match every directory", json!({"pattern": "**/*.py"}))
                .with_files(FILES)
                .expect_output(&["a.py", "d/b.py"]),
            Example::new(
                "a pattern without a slash matches one directory",
                json!({"pattern": "*.py", "path": "d"}),
            )
            .with_files(FILES)
            .expect_output(&["d/b.py"]),
            Example::new("braces list alternatives", json!({"pattern": "d/**/*.{ts,tsx}"}))
                .with_files(FILES)
                .expect_output(&["d/e/c.ts"]),
            Example::new("a hidden directory matches when named", json!({"pattern": ".github/*.yml"}))
                .with_files(FILES)
                .expect_output(&[".github/ci.yml"]),
            Example::new("ignored files are skipped", json!({"pattern": "*.lo?"}))
                .with_files(FILES)
                .expect_output(&["No files found"]),
            Example::new("the directory must exist", json!({"pattern": "*", "path": "nowhere"}))
                .expect_error(&["does not exist"]),
        ]
    }
}

/// One search, ready to run.
struct GlobSearch {
    root: PathBuf,
    /// The part of the pattern below the root.
    pattern: String,
    name_filter: Arc<NameFilter>,
    read_filter: SearchFilter,
}

/// A file with its modification time.
type DatedFile = (SystemTime, PathBuf);

struct GlobMatches {
    files: Vec<DatedFile>,
    skipped: SkippedFiles,
}

impl GlobSearch {
    fn new(input: &GlobInput, workspace: &Workspace, read_filter: SearchFilter) -> Result<Self, ToolError> {
        let base = walk::resolve_root(input.path.as_deref(), workspace);
        if walk::check_start(&base, &workspace.cwd())? != FileKind::Directory {
            return Err(ToolError::Rejected(format!(
                "{} is a file; Glob searches directories.",
                base.display()
            )));
        }
        let (dir, pattern) = split_literal_prefix(&input.pattern);
        let is_home = dir.starts_with("~/");
        let (root, pattern) = enter_literal_dirs(
            files::normalize_path(&if is_home { workspace.resolve(dir) } else { base.join(dir) }),
            pattern,
        );
        Ok(Self {
            root,
            pattern: pattern.to_owned(),
            name_filter: Arc::new(NameFilter::from_pattern(pattern)?),
            read_filter,
        })
    }

    fn run(&self, stop: &CancelFlag) -> GlobMatches {
        // A literal file name asks for this file: it counts even if it is ignored or contains brackets.
        let exact = with_modified_time(self.root.join(&self.pattern));
        if exact.is_some() || walk::is_literal(&self.pattern) || !self.root.is_dir() {
            let (hidden, visible) =
                exact.into_iter().partition::<Vec<_>, _>(|(_, path)| self.read_filter.hides(path));
            let skipped = SkippedFiles { denied: !hidden.is_empty(), ..SkippedFiles::default() };
            return GlobMatches { files: visible, skipped };
        }
        let (name_filter, read_filter) = (self.name_filter.clone(), self.read_filter.clone());
        let walk = DirWalk { root: &self.root, name_filter, read_filter, max_depth: self.max_depth(), stop };
        let outcome = walk.run(|| FileCollector(Vec::new()));
        let mut files: Vec<DatedFile> =
            outcome.visitors.into_iter().flat_map(|collector| collector.0).collect();
        walk::sort_newest_first(&mut files);
        GlobMatches { files, skipped: outcome.skipped }
    }

    /// Maximum depth of a matching file. Slashes within braces may make it too large, never too small.
    fn max_depth(&self) -> Option<usize> {
        (!self.pattern.contains("**")).then(|| self.pattern.matches('/').count() + 1)
    }
}

/// Splits a pattern into its literal directory prefix and the rest.
fn split_literal_prefix(pattern: &str) -> (&str, &str) {
    let pattern = pattern.trim_start_matches("./");
    let first_wildcard =
        pattern.find(|c: char| !walk::is_literal(c.encode_utf8(&mut [0; 4]))).unwrap_or(pattern.len());
    match pattern[..first_wildcard].rfind('/') {
        Some(slash) => (&pattern[..=slash], &pattern[slash + 1..]),
        None => ("", pattern),
    }
}

/// Enters existing directories whose names contain brackets, such as `[id]`: there the brackets are literal.
fn enter_literal_dirs(mut root: PathBuf, mut pattern: &str) -> (PathBuf, &str) {
    while let Some((dir, rest)) = pattern.split_once('/')
        && !dir.is_empty()
        && root.join(dir).is_dir()
    {
        root.push(dir);
        pattern = rest;
    }
    (root, pattern)
}

/// Collects the files of one thread.
struct FileCollector(Vec<DatedFile>);

impl FileVisitor for FileCollector {
    fn visit_file(&mut self, file: DirEntry) {
        self.0.extend(with_modified_time(file.into_path()));
    }
}

/// The modification time of a regular file; `None` for anything else.
fn with_modified_time(path: PathBuf) -> Option<DatedFile> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path))
}

fn search_result(outcome: SearchOutcome<GlobMatches>, cwd: &Path, millis: u64) -> ToolOutput {
    let SearchOutcome { found: GlobMatches { files, skipped }, timed_out } = outcome;
    let total = files.len();
    let names: Vec<String> =
        files.iter().take(MAX_RESULTS).map(|(_, path)| walk::display_path(path, cwd)).collect();
    let mut text = if names.is_empty() { "No files found".to_owned() } else { names.join("\n") };
    if total > MAX_RESULTS {
        text.push_str(&format!(
            "\n(Showing the newest {MAX_RESULTS} of {total} files. Narrow the pattern or path to see the others.)"
        ));
    }
    text.push_str(&walk::render_skipped(&skipped, timed_out, cwd));
    let mut meta = json!({
        "durationMs": millis,
        "numFiles": names.len(),
        "filenames": names,
        "truncated": total > MAX_RESULTS || timed_out,
    });
    if total > MAX_RESULTS {
        meta["totalMatches"] = total.into();
    }
    if timed_out {
        meta["timedOut"] = true.into();
    }
    ToolOutput::text(text, meta)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::api::AnyTool;
    use crate::test_support::TestWorkspace;

    const TREE: &[(&str, &str)] =
        &[("a.py", ""), ("d/b.py", ""), ("d/e/c.py", ""), ("d/e/c.rs", ""), (".x/h.py", "")];

    fn file_names(output: &ToolOutput) -> Vec<String> {
        let mut names: Vec<String> = serde_json::from_value(output.meta["filenames"].clone()).unwrap();
        names.sort();
        names
    }

    #[test]
    fn the_specification_is_small() {
        let spec = serde_json::to_string(&GlobTool.spec()).unwrap();
        assert!(spec.len() <= 400, "{} bytes: {spec}", spec.len());
    }

    #[tokio::test]
    async fn patterns_find_matching_files() {
        let fixture = TestWorkspace::new(TREE);
        let absolute = format!("{}/d/**/*.py", fixture.root().display());
        let rows: [(&str, Value, &[&str]); 9] = [
            ("every directory", json!({"pattern": "**/*.py"}), &["a.py", "d/b.py", "d/e/c.py"]),
            ("the current directory", json!({"pattern": "*.py"}), &["a.py"]),
            ("another directory", json!({"pattern": "*.py", "path": "d"}), &["d/b.py"]),
            ("a fixed depth", json!({"pattern": "*/*.py"}), &["d/b.py"]),
            ("braces", json!({"pattern": "d/e/c.{py,rs}"}), &["d/e/c.py", "d/e/c.rs"]),
            ("absolute", json!({ "pattern": absolute }), &["d/b.py", "d/e/c.py"]),
            ("upwards", json!({"pattern": "../*.py", "path": "d"}), &["a.py"]),
            ("one file", json!({"pattern": "d/b.py"}), &["d/b.py"]),
            ("hidden, by name", json!({"pattern": "**/.x/*"}), &[".x/h.py"]),
        ];
        for (name, input, expected) in rows {
            assert_eq!(file_names(&fixture.run_tool("Glob", input).await.unwrap()), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn newest_files_come_first() {
        let fixture = TestWorkspace::new(&[("a", ""), ("b", ""), ("c", "")]);
        for (name, age) in [("a", 2), ("b", 1), ("c", 2)] {
            let file = File::options().write(true).open(fixture.root().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age)).unwrap();
        }
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "*"})).await, "b\na\nc");
    }

    #[tokio::test]
    async fn a_long_list_is_truncated() {
        let fixture = TestWorkspace::new(&[]);
        for number in 0..120 {
            File::create(fixture.root().join(format!("{number}.txt"))).unwrap();
        }
        let output = fixture.run_tool("Glob", json!({"pattern": "*.txt"})).await.unwrap();
        assert_eq!((&output.meta["numFiles"], &output.meta["truncated"]), (&json!(100), &json!(true)));
        let text = fixture.run_to_text("Glob", json!({"pattern": "*.txt"})).await;
        assert!(text.ends_with(
            "\n(Showing the newest 100 of 120 files. Narrow the pattern or path to see the others.)"
        ));
    }

    #[tokio::test]
    async fn ignored_files_are_skipped_unless_named() {
        let fixture = TestWorkspace::new(&[
            (".gitignore", "out/\n*.log\n"),
            ("out/a.js", ""),
            ("x.log", ""),
            ("b.js", ""),
        ]);
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "**/*"})).await, "b.js");
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "x.log"})).await, "x.log");
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "out/*.js"})).await, "out/a.js");
    }

    #[tokio::test]
    async fn symlinks_to_files_and_directories_work() {
        let fixture = TestWorkspace::new(&[("d/a.md", "")]);
        std::os::unix::fs::symlink("d/a.md", fixture.root().join("b.md")).unwrap();
        std::os::unix::fs::symlink("d", fixture.root().join("l")).unwrap();
        assert_eq!(
            file_names(&fixture.run_tool("Glob", json!({"pattern": "**/*.md"})).await.unwrap()),
            ["b.md", "d/a.md"]
        );
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "*.md", "path": "l"})).await, "l/a.md");
    }

    #[tokio::test]
    async fn brackets_may_be_literal() {
        let fixture = TestWorkspace::new(&[("app/[id]/page.tsx", ""), ("app/i/page.tsx", "")]);
        assert_eq!(
            fixture.run_to_text("Glob", json!({"pattern": "app/[id]/page.tsx"})).await,
            "app/[id]/page.tsx"
        );
        assert_eq!(
            fixture.run_to_text("Glob", json!({"pattern": "app/[id]/**/*.tsx"})).await,
            "app/[id]/page.tsx"
        );
        assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "app/[ij]/*.tsx"})).await, "app/i/page.tsx");
    }

    #[tokio::test]
    async fn a_file_is_not_a_directory() {
        let error = TestWorkspace::new(TREE)
            .run_tool("Glob", json!({"pattern": "*", "path": "a.py"}))
            .await
            .unwrap_err();
        assert!(error.reason().contains("is a file"));
    }

    #[test]
    fn effects_name_the_searched_directory() {
        let rows = [
            ("**/*.py", None, "."),
            ("src/*.py", None, "src"),
            ("src/*.py", Some("d"), "d/src"),
            ("/etc/*", Some("d"), "/etc"),
            ("/*", None, "/"),
            ("*", Some("d"), "d"),
        ];
        for (pattern, path, expected) in rows {
            let input = GlobInput { pattern: pattern.into(), path: path.map(str::to_owned) };
            assert_eq!(
                <GlobTool as Tool>::effects(&input),
                Effects::Reads(vec![expected.into()]),
                "{pattern}"
            );
        }
    }
}
