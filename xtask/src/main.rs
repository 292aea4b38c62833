//! Project tasks for developers and CI:
//! `cargo xtask test` runs all checks, `cargo xtask sdk` only the conformance suite with the official SDKs,
//! `cargo xtask bench` measures (see docs/performance.md), `cargo xtask awake` regenerates the link order.

mod bench;
mod command;
mod link_order;
mod sdk_suite;
mod test;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("test") => test::run_all(),
        Some("sdk") => sdk_suite::run(&args.collect::<Vec<_>>()),
        Some("awake") => link_order::run(),
        Some("bench") => bench::run(&args.collect::<Vec<_>>()),
        Some("bench-meter") => bench::meter::run(&args.collect::<Vec<_>>()),
        other => bail!("unknown chore {other:?}: there are `test`, `sdk`, `bench` and `awake`"),
    }
}
