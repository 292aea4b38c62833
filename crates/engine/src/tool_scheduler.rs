//! Schedules the tool calls of one reply. Calls without conflicting effects run in parallel, the others in order; each
//! call gets exactly one result.

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
use whimbrel_os::clock;
use whimbrel_os::log::LogTopic;
use whimbrel_tools::api::{
    AgentToolSet, AnyTool, DeferredTools, ToolContext, ToolEntry, ToolError, ToolOutput,
};
use whimbrel_tools::telemetry::{ContentCapture, ToolSpan};
use whimbrel_wire::content::{Block, ResultContent};
use whimbrel_wire::hook::{BatchedCall, HookEvent};
use whimbrel_wire::message::{CommandExit, Denial};

use crate::permission_checker::{CheckDecision, CheckOutcome, DeniedBy, EndTurn, PermissionChecker};

/// A tool call requested by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub tool: String,
    pub input: Value,
    /// Error message if the input could not be parsed.
    pub bad_input: Option<String>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallResult {
    pub id: String,
    /// What the model reads.
    pub content: ResultContent,
    /// What the host receives as `tool_use_result`.
    pub meta: Value,
    pub is_error: bool,
    /// How the command of a failed call ended.
    pub command_exit: Option<CommandExit>,
    /// Set if permission was denied.
    pub denial: Option<DeniedCall>,
    /// Additional context for the model, from hooks.
    pub notes: Vec<String>,
    /// Set if the turn ends after this call.
    pub end_turn: Option<EndTurn>,
    /// The call itself, if a hook deferred it.
    pub hook_deferred_call: Option<Box<Value>>,
}

impl ToolCallResult {
    /// Result of a call that was running when an earlier engine ended.
    pub fn outcome_unknown(id: &str, text: String) -> Self {
        let meta = Value::String(format!("Error: {text}"));
        failure_result(id, ResultContent::Text(text), meta)
    }
}

/// A call that was denied permission.
#[derive(Debug, Clone, PartialEq)]
pub struct DeniedCall {
    pub denial: Denial,
    /// The reason.
    pub message: String,
    pub denied_by: DeniedBy,
}

/// Dependencies of all calls of an agent. Cheap to clone.
#[derive(Clone)]
pub struct ToolEnv {
    pub tool_set: Arc<AgentToolSet>,
    pub checker: PermissionChecker,
    /// Template of the call context; the scheduler sets the id and other per-call fields.
    pub context: ToolContext,
}

impl ToolEnv {
    /// Records in the transcript that a call starts, unless it is repeatable. On error the call must not be made.
    async fn record_start(&self, tool: &ToolEntry, id: &str, input: &Value) -> Result<(), ToolError> {
        match tool.tool().effects(input) {
            Ok(effects) if effects.is_repeatable() => Ok(()),
            _ => self
                .context
                .transcript
                .record_call_start(id, tool.tool().name())
                .await
                .map_err(ToolError::Failed),
        }
    }
}

/// The calls of one reply.
pub struct ToolScheduler {
    env: Arc<ToolEnv>,
    queued: VecDeque<(ToolCall, Concurrency)>,
    running: FuturesUnordered<BoxFuture<'static, ToolCallResult>>,
    /// Calls that have started and have no result yet.
    started: Vec<(ToolCall, Arc<CallStage>)>,
    /// Results that have not been returned yet.
    results: VecDeque<ToolCallResult>,
    /// Number of calls submitted.
    call_count: usize,
    /// Calls and their responses for the PostToolBatch hook.
    batch: Vec<BatchedCall>,
    exclusive_running: bool,
    streaming: bool,
    closed: bool,
    /// Number of calls of the reply, set once it is complete.
    reply_size: ReplySize,
}

/// Progress of a started call.
#[derive(Default)]
struct CallStage {
    /// Set once permission is given; from then on the call may have had effects.
    allowed: AtomicBool,
    /// The input in use, if it differs from the model's.
    changed_input: OnceLock<Value>,
}

impl CallStage {
    fn is_allowed(&self) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }
}

/// Whether a call may run with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    Parallel,
    Exclusive,
}

impl ToolScheduler {
    /// An empty scheduler; the reply is still streaming.
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

    /// Adds a call. A parallel-safe one starts at once, even while the reply is still streaming.
    pub fn submit(&mut self, tool_call: ToolCall) {
        self.call_count += 1;
        let concurrency = self.concurrency(&tool_call);
        self.queued.push_back((tool_call, concurrency));
        self.start_ready_calls();
    }

    /// Marks the reply as complete, so that exclusive calls may start.
    pub fn mark_reply_complete(&mut self) {
        self.streaming = false;
        // Set once only.
        let _ = self.reply_size.set(self.call_count);
        self.start_ready_calls();
    }

