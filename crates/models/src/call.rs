//! One reply with everything that may go wrong on the way: repeated, watched over and corrected until it is complete
//! or given up.

mod attempt;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};
use whimbrel_wire::message::FailureKind;

use crate::downgrade::{Downgrade, find_downgrade};
use crate::event::ReplyEvent;
use crate::error::{ModelError, ModelErrorKind};
use crate::usage::ReportedUsage;
use crate::log::{Log, LogTopic};
use crate::model::{ReplyItem, Model};
use crate::request::Request;
use crate::retry::{RetryDecision, RetryPolicy, GiveUpReason};

use attempt::{Attempt, AttemptStep};

/// A call that is under way. Ask for steps until there are none; to end it early, drop it.
pub struct ModelCall {
    model: Arc<dyn Model>,
    request: Arc<Request>,
    policy: RetryPolicy,
    timeouts: CallTimeouts,
    retries: u32,
    total_wait: Duration,
    downgrades: Vec<Downgrade>,
    rng: XorShiftRng,
    state: State,
    /// What earlier attempts cost.
    past_usage: Vec<ReportedUsage>,
    /// What the attempt under way costs, once it has begun to say.
    current_usage: Option<ReportedUsage>,
    log: Log,
    /// When the attempt under way began.
    started_at: Instant,
}

enum State {
    Idle,
    Streaming(Attempt),
    Waiting(Instant),
    Done,
}

/// How long the provider may be silent. What takes longer has stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Until the answer begins.
    pub response_start: Duration,
    /// Without any bytes.
    pub bytes: Duration,
    /// Without an event that says something; signs of life do not count.
    pub events: Duration,
    /// For one attempt as a whole, whatever comes.
    pub total: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            response_start: Duration::from_secs(300),
            bytes: Duration::from_secs(180),
            events: Duration::from_secs(300),
            total: Duration::from_secs(3600),
        }
    }
}

/// What happens next in a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStep {
    /// An event of the reply.
    Item(ReplyItem),
    /// The attempt failed and will be repeated after a wait. All its events are void.
    Retry(ScheduledRetry),
    /// The reply broke off for good, but blocks had been completed. They stand; this is the last step.
    Truncated(ModelError),
}

/// A repetition that is about to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledRetry {
    /// Which repetition, from 1.
    pub attempt: u64,
    /// How many there will be at most.
    pub max_retries: u64,
    /// How long we wait before it.
    pub delay: Duration,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What went wrong.
    pub failure: FailureKind,
}

impl ModelCall {
    /// A call that begins when its first step is asked for.
    pub fn new(model: Arc<dyn Model>, request: Request, policy: RetryPolicy, timeouts: CallTimeouts) -> Self {
        Self {
            model,
            request: Arc::new(request),
            policy,
            timeouts,
            retries: 0,
            total_wait: Duration::ZERO,
            downgrades: Vec::new(),
            rng: XorShiftRng::new(),
            state: State::Idle,
            past_usage: Vec::new(),
            current_usage: None,
            log: Log::default(),
            started_at: Instant::now(),
        }
    }

