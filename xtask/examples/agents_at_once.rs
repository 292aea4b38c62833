//! Runs N subagents concurrently in one process and prints the peak memory: `agents_at_once [COUNT]`.
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
        let is_subagent = last_message(&request).contains(SUBAGENT_PROMPT);
        let (reply, barrier) = (self.inner.stream_reply(request), Arc::clone(&self.barrier));
        if !is_subagent {
            return reply;
        }
        async move {
            barrier.wait().await;
            reply
        }
        .flatten_stream()
        .boxed()
    }
}

fn last_message(request: &Request) -> String {
    request.history.messages().last().map(|message| format!("{message:?}")).unwrap_or_default()
}

/// The first reply starts all subagents; each of them gets a short text; the last reply ends the turn.
fn reply(request: &Request, count: usize) -> ScriptedReply {
    if last_message(request).contains(SUBAGENT_PROMPT) {
        return ScriptedReply::text("Done.");
    }
    if request.history.messages().len() > 1 {
        return ScriptedReply::text("All agents are done.");
    }
    let call = |number| {
        let input = json!({"description": "wait", "prompt": format!("{SUBAGENT_PROMPT}{number}"), "run_in_background": false});
        json!({"type": "tool_use", "name": "Agent", "input": input})
    };
    ScriptedReply { content: (0..count).map(call).collect::<Vec<Value>>(), ..ScriptedReply::default() }
}

#[tokio::main(worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the result is the output")]
async fn main() -> Result<()> {
    let count: usize = match std::env::args().nth(1) {
        Some(arg) => arg.parse().context("COUNT must be a number")?,
        None => 200,
    };
    let dir = tempfile::tempdir()?;
    let inner = ClosureModel::new(move |request: &Request, _| Ok(reply(request, count)));
    let engine = Engine::new(Providers::offline());
    engine
        .providers()
        .add_model("barrier", Arc::new(BarrierModel { inner, barrier: Arc::new(Barrier::new(count)) }));
    let agent = Agent::new()
        .model("barrier")
        .cwd(dir.path())
        .env("CLAUDE_CONFIG_DIR", dir.path().join("config").to_string_lossy())
        .env("WHIMBREL_AGENTS_AT_ONCE", count.to_string())
        .permission_mode(PermissionMode::BypassPermissions)
        .engine(engine);
    #[expect(clippy::disallowed_methods, reason = "measures the time")]
    let (before, started_at) = (peak_mb()?, Instant::now());
    let frames: Vec<Frame> = query("Start the agents.", &agent).try_collect().await?;
    let elapsed_ms = started_at.elapsed().as_millis();
    let completed = frames
        .iter()
        .filter_map(|frame| serde_json::to_value(frame).ok())
        .filter(|frame| frame["subtype"] == "task_notification" && frame["status"] == "completed")
        .count();
    ensure!(completed == count, "only {completed} of {count} agents completed");
    println!("{count} agents at once: peak {:.1} MB, {before:.1} MB before, {elapsed_ms} ms", peak_mb()?);
    Ok(())
}

/// Peak resident size of this process in megabytes.
fn peak_mb() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("/proc/self/status has no VmHWM")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
