//! The file tools on a large tree: five calls each, from the end of the model's reply to the next request. A figure counts only
//! if the answers were real.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::engine::{Engine, Start};
use crate::bench::figures::{Beside, Figures, gaps, median};
use crate::bench::lab::Lab;
use crate::bench::run::{Run, alone};
use crate::bench::script::{Call, Script};
use crate::bench::tree::{self, NEEDLE, WITH_NEEDLE};

const CALLS: usize = 5;

const GREP: &str = "Grep, ms";
const GREP_CPU: &str = "CPU of a process with five Greps, ms";
const GLOB: &str = "Glob, ms";
const GLOB_CPU: &str = "CPU of a process with five Globs, ms";

/// Two hundred files.
const PATTERN: &str = "**/*75.rs";

/// What the calls of one tool took; none if the engine has no such tool or its answers were not real.
#[derive(Default)]
struct Took {
    turn: Option<f64>,
    cpu: Option<f64>,
}

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    let root = tree::grow(lab)?;
    let file = root.join(WITH_NEEDLE);
    let grep = json!({ "pattern": NEEDLE, "path": root, "output_mode": "files_with_matches" });
    let glob = json!({ "pattern": PATTERN, "path": root });
    let grep = searching(lab, engine, &root, ("Grep", &grep), "f18000.rs")?;
    let glob = searching(lab, engine, &root, ("Glob", &glob), "f19975.rs")?;
    let figures = [
        (GREP, grep.turn),
        (GREP_CPU, grep.cpu),
        (GLOB, glob.turn),
        (GLOB_CPU, glob.cpu),
        ("Read 10 KB, ms", reading(lab, engine, &root, &file)?.turn),
        ("Edit in 2,000 lines, ms", editing(lab, engine, &root)?.turn),
    ];
    Ok(Some(figures.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()))
}

/// The same searches without an engine, if ripgrep is installed: five processes each.
pub(super) fn ripgrep(lab: &Lab) -> Result<Beside> {
    let root = tree::grow(lab)?.display().to_string();
    if alone(lab, "rg", &["--version"]).is_err() {
        return Ok(Vec::new());
    }
    let search = |arguments: &[&str]| -> Result<(f64, f64)> {
        let used = (0..CALLS).map(|_| alone(lab, "rg", arguments)).collect::<Result<Vec<_>>>()?;
        Ok((
            median(&used.iter().map(|used| used.wall).collect::<Vec<_>>()),
            used.iter().map(|used| used.cpu).sum(),
        ))
    };
    let (grep, glob) = (search(&["-l", NEEDLE, &root])?, search(&["--files", "-g", PATTERN, &root])?);
    Ok(vec![("rg".into(), vec![(GREP, grep.0), (GREP_CPU, grep.1), (GLOB, glob.0), (GLOB_CPU, glob.1)])])
}

/// One search, five times.
fn searching(
    lab: &Lab,
    engine: &Engine,
    root: &Path,
    call: (&'static str, &Value),
    expected: &str,
) -> Result<Took> {
    let (tool, input) = call;
    took(
        lab,
        engine,
        root,
        Script::repeat(CALLS, |_| Call::new(tool, input.clone())).expecting(expected),
        tool,
    )
}

/// Another part of the file each time, the needle in all of them.
fn reading(lab: &Lab, engine: &Engine, root: &Path, file: &Path) -> Result<Took> {
    let call = |number: usize| Call::new("Read", json!({ "file_path": file, "limit": 1000 + number }));
    took(lab, engine, root, Script::repeat(CALLS, call).expecting(NEEDLE), "Read")
}

fn editing(lab: &Lab, engine: &Engine, root: &Path) -> Result<Took> {
    let file = root.join("edited.txt");
    tree::lines(&file)?;
    let mut calls = vec![Call::new("Read", json!({ "file_path": file }))];
    calls.extend([100, 600, 1100, 1500, 1900].map(|line| {
        let (old, new) = (format!("line {line} alpha"), format!("line {line} omega"));
        Call::new("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
    }));
    let took = took(lab, engine, root, Script::calls(&calls), "Edit")?;
    let edited = fs::read_to_string(&file)?.matches("omega").count() == CALLS;
    Ok(if edited { took } else { Took::default() })
}

/// The median turn without the first, if the tool was offered and every result had the expected text.
fn took(lab: &Lab, engine: &Engine, root: &Path, script: Script, tool: &str) -> Result<Took> {
    let expects = script.expected.is_some();
    lab.server.play(script);
    let whole = Run::whole(lab, engine, Start { folder: Some(root), ..Start::default() })?;
    let steps = lab.server.steps();
    let real = !expects || steps.windows(2).all(|pair| pair[1].hits > pair[0].hits);
    let counts = lab.server.was_offered(tool) && steps.len() > CALLS && real;
    let turn = counts.then(|| median(&gaps(&steps)[1..]));
    Ok(Took { turn, cpu: turn.map(|_| whole.used.cpu) })
}
