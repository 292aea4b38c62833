//! One reply including failures: retries, timeouts and request downgrades until the reply is complete or given up.

mod attempt;
mod stall_watchdog;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};
use whimbrel_wire::message::FailureKind;

use crate::downgrade::{Downgrade, find_downgrade};
use crate::error::{ModelError, ModelErrorKind};
use crate::event::ReplyEvent;
use crate::model::{Model, RawEvents, ReplyItem};
use crate::request::Request;
use crate::retry::{GiveUpReason, RetryDecision, RetryPolicy};
use crate::usage::ReportedUsage;
use whimbrel_os::log::{Log, LogTopic};

use attempt::{Attempt, AttemptStep};
pub use stall_watchdog::CallTimeouts;

/// A model call in progress. Poll [`ModelCall::next`] until it returns `None`; drop the call to cancel it.
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
    /// Usage of earlier attempts.
    past_usage: Vec<ReportedUsage>,
    /// Usage of the current attempt, once reported.
    current_usage: Option<ReportedUsage>,
    log: Log,
    /// Start of the current attempt.
    started_at: Instant,
}

enum State {
    Idle,
    Streaming(Attempt),
    Waiting(Instant),
    Done,
}

/// One step of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStep {
    /// An item of the reply.
    Item(ReplyItem),
    /// The attempt failed and will be retried after a delay. All its items are void.
    Retry(ScheduledRetry),
    /// The reply broke off after at least one complete block. The complete blocks remain valid; this is the last step.
    Truncated(ModelError),
}

/// A retry that is about to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledRetry {
    /// Number of the retry, starting at 1.
    pub attempt: u64,
    /// Upper limit of retries.
    pub max_retries: u64,
    /// Delay before the retry.
    pub delay: Duration,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Kind of the failure, as reported to the host.
    pub failure: FailureKind,
}

impl ModelCall {
    /// Creates a call. The first request is sent when the first step is polled.
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

