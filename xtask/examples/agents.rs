//! Runs N subagents concurrently in one process and prints the peak memory: `agents [HOW_MANY]`.
//!
//! One reply of the model starts them all; the model replies to none of them before all have sent their request.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::stream::{BoxStream, StreamExt};
use futures::{FutureExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use whimbrel::wire::Frame;
use whimbrel::wire::permission::PermissionMode;
use whimbrel::{Agent, Engine, query};
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::{ClosureModel, ScriptedReply};
use whimbrel_models::{Model, ModelError, ReplyItem, Request};

const SUBAGENT_PROMPT: &str = "You are number ";

/// A model that replies to subagents only after all of them have sent a request.
struct BarrierModel<M> {
    inner: M,
    barrier: Arc<Barrier>,
}

impl<M: Model> Model for BarrierModel<M> {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        let is_errand = last_message(&request).contains(SUBAGENT_PROMPT);
        let (answer, all) = (self.inner.stream_reply(request), Arc::clone(&self.barrier));
        if !is_errand {
            return answer;
        }
        async move {
            all.wait().await;
            answer
        }
        .flatten_stream()
        .boxed()
    }
}

fn last_message(request: &Request) -> String {
    request.history.messages().last().map(|said| format!("{said:?}")).unwrap_or_default()
}

/// The first reply starts all subagents; each of them gets a short text; the last reply ends the turn.
fn reply(request: &Request, crowd: usize) -> ScriptedReply {
    if last_message(request).contains(SUBAGENT_PROMPT) {
        return ScriptedReply::text("I was here, and all is well.");
    }
    if request.history.messages().len() > 1 {
        return ScriptedReply::text("All are back.");
    }
    let call = |number| {
        let input = json!({"description": "be there", "prompt": format!("{SUBAGENT_PROMPT}{number}"), "run_in_background": false});
        json!({"type": "tool_use", "name": "Agent", "input": input})
    };
    ScriptedReply { content: (0..crowd).map(call).collect::<Vec<Value>>(), ..ScriptedReply::default() }
}

#[tokio::main(worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what came of it is what the person asked for")]
async fn main() -> Result<()> {
    let crowd: usize = match std::env::args().nth(1) {
        Some(word) => word.parse().context("HOW_MANY must be a number")?,
        None => 200,
    };
    let folder = tempfile::tempdir()?;
    let inner = ClosureModel::new(move |request: &Request, _| Ok(reply(request, crowd)));
    let engine = Engine::new(Providers::offline());
    engine
        .providers()
        .add_model("crowd", Arc::new(BarrierModel { inner, barrier: Arc::new(Barrier::new(crowd)) }));
    let agent = Agent::new()
        .model("crowd")
        .cwd(folder.path())
        .env("CLAUDE_CONFIG_DIR", folder.path().join("config").to_string_lossy())
        .env("WHIMBREL_AGENTS_AT_ONCE", crowd.to_string())
        .permission_mode(PermissionMode::BypassPermissions)
        .engine(engine);
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is told")]
    let (before, began) = (peak_mb()?, Instant::now());
    let frames: Vec<Frame> = query("Send everybody.", &agent).try_collect().await?;
    let took = began.elapsed().as_millis();
    let reports = frames
        .iter()
        .filter_map(|frame| serde_json::to_value(frame).ok())
        .filter(|frame| frame["subtype"] == "task_notification" && frame["status"] == "completed")
        .count();
    ensure!(reports == crowd, "only {reports} of {crowd} agents came back");
    println!(
        "{crowd} agents at once: {:.1} MB at most, {before:.1} MB before they came, {took} ms",
        peak_mb()?
    );
    Ok(())
}

/// Peak resident size of this process in megabytes.
fn peak_mb() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the kernel does not say")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
