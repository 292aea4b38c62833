//! Kills an engine repeatedly, for `cargo xtask bench killed`: `killed PROGRAM KILLS [SEED]`.

use anyhow::{Context, Result, bail};
use whimbrel_testkit::KillTest;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "what came of it is what the person asked for")]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (program, kills, seed) = match &words[..] {
        [program, kills] => (program, kills, None),
        [program, kills, seed] => (program, kills, Some(seed)),
        _ => bail!("killed PROGRAM KILLS [SEED]"),
    };
    let mut drill = KillTest::new(program).kills(kills.parse().context("KILLS must be a number")?);
    if let Some(seed) = seed {
        drill = drill.seed(seed.parse().context("SEED must be a number")?);
    }
    let borne = drill
        .run(|kills| {
            if kills % 50 == 0 {
                eprintln!("{kills} kills");
            }
        })
        .await?;
    println!(
        "{} kills: every session went on. {} messages were heard and all are kept; {} commands ran, none twice; {} calls \
         were told as unknown; no process was left.",
        borne.kills, borne.messages, borne.commands, borne.unknown_outcomes
    );
    Ok(())
}
