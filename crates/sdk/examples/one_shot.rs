//! One prompt, one answer: `cargo run --example one_shot -- "What is in this folder?"`
//! Without a key in the environment a scripted model answers.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use whimbrel::{Agent, Frame, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What are you?".into());
    let agent = model::real_or_scripted(
        Agent::new(),
        serde_json::json!(["A scripted model. Set ANTHROPIC_API_KEY to meet a real one."]),
    )?;
    let mut frames = query(prompt, &agent);
    while let Some(frame) = frames.next().await {
        if let Frame::Result(result) = frame? {
            println!("{}", result.result.unwrap_or_default());
            println!("({} turns, ${:.4})", result.num_turns, result.total_cost_usd);
        }
    }
    Ok(())
}
