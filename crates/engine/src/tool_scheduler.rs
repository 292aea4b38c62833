//! The workshop: makes the tool calls of one reply. Calls that cannot disturb each other run side by side, the others
//! in order; each call gets exactly one result.

mod post_hooks;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::SetOnce;
use whimbrel_models::log::LogTopic;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::hook::{BatchedCall, HookEvent};
use whimbrel_wire::message::Denial;

use crate::clock;
use crate::permission_checker::{PermissionChecker, EndTurn, CheckOutcome, DeniedBy, CheckDecision};
use crate::deferred_tools;
use crate::tool_set::{ToolEntry, AgentToolSet};
use crate::tools::{AnyTool, ToolContext, ToolOutput, ToolError};

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// Why the input cannot be used, if it cannot.
    pub bad_input: Option<String>,
}

/// A call that has been answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallResult {
    /// The id of the call.
    pub id: String,
    /// What the model reads.
    pub content: ResultContent,
    /// What the host gets beside it.
    pub meta: Value,
    /// Whether the call failed.
    pub is_error: bool,
    /// Set when the call was not permitted.
    pub denial: Option<DeniedCall>,
    /// What the model is told besides.
    pub notes: Vec<String>,
    /// Set if the turn ends after this.
    pub halt: Option<EndTurn>,
    /// The call itself, if it was put off.
    pub deferred_call: Option<Box<Value>>,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq)]
pub struct DeniedCall {
    /// What was refused.
    pub denial: Denial,
    /// Why.
    pub message: String,
    /// Who refused.
    pub denied_by: DeniedBy,
}

/// What every call of a session needs. Cheap to clone.
#[derive(Clone)]
pub struct ToolEnv {
    /// The tools.
    pub tool_set: Arc<AgentToolSet>,
    /// The gate before them.
    pub checker: PermissionChecker,
    /// What surrounds a call; its id is filled in for each.
    pub context: ToolContext,
}

impl ToolEnv {
    /// Records that a call is about to be made, unless it has no effects. The error says why it must not be.
    async fn record_start(&self, tool: &ToolEntry, id: &str, input: &Value) -> Result<(), ToolError> {
        match tool.tool().effects(input) {
            Ok(touches) if touches.is_repeatable() => Ok(()),
            _ => self.context.transcript.record_call_start(id, tool.tool().name()).await.map_err(ToolError::Failed),
        }
    }
}

/// The calls of one reply.
pub struct ToolScheduler {
    env: Arc<ToolEnv>,
    queued: VecDeque<(ToolCall, Concurrency)>,
    running: FuturesUnordered<BoxFuture<'static, ToolCallResult>>,
    /// Calls that have begun and have no result yet, and how far they are.
    started: Vec<(ToolCall, Arc<CallStage>)>,
    /// Results that nobody has taken yet.
    results: VecDeque<ToolCallResult>,
    /// How many calls came in.
    call_count: usize,
    /// The calls and their results, where hooks want to hear of them.
    batch: Vec<BatchedCall>,
    exclusive_running: bool,
    streaming: bool,
    closed: bool,
    /// How many calls the reply has, once it is complete.
    reply_size: ReplySize,
}

/// How far a call is.
#[derive(Default)]
struct CallStage {
    /// Set when it has passed the gate: from then on it may have done something.
    allowed: AtomicBool,
    /// The input that it is made with, if it is not the model's.
    changed_input: OnceLock<Value>,
}

/// How a call goes with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    Parallel,
    Exclusive,
}

impl ToolScheduler {
    /// An empty workshop; the reply still streams.
    pub fn new(env: Arc<ToolEnv>) -> Self {
        Self {
            env,
            queued: VecDeque::new(),
            running: FuturesUnordered::new(),
            started: Vec::new(),
            results: VecDeque::new(),
            call_count: 0,
            batch: Vec::new(),
            exclusive_running: false,
            streaming: true,
            closed: false,
            reply_size: ReplySize::default(),
        }
    }

    /// Takes a call in. A harmless one begins at once, even while the reply still streams.
    pub fn submit(&mut self, wanted: ToolCall) {
        self.call_count += 1;
        let pace = self.concurrency(&wanted);
        self.queued.push_back((wanted, pace));
        self.start_ready_calls();
    }

    /// The reply is complete: everything may begin.
    pub fn mark_reply_complete(&mut self) {
        self.streaming = false;
        // It is complete once.
        let _ = self.reply_size.set(self.call_count);
        self.start_ready_calls();
    }

    /// Nothing begins any more; what runs goes on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// How many calls the reply has, whatever became of them.
    pub fn call_count(&self) -> usize {
        self.call_count
    }

    /// Whether a call is running.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Lets running calls go on while the reply streams; their results wait until [`Workshop::next`] takes them.
    pub async fn drive(&mut self) {
        if let Some(made) = self.running.next().await {
            self.record_result(made);
        }
    }

