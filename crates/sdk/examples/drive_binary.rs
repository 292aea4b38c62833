//! Drives an engine process instead of the engine in this process:
//! `cargo run --example drive_binary -- path/to/whimbrel "What is in this folder?"`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

use whimbrel::{Agent, Frame, Transport, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(engine), Some(prompt)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: drive_binary ENGINE PROMPT [MODEL]");
    };
    let mut agent = Agent::new().transport(Transport::Process(engine.into()));
    if let Some(model) = args.next() {
        agent = agent.model(model);
    }
    let mut frames = query(prompt, &agent);
    while let Some(frame) = frames.next().await {
        match frame? {
            Frame::Result(result) => println!("{}", result.result.unwrap_or_default()),
            other => println!("[{}]", other.kind()),
        }
    }
    Ok(())
}
