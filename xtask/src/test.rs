//! All checks that must pass.

use std::hint::spin_loop;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::command::{run, run_args, succeeds};
use crate::{dependency_count, module_graph, page, public_api, publishing, sdk_suite, system_packages};

/// Features of the SDK that are built alone, without the others; the first row has none.
const SDK_FEATURES: [&str; 13] = [
    "",
    "documents",
    "images",
    "in-process",
    "in-process,metrics",
    "in-process,tracing",
    "macros",
    "sqlite",
    "structured-output",
    "tls",
    "tls-ring",
    "tracing",
    "web",
];

/// Formatting, lints, module cycles, publishing, the number of dependencies, the SDK and the program without default
/// features, tests, conformance suite, browser tests, public surface, documentation.
pub(crate) fn run_all(args: &[String]) -> Result<()> {
    match args {
        [] => {}
        [flag, threads] if flag == "--busy" => keep_busy(threads.parse().context("--busy needs a number")?),
        _ => bail!("usage: cargo xtask test [--busy N]"),
    }
    run("cargo fmt --all --check")?;
    run("cargo clippy --workspace --all-targets --locked -- -D warnings")?;
    module_graph::check()?;
    publishing::check()?;
    dependency_count::check()?;
    page::check()?;
    for features in SDK_FEATURES {
        run(&format!("cargo check --package whimbrel --no-default-features --features={features} --locked"))?;
    }
    // The build of `cargo demo`.
    run("cargo clippy --package whimbrel-cli --no-default-features --locked -- -D warnings")?;
    if !succeeds("cargo", &["nextest", "--version"]) {
        run("cargo install cargo-nextest --locked")?;
    }
    system_packages::install_all()?;
    run("cargo nextest run --workspace --locked")?;
    run("cargo nextest run --package whimbrel --no-default-features --locked")?;
    run("cargo nextest run --package whimbrel-tools --features metrics --locked telemetry")?;
    run("cargo test --workspace --doc --locked")?;
    sdk_suite::run(&[])?;
    page::run_journeys(&[])?;
    public_api::run(&[])?;
    run_args(&["cargo", "doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Computes beside the tests, as other programs do on a shared machine. No test may depend on speed.
fn keep_busy(threads: usize) {
    for _ in 0..threads {
        thread::spawn(|| {
            loop {
                spin_loop();
            }
        });
    }
}
