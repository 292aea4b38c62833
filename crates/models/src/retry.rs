//! When to try again, pure: a fault, what was tried so far and a random number give a wait or the end.

use std::time::Duration;

use crate::fault::{Fault, FaultKind};

/// How patient we are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// How often a request is repeated at most.
    pub max_retries: u32,
    /// How often it is repeated at most because of an overload.
    pub max_overloads: u32,
    /// The first wait; each further one is twice as long.
    pub base: Duration,
    /// The longest wait of our own choosing.
    pub cap: Duration,
    /// The longest time that all waits together may take.
    pub budget: Duration,
    /// How long an overload or a limit on requests is ridden out, all waits together, however often it takes; none means
    /// no longer than anything else.
    pub ride_out: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            max_overloads: u32::MAX,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(32),
            budget: Duration::from_secs(600),
            ride_out: None,
        }
    }
}

/// What to do about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait, then ask again.
    Wait(Duration),
    /// Let it be.
    GiveUp(Reason),
}

/// Why a request is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It would fail again.
    Hopeless,
    /// The provider says so.
    Told,
    /// It was repeated often enough.
    Enough,
    /// The provider wants us to wait longer than we may.
    TooLong(Duration),
}

/// The longest wait of our own choosing while something is ridden out.
const RIDING: Duration = Duration::from_secs(300);

/// How much of a wait is left to chance, so that many clients do not come back at once.
const JITTER: f64 = 0.25;

impl Policy {
    /// Decides about a fault after `retries` repetitions and so much waiting. `random` lies between 0 and 1.
    ///
    /// 1. A fault that would come again ends the call, and so does the provider's `x-should-retry: false`.
    /// 2. A kind of fault that rarely passes is tried a few times only.
    /// 3. The provider's wait counts if it names one, else our own, which doubles.
    /// 4. A wait beyond the budget is not begun.
    /// 5. What is ridden out has a budget of its own, and no other limit.
    pub fn decide(&self, fault: &Fault, retries: u32, waited: Duration, random: f64) -> Next {
        let ridden_out = self.ridden_out(fault.kind);
        let most = match fault.kind {
            _ if ridden_out.is_some() => u32::MAX,
            FaultKind::Overloaded => self.max_overloads.min(self.max_retries),
            kind => repetitions(kind).min(self.max_retries),
        };
        if repetitions(fault.kind) == 0 {
            return Next::GiveUp(Reason::Hopeless);
        }
        if fault.should_retry == Some(false) {
            return Next::GiveUp(Reason::Told);
        }
        if retries >= most {
            return Next::GiveUp(Reason::Enough);
        }
        let left = ridden_out.unwrap_or(self.budget).saturating_sub(waited);
        let cap = if ridden_out.is_some() { RIDING } else { self.cap };
        match fault.retry_after {
            Some(after) if after > left => Next::GiveUp(Reason::TooLong(after)),
            Some(after) => Next::Wait(after + self.base.mul_f64(JITTER * random)),
            None => match self.backoff(retries, cap, random) {
                wait if wait > left => Next::GiveUp(Reason::Enough),
                wait => Next::Wait(wait),
            },
        }
    }

    fn backoff(&self, retries: u32, cap: Duration, random: f64) -> Duration {
        let doubled = self.base.saturating_mul(2u32.saturating_pow(retries.min(31)));
        doubled.min(cap).mul_f64(1.0 + JITTER * random)
    }

    /// How long a kind of fault is ridden out, if it is. An overload is not when somebody else is asked instead.
    fn ridden_out(&self, kind: FaultKind) -> Option<Duration> {
        let rides = match kind {
            FaultKind::RateLimit => true,
            FaultKind::Overloaded => self.max_overloads == u32::MAX,
            _ => false,
        };
        self.ride_out.filter(|_| rides)
    }
}

