//! A conversation that stays open; text is printed while it streams, and Ctrl-C stops an answer:
//! `cargo run --example chat`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::io::{BufRead, Write};

use serde_json::json;
use tokio::signal::ctrl_c;
use whimbrel::{Agent, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let agent = model::real_or_scripted(
        Agent::new(),
        json!(["Hello. I am scripted.", "I have nothing more to say."]),
    )?;
    let mut session = Session::open(&agent).await?;
    for line in std::io::stdin().lock().lines() {
        let mut text = session.ask(line?).text_stream();
        loop {
            tokio::select! {
                piece = text.next() => match piece {
                    Some(piece) => print!("{}", piece?),
                    None => break,
                },
                // Dropping the stream interrupts the turn; the session goes on.
                _ = ctrl_c() => break,
            }
            std::io::stdout().flush()?;
        }
        println!();
    }
    Ok(())
}
