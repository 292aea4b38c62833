//! Kills an engine repeatedly, for `cargo xtask bench killed`: `kill_test PROGRAM KILLS [SEED]`.

use anyhow::{Context, Result, bail};
use whimbrel_testkit::KillTest;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the result is the output")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (program, kills, seed) = match &args[..] {
        [program, kills] => (program, kills, None),
        [program, kills, seed] => (program, kills, Some(seed)),
        _ => bail!("usage: kill_test PROGRAM KILLS [SEED]"),
    };
    let mut test = KillTest::new(program).kills(kills.parse().context("KILLS must be a number")?);
    if let Some(seed) = seed {
        test = test.seed(seed.parse().context("SEED must be a number")?);
    }
    let outcome = test
        .run(|kills| {
            if kills % 50 == 0 {
                eprintln!("{kills} kills");
            }
        })
        .await?;
    println!(
        "{} kills: every session resumed. {} messages were reported and none was lost; {} commands ran, none twice; {} \
         calls have an unknown outcome; no process was left.",
        outcome.kills, outcome.messages, outcome.commands, outcome.unknown_outcomes
    );
    Ok(())
}
