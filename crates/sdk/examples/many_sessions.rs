//! A thousand agents in one process, five turns each: `cargo run --release --example many_sessions`
//! They share one engine, so connections, prompts and tool descriptions are held once.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

use serde_json::json;
use whimbrel::{Agent, Environment, Scripted, Session};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sessions: usize = std::env::args().nth(1).map_or(Ok(1000), |count| count.parse())?;
    // One agent that all others are cloned from: they share its engine and its environment.
    let environment = Environment::of_process();
    let engine = environment.engine();
    let shared = Agent::new().persist_session(false).environment(environment).engine(engine);
    let mut running = Vec::new();
    for number in 0..sessions {
        let script =
            Scripted::replies(json!(["one", "two", "three", "four", format!("agent {number} is done")]))?;
        running.push(tokio::spawn(converse(shared.clone().script(script))));
    }
    let mut last = String::new();
    for session in running {
        last = session.await??;
    }
    println!("{sessions} sessions have finished; the last one said: {last}");
    Ok(())
}

async fn converse(agent: Agent) -> anyhow::Result<String> {
    let mut session = Session::open(&agent).await?;
    let mut said = String::new();
    for turn in 1..=5 {
        said = session.ask(format!("turn {turn}")).await?.into_text();
    }
    Ok(said)
}
