//! One prompt, one answer: `cargo run --example one_shot -- "What is in this folder?"`
//! Without a key in the environment a scripted model answers.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use whimbrel::{Agent, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What are you?".into());
    let agent = model::real_or_scripted(
        Agent::new(),
        serde_json::json!(["A scripted model. Set ANTHROPIC_API_KEY to meet a real one."]),
    )?;
    let answer = query(prompt, &agent).await?;
    println!("{answer}");
    println!("(${:.4})", answer.session_cost_usd());
    Ok(())
}
