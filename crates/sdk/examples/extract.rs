//! Reads a text into a type, with a limit on the cost and a second model: `cargo run --example extract`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

use std::sync::Arc;

use serde_json::json;
use whimbrel::{Agent, Environment, Scripted, TurnError, query_as};

const MODEL: &str = "claude-haiku-5-5";

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    customer: String,
    /// In cents.
    total: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let agent = Agent::new().model(MODEL).fallback_model("sonnet").max_budget_usd(0.10).max_turns(4);
    let agent = if std::env::var_os("ANTHROPIC_API_KEY").is_some() { agent } else { scripted(agent)? };
    match query_as::<Invoice>("Ann owes us twelve dollars and fifty cents.", &agent).await {
        Ok(invoice) => println!("{} pays {} cents", invoice.customer, invoice.total),
        Err(TurnError::Api(error)) if error.is_retryable() => println!("try again later: {error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Gives the agent a scripted model that makes a mistake first: it is told what is wrong, and repairs it. It has the name
/// of a real model, whose price the budget is counted with.
fn scripted(agent: Agent) -> anyhow::Result<Agent> {
    let answer = |total| {
        let invoice = json!({"customer": "Ann", "total": total});
        json!([{"type": "tool_use", "name": "StructuredOutput", "input": invoice}])
    };
    let script = Scripted::replies(json!([answer(json!("12.50")), answer(json!(1250))]))?;
    let engine = Environment::default().engine();
    engine.providers().add_model(MODEL, Arc::new(script));
    Ok(agent.engine(engine))
}