/// How often a kind of fault is worth another try.
fn repetitions(kind: FaultKind) -> u32 {
    match kind {
        FaultKind::RateLimit
        | FaultKind::Overloaded
        | FaultKind::Server
        | FaultKind::Connection
        | FaultKind::Cut => u32::MAX,
        FaultKind::Stalled | FaultKind::NotAStream | FaultKind::Protocol => 2,
        FaultKind::NoCredentials
        | FaultKind::Authentication
        | FaultKind::Forbidden
        | FaultKind::Billing
        | FaultKind::SpendLimit
        | FaultKind::InvalidRequest
        | FaultKind::PromptTooLong
        | FaultKind::TooLarge
        | FaultKind::ModelNotFound
        | FaultKind::Certificate
        | FaultKind::Script
        | FaultKind::Interrupted => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn decide(fault: &Fault, retries: u32) -> Next {
        Policy::default().decide(fault, retries, Duration::ZERO, 0.0)
    }

    #[test]
    fn every_kind_of_fault_has_its_patience() {
        use FaultKind::*;
        let never = Next::GiveUp(Reason::Hopeless);
        let enough = Next::GiveUp(Reason::Enough);
        let again = Next::Wait(seconds(2.0));
        let table = [
            ("A1 rate limit", RateLimit, again),
            ("A4 spend limit", SpendLimit, never),
            ("A5 overload", Overloaded, again),
            ("A8 and A11 server", Server, again),
            ("A9 authentication", Authentication, never),
            ("A10 forbidden", Forbidden, never),
            ("A10 no such model", ModelNotFound, never),
            ("A10 billing", Billing, never),
            ("A12 too long", PromptTooLong, never),
            ("A14 too large", TooLarge, never),
            ("A16 connection", Connection, again),
            ("A17 certificate", Certificate, never),
            ("A20 cut", Cut, again),
            ("A29 and A30 not a stream, after two", NotAStream, enough),
            ("A31 stalled, after two", Stalled, enough),
            ("A37 nonsense, after two", Protocol, enough),
            ("malformed", InvalidRequest, never),
            ("no key", NoCredentials, never),
            ("script", Script, never),
        ];
        for (name, kind, expected) in table {
            assert_eq!(decide(&Fault::new(kind, ""), 2), expected, "{name}");
        }
    }

    #[test]
    fn waits_double_up_to_the_cap_and_end_after_ten() {
        let fault = Fault::new(FaultKind::Overloaded, "");
        let waits: Vec<f64> = (0..10)
            .map(|retries| match decide(&fault, retries) {
                Next::Wait(wait) => wait.as_secs_f64(),
                Next::GiveUp(reason) => panic!("{reason:?}"),
            })
            .collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0]);
        assert_eq!(decide(&fault, 10), Next::GiveUp(Reason::Enough));
        let jittered = Policy::default().decide(&fault, 0, Duration::ZERO, 1.0);
        assert_eq!(jittered, Next::Wait(seconds(0.625)));
    }

    #[test]
    fn the_limit_of_repetitions_is_kept() {
        for (max_retries, retries, goes_on) in
            [(0, 0, false), (1, 0, true), (1, 1, false), (3, 2, true), (3, 3, false)]
        {
            let policy = Policy { max_retries, ..Policy::default() };
            let next = policy.decide(&Fault::new(FaultKind::Server, ""), retries, Duration::ZERO, 0.5);
            assert_eq!(matches!(next, Next::Wait(_)), goes_on, "{retries} of {max_retries}");
        }
    }

    #[test]
    fn an_overload_can_be_ridden_out() {
        use FaultKind::{Overloaded, RateLimit, Server};
        let hours = |hours: f64| seconds(hours * 3600.0);
        let patient = Policy { ride_out: Some(hours(5.0)), ..Policy::default() };
        let instead = Policy { max_overloads: 2, ..patient };
        let after = |wait| Fault { retry_after: Some(wait), ..Fault::new(RateLimit, "") };
        let table = [
            ("no count", patient, Fault::new(Overloaded, ""), 500, hours(1.0), Next::Wait(RIDING)),
            (
                "parked until a limit is lifted",
                patient,
                after(hours(2.0)),
                3,
                hours(1.0),
                Next::Wait(hours(2.0)),
            ),
            (
                "but not for ever",
                patient,
                after(hours(2.0)),
                3,
                hours(4.0),
                Next::GiveUp(Reason::TooLong(hours(2.0))),
            ),
            ("not a failure", patient, Fault::new(Server, ""), 10, hours(0.0), Next::GiveUp(Reason::Enough)),
            (
                "not if somebody else can be asked",
                instead,
                Fault::new(Overloaded, ""),
                2,
                hours(0.0),
                Next::GiveUp(Reason::Enough),
            ),
            (
                "which is asked soon",
                instead,
                Fault::new(Overloaded, ""),
                1,
                hours(0.0),
                Next::Wait(seconds(1.0)),
            ),
        ];
        for (name, policy, fault, retries, waited, expected) in table {
            assert_eq!(policy.decide(&fault, retries, waited, 0.0), expected, "{name}");
        }
    }

    #[test]
    fn the_provider_is_listened_to() {
        let fault = Fault::new(FaultKind::RateLimit, "");
        let after = |s| Fault { retry_after: Some(seconds(s)), ..fault.clone() };
        let told = |word| Fault { should_retry: Some(word), ..fault.clone() };
        let mad = Fault { should_retry: Some(true), ..Fault::new(FaultKind::InvalidRequest, "") };
        let table = [
            ("A1 a wait", after(3.0), 0.0, Next::Wait(seconds(3.0))),
            (
                "A2 a wait beyond all patience",
                after(3600.0),
                0.0,
                Next::GiveUp(Reason::TooLong(seconds(3600.0))),
            ),
            ("a wait beyond what is left", after(30.0), 580.0, Next::GiveUp(Reason::TooLong(seconds(30.0)))),
            ("nothing left of the budget", fault.clone(), 600.0, Next::GiveUp(Reason::Enough)),
            ("A7 x-should-retry: false", told(false), 0.0, Next::GiveUp(Reason::Told)),
            ("x-should-retry: true", told(true), 0.0, Next::Wait(seconds(0.5))),
            ("x-should-retry: true does not help a bad request", mad, 0.0, Next::GiveUp(Reason::Hopeless)),
        ];
        for (name, fault, waited, expected) in table {
            assert_eq!(Policy::default().decide(&fault, 0, seconds(waited), 0.0), expected, "{name}");
        }
    }
}