    /// The next result; none when every call has been answered.
    pub async fn next_result(&mut self) -> Option<ToolCallResult> {
        if self.results.is_empty() {
            self.drive().await;
        }
        self.results.pop_front()
    }

    /// Stops everything and answers the calls that have no result: `why` says what was in the way.
    pub fn cancel_all(mut self, why: &str) -> Vec<ToolCallResult> {
        self.running.clear();
        let begun =
            self.started.iter().map(|(wanted, progress)| match progress.allowed.load(Ordering::Relaxed) {
                true => interrupted_result(wanted, why),
                false => not_started_result(wanted, why),
            });
        let waiting = self.queued.iter().map(|(wanted, _)| not_started_result(wanted, why));
        let cut_off: Vec<ToolCallResult> = begun.chain(waiting).collect();
        self.results.into_iter().chain(cut_off).collect()
    }

    /// The calls that have been made, for hooks that want to hear of them.
    pub fn take_batch(&mut self) -> Vec<BatchedCall> {
        std::mem::take(&mut self.batch)
    }

    fn record_result(&mut self, mut made: ToolCallResult) {
        let lookout = &self.env.checker.hooks;
        made.halt = made.halt.or(lookout.is_stopped().then_some(EndTurn::Hook));
        let begun = self.started.iter().position(|(wanted, _)| wanted.id == made.id);
        if let Some((wanted, progress)) = begun.map(|index| self.started.swap_remove(index))
            && lookout.has_hooks(HookEvent::PostToolBatch)
        {
            self.batch.push(BatchedCall {
                tool_name: wanted.tool,
                tool_input: progress.changed_input.get().cloned().unwrap_or(wanted.input),
                tool_use_id: wanted.id,
                tool_response: Some(made.meta.clone()),
            });
        }
        self.results.push_back(made);
        self.exclusive_running = false;
        self.start_ready_calls();
    }

    /// Begins calls from the front of the queue as long as they may run beside what runs already.
    fn start_ready_calls(&mut self) {
        while let Some((_, pace)) = self.queued.front() {
            let may = !self.closed
                && match pace {
                    Concurrency::Parallel => !self.exclusive_running,
                    Concurrency::Exclusive => self.running.is_empty() && !self.streaming,
                };
            if !may {
                return;
            }
            self.exclusive_running = *pace == Concurrency::Exclusive;
            if let Some((wanted, _)) = self.queued.pop_front() {
                let progress = Arc::<CallStage>::default();
                self.started.push((wanted.clone(), Arc::clone(&progress)));
                let size = Arc::clone(&self.reply_size);
                self.running.push(Box::pin(execute_call(Arc::clone(&self.env), wanted, progress, size)));
            }
        }
    }

    /// A call that cannot be understood harms nobody: it only gets its error.
    fn concurrency(&self, wanted: &ToolCall) -> Concurrency {
        let tool = self.env.tool_set.find(&wanted.tool);
        match tool.map(|listed| listed.tool().effects(&wanted.input)) {
            Some(Ok(touches)) if !touches.is_parallel_safe() => Concurrency::Exclusive,
            _ => Concurrency::Parallel,
        }
    }
}

/// Makes one call: find the tool, pass the gate, do the work.
async fn execute_call(bench: Arc<ToolEnv>, wanted: ToolCall, progress: Arc<CallStage>, size: ReplySize) -> ToolCallResult {
    if let Some(why) = &wanted.bad_input {
        return error_result(&wanted.id, &ToolError::Rejected(format!("InputValidationError: {why}")));
    }
    let Some(tool) = bench.tool_set.find(&wanted.tool) else {
        let names = bench.tool_set.names().join(", ");
        let text = format!("No such tool available: {}. The tools are: {names}.", wanted.tool);
        return error_result(&wanted.id, &ToolError::Rejected(text));
    };
    let (on_demand, toolbox) = (bench.context.deferred_tools.clone(), Arc::clone(&bench.tool_set));
    let (log, began) = (bench.checker.frames.log().clone(), clock::monotonic());
    let mut made = check_and_run(bench, &tool, wanted, progress, size).await;
    log.write_line(LogTopic::Tools, || {
        let how = if made.is_error { "failed" } else { "done" };
        format!(
            "{} {}: {how} after {} ms",
            tool.tool().name(),
            made.id,
            (clock::monotonic() - began).as_millis()
        )
    });
    deferred_tools::load_after_failed_call(&on_demand, &toolbox, tool.tool().name(), &mut made);
    made
}

