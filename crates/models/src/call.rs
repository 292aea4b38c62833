//! One reply with everything that may go wrong on the way: repeated, watched over and corrected until it is complete
//! or given up.

mod attempt;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};
use whimbrel_wire::message::FailureKind;

use crate::correct::{Correction, correct};
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::figures::Figures;
use crate::log::{Log, Topic};
use crate::model::{Delta, Model};
use crate::request::Request;
use crate::retry::{Next, Policy, Reason};

use attempt::{Attempt, Heard};

/// A call that is under way. Ask for steps until there are none; to end it early, drop it.
pub struct Call {
    model: Arc<dyn Model>,
    request: Arc<Request>,
    policy: Policy,
    timing: Timing,
    retries: u32,
    waited: Duration,
    corrections: Vec<Correction>,
    chance: Chance,
    state: State,
    /// What earlier attempts cost.
    settled: Vec<Figures>,
    /// What the attempt under way costs, once it has begun to say.
    bill: Option<Figures>,
    log: Log,
    /// When the attempt under way began.
    began: Instant,
}

enum State {
    Due,
    Asking(Attempt),
    Waiting(Instant),
    Over,
}

/// How long the provider may be silent. What takes longer has stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Until the answer begins.
    pub no_answer: Duration,
    /// Without any bytes.
    pub no_bytes: Duration,
    /// Without an event that says something; signs of life do not count.
    pub no_events: Duration,
    /// For one attempt as a whole, whatever comes.
    pub whole: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            no_answer: Duration::from_secs(300),
            no_bytes: Duration::from_secs(180),
            no_events: Duration::from_secs(300),
            whole: Duration::from_secs(3600),
        }
    }
}

/// What happens next in a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// An event of the reply.
    Delta(Delta),
    /// The attempt failed and will be repeated after a wait. All its events are void.
    Retry(Retry),
    /// The reply broke off for good, but blocks had been completed. They stand; this is the last step.
    Cut(Fault),
}

/// A repetition that is about to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
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

impl Call {
    /// A call that begins when its first step is asked for.
    pub fn new(model: Arc<dyn Model>, request: Request, policy: Policy, timing: Timing) -> Self {
        Self {
            model,
            request: Arc::new(request),
            policy,
            timing,
            retries: 0,
            waited: Duration::ZERO,
            corrections: Vec::new(),
            chance: Chance::new(),
            state: State::Due,
            settled: Vec::new(),
            bill: None,
            log: Log::default(),
            began: Instant::now(),
        }
    }

    /// The same, told to a log.
    #[must_use]
    pub fn told_to(self, log: Log) -> Self {
        Self { log, ..self }
    }

