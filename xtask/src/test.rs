//! All checks that must pass.

use anyhow::Result;

use crate::command::{run, run_args, succeeds};
use crate::{module_graph, sdk_suite};

/// Formatting, lints, module cycles, the SDK and the program without default features, tests, conformance suite, documentation.
pub(crate) fn run_all() -> Result<()> {
    run("cargo fmt --all --check")?;
    run("cargo clippy --workspace --all-targets --locked -- -D warnings")?;
    module_graph::check()?;
    run("cargo check --package whimbrel --no-default-features --locked")?;
    // The build of `cargo demo`.
    run("cargo clippy --package whimbrel-cli --no-default-features --locked -- -D warnings")?;
    if !succeeds("cargo", &["nextest", "--version"]) {
        run("cargo install cargo-nextest --locked")?;
    }
    run("cargo nextest run --workspace --locked")?;
    run("cargo nextest run --package whimbrel --no-default-features --locked")?;
    run("cargo test --workspace --doc --locked")?;
    sdk_suite::run(&[])?;
    run_args(&["cargo", "doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])
}