    /// Writes the progress of the call to a log.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    /// Returns the next step; `None` after the complete reply, after [`CallStep::Truncated`] and after an error.
    /// Cancel safe: dropping the future loses no item.
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
                    AttemptStep::Item(item) => {
                        self.record_event(&item.event);
                        return Some(Ok(CallStep::Item(item)));
                    }
                    AttemptStep::Final(item) => {
                        self.record_event(&item.event);
                        self.log_line(Self::completion_line);
                        self.state = State::Done;
                        return Some(Ok(CallStep::Item(item)));
                    }
                    AttemptStep::Failed(error) => {
                        let has_blocks = attempt.has_blocks();
                        self.state = State::Done;
                        self.log_line(|call| {
                            format!("failed after {}: {}", call.elapsed_text(), describe_error(&error))
                        });
                        if has_blocks {
                            return Some(Ok(CallStep::Truncated(error)));
                        }
                        if !self.apply_downgrade(&error) {
                            return Some(self.schedule_retry(error).map(CallStep::Retry));
                        }
                    }
                },
            }
        }
    }

    /// The model's name at its provider.
    pub fn model_name(&self) -> &str {
        &self.request.model
    }

    /// Size of the request in bytes.
    pub fn size(&self) -> usize {
        self.request.size()
    }

    /// Usage that the provider reported for each attempt so far, including void attempts: all of them are billed.
    pub fn attempt_usages(&self) -> impl Iterator<Item = &ReportedUsage> {
        self.past_usage.iter().chain(&self.current_usage)
    }

    /// Returns true while an attempt is running that has not reported its usage.
    pub fn is_usage_pending(&self) -> bool {
        matches!(self.state, State::Streaming(_)) && self.current_usage.is_none()
    }

    /// Writes a log line prefixed with the model name.
    fn log_line(&self, line: impl FnOnce(&Self) -> String) {
        self.log.write_line(LogTopic::Api, || format!("{}: {}", self.request.model, line(self)));
    }

    fn elapsed_text(&self) -> String {
        format!("{} ms", self.started_at.elapsed().as_millis())
    }

    fn completion_line(&self) -> String {
        let usage = self.current_usage.as_ref().map(|reported| &reported.usage);
        let [input, cached, output] = usage
            .map_or([0; 3], |usage| [usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens]);
        format!(
            "complete after {}; tokens: {input} input, {cached} cached, {output} output",
            self.elapsed_text()
        )
    }

    fn record_event(&mut self, event: &ReplyEvent) {
        match event {
            ReplyEvent::Accepted { request_id } => self.log_line(|call| {
                format!(
                    "response after {}, request {}",
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
        self.log_line(|call| format!("sending {} bytes", call.size()));
        let stream = self.model.stream_reply(self.request.clone());
        self.state =
            State::Streaming(Attempt::new(stream, self.timeouts, RawEvents::for_request(&self.request)));
    }

    /// Downgrades the request if the error asks for it. The same downgrade is never applied twice.
    fn apply_downgrade(&mut self, error: &ModelError) -> bool {
        let Some(downgrade) = find_downgrade(&self.request, error) else { return false };
        let alike = |applied: &Downgrade| match (applied, &downgrade) {
            (Downgrade::MaxTokens(_), Downgrade::MaxTokens(_)) => true,
            (applied, new) => applied == new,
        };
        if self.downgrades.iter().any(alike) {
            return false;
        }
        self.log_line(|_| format!("retrying with a changed request: {downgrade:?}"));
        if let Downgrade::Without(part) = &downgrade {
            self.model.mark_unsupported(&self.request.model, part);
        }
        self.request = Arc::new(downgrade.apply(&self.request));
        self.downgrades.push(downgrade);
        self.state = State::Idle;
        true
    }

    #[expect(clippy::disallowed_methods, reason = "the message names the end of the wait")]
    fn schedule_retry(&mut self, error: ModelError) -> Result<ScheduledRetry, ModelError> {
        match self.policy.decide(&error, self.retries, self.total_wait, self.rng.next()) {
            RetryDecision::GiveUp(reason) => Err(with_wait_hint(error, reason, SystemTime::now())),
            RetryDecision::Wait(delay) => {
                self.retries += 1;
                self.total_wait += delay;
                self.state = State::Waiting(Instant::now() + delay);
                self.log_line(|call| format!("retry {} in {} ms", call.retries, delay.as_millis()));
                Ok(ScheduledRetry {
                    attempt: self.retries.into(),
                    // While waiting for capacity there is no fixed number of retries.
                    max_retries: self.policy.max_retries.max(self.retries).into(),
                    delay,
                    status: error.status,
                    failure: retry_failure_kind(&error),
                })
            }
        }
    }
}

/// Formats an error as one log line.
fn describe_error(error: &ModelError) -> String {
    let status = error.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let request = error.request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
    let message: String = error.message.chars().take(300).collect();
    format!("{:?}{status}{request}: {message}", error.kind)
}

/// Failure kind announced before a retry. Unlike in a final error, an overload has its own kind here.
fn retry_failure_kind(error: &ModelError) -> FailureKind {
    match error.kind {
        ModelErrorKind::Overloaded => FailureKind::Overloaded,
        _ => error.failure_kind(),
    }
}

/// Appends the provider's wait time to the message, if it was the reason to give up.
fn with_wait_hint(mut error: ModelError, reason: GiveUpReason, now: SystemTime) -> ModelError {
    if let GiveUpReason::WaitTooLong(wait) = reason {
        let (minutes, seconds) = (wait.as_secs() / 60, wait.as_secs() % 60);
        // A date more than a year ahead may exceed the calendar and is not useful.
        let at = if wait < YEAR {
            format!(", until {}", httpdate::fmt_http_date(now + wait))
        } else {
            String::new()
        };
        error.message += &format!(" (The provider asks to wait {minutes} min {seconds} s{at}.)");
    }
    error
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Xorshift generator for retry jitter.
struct XorShiftRng(u64);

impl XorShiftRng {
    #[expect(clippy::disallowed_methods, reason = "a source of randomness")]
    fn new() -> Self {
        Self(uuid::Uuid::new_v4().as_u64_pair().0 | 1)
    }

    /// Returns a number between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