    /// The next step; none after the reply is complete, after [`Step::Cut`] or after a fault.
    /// Nothing is lost when the wait for it is dropped.
    pub async fn next(&mut self) -> Option<Result<Step, Fault>> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Due => self.ask(),
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Due;
                }
                State::Asking(attempt) => match attempt.next().await {
                    Heard::Delta(delta) => {
                        self.note(&delta.event);
                        return Some(Ok(Step::Delta(delta)));
                    }
                    Heard::Last(delta) => {
                        self.note(&delta.event);
                        self.tell(Self::completion);
                        self.state = State::Over;
                        return Some(Ok(Step::Delta(delta)));
                    }
                    Heard::Fault(fault) => {
                        let kept = attempt.has_blocks();
                        self.state = State::Over;
                        self.tell(|call| format!("failed after {}: {}", call.time(), described(&fault)));
                        if kept {
                            return Some(Ok(Step::Cut(fault)));
                        }
                        if !self.corrected(&fault) {
                            return Some(self.again(fault).map(Step::Retry));
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
    pub fn bills(&self) -> impl Iterator<Item = &Figures> {
        self.settled.iter().chain(&self.bill)
    }

    /// Whether an attempt is under way that has not said yet what it costs.
    pub fn is_unbilled(&self) -> bool {
        matches!(self.state, State::Asking(_)) && self.bill.is_none()
    }

    /// Tells the log something about the attempt.
    fn tell(&self, line: impl FnOnce(&Self) -> String) {
        self.log.tell(Topic::Api, || format!("{}: {}", self.request.model, line(self)));
    }

    fn time(&self) -> String {
        format!("{} ms", self.began.elapsed().as_millis())
    }

    fn completion(&self) -> String {
        let usage = self.bill.as_ref().map(|bill| &bill.usage);
        let [read, cached, written] = usage
            .map_or([0; 3], |usage| [usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens]);
        format!(
            "complete after {}; tokens: {read} read, {cached} from the cache, {written} written",
            self.time()
        )
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Accepted { request_id } => self.tell(|call| {
                format!(
                    "answers after {}, request {}",
                    call.time(),
                    request_id.as_deref().unwrap_or("unnamed")
                )
            }),
            Event::MessageStart { usage, .. } => {
                self.settled.extend(self.bill.replace(usage.clone().so_far()));
            }
            Event::MessageDelta { usage, .. } => self.bill.get_or_insert_default().absorb(usage),
            _ => {}
        }
    }

    fn ask(&mut self) {
        self.settled.extend(self.bill.take());
        self.began = Instant::now();
        self.tell(|call| format!("asked with {} bytes", call.size()));
        let stream = self.model.ask(self.request.clone());
        self.state = State::Asking(Attempt::new(stream, self.timing, self.request.raw_events));
    }

    /// Changes the request if the fault asks for it. No change is made twice.
    fn corrected(&mut self, fault: &Fault) -> bool {
        let Some(correction) = correct(&self.request, fault) else { return false };
        let alike = |made: &Correction| match (made, &correction) {
            (Correction::MaxTokens(_), Correction::MaxTokens(_)) => true,
            (made, new) => made == new,
        };
        if self.corrections.iter().any(alike) {
            return false;
        }
        self.tell(|_| format!("asked otherwise from now on: {correction:?}"));
        if let Correction::Without(part) = &correction {
            self.model.forgo(&self.request.model, part);
        }
        self.request = Arc::new(correction.apply(&self.request));
        self.corrections.push(correction);
        self.state = State::Due;
        true
    }

    #[expect(clippy::disallowed_methods, reason = "a wait that is too long is told with its end")]
    fn again(&mut self, fault: Fault) -> Result<Retry, Fault> {
        match self.policy.decide(&fault, self.retries, self.waited, self.chance.next()) {
            Next::GiveUp(reason) => Err(given_up(fault, reason, SystemTime::now())),
            Next::Wait(delay) => {
                self.retries += 1;
                self.waited += delay;
                self.state = State::Waiting(Instant::now() + delay);
                self.tell(|call| {
                    format!("asked again in {} ms, repetition {}", delay.as_millis(), call.retries)
                });
                Ok(Retry {
                    attempt: self.retries.into(),
                    // What is ridden out is repeated as often as it takes.
                    max_retries: self.policy.max_retries.max(self.retries).into(),
                    delay,
                    status: fault.status,
                    failure: announced(&fault),
                })
            }
        }
    }
}

/// A fault in one line.
fn described(fault: &Fault) -> String {
    let status = fault.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let request = fault.request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
    let message: String = fault.message.chars().take(300).collect();
    format!("{:?}{status}{request}: {message}", fault.kind)
}

/// The kind of failure as it is announced before a repetition: here an overload has its own name.
fn announced(fault: &Fault) -> FailureKind {
    match fault.kind {
        FaultKind::Overloaded => FailureKind::Overloaded,
        _ => fault.failure(),
    }
}

/// Adds when it is worth another try, where that is known.
fn given_up(mut fault: Fault, reason: Reason, now: SystemTime) -> Fault {
    if let Reason::TooLong(wait) = reason {
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
struct Chance(u64);

impl Chance {
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
