//! Grep: searches file contents with ripgrep's libraries. `pattern` compiles the regular expression, `search` goes
//! through the files, `excerpt` collects the results of one file, `output` renders them.

mod excerpt;
mod output;
mod pattern;
mod search;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::walk;
use super::walk::CancelFlag;
use crate::api::{Effects, Example, Tool, ToolContext, ToolResult, lenient};
use output::ResultPage;
use search::GrepSearch;

pub(super) struct GrepTool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GrepInput {
    /// Rust regex
    pattern: String,
    /// File or directory; default: current directory
    path: Option<String>,
    /// Filters files, e.g. `*.{ts,tsx}`, `!*.md`
    glob: Option<String>,
    /// Default files_with_matches
    #[schemars(with = "Mode")]
    #[serde(default)]
    output_mode: Option<Mode>,
    // Flags of ripgrep, which models know without a description.
    #[serde(rename = "-B", default, deserialize_with = "lenient::count")]
    before: Option<usize>,
    #[serde(rename = "-A", default, deserialize_with = "lenient::count")]
    after: Option<usize>,
    #[serde(rename = "-C", default, deserialize_with = "lenient::count")]
    around: Option<usize>,
    // Alias of -C; not in the schema.
    #[schemars(skip)]
    #[serde(default, deserialize_with = "lenient::count")]
    context: Option<usize>,
    /// Default true
    #[serde(rename = "-n", default = "default_true", deserialize_with = "lenient::flag")]
    numbers: bool,
    #[serde(rename = "-i", default, deserialize_with = "lenient::flag")]
    ignore_case: bool,
    #[serde(rename = "-o", default, deserialize_with = "lenient::flag")]
    only_matching: bool,
    /// As in rg: rust, py, js, ...
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Maximum lines or files; default 250; 0: all
    #[serde(default, deserialize_with = "lenient::count")]
    head_limit: Option<usize>,
    /// Lines or files to skip
    #[serde(default, deserialize_with = "lenient::count")]
    offset: Option<usize>,
    /// Let matches span lines
    #[serde(default, deserialize_with = "lenient::flag")]
    multiline: bool,
}

fn default_true() -> bool {
    true
}

// Output mode. Not a doc comment, because that would become part of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    FilesWithMatches,
    Count,
}

impl Tool for GrepTool {
    type Input = GrepInput;

    const NAME: &'static str = "Grep";

    const DESCRIPTION: &'static str = "Searches file contents like ripgrep and takes its flags. Skips hidden, \
        gitignored and binary files. Use it instead of grep or rg in Bash.";

    fn effects(input: &GrepInput) -> Effects {
        let path = input.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
        Effects::Reads(vec![path.to_owned()])
    }

    async fn run(&self, input: GrepInput, call: ToolContext) -> ToolResult {
        let page = ResultPage::from_input(&input);
        let cwd = call.workspace.cwd();
        let (workspace, read_filter) = (call.workspace.clone(), call.read_filter.clone());
        let search = move |stop: &CancelFlag| {
            GrepSearch::new(&input, &page, &workspace).map(|search| search.run(&read_filter, stop))
        };
        let outcome = walk::run_search(&call.cancel, search).await?;
        Ok(output::search_result(outcome, &page, &cwd))
    }

    fn examples() -> Vec<Example> {
        const FILES: &[(&str, &str)] = &[
            ("c.py", "foo=2\nbar\nFOO\n"),
            ("d/b.py", "import os\ndef foo():\n  return 1\nfoo()\n"),
            ("n.md", "nothing\n"),
        ];
        vec![
            Example::new("lists files by default", json!({"pattern": "foo"}))
                .with_files(FILES)
                .expect_output(&["Found 2 files\n", "c.py", "d/b.py"]),
            Example::new("content shows matching lines", json!({"pattern": "foo", "output_mode": "content"}))
                .with_files(FILES)
                .expect_output(&["c.py:1:foo=2\nd/b.py:2:def foo():\nd/b.py:4:foo()"]),
            Example::new(
                "context lines are marked by a dash",
                json!({"pattern": "return", "output_mode": "content", "-C": 1}),
            )
            .with_files(FILES)
            .expect_output(&["d/b.py-2-def foo():\nd/b.py:3:  return 1\nd/b.py-4-foo()"]),
            Example::new(
                "count counts matching lines",
                json!({"pattern": "foo", "output_mode": "count", "-i": true}),
            )
            .with_files(FILES)
            .expect_output(&["c.py:2\nd/b.py:2\n", "4 matching lines in 2 files"]),
            Example::new("glob filters files", json!({"pattern": "n", "glob": "*.md"}))
                .with_files(FILES)
                .expect_output(&["Found 1 file\nn.md"]),
            Example::new("an invalid regex is rejected", json!({"pattern": "foo("}))
                .expect_error(&["unclosed group", r"foo\("]),
            Example::new("the path must exist", json!({"pattern": "x", "path": "nowhere"}))
                .expect_error(&["does not exist"]),
        ]
    }
}