    /// Starts no further calls; running ones continue.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Number of calls of the reply, finished or not.
    pub fn call_count(&self) -> usize {
        self.call_count
    }

    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Drives running calls while the reply is streaming; [`ToolScheduler::next_result`] returns their results later.
    pub async fn drive(&mut self) {
        if let Some(result) = self.running.next().await {
            self.record_result(result);
        }
    }

    /// Waits for the next result; `None` if all calls are answered.
    pub async fn next_result(&mut self) -> Option<ToolCallResult> {
        if self.results.is_empty() {
            self.drive().await;
        }
        self.results.pop_front()
    }

    /// Returns whether calls have no effect yet: they are queued, or their permission is being checked.
    pub fn has_unstarted_calls(&self) -> bool {
        !self.queued.is_empty() || self.started.iter().any(|(_, stage)| !stage.is_allowed())
    }

    /// Drops running calls and answers every call without a result. `reason` names the cause.
    pub fn cancel_all(mut self, reason: &str) -> Vec<ToolCallResult> {
        self.running.clear();
        let started = self.started.iter().map(|(tool_call, stage)| match stage.is_allowed() {
            true => interrupted_result(tool_call, reason),
            false => not_started_result(tool_call, reason),
        });
        let queued = self.queued.iter().map(|(tool_call, _)| not_started_result(tool_call, reason));
        let cancelled: Vec<ToolCallResult> = started.chain(queued).collect();
        self.results.into_iter().chain(cancelled).collect()
    }

    /// The same, but calls without an effect get no result: they can be run when the session is resumed.
    pub fn cancel_started(mut self, reason: &str) -> Vec<ToolCallResult> {
        self.queued.clear();
        self.started.retain(|(_, stage)| stage.is_allowed());
        self.cancel_all(reason)
    }

    /// Takes the finished calls for the PostToolBatch hook.
    pub fn take_batch(&mut self) -> Vec<BatchedCall> {
        std::mem::take(&mut self.batch)
    }

    fn record_result(&mut self, mut result: ToolCallResult) {
        let hooks = &self.env.checker.hooks;
        result.end_turn = result.end_turn.or(hooks.is_stopped().then_some(EndTurn::Hook));
        let index = self.started.iter().position(|(tool_call, _)| tool_call.id == result.id);
        if let Some((tool_call, stage)) = index.map(|index| self.started.swap_remove(index))
            && hooks.has_hooks(HookEvent::PostToolBatch)
        {
            self.batch.push(BatchedCall {
                tool_name: tool_call.tool,
                tool_input: stage.changed_input.get().cloned().unwrap_or(tool_call.input),
                tool_use_id: tool_call.id,
                tool_response: Some(result.meta.clone()),
            });
        }
        self.results.push_back(result);
        self.exclusive_running = false;
        self.start_ready_calls();
    }

    /// Starts queued calls in order, as far as they may run with the running ones.
    fn start_ready_calls(&mut self) {
        while let Some((_, concurrency)) = self.queued.front() {
            let can_start = !self.closed
                && match concurrency {
                    Concurrency::Parallel => !self.exclusive_running,
                    Concurrency::Exclusive => self.running.is_empty() && !self.streaming,
                };
            if !can_start {
                return;
            }
            self.exclusive_running = *concurrency == Concurrency::Exclusive;
            if let Some((tool_call, _)) = self.queued.pop_front() {
                let stage = Arc::<CallStage>::default();
                self.started.push((tool_call.clone(), Arc::clone(&stage)));
                let reply_size = Arc::clone(&self.reply_size);
                self.running.push(Box::pin(trace_call(Arc::clone(&self.env), tool_call, stage, reply_size)));
            }
        }
    }

    /// A call of an unknown tool or with invalid input only produces its error, so it may run in parallel.
    fn concurrency(&self, tool_call: &ToolCall) -> Concurrency {
        let tool = self.env.tool_set.find(&tool_call.tool);
        match tool.map(|entry| entry.tool().effects(&tool_call.input)) {
            Some(Ok(effects)) if !effects.is_parallel_safe() => Concurrency::Exclusive,
            _ => Concurrency::Parallel,
        }
    }
}

