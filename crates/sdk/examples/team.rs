//! A team: the agent starts teammates, which work at the same time and send it messages; the run ends when all are done:
//! `cargo run --example team`. Each has a scripted model, so that it needs no key.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

use std::sync::Arc;

use serde_json::{Value, json};
use whimbrel::{Agent, Engine, Environment, Scripted, Subagent, query};

const LEADER: &str = "claude-opus-5-5";
const ANN: &str = "claude-haiku-5-5";
const BOB: &str = "claude-sonnet-5-5";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let agent = Agent::new()
        .engine(engine()?)
        .teams(true)
        .model(LEADER)
        .subagent("ann", Subagent::new("Knows waders", "You find facts in field notes.").model(ANN))
        .subagent("bob", Subagent::new("Knows calls", "You find facts in recordings.").model(BOB))
        .allow_tool("SendMessage");
    let answer = query("Find out with both teammates what a whimbrel is.", &agent).await?;
    println!("{answer}");
    for (model, usage) in &answer.result().model_usage {
        println!("{model}: {} tokens written", usage.output_tokens);
    }
    Ok(())
}

/// An engine with the scripted models of the leader and of its teammates.
fn engine() -> anyhow::Result<Engine> {
    let call = |tool: &str, input: Value| json!({"type": "tool_use", "name": tool, "input": input});
    let start = |name: &str| {
        let input = json!({"name": name, "team_name": "birds", "subagent_type": name,
            "description": "Research", "prompt": "Tell the leader one fact."});
        json!({"type": "tool_use", "id": format!("call_{name}"), "name": "Agent", "input": input})
    };
    let report = |fact: &str| {
        json!([[call("SendMessage", json!({"recipient": "team-lead", "content": fact}))], "I am done."])
    };
    // It answers whenever messages have come; how many come at a time depends on the teammates.
    let mut lead =
        vec![json!([call("TeamCreate", json!({"team_name": "birds"}))]), json!([start("ann"), start("bob")])];
    lead.resize(10, json!("A whimbrel is a wader."));
    let engine = Environment::default().engine();
    for (model, replies) in
        [(LEADER, lead.into()), (ANN, report("It is a wader.")), (BOB, report("Its call has seven notes."))]
    {
        engine.providers().add_model(model, Arc::new(Scripted::replies(replies)?));
    }
    Ok(engine)
}
