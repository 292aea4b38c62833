//! Project tasks for developers and CI:
//! `cargo xtask test` runs all checks, `cargo xtask modules` only the check for module cycles, `cargo xtask sdk` only
//! the conformance suite with the official SDKs. `cargo xtask bench` measures (see docs/performance.md).
//! `cargo xtask dist` builds the shipped binary.

mod bench;
mod command;
mod dist;
mod module_graph;
mod sdk_suite;
mod source_text;
mod test;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("test") => test::run_all(),
        Some("modules") => module_graph::check(),
        Some("sdk") => sdk_suite::run(&args.collect::<Vec<_>>()),
        Some("dist") => dist::run(),
        Some("bench") => bench::run(&args.collect::<Vec<_>>()),
        Some("bench-meter") => bench::resource_usage::run(&args.collect::<Vec<_>>()),
        other => bail!("unknown task {other:?}; known: test, modules, sdk, bench, dist"),
    }
}
