//! The file tools on a large tree: five calls each, from the end of the model's reply to the next request. A figure counts only
//! if the answers were real.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::engine::{Engine, Start};
use crate::bench::figures::{Figures, gaps, median};
use crate::bench::lab::Lab;
use crate::bench::run::{Run, alone};
use crate::bench::script::{Call, Script};
use crate::bench::tree::{self, NEEDLE, WITH_NEEDLE};

const CALLS: usize = 5;

const GREP: &str = "Grep, ms";
const GLOB: &str = "Glob, ms";

/// Two hundred files.
const PATTERN: &str = "**/*75.rs";

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    let root = tree::grow(lab)?;
    let file = root.join(WITH_NEEDLE);
    let grep = json!({ "pattern": NEEDLE, "path": root, "output_mode": "files_with_matches" });
    let glob = json!({ "pattern": PATTERN, "path": root });
    let mut figures = Figures::new();
    let mut note = |name, figure: Option<f64>| figures.extend(figure.map(|figure| (name, figure)));
    note(GREP, searching(lab, engine, &root, ("Grep", &grep), "f18000.rs")?);
    note(GLOB, searching(lab, engine, &root, ("Glob", &glob), "f19975.rs")?);
    note("Read 10 KB, ms", reading(lab, engine, &root, &file)?);
    note("Edit in 2,000 lines, ms", editing(lab, engine, &root)?);
    Ok(Some(figures))
}

/// The same searches without an engine, if ripgrep is installed.
pub(super) fn ripgrep(lab: &Lab) -> Result<Vec<(String, Figures)>> {
    let root = tree::grow(lab)?.display().to_string();
    let wall = |arguments: &[&str]| -> Result<f64> {
        let times = (0..CALLS).map(|_| Ok(alone(lab, "rg", arguments)?.wall)).collect::<Result<Vec<_>>>()?;
        Ok(median(&times))
    };
    if alone(lab, "rg", &["--version"]).is_err() {
        return Ok(Vec::new());
    }
    let figures =
        vec![(GREP, wall(&["-l", NEEDLE, &root])?), (GLOB, wall(&["--files", "-g", PATTERN, &root])?)];
    Ok(vec![("rg".into(), figures)])
}

/// One search, five times; none if the engine has no such tool or did not find what there is.
fn searching(
    lab: &Lab,
    engine: &Engine,
    root: &Path,
    call: (&'static str, &Value),
    expected: &str,
) -> Result<Option<f64>> {
    let (tool, input) = call;
    lab.server.play(Script::repeat(CALLS, |_| Call::new(tool, input.clone())).expecting(expected));
    Run::whole(lab, engine, Start { folder: Some(root), ..Start::default() })?;
    Ok(turn_time(lab, tool))
}

/// Another part of the file each time, the needle in all of them.
fn reading(lab: &Lab, engine: &Engine, root: &Path, file: &Path) -> Result<Option<f64>> {
    let call = |number: usize| Call::new("Read", json!({ "file_path": file, "limit": 1000 + number }));
    lab.server.play(Script::repeat(CALLS, call).expecting(NEEDLE));
    Run::whole(lab, engine, Start { folder: Some(root), ..Start::default() })?;
    Ok(turn_time(lab, "Read"))
}

fn editing(lab: &Lab, engine: &Engine, root: &Path) -> Result<Option<f64>> {
    let file = root.join("edited.txt");
    tree::lines(&file)?;
    let mut calls = vec![Call::new("Read", json!({ "file_path": file }))];
    calls.extend([100, 600, 1100, 1500, 1900].map(|line| {
        let (old, new) = (format!("line {line} alpha"), format!("line {line} omega"));
        Call::new("Edit", json!({ "file_path": file, "old_string": old, "new_string": new }))
    }));
    lab.server.play(Script::calls(calls));
    Run::whole(lab, engine, Start { folder: Some(root), ..Start::default() })?;
    let edited = fs::read_to_string(&file)?.matches("omega").count() == 5;
    Ok(turn_time(lab, "Edit").filter(|_| edited))
}

/// The median turn without the first, if the tool was offered and every result had the expected text.
fn turn_time(lab: &Lab, tool: &str) -> Option<f64> {
    let steps = lab.server.steps();
    let real = steps.windows(2).all(|pair| pair[1].hits > pair[0].hits)
        || steps.iter().all(|step| step.hits == 0 && tool == "Edit");
    let times = gaps(&steps);
    (lab.server.was_offered(tool) && steps.len() > CALLS && real).then(|| median(&times[1..]))
}
