//! Playing a story on a host, step by step.

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::{Value, json};
use whimbrel_wire::control::ControlResponse;

use super::story::{Step, Story};
use crate::host::{Answer, Host, HostBuilder};
use crate::http_mock::MockApi;
use crate::pattern::looks_like;
use crate::script::Script;
use crate::stage::Stage;

/// What came of a story, as it is.
pub(super) struct Played {
    pub(super) host: Host,
    pub(super) exit: i32,
    pub(super) stderr: String,
}

/// A host for a story. It answers no question by itself.
pub(super) fn cast(story: &Story, stage: Stage) -> HostBuilder {
    let script = Script::from(story.model.clone());
    let builder = Host::with(script).stage(stage).options(story.options.clone()).answer(|_| Answer::Silence);
    story.env.iter().fold(builder, |builder, (name, value)| builder.env(name, value))
}

/// Plays the steps and hears the engine out.
pub(super) async fn play(story: &Story, builder: HostBuilder) -> anyhow::Result<Played> {
    let mut host = builder.start().await?;
    let mut answered = BTreeSet::new();
    for (index, step) in story.host.iter().enumerate() {
        perform(&mut host, step, &mut answered)
            .await
            .with_context(|| format!("step {} ({step:?})", index + 1))?;
    }
    let exit = host.finish().await?;
    Ok(Played { host, exit: exit.code, stderr: exit.stderr })
}

async fn perform(host: &mut Host, step: &Step, answered: &mut BTreeSet<String>) -> anyhow::Result<()> {
    match step {
        Step::Say(content) => host.say(content.clone()).await,
        Step::Line(Value::String(text)) => host.send_line(text).await,
        Step::Line(line) => host.send_line(&line.to_string()).await,
        Step::Ask(question) => host.ask_raw(question.clone()).await.map(drop),
        Step::WaitFor(pattern) => host.next_like(pattern).await.map(drop),
        Step::Answer { question, reply } => {
            let id = question_like(host, question, answered).await?;
            host.send(ControlResponse::success(&id, reply)).await?;
            answered.insert(id);
            Ok(())
        }
        Step::WaitForModel(count) => api(host)?.wait_for_asked(*count).await,
        Step::Release(name) => {
            api(host)?.release(name);
            Ok(())
        }
        Step::FinishInput => {
            host.finish_input();
            Ok(())
        }
    }
}

fn api(host: &Host) -> anyhow::Result<&MockApi> {
    host.api().context("this story needs the model over HTTP")
}

/// The id of the first question like this that has no answer yet.
async fn question_like(
    host: &mut Host,
    question: &Value,
    answered: &BTreeSet<String>,
) -> anyhow::Result<String> {
    let pattern = json!({"type": "control_request", "request": question});
    let is_open = |json: &Value| {
        let id = json["request_id"].as_str().unwrap_or_default();
        looks_like(json, &pattern) && !answered.contains(id)
    };
    let json = host.first(&pattern.to_string(), is_open).await?;
    json["request_id"].as_str().map(str::to_owned).context("a question without an id")
}