/// Executes one call in its span.
fn trace_call(
    env: Arc<ToolEnv>,
    tool_call: ToolCall,
    stage: Arc<CallStage>,
    reply_size: ReplySize,
) -> impl Future<Output = ToolCallResult> {
    let workspace = &env.context.workspace;
    let content = ContentCapture::from_env(|name| workspace.variable(name));
    let span = ToolSpan::start(&tool_call.tool, &tool_call.id, &tool_call.input, content);
    async move {
        let result = span.run(execute_call(env, tool_call, stage, reply_size)).await;
        let error = match &result.denial {
            Some(_) => Some("denied"),
            None => result.is_error.then_some("tool_error"),
        };
        span.record_result(error, || match &result.content {
            ResultContent::Text(text) => text.clone(),
            ResultContent::Blocks(blocks) => json!(blocks).to_string(),
        });
        result
    }
}

/// Executes one call: find the tool, check permission, run.
async fn execute_call(
    env: Arc<ToolEnv>,
    tool_call: ToolCall,
    stage: Arc<CallStage>,
    reply_size: ReplySize,
) -> ToolCallResult {
    if let Some(reason) = &tool_call.bad_input {
        return error_result(&tool_call.id, &ToolError::Rejected(format!("InputValidationError: {reason}")));
    }
    let Some(tool) = env.tool_set.find(&tool_call.tool) else {
        let names = env.tool_set.names().join(", ");
        let text = format!("No such tool available: {}. Available tools: {names}.", tool_call.tool);
        return error_result(&tool_call.id, &ToolError::Rejected(text));
    };
    let (deferred_tools, tool_set) = (env.context.deferred_tools.clone(), Arc::clone(&env.tool_set));
    let (log, started_at) = (env.checker.frames.log().clone(), clock::monotonic());
    let mut result = check_and_run(env, &tool, tool_call, stage, reply_size).await;
    log.write_line(LogTopic::Tools, || {
        let status = if result.is_error { "failed" } else { "done" };
        format!(
            "{} {}: {status} after {} ms",
            tool.tool().name(),
            result.id,
            (clock::monotonic() - started_at).as_millis()
        )
    });
    load_after_failed_call(&deferred_tools, &tool_set, tool.tool().name(), &mut result);
    result
}

/// Checks permission for a known tool and runs it.
async fn check_and_run(
    env: Arc<ToolEnv>,
    tool: &ToolEntry,
    tool_call: ToolCall,
    stage: Arc<CallStage>,
    reply_size: ReplySize,
) -> ToolCallResult {
    let cancel = &env.context.cancel;
    let mut checked = env.checker.check(tool, &tool_call.id, tool_call.input.clone(), cancel).await;
    if let Ok(CheckOutcome { decision: CheckDecision::Defer(input), notes, .. }) = &mut checked
        && !is_only_call(&reply_size).await
    {
        let notes = std::mem::take(notes);
        let resolved = env.checker.check_ignoring_defer(tool, &tool_call.id, input.take(), cancel).await;
        checked = resolved.map(|outcome| CheckOutcome { notes: [notes, outcome.notes].concat(), ..outcome });
    }
    let log = env.checker.frames.log();
    let CheckOutcome { decision, mut notes, end_turn } = match checked {
        Ok(outcome) => {
            log.write_line(LogTopic::Tools, || {
                format!("{} {}: {}", tool_call.tool, tool_call.id, outcome.decision.summary())
            });
            outcome
        }
        Err(error) => return error_result(&tool_call.id, &error),
    };
    ToolSpan::record_permission(match &decision {
        CheckDecision::Allow { .. } => "allow",
        CheckDecision::Deny { .. } => "deny",
        CheckDecision::Defer(_) => "defer",
    });
    let mut result = match decision {
        CheckDecision::Allow { input, checked } => {
            if let Err(error) = env.record_start(tool, &tool_call.id, &input).await {
                return error_result(&tool_call.id, &error);
            }
            stage.allowed.store(true, Ordering::Relaxed);
            let agent = env.checker.hooks.agent_id();
            env.context.tasks.notify_call_start(&tool_call.id, tool.tool().name(), agent).await;
            let original_input = (input != tool_call.input).then(|| Arc::new(tool_call.input));
            if original_input.is_some() {
                let _ = stage.changed_input.set(input.clone());
            }
            let read_filter = env.checker.permissions.search_filter();
            let (id, tool_set, hooks) = (tool_call.id, Arc::clone(&env.tool_set), env.checker.hooks.clone());
            let call = ToolContext {
                id,
                original_input,
                checked,
                read_filter,
                tool_set,
                hooks,
                ..env.context.clone()
            };
            post_hooks::run_with_hooks(&env.checker.hooks, tool, call, input).await
        }
        CheckDecision::Deny { message, by, changed } => {
            let input = changed.unwrap_or_else(|| tool_call.input.clone());
            denied_result(ToolCall { input, ..tool_call }, message, by)
        }
        CheckDecision::Defer(input) => hook_deferred_result(&tool_call, &input),
    };
    notes.append(&mut result.notes);
    ToolCallResult { end_turn: end_turn.or(result.end_turn), notes, ..result }
}