    /// The same, told to a log.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    /// The next step; none after the reply is complete, after [`Step::Cut`] or after a fault.
    /// Nothing is lost when the wait for it is dropped.
    pub async fn next(&mut self) -> Option<Result<CallStep, ModelError>> {
        loop {
            match &mut self.state {
                State::Done => return None,
                State::Idle => self.start_attempt(),
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Idle;
                }
                State::Streaming(attempt) => match attempt.next().await {
                    AttemptStep::Item(delta) => {
                        self.record_event(&delta.event);
                        return Some(Ok(CallStep::Item(delta)));
                    }
                    AttemptStep::Final(delta) => {
                        self.record_event(&delta.event);
                        self.log_line(Self::completion_line);
                        self.state = State::Done;
                        return Some(Ok(CallStep::Item(delta)));
                    }
                    AttemptStep::Failed(fault) => {
                        let kept = attempt.has_blocks();
                        self.state = State::Done;
                        self.log_line(|call| format!("failed after {}: {}", call.elapsed_text(), describe_error(&fault)));
                        if kept {
                            return Some(Ok(CallStep::Truncated(fault)));
                        }
                        if !self.apply_downgrade(&fault) {
                            return Some(self.schedule_retry(fault).map(CallStep::Retry));
                        }
                    }
                },
            }
        }
    }

    /// How many bytes the request has.
    pub fn size(&self) -> usize {
        self.request.size()
    }

    /// What the provider has reported for each attempt so far, void ones included: all of it is billed.
    pub fn attempt_usages(&self) -> impl Iterator<Item = &ReportedUsage> {
        self.past_usage.iter().chain(&self.current_usage)
    }

    /// Whether an attempt is under way that has not said yet what it costs.
    pub fn is_usage_pending(&self) -> bool {
        matches!(self.state, State::Streaming(_)) && self.current_usage.is_none()
    }

    /// Tells the log something about the attempt.
    fn log_line(&self, line: impl FnOnce(&Self) -> String) {
        self.log.write_line(LogTopic::Api, || format!("{}: {}", self.request.model, line(self)));
    }

    fn elapsed_text(&self) -> String {
        format!("{} ms", self.started_at.elapsed().as_millis())
    }

    fn completion_line(&self) -> String {
        let usage = self.current_usage.as_ref().map(|bill| &bill.usage);
        let [read, cached, written] = usage
            .map_or([0; 3], |usage| [usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens]);
        format!(
            "complete after {}; tokens: {read} read, {cached} from the cache, {written} written",
            self.elapsed_text()
        )
    }

    fn record_event(&mut self, event: &ReplyEvent) {
        match event {
            ReplyEvent::Accepted { request_id } => self.log_line(|call| {
                format!(
                    "answers after {}, request {}",
                    call.elapsed_text(),
                    request_id.as_deref().unwrap_or("unnamed")
                )
            }),
            ReplyEvent::MessageStart { usage, .. } => {
                self.past_usage.extend(self.current_usage.replace(usage.clone().into_partial()));
            }
            ReplyEvent::MessageDelta { usage, .. } => self.current_usage.get_or_insert_default().merge(usage),
            _ => {}
        }
    }

    fn start_attempt(&mut self) {
        self.past_usage.extend(self.current_usage.take());
        self.started_at = Instant::now();
        self.log_line(|call| format!("asked with {} bytes", call.size()));
        let stream = self.model.stream_reply(self.request.clone());
        self.state = State::Streaming(Attempt::new(stream, self.timeouts, self.request.raw_events));
    }

    /// Changes the request if the fault asks for it. No change is made twice.
    fn apply_downgrade(&mut self, fault: &ModelError) -> bool {
        let Some(correction) = find_downgrade(&self.request, fault) else { return false };
        let alike = |made: &Downgrade| match (made, &correction) {
            (Downgrade::MaxTokens(_), Downgrade::MaxTokens(_)) => true,
            (made, new) => made == new,
        };
        if self.downgrades.iter().any(alike) {
            return false;
        }
        self.log_line(|_| format!("asked otherwise from now on: {correction:?}"));
        if let Downgrade::Without(part) = &correction {
            self.model.mark_unsupported(&self.request.model, part);
        }
        self.request = Arc::new(correction.apply(&self.request));
        self.downgrades.push(correction);
        self.state = State::Idle;
        true
    }

    #[expect(clippy::disallowed_methods, reason = "a wait that is too long is told with its end")]
    fn schedule_retry(&mut self, fault: ModelError) -> Result<ScheduledRetry, ModelError> {
        match self.policy.decide(&fault, self.retries, self.total_wait, self.rng.next()) {
            RetryDecision::GiveUp(reason) => Err(with_wait_hint(fault, reason, SystemTime::now())),
            RetryDecision::Wait(delay) => {
                self.retries += 1;
                self.total_wait += delay;
                self.state = State::Waiting(Instant::now() + delay);
                self.log_line(|call| {
                    format!("asked again in {} ms, repetition {}", delay.as_millis(), call.retries)
                });
                Ok(ScheduledRetry {
                    attempt: self.retries.into(),
                    // What is ridden out is repeated as often as it takes.
                    max_retries: self.policy.max_retries.max(self.retries).into(),
                    delay,
                    status: fault.status,
                    failure: retry_failure_kind(&fault),
                })
            }
        }
    }
}

/// A fault in one line.
fn describe_error(fault: &ModelError) -> String {
    let status = fault.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let request = fault.request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
    let message: String = fault.message.chars().take(300).collect();
    format!("{:?}{status}{request}: {message}", fault.kind)
}

/// The kind of failure as it is announced before a repetition: here an overload has its own name.
fn retry_failure_kind(fault: &ModelError) -> FailureKind {
    match fault.kind {
        ModelErrorKind::Overloaded => FailureKind::Overloaded,
        _ => fault.failure_kind(),
    }
}

/// Adds when it is worth another try, where that is known.
fn with_wait_hint(mut fault: ModelError, reason: GiveUpReason, now: SystemTime) -> ModelError {
    if let GiveUpReason::WaitTooLong(wait) = reason {
        let (minutes, seconds) = (wait.as_secs() / 60, wait.as_secs() % 60);
        // A time beyond the calendar is not worth telling.
        let at = if wait < YEAR {
            format!(", until {}", httpdate::fmt_http_date(now + wait))
        } else {
            String::new()
        };
        fault.message += &format!(" (The provider asks to wait {minutes} min {seconds} s{at}.)");
    }
    fault
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A source of random numbers, good enough to keep clients from coming back all at once.
struct XorShiftRng(u64);

impl XorShiftRng {
    #[expect(clippy::disallowed_methods, reason = "a source of randomness")]
    fn new() -> Self {
        Self(uuid::Uuid::new_v4().as_u64_pair().0 | 1)
    }

    /// A number between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
