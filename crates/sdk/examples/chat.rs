//! A conversation that stays open; text is printed as it streams: `cargo run --example chat`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::io::{BufRead, Write};

use serde_json::json;
use whimbrel::{Agent, Frame, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let agent = Agent::new().partial_messages(true);
    let agent =
        model::real_or_scripted(agent, json!(["Hello. I am scripted.", "I have nothing more to say."]))?;
    let mut session = Session::open(&agent)?;
    for line in std::io::stdin().lock().lines() {
        session.send(line?).await?;
        while let Some(frame) = session.next().await {
            match frame? {
                Frame::StreamEvent(event) => print_delta(event.event.as_str())?,
                Frame::Result(_) => break,
                _ => {}
            }
        }
        println!();
    }
    Ok(())
}

/// Prints the text of a stream event, if it has any.
fn print_delta(event: &str) -> anyhow::Result<()> {
    let event: serde_json::Value = serde_json::from_str(event)?;
    if let Some(text) = event["delta"]["text"].as_str() {
        print!("{text}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
