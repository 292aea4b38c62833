//! The workshop: makes the tool calls of one reply. Calls that cannot disturb each other run side by side, the others
//! in order; each call gets exactly one result.

mod aftermath;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::SetOnce;
use whimbrel_models::log::Topic;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::hook::{BatchedCall, HookEvent};
use whimbrel_wire::message::Denial;

use crate::clock;
use crate::gate::{Gate, Halt, Permit, Refuser, Verdict};
use crate::on_demand;
use crate::toolbox::{Offered, Toolbox};
use crate::tools::{AnyTool, Call, Done, Trouble};

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
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
pub struct Made {
    /// The id of the call.
    pub id: String,
    /// What the model reads.
    pub content: ResultContent,
    /// What the host gets beside it.
    pub meta: Value,
    /// Whether the call failed.
    pub failed: bool,
    /// Set when the call was not permitted.
    pub denial: Option<Refused>,
    /// What the model is told besides.
    pub notes: Vec<String>,
    /// Set if the turn ends after this.
    pub halt: Option<Halt>,
    /// The call itself, if it was put off.
    pub deferred: Option<Box<Value>>,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// What was refused.
    pub denial: Denial,
    /// Why.
    pub message: String,
    /// Who refused.
    pub by: Refuser,
}

/// What every call of a session needs. Cheap to clone.
#[derive(Clone)]
pub struct Bench {
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// The gate before them.
    pub gate: Gate,
    /// What surrounds a call; its id is filled in for each.
    pub call: Call,
}

impl Bench {
    /// Records that a call is about to be made, unless it has no effects. The error says why it must not be.
    async fn record_start(&self, tool: &Offered, id: &str, input: &Value) -> Result<(), Trouble> {
        match tool.tool().touches(input) {
            Ok(touches) if touches.leaves_nothing() => Ok(()),
            _ => self.call.journal.begin(id, tool.tool().name()).await.map_err(Trouble::Failed),
        }
    }
}

/// The calls of one reply.
pub struct Workshop {
    bench: Arc<Bench>,
    waiting: VecDeque<(Wanted, Pace)>,
    running: FuturesUnordered<BoxFuture<'static, Made>>,
    /// Calls that have begun and have no result yet, and how far they are.
    begun: Vec<(Wanted, Arc<Progress>)>,
    /// Results that nobody has taken yet.
    done: VecDeque<Made>,
    /// How many calls came in.
    calls: usize,
    /// The calls and their results, where hooks want to hear of them.
    batch: Vec<BatchedCall>,
    alone: bool,
    streaming: bool,
    closed: bool,
    /// How many calls the reply has, once it is complete.
    size: Size,
}

/// How far a call is.
#[derive(Default)]
struct Progress {
    /// Set when it has passed the gate: from then on it may have done something.
    permitted: AtomicBool,
    /// The input that it is made with, if it is not the model's.
    changed: OnceLock<Value>,
}

/// How a call goes with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Together,
    Alone,
}

impl Workshop {
    /// An empty workshop; the reply still streams.
    pub fn new(bench: Arc<Bench>) -> Self {
        Self {
            bench,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            begun: Vec::new(),
            done: VecDeque::new(),
            calls: 0,
            batch: Vec::new(),
            alone: false,
            streaming: true,
            closed: false,
            size: Size::default(),
        }
    }

    /// Takes a call in. A harmless one begins at once, even while the reply still streams.
    pub fn take(&mut self, wanted: Wanted) {
        self.calls += 1;
        let pace = self.pace(&wanted);
        self.waiting.push_back((wanted, pace));
        self.begin();
    }

    /// The reply is complete: everything may begin.
    pub fn reply_complete(&mut self) {
        self.streaming = false;
        // It is complete once.
        let _ = self.size.set(self.calls);
        self.begin();
    }

    /// Nothing begins any more; what runs goes on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// How many calls the reply has, whatever became of them.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Whether a call is running.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Lets running calls go on while the reply streams; their results wait until [`Workshop::next`] takes them.
    pub async fn work(&mut self) {
        if let Some(made) = self.running.next().await {
            self.finish(made);
        }
    }

    /// The next result; none when every call has been answered.
    pub async fn next(&mut self) -> Option<Made> {
        if self.done.is_empty() {
            self.work().await;
        }
        self.done.pop_front()
    }

