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
use crate::bench::script::{ModelScript, ToolCall};

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

pub(super) fn run(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let root = file_tree::create(lab)?;
    let file = root.join(NEEDLE_FILE);
    let grep = json!({ "pattern": NEEDLE, "path": root, "output_mode": "files_with_matches" });
    let glob = json!({ "pattern": GLOB_PATTERN, "path": root });
    let grep = measure_search(lab, engine, &root, ("Grep", &grep), "f18000.rs")?;
    let glob = measure_search(lab, engine, &root, ("Glob", &glob), "f19975.rs")?;
    let figures = [
        (GREP, grep.turn),
        (GREP_CPU, grep.cpu),
        (GLOB, glob.turn),
        (GLOB_CPU, glob.cpu),
        ("Read 10 KB, ms", measure_read(lab, engine, &root, &file)?.turn),
        ("Edit in 2,000 lines, ms", measure_edit(lab, engine, &root)?.turn),
    ];
    Ok(Some(figures.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()))
}

/// Baseline: the same searches with ripgrep, if it is installed, as five processes each.
pub(super) fn ripgrep_baseline(lab: &BenchContext) -> Result<BaselineMetrics> {
    let root = file_tree::create(lab)?.display().to_string();
    if measure_program(lab, "rg", &["--version"]).is_err() {
        return Ok(Vec::new());
    }
    let search = |arguments: &[&str]| -> Result<(f64, f64)> {
        let used = (0..CALLS).map(|_| measure_program(lab, "rg", arguments)).collect::<Result<Vec<_>>>()?;
        Ok((
            median(&used.iter().map(|used| used.wall).collect::<Vec<_>>()),
            used.iter().map(|used| used.cpu).sum(),
        ))
    };
    let (grep, glob) = (search(&["-l", NEEDLE, &root])?, search(&["--files", "-g", GLOB_PATTERN, &root])?);
    Ok(vec![("rg".into(), vec![(GREP, grep.0), (GREP_CPU, grep.1), (GLOB, glob.0), (GLOB_CPU, glob.1)])])
}

/// The same search five times.
fn measure_search(
    lab: &BenchContext,
    engine: &Engine,
    root: &Path,
    call: (&'static str, &Value),
    expected: &str,
) -> Result<ToolTimes> {
    let (tool, input) = call;
    measure_tool(
        lab,
        engine,
        root,
        ModelScript::repeat_call(CALLS, |_| ToolCall::new(tool, input.clone())).expecting_text(expected),
        tool,
    )
}

/// A different part of the file each time, always with the needle.
fn measure_read(lab: &BenchContext, engine: &Engine, root: &Path, file: &Path) -> Result<ToolTimes> {
    let call = |number: usize| ToolCall::new("Read", json!({ "file_path": file, "limit": 1000 + number }));
    measure_tool(lab, engine, root, ModelScript::repeat_call(CALLS, call).expecting_text(NEEDLE), "Read")
}

fn measure_edit(lab: &BenchContext, engine: &Engine, root: &Path) -> Result<ToolTimes> {
    let file = root.join("edited.txt");
    file_tree::write_numbered_lines(&file)?;
    let mut calls = vec![ToolCall::new("Read", json!({ "file_path": file }))];
    calls.extend([100, 600, 1100, 1500, 1900].map(|line| {
        let (old, new) = (format!("line {line} alpha"), format!("line {line} omega"));
        ToolCall::new("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
    }));
    let took = measure_tool(lab, engine, root, ModelScript::tool_calls(&calls), "Edit")?;
    let edited = fs::read_to_string(&file)?.matches("omega").count() == CALLS;
    Ok(if edited { took } else { ToolTimes::default() })
}

/// Median turn without the first, if the tool was offered and every result had the expected text.
fn measure_tool(
    lab: &BenchContext,
    engine: &Engine,
    root: &Path,
    script: ModelScript,
    tool: &str,
) -> Result<ToolTimes> {
    let expects = script.expected_text.is_some();
    lab.server.set_script(script);
    let whole = EngineProcess::run_one_prompt(
        lab,
        engine,
        LaunchOptions { working_dir: Some(root), ..LaunchOptions::default() },
    )?;
    let steps = lab.server.steps();
    let real = !expects || steps.windows(2).all(|pair| pair[1].expected_matches > pair[0].expected_matches);
    let counts = lab.server.was_tool_offered(tool) && steps.len() > CALLS && real;
    let turn = counts.then(|| median(&turn_gaps(&steps)[1..]));
    Ok(ToolTimes { turn, cpu: turn.map(|_| whole.usage.cpu) })
}
