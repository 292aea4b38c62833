//! File tools on a large tree: five calls each, from the end of the model's reply to the next request. A metric counts
//! only if the tool results were correct.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::{EngineProcess, measure_program};
use crate::bench::file_tree::{self, NEEDLE, NEEDLE_FILE};
use crate::bench::metrics::{BaselineMetrics, Metrics, median, turn_gaps};
use crate::bench::model_script::{ModelScript, ToolCall};

const CALLS: usize = 5;

const GREP: &str = "Grep, ms";
const GREP_CPU: &str = "CPU of a process with five Greps, ms";
const GLOB: &str = "Glob, ms";
const GLOB_CPU: &str = "CPU of a process with five Globs, ms";

/// Matches two hundred files.
const GLOB_PATTERN: &str = "**/*75.rs";

/// Times of one tool; `None` if the engine lacks the tool or its results were wrong.
#[derive(Default)]
struct ToolTimes {
    turn: Option<f64>,
    cpu: Option<f64>,
}

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let root = file_tree::create(context)?;
    let file = root.join(NEEDLE_FILE);
    let grep = json!({ "pattern": NEEDLE, "path": root, "output_mode": "files_with_matches" });
    let glob = json!({ "pattern": GLOB_PATTERN, "path": root });
    let grep = measure_search(context, engine, &root, ("Grep", &grep), "f18000.rs")?;
    let glob = measure_search(context, engine, &root, ("Glob", &glob), "f19975.rs")?;
    let metrics = [
        (GREP, grep.turn),
        (GREP_CPU, grep.cpu),
        (GLOB, glob.turn),
        (GLOB_CPU, glob.cpu),
        ("Read 10 KB, ms", measure_read(context, engine, &root, &file)?.turn),
        ("Edit in 2,000 lines, ms", measure_edit(context, engine, &root)?.turn),
    ];
    Ok(Some(metrics.into_iter().filter_map(|(name, metric)| Some((name, metric?))).collect()))
}

/// Baseline: the same searches with ripgrep, if it is installed, as five processes each.
pub(super) fn ripgrep_baseline(context: &BenchContext) -> Result<BaselineMetrics> {
    let root = file_tree::create(context)?.display().to_string();
    if measure_program(context, "rg", &["--version"]).is_err() {
        return Ok(Vec::new());
    }
    let search = |arguments: &[&str]| -> Result<(f64, f64)> {
        let usage =
            (0..CALLS).map(|_| measure_program(context, "rg", arguments)).collect::<Result<Vec<_>>>()?;
        Ok((
            median(&usage.iter().map(|usage| usage.wall).collect::<Vec<_>>()),
            usage.iter().map(|usage| usage.cpu).sum(),
        ))
    };
    let (grep, glob) = (search(&["-l", NEEDLE, &root])?, search(&["--files", "-g", GLOB_PATTERN, &root])?);
    Ok(vec![("rg".into(), vec![(GREP, grep.0), (GREP_CPU, grep.1), (GLOB, glob.0), (GLOB_CPU, glob.1)])])
}

/// The same search five times.
fn measure_search(
    context: &BenchContext,
    engine: &Engine,
    root: &Path,
    call: (&'static str, &Value),
    expected: &str,
) -> Result<ToolTimes> {
    let (tool, input) = call;
    measure_tool(
        context,
        engine,
        root,
        ModelScript::repeat_call(CALLS, |_| ToolCall::new(tool, input.clone())).expecting_text(expected),
        tool,
    )
}

/// A different part of the file each time, always with the needle.
fn measure_read(context: &BenchContext, engine: &Engine, root: &Path, file: &Path) -> Result<ToolTimes> {
    let call = |number: usize| ToolCall::new("Read", json!({ "file_path": file, "limit": 1000 + number }));
    measure_tool(context, engine, root, ModelScript::repeat_call(CALLS, call).expecting_text(NEEDLE), "Read")
}

fn measure_edit(context: &BenchContext, engine: &Engine, root: &Path) -> Result<ToolTimes> {
    let file = root.join("edited.txt");
    file_tree::write_numbered_lines(&file)?;
    let mut calls = vec![ToolCall::new("Read", json!({ "file_path": file }))];
    calls.extend([100, 600, 1100, 1500, 1900].map(|line| {
        let (old, new) = (format!("line {line} alpha"), format!("line {line} omega"));
        ToolCall::new("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
    }));
    let times = measure_tool(context, engine, root, ModelScript::tool_calls(&calls), "Edit")?;
    let edited = fs::read_to_string(&file)?.matches("omega").count() == CALLS;
    Ok(if edited { times } else { ToolTimes::default() })
}

/// Median turn without the first, if the tool was offered and every result had the expected text.
fn measure_tool(
    context: &BenchContext,
    engine: &Engine,
    root: &Path,
    script: ModelScript,
    tool: &str,
) -> Result<ToolTimes> {
    let expects = script.expected_text.is_some();
    context.server.set_script(script);
    let run = EngineProcess::run_one_prompt(
        context,
        engine,
        LaunchOptions { working_dir: Some(root), ..LaunchOptions::default() },
    )?;
    let steps = context.server.steps();
    let results_correct =
        !expects || steps.windows(2).all(|pair| pair[1].expected_matches > pair[0].expected_matches);
    let is_valid = context.server.was_tool_offered(tool) && steps.len() > CALLS && results_correct;
    let turn = is_valid.then(|| median(&turn_gaps(&steps)[1..]));
    Ok(ToolTimes { turn, cpu: turn.map(|_| run.usage.cpu) })
}
