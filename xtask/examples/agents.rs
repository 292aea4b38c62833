//! Subagents that all work at the same moment in one process, and what that takes: `agents [HOW_MANY]`.
//!
//! One reply of the model sends them; the model answers none of them before all have asked. Prints how much memory the
//! process has held at most.

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
use whimbrel_models::scripted::{Played, Reply};
use whimbrel_models::{Delta, Fault, Model, Request};

const ERRAND: &str = "You are number ";

/// A model that answers errands only when everybody has asked.
struct Crowd<M> {
    words: M,
    all: Arc<Barrier>,
}

impl<M: Model> Model for Crowd<M> {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        let is_errand = last_message(&request).contains(ERRAND);
        let (answer, all) = (self.words.ask(request), Arc::clone(&self.all));
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

/// The first reply sends everybody; each of them says a few words; then it is done.
fn reply(request: &Request, crowd: usize) -> Reply {
    if last_message(request).contains(ERRAND) {
        return Reply::text("I was here, and all is well.");
    }
    if request.history.messages().len() > 1 {
        return Reply::text("All are back.");
    }
    let call = |number| {
        let input = json!({"description": "be there", "prompt": format!("{ERRAND}{number}"), "run_in_background": false});
        json!({"type": "tool_use", "name": "Agent", "input": input})
    };
    Reply { content: (0..crowd).map(call).collect::<Vec<Value>>(), ..Reply::default() }
}

#[tokio::main(worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what came of it is what the person asked for")]
async fn main() -> Result<()> {
    let crowd: usize = match std::env::args().nth(1) {
        Some(word) => word.parse().context("HOW_MANY must be a number")?,
        None => 200,
    };
    let folder = tempfile::tempdir()?;
    let words = Played::new(move |request: &Request, _| Ok(reply(request, crowd)));
    let engine = Engine::new(Providers::offline());
    engine.providers().add_model("crowd", Arc::new(Crowd { words, all: Arc::new(Barrier::new(crowd)) }));
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

/// The most memory that this process has held, in megabytes.
fn peak_mb() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the kernel does not say")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