    /// Stops everything and answers the calls that have no result: `why` says what was in the way.
    pub fn abandon(mut self, why: &str) -> Vec<Made> {
        self.running.clear();
        let begun =
            self.begun.iter().map(|(wanted, progress)| match progress.permitted.load(Ordering::Relaxed) {
                true => interrupted(wanted, why),
                false => not_started(wanted, why),
            });
        let waiting = self.waiting.iter().map(|(wanted, _)| not_started(wanted, why));
        let cut_off: Vec<Made> = begun.chain(waiting).collect();
        self.done.into_iter().chain(cut_off).collect()
    }

    /// The calls that have been made, for hooks that want to hear of them.
    pub fn batch(&mut self) -> Vec<BatchedCall> {
        std::mem::take(&mut self.batch)
    }

    fn finish(&mut self, mut made: Made) {
        let lookout = &self.bench.gate.lookout;
        made.halt = made.halt.or(lookout.is_stopped().then_some(Halt::Hook));
        let begun = self.begun.iter().position(|(wanted, _)| wanted.id == made.id);
        if let Some((wanted, progress)) = begun.map(|index| self.begun.swap_remove(index))
            && lookout.listens(HookEvent::PostToolBatch)
        {
            self.batch.push(BatchedCall {
                tool_name: wanted.tool,
                tool_input: progress.changed.get().cloned().unwrap_or(wanted.input),
                tool_use_id: wanted.id,
                tool_response: Some(made.meta.clone()),
            });
        }
        self.done.push_back(made);
        self.alone = false;
        self.begin();
    }

    /// Begins calls from the front of the queue as long as they may run beside what runs already.
    fn begin(&mut self) {
        while let Some((_, pace)) = self.waiting.front() {
            let may = !self.closed
                && match pace {
                    Pace::Together => !self.alone,
                    Pace::Alone => self.running.is_empty() && !self.streaming,
                };
            if !may {
                return;
            }
            self.alone = *pace == Pace::Alone;
            if let Some((wanted, _)) = self.waiting.pop_front() {
                let progress = Arc::<Progress>::default();
                self.begun.push((wanted.clone(), Arc::clone(&progress)));
                let size = Arc::clone(&self.size);
                self.running.push(Box::pin(make(Arc::clone(&self.bench), wanted, progress, size)));
            }
        }
    }

    /// A call that cannot be understood harms nobody: it only gets its error.
    fn pace(&self, wanted: &Wanted) -> Pace {
        let tool = self.bench.toolbox.find(&wanted.tool);
        match tool.map(|listed| listed.tool().touches(&wanted.input)) {
            Some(Ok(touches)) if !touches.is_harmless() => Pace::Alone,
            _ => Pace::Together,
        }
    }
}

/// Makes one call: find the tool, pass the gate, do the work.
async fn make(bench: Arc<Bench>, wanted: Wanted, progress: Arc<Progress>, size: Size) -> Made {
    if let Some(why) = &wanted.bad_input {
        return failed(&wanted.id, &Trouble::Refused(format!("InputValidationError: {why}")));
    }
    let Some(tool) = bench.toolbox.find(&wanted.tool) else {
        let names = bench.toolbox.names().join(", ");
        let text = format!("No such tool available: {}. The tools are: {names}.", wanted.tool);
        return failed(&wanted.id, &Trouble::Refused(text));
    };
    let (on_demand, toolbox) = (bench.call.on_demand.clone(), Arc::clone(&bench.toolbox));
    let (log, began) = (bench.gate.outbox.log().clone(), clock::monotonic());
    let mut made = carry_out(bench, &tool, wanted, progress, size).await;
    log.tell(Topic::Tools, || {
        let how = if made.failed { "failed" } else { "done" };
        format!(
            "{} {}: {how} after {} ms",
            tool.tool().name(),
            made.id,
            (clock::monotonic() - began).as_millis()
        )
    });
    on_demand::help(&on_demand, &toolbox, tool.tool().name(), &mut made);
    made
}

