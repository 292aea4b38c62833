//! Sequential calls of MCP tools, measured by the driver `examples/mcp_calls.rs`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench::context::BenchContext;
use crate::bench::engine::Engine;
use crate::bench::metrics::{BaselineMetrics, Metrics};

/// Output of the driver, in microseconds.
#[derive(Deserialize)]
struct Medians {
    function: f64,
    in_process: f64,
    bare: f64,
    engine: f64,
}

/// Not a scenario for engine processes.
#[expect(clippy::unnecessary_wraps, reason = "other scenarios can fail")]
pub(super) fn run(_: &BenchContext, _: &Engine) -> Result<Option<Metrics>> {
    Ok(None)
}

/// Measures a function called as a tool, and a server process compared with rmcp's bare client.
pub(super) fn call_baseline(context: &BenchContext) -> Result<BaselineMetrics> {
    let program = context.bench_program.with_file_name("examples").join("mcp_calls");
    #[expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]
    let output = Command::new(&program).current_dir(context.workspace_dir()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Medians { function, in_process, bare, engine } = serde_json::from_slice(&output.stdout)?;
    Ok(vec![
        (
            "in this process".into(),
            vec![
                ("function, us", function),
                ("as a tool, us", in_process),
                ("more, us", in_process - function),
            ],
        ),
        (
            "a program".into(),
            vec![("bare client, us", bare), ("engine, us", engine), ("ratio", engine / bare)],
        ),
    ])
}
