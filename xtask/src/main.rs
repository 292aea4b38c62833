//! Project tasks for developers and CI:
//! `cargo xtask test` runs all checks (`--busy N` keeps N cores busy meanwhile), `cargo xtask modules` only the check for module cycles, `cargo xtask sdk` only
//! the conformance suite with the official SDKs and programs of others. `cargo xtask page` builds the page of `whimbrel serve`,
//! `cargo xtask journeys` plays it in a browser. `cargo xtask bench` measures (see docs/performance.md).
//! `cargo xtask dist` builds the shipped binary and its packages, `cargo xtask package` only the packages of a binary that
//! is built already. `cargo xtask publishing` checks that the crates can be published, `cargo xtask public-api` that
//! their public surface is as recorded (`--bless` records it).

mod bench;
mod command;
mod dependency_count;
mod dist;
mod installation;
mod module_graph;
mod package;
mod page;
mod public_api;
mod publishing;
mod sdk_suite;
mod source_text;
mod system_packages;
mod test;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    command::note_this_program()?;
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("test") => test::run_all(&args.collect::<Vec<_>>()),
        Some("modules") => module_graph::check(),
        Some("sdk") => sdk_suite::run(&args.collect::<Vec<_>>()),
        Some("page") => page::build(),
        Some("journeys") => page::run_journeys(&args.collect::<Vec<_>>()),
        Some("dist") => dist::run(),
        Some("package") => package::run(&args.collect::<Vec<_>>()),
        Some("public-api") => public_api::run(&args.collect::<Vec<_>>()),
        Some("publishing") => publishing::check(),
        Some("bench") => bench::run(&args.collect::<Vec<_>>()),
        Some("bench-meter") => bench::resource_usage::run(&args.collect::<Vec<_>>()),
        other => bail!(
            "unknown task {other:?}; known: test, modules, public-api, publishing, sdk, page, journeys, bench, dist, package"
        ),
    }
}