/// Makes a call of a tool that there is.
async fn carry_out(
    bench: Arc<Bench>,
    tool: &Offered,
    wanted: Wanted,
    progress: Arc<Progress>,
    size: Size,
) -> Made {
    let cancel = &bench.call.cancel;
    let mut passed = bench.gate.pass(tool, &wanted.id, wanted.input.clone(), cancel).await;
    if let Ok(Permit { verdict: Verdict::Defer(input), notes, .. }) = &mut passed
        && !stands_alone(&size).await
    {
        let notes = std::mem::take(notes);
        let judged = bench.gate.go_on(tool, &wanted.id, input.take(), cancel).await;
        passed = judged.map(|permit| Permit { notes: [notes, permit.notes].concat(), ..permit });
    }
    let log = bench.gate.outbox.log();
    let Permit { verdict, mut notes, halt } = match passed {
        Ok(permit) => {
            log.tell(Topic::Tools, || format!("{} {}: {}", wanted.tool, wanted.id, permit.verdict.told()));
            permit
        }
        Err(trouble) => return failed(&wanted.id, &trouble),
    };
    let mut made = match verdict {
        Verdict::Go { input, place } => {
            if let Err(trouble) = bench.record_start(tool, &wanted.id, &input).await {
                return failed(&wanted.id, &trouble);
            }
            progress.permitted.store(true, Ordering::Relaxed);
            let written = (input != wanted.input).then(|| Arc::new(wanted.input));
            if written.is_some() {
                let _ = progress.changed.set(input.clone());
            }
            let sight = bench.gate.rights.sight();
            let (id, toolbox, lookout) = (wanted.id, Arc::clone(&bench.toolbox), bench.gate.lookout.clone());
            let call = Call { id, written, place, sight, toolbox, lookout, ..bench.call.clone() };
            aftermath::work(&bench.gate.lookout, tool, call, input).await
        }
        Verdict::No { message, by, changed } => {
            let input = changed.unwrap_or_else(|| wanted.input.clone());
            denied(Wanted { input, ..wanted }, message, by)
        }
        Verdict::Defer(input) => put_off(&wanted, &input),
    };
    notes.append(&mut made.notes);
    Made { halt: halt.or(made.halt), notes, ..made }
}

/// How many calls a reply has, once it is complete.
type Size = Arc<SetOnce<usize>>;

/// Whether a call is the only one of its reply; that is known when the reply is complete.
async fn stands_alone(size: &SetOnce<usize>) -> bool {
    *size.wait().await == 1
}

async fn work(tool: &dyn AnyTool, call: Call, input: Value) -> Made {
    let id = call.id.clone();
    // A tool that panics, say in a library on a hostile file, has failed; the session goes on.
    match AssertUnwindSafe(tool.run(input, call)).catch_unwind().await {
        Ok(Ok(Done { content, meta })) => Made { failed: false, ..result(&id, content, meta) },
        Ok(Err(trouble)) => failed(&id, &trouble),
        Err(_) => failed(
            &id,
            &Trouble::Failed(format!("{} broke down on this input. Try another way.", tool.name())),
        ),
    }
}

/// A result that tells of a failure and stops nothing.
fn result(id: &str, content: ResultContent, meta: Value) -> Made {
    let (id, notes) = (id.to_owned(), Vec::new());
    Made { id, content, meta, failed: true, denial: None, notes, halt: None, deferred: None }
}

fn failed(id: &str, trouble: &Trouble) -> Made {
    let meta = Value::String(format!("Error: {}", trouble.reason()));
    let halt = matches!(trouble, Trouble::Stopped(_)).then_some(Halt::Refused);
    Made { halt, ..result(id, ResultContent::Text(trouble.for_model()), meta) }
}

fn denied(wanted: Wanted, message: String, by: Refuser) -> Made {
    let made = failed(&wanted.id, &Trouble::Failed(message.clone()));
    let denial = Denial { tool_name: wanted.tool, tool_use_id: wanted.id, tool_input: wanted.input };
    Made { denial: Some(Refused { denial, message, by }), ..made }
}

/// The result of a call that the host takes up later.
fn put_off(wanted: &Wanted, input: &Value) -> Made {
    let made = failed(&wanted.id, &Trouble::Failed("Put off by a hook; it has not been done yet.".into()));
    let call = json!({"id": wanted.id, "name": wanted.tool, "input": input});
    Made { deferred: Some(Box::new(call)), ..made }
}

/// The result of a call that never began.
fn not_started(wanted: &Wanted, why: &str) -> Made {
    failed(&wanted.id, &Trouble::Failed(format!("Not started: {why} before it.")))
}

/// The result of a call that was stopped before it had one.
fn interrupted(wanted: &Wanted, why: &str) -> Made {
    let text = format!("Stopped: {why} before it finished; what it did so far stays done.");
    failed(&wanted.id, &Trouble::Failed(text))
}