/// Makes a call of a tool that there is.
async fn check_and_run(
    bench: Arc<ToolEnv>,
    tool: &ToolEntry,
    wanted: ToolCall,
    progress: Arc<CallStage>,
    size: ReplySize,
) -> ToolCallResult {
    let cancel = &bench.context.cancel;
    let mut passed = bench.checker.check(tool, &wanted.id, wanted.input.clone(), cancel).await;
    if let Ok(CheckOutcome { decision: CheckDecision::Defer(input), notes, .. }) = &mut passed
        && !is_only_call(&size).await
    {
        let notes = std::mem::take(notes);
        let judged = bench.checker.check_ignoring_defer(tool, &wanted.id, input.take(), cancel).await;
        passed = judged.map(|permit| CheckOutcome { notes: [notes, permit.notes].concat(), ..permit });
    }
    let log = bench.checker.frames.log();
    let CheckOutcome { decision: verdict, mut notes, end_turn: halt } = match passed {
        Ok(permit) => {
            log.write_line(LogTopic::Tools, || format!("{} {}: {}", wanted.tool, wanted.id, permit.decision.summary()));
            permit
        }
        Err(trouble) => return error_result(&wanted.id, &trouble),
    };
    let mut made = match verdict {
        CheckDecision::Allow { input, file: place } => {
            if let Err(trouble) = bench.record_start(tool, &wanted.id, &input).await {
                return error_result(&wanted.id, &trouble);
            }
            progress.allowed.store(true, Ordering::Relaxed);
            let written = (input != wanted.input).then(|| Arc::new(wanted.input));
            if written.is_some() {
                let _ = progress.changed_input.set(input.clone());
            }
            let sight = bench.checker.permissions.search_filter();
            let (id, toolbox, lookout) = (wanted.id, Arc::clone(&bench.tool_set), bench.checker.hooks.clone());
            let call = ToolContext { id, original_input: written, checked_file: place, read_filter: sight, tool_set: toolbox, hooks: lookout, ..bench.context.clone() };
            post_hooks::run_with_hooks(&bench.checker.hooks, tool, call, input).await
        }
        CheckDecision::Deny { message, by, changed } => {
            let input = changed.unwrap_or_else(|| wanted.input.clone());
            denied_result(ToolCall { input, ..wanted }, message, by)
        }
        CheckDecision::Defer(input) => deferred_result(&wanted, &input),
    };
    notes.append(&mut made.notes);
    ToolCallResult { halt: halt.or(made.halt), notes, ..made }
}

/// How many calls a reply has, once it is complete.
type ReplySize = Arc<SetOnce<usize>>;

/// Whether a call is the only one of its reply; that is known when the reply is complete.
async fn is_only_call(size: &SetOnce<usize>) -> bool {
    *size.wait().await == 1
}

async fn run_tool(tool: &dyn AnyTool, call: ToolContext, input: Value) -> ToolCallResult {
    let id = call.id.clone();
    // A tool that panics, say in a library on a hostile file, has failed; the session goes on.
    match AssertUnwindSafe(tool.run(input, call)).catch_unwind().await {
        Ok(Ok(ToolOutput { content, meta })) => ToolCallResult { is_error: false, ..failure_result(&id, content, meta) },
        Ok(Err(trouble)) => error_result(&id, &trouble),
        Err(_) => error_result(
            &id,
            &ToolError::Failed(format!("{} broke down on this input. Try another way.", tool.name())),
        ),
    }
}

/// A result that tells of a failure and stops nothing.
fn failure_result(id: &str, content: ResultContent, meta: Value) -> ToolCallResult {
    let (id, notes) = (id.to_owned(), Vec::new());
    ToolCallResult { id, content, meta, is_error: true, denial: None, notes, halt: None, deferred_call: None }
}

fn error_result(id: &str, trouble: &ToolError) -> ToolCallResult {
    let meta = Value::String(format!("Error: {}", trouble.reason()));
    let halt = matches!(trouble, ToolError::StopTurn(_)).then_some(EndTurn::Denied);
    ToolCallResult { halt, ..failure_result(id, ResultContent::Text(trouble.render_for_model()), meta) }
}

fn denied_result(wanted: ToolCall, message: String, by: DeniedBy) -> ToolCallResult {
    let made = error_result(&wanted.id, &ToolError::Failed(message.clone()));
    let denial = Denial { tool_name: wanted.tool, tool_use_id: wanted.id, tool_input: wanted.input };
    ToolCallResult { denial: Some(DeniedCall { denial, message, denied_by: by }), ..made }
}

/// The result of a call that the host takes up later.
fn deferred_result(wanted: &ToolCall, input: &Value) -> ToolCallResult {
    let made = error_result(&wanted.id, &ToolError::Failed("Put off by a hook; it has not been done yet.".into()));
    let call = json!({"id": wanted.id, "name": wanted.tool, "input": input});
    ToolCallResult { deferred_call: Some(Box::new(call)), ..made }
}

/// The result of a call that never began.
fn not_started_result(wanted: &ToolCall, why: &str) -> ToolCallResult {
    error_result(&wanted.id, &ToolError::Failed(format!("Not started: {why} before it.")))
}

/// The result of a call that was stopped before it had one.
fn interrupted_result(wanted: &ToolCall, why: &str) -> ToolCallResult {
    let text = format!("Stopped: {why} before it finished; what it did so far stays done.");
    error_result(&wanted.id, &ToolError::Failed(text))
}