/// Number of calls of a reply, once it is complete.
type ReplySize = Arc<SetOnce<usize>>;

/// Returns whether the reply has only this call; waits until the reply is complete.
async fn is_only_call(reply_size: &SetOnce<usize>) -> bool {
    *reply_size.wait().await == 1
}

async fn run_tool(tool: &dyn AnyTool, call: ToolContext, input: Value) -> ToolCallResult {
    let id = call.id.clone();
    // A panicking tool (for example in a parser on a hostile file) is a failed call; the session continues.
    match AssertUnwindSafe(tool.run(input, call)).catch_unwind().await {
        Ok(Ok(ToolOutput { content, meta })) => {
            ToolCallResult { is_error: false, ..failure_result(&id, content, meta) }
        }
        Ok(Err(error)) => error_result(&id, &error),
        Err(_) => error_result(
            &id,
            &ToolError::Failed(format!("{} crashed on this input. Try another way.", tool.name())),
        ),
    }
}

/// A failed result that does not end the turn.
fn failure_result(id: &str, content: ResultContent, meta: Value) -> ToolCallResult {
    let (id, notes) = (id.to_owned(), Vec::new());
    ToolCallResult {
        id,
        content,
        meta,
        is_error: true,
        command_exit: None,
        denial: None,
        notes,
        end_turn: None,
        hook_deferred_call: None,
    }
}

fn error_result(id: &str, error: &ToolError) -> ToolCallResult {
    let meta = match error {
        ToolError::CommandFailed { meta: Some(meta), .. } => Value::clone(meta),
        ToolError::Rejected(_)
        | ToolError::Failed(_)
        | ToolError::FailedWithContent { .. }
        | ToolError::CommandFailed { meta: None, .. }
        | ToolError::StopTurn(_) => Value::String(format!("Error: {}", error.reason())),
    };
    let end_turn = matches!(error, ToolError::StopTurn(_)).then_some(EndTurn::Denied);
    let content = match error {
        ToolError::FailedWithContent { content, .. } => ResultContent::Blocks(content.clone()),
        error => ResultContent::Text(error.render_for_model()),
    };
    let command_exit = match error {
        ToolError::CommandFailed { exit, .. } => Some(exit.clone()),
        _ => None,
    };
    ToolCallResult { end_turn, command_exit, ..failure_result(id, content, meta) }
}

fn denied_result(tool_call: ToolCall, message: String, by: DeniedBy) -> ToolCallResult {
    let result = error_result(&tool_call.id, &ToolError::Failed(message.clone()));
    let denial = Denial { tool_name: tool_call.tool, tool_use_id: tool_call.id, tool_input: tool_call.input };
    ToolCallResult { denial: Some(DeniedCall { denial, message, denied_by: by }), ..result }
}

/// Result of a call that a hook deferred; the host continues it later.
fn hook_deferred_result(tool_call: &ToolCall, input: &Value) -> ToolCallResult {
    let result = error_result(
        &tool_call.id,
        &ToolError::Failed("Deferred by a hook; it has not been executed yet.".into()),
    );
    let call = json!({"id": tool_call.id, "name": tool_call.tool, "input": input});
    ToolCallResult { hook_deferred_call: Some(Box::new(call)), ..result }
}

/// Result of a call that never started.
fn not_started_result(tool_call: &ToolCall, reason: &str) -> ToolCallResult {
    error_result(&tool_call.id, &ToolError::Failed(format!("Not started: {reason} before it.")))
}

/// Result of a call that was interrupted.
fn interrupted_result(tool_call: &ToolCall, reason: &str) -> ToolCallResult {
    let text = format!("Stopped: {reason} before it finished; changes made so far remain.");
    error_result(&tool_call.id, &ToolError::Failed(text))
}

/// After a failed call of a tool that was not loaded: loads it and appends a note to the result.
fn load_after_failed_call(
    deferred_tools: &DeferredTools,
    tool_set: &AgentToolSet,
    name: &str,
    result: &mut ToolCallResult,
) {
    if !result.is_error
        || result.denial.is_some()
        || result.hook_deferred_call.is_some()
        || !deferred_tools.is_unloaded(tool_set, name)
    {
        return;
    }
    deferred_tools.load([name.to_owned()]);
    let note =
        format!("{name} was called before it was loaded. It is loaded now: check its schema, then retry.");
    match &mut result.content {
        ResultContent::Text(text) => *text = format!("{text}\n\n{note}"),
        ResultContent::Blocks(blocks) => blocks.push(Block::text(note)),
    }
}
