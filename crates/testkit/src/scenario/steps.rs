//! Runs the steps of a scenario on a host.

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::{Value, json};
use whimbrel_wire::control::ControlResponse;

use super::spec::{HostStep, ScenarioSpec};
use crate::host::{Host, HostBuilder, HostResponse};
use crate::http_mock::MockApi;
use crate::pattern::matches_pattern;
use crate::script::Script;
use crate::test_dirs::TestDirs;

/// Outcome of a run before normalization.
pub(super) struct RawRun {
    pub(super) host: Host,
    pub(super) exit: i32,
    pub(super) stderr: String,
}

/// Builds the host of a scenario. It responds only in `answer` steps.
pub(super) fn build_host(spec: &ScenarioSpec, dirs: TestDirs) -> HostBuilder {
    let script = Script::from(spec.model.clone());
    let builder = Host::with_script(script)
        .dirs(dirs)
        .options(spec.options.clone())
        .on_request(|_| HostResponse::NoResponse);
    spec.env.iter().fold(builder, |builder, (name, value)| builder.env(name, value))
}

/// Runs the steps, then closes the input and waits for the engine to exit.
pub(super) async fn run_steps(spec: &ScenarioSpec, builder: HostBuilder) -> anyhow::Result<RawRun> {
    let mut host = builder.start().await?;
    let mut answered = BTreeSet::new();
    for (index, step) in spec.host.iter().enumerate() {
        run_step(&mut host, step, &mut answered)
            .await
            .with_context(|| format!("step {} ({step:?})", index + 1))?;
    }
    let exit = host.finish().await?;
    Ok(RawRun { host, exit: exit.code, stderr: exit.stderr })
}

async fn run_step(host: &mut Host, step: &HostStep, answered: &mut BTreeSet<String>) -> anyhow::Result<()> {
    match step {
        HostStep::Say(content) => host.send_prompt(content.clone()).await,
        HostStep::Line(Value::String(text)) => host.send_line(text).await,
        HostStep::Line(line) => host.send_line(&line.to_string()).await,
        HostStep::Ask(question) => host.send_raw_request(question.clone()).await.map(drop),
        HostStep::WaitFor(pattern) => host.next_matching(pattern).await.map(drop),
        HostStep::Answer { question, reply } => {
            let id = find_open_request(host, question, answered).await?;
            host.send_frame(ControlResponse::success(&id, reply)).await?;
            answered.insert(id);
            Ok(())
        }
        HostStep::WaitForModel(count) => mock_api(host)?.wait_for_model_requests(*count).await,
        HostStep::Release(name) => {
            mock_api(host)?.release(name);
            Ok(())
        }
        HostStep::FinishInput => {
            host.finish_input();
            Ok(())
        }
    }
}

fn mock_api(host: &Host) -> anyhow::Result<&MockApi> {
    host.api().context("this step needs a model over HTTP")
}

/// Returns the id of the first unanswered control request that matches.
async fn find_open_request(
    host: &mut Host,
    question: &Value,
    answered: &BTreeSet<String>,
) -> anyhow::Result<String> {
    let pattern = json!({"type": "control_request", "request": question});
    let is_open = |json: &Value| {
        let id = json["request_id"].as_str().unwrap_or_default();
        matches_pattern(json, &pattern) && !answered.contains(id)
    };
    let json = host.first_matching(&pattern.to_string(), is_open).await?;
    json["request_id"].as_str().map(str::to_owned).context("the control request has no id")
}
