//! Retry policy, pure: error, retries so far, time waited and a random number give a delay or the end. Also reads what
//! the provider asks for in the headers `retry-after` and `x-should-retry`.

use std::time::{Duration, SystemTime};

use whimbrel_os::backoff::Backoff;

use crate::error::{ModelError, ModelErrorKind, parse_request_id};

/// Retry limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// Maximum number of retries after an overload.
    pub max_overload_retries: u32,
    /// Delay before the first retry; doubles with each further one.
    pub initial_delay: Duration,
    /// Upper limit of a backoff delay.
    pub max_delay: Duration,
    /// Upper limit of all delays together.
    pub max_total_delay: Duration,
    /// Total time to wait for capacity after an overload or rate limit, regardless of the number of retries; `None`
    /// applies the ordinary limits.
    pub max_capacity_wait: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            max_overload_retries: u32::MAX,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(32),
            max_total_delay: Duration::from_secs(600),
            max_capacity_wait: None,
        }
    }
}

/// Decision about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry after this delay.
    Wait(Duration),
    /// Do not retry.
    GiveUp(GiveUpReason),
}

/// Reason not to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUpReason {
    /// The same request would fail again.
    NotRetryable,
    /// The provider sent `x-should-retry: false`.
    ServerForbids,
    /// The retries or the total delay are used up.
    Exhausted,
    /// The provider asks for a longer wait than the policy allows.
    WaitTooLong(Duration),
}

/// Upper limit of a backoff delay while waiting for capacity.
const MAX_CAPACITY_DELAY: Duration = Duration::from_secs(300);

/// Random share of a delay, so that many clients do not retry at the same moment.
const JITTER: f64 = 0.25;

impl RetryPolicy {
    /// Decides about an error after `retries` retries and `waited` time. `random` lies between 0 and 1.
    ///
    /// 1. Errors that would recur end the call, and so does the provider's `x-should-retry: false`.
    /// 2. Kinds of errors that rarely pass are retried a few times only.
    /// 3. The delay is the provider's, if it named one, else the exponential backoff.
    /// 4. A delay beyond the remaining total is not started.
    /// 5. Waiting for capacity has its own total and no other limit.
    pub fn decide(&self, error: &ModelError, retries: u32, waited: Duration, random: f64) -> RetryDecision {
        let capacity_wait = self.capacity_wait_limit(error.kind);
        let max_retries = match error.kind {
            _ if capacity_wait.is_some() => u32::MAX,
            ModelErrorKind::Overloaded => self.max_overload_retries.min(self.max_retries),
            kind => retry_limit(kind).min(self.max_retries),
        };
        if retry_limit(error.kind) == 0 {
            return RetryDecision::GiveUp(GiveUpReason::NotRetryable);
        }
        if error.should_retry == Some(false) {
            return RetryDecision::GiveUp(GiveUpReason::ServerForbids);
        }
        if retries >= max_retries {
            return RetryDecision::GiveUp(GiveUpReason::Exhausted);
        }
        let left = capacity_wait.unwrap_or(self.max_total_delay).saturating_sub(waited);
        let cap = if capacity_wait.is_some() { MAX_CAPACITY_DELAY } else { self.max_delay };
        match error.retry_after {
            Some(after) if after > left => RetryDecision::GiveUp(GiveUpReason::WaitTooLong(after)),
            Some(after) => RetryDecision::Wait(after + self.initial_delay.mul_f64(JITTER * random)),
            None => match self.backoff(retries, cap, random) {
                wait if wait > left => RetryDecision::GiveUp(GiveUpReason::Exhausted),
                wait => RetryDecision::Wait(wait),
            },
        }
    }

    fn backoff(&self, retries: u32, cap: Duration, random: f64) -> Duration {
        let backoff = Backoff { initial: self.initial_delay, factor: 2, max: cap };
        backoff.delay(retries.saturating_add(1)).mul_f64(1.0 + JITTER * random)
    }

    /// Total wait for capacity after this kind of error. An overload with a fallback model does not wait.
    fn capacity_wait_limit(&self, kind: ModelErrorKind) -> Option<Duration> {
        let waits_for_capacity = match kind {
            ModelErrorKind::RateLimit => true,
            ModelErrorKind::Overloaded => self.max_overload_retries == u32::MAX,
            _ => false,
        };
        self.max_capacity_wait.filter(|_| waits_for_capacity)
    }
}

/// Maximum number of retries for a kind of error, before the policy's own limit.
fn retry_limit(kind: ModelErrorKind) -> u32 {
    match kind {
        ModelErrorKind::RateLimit
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Server
        | ModelErrorKind::Connection
        | ModelErrorKind::Cut => u32::MAX,
        ModelErrorKind::Stalled | ModelErrorKind::NotAStream | ModelErrorKind::Protocol => 2,
        ModelErrorKind::NoCredentials
        | ModelErrorKind::Authentication
        | ModelErrorKind::Forbidden
        | ModelErrorKind::Billing
        | ModelErrorKind::SpendLimit
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::PromptTooLong
        | ModelErrorKind::TooLarge
        | ModelErrorKind::ModelNotFound
        | ModelErrorKind::Certificate
        | ModelErrorKind::Script
        | ModelErrorKind::Interrupted => 0,
    }
}

impl ModelError {
    /// Adds retry delay, `x-should-retry` and request id from the response headers.
    pub fn with_headers<'a>(self, header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Self {
        Self {
            retry_after: parse_retry_after(&header, now),
            should_retry: header("x-should-retry").and_then(|word| word.trim().parse().ok()),
            request_id: parse_request_id(header),
            ..self
        }
    }
}

/// Reads the retry delay: `retry-after-ms`, or `retry-after` in seconds or as a date. Invalid values count as absent.
fn parse_retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let number = |name| header(name).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds =
        number("retry-after-ms").map(|milliseconds| milliseconds / 1000.0).or_else(|| number("retry-after"));
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => httpdate::parse_http_date(header("retry-after")?.trim()).ok()?.duration_since(now).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn decide(error: &ModelError, retries: u32) -> RetryDecision {
        RetryPolicy::default().decide(error, retries, Duration::ZERO, 0.0)
    }

    #[test]
    fn every_error_kind_has_its_retry_limit() {
        use ModelErrorKind::*;
        let never = RetryDecision::GiveUp(GiveUpReason::NotRetryable);
        let enough = RetryDecision::GiveUp(GiveUpReason::Exhausted);
        let again = RetryDecision::Wait(seconds(2.0));
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
            assert_eq!(decide(&ModelError::new(kind, ""), 2), expected, "{name}");
        }
    }

    #[test]
    fn delays_double_up_to_the_cap_and_end_after_ten() {
        let error = ModelError::new(ModelErrorKind::Overloaded, "");
        let waits: Vec<f64> = (0..10)
            .map(|retries| match decide(&error, retries) {
                RetryDecision::Wait(wait) => wait.as_secs_f64(),
                RetryDecision::GiveUp(reason) => panic!("{reason:?}"),
            })
            .collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0]);
        assert_eq!(decide(&error, 10), RetryDecision::GiveUp(GiveUpReason::Exhausted));
        let jittered = RetryPolicy::default().decide(&error, 0, Duration::ZERO, 1.0);
        assert_eq!(jittered, RetryDecision::Wait(seconds(0.625)));
    }

    #[test]
    fn retry_limit_is_respected() {
        for (max_retries, retries, retried) in
            [(0, 0, false), (1, 0, true), (1, 1, false), (3, 2, true), (3, 3, false)]
        {
            let policy = RetryPolicy { max_retries, ..RetryPolicy::default() };
            let next =
                policy.decide(&ModelError::new(ModelErrorKind::Server, ""), retries, Duration::ZERO, 0.5);
            assert_eq!(matches!(next, RetryDecision::Wait(_)), retried, "{retries} of {max_retries}");
        }
    }

    #[test]
    fn overload_can_wait_for_capacity() {
        use ModelErrorKind::{Overloaded, RateLimit, Server};
        let hours = |hours: f64| seconds(hours * 3600.0);
        let patient = RetryPolicy { max_capacity_wait: Some(hours(5.0)), ..RetryPolicy::default() };
        let instead = RetryPolicy { max_overload_retries: 2, ..patient };
        let after = |wait| ModelError { retry_after: Some(wait), ..ModelError::new(RateLimit, "") };
        let table = [
            (
                "no count",
                patient,
                ModelError::new(Overloaded, ""),
                500,
                hours(1.0),
                RetryDecision::Wait(MAX_CAPACITY_DELAY),
            ),
            (
                "waits until a limit is lifted",
                patient,
                after(hours(2.0)),
                3,
                hours(1.0),
                RetryDecision::Wait(hours(2.0)),
            ),
            (
                "but not for ever",
                patient,
                after(hours(2.0)),
                3,
                hours(4.0),
                RetryDecision::GiveUp(GiveUpReason::WaitTooLong(hours(2.0))),
            ),
            (
                "not a failure",
                patient,
                ModelError::new(Server, ""),
                10,
                hours(0.0),
                RetryDecision::GiveUp(GiveUpReason::Exhausted),
            ),
            (
                "not with a fallback model",
                instead,
                ModelError::new(Overloaded, ""),
                2,
                hours(0.0),
                RetryDecision::GiveUp(GiveUpReason::Exhausted),
            ),
            (
                "which is used soon",
                instead,
                ModelError::new(Overloaded, ""),
                1,
                hours(0.0),
                RetryDecision::Wait(seconds(1.0)),
            ),
        ];
        for (name, policy, error, retries, waited, expected) in table {
            assert_eq!(policy.decide(&error, retries, waited, 0.0), expected, "{name}");
        }
    }

    #[test]
    fn provider_headers_decide_delay_and_retry() {
        let error = ModelError::new(ModelErrorKind::RateLimit, "");
        let after = |s| ModelError { retry_after: Some(seconds(s)), ..error.clone() };
        let should_retry = |word| ModelError { should_retry: Some(word), ..error.clone() };
        let invalid =
            ModelError { should_retry: Some(true), ..ModelError::new(ModelErrorKind::InvalidRequest, "") };
        let table = [
            ("A1 a wait", after(3.0), 0.0, RetryDecision::Wait(seconds(3.0))),
            (
                "A2 a wait beyond the limit",
                after(3600.0),
                0.0,
                RetryDecision::GiveUp(GiveUpReason::WaitTooLong(seconds(3600.0))),
            ),
            (
                "a wait beyond the remaining limit",
                after(30.0),
                580.0,
                RetryDecision::GiveUp(GiveUpReason::WaitTooLong(seconds(30.0))),
            ),
            (
                "nothing left of the budget",
                error.clone(),
                600.0,
                RetryDecision::GiveUp(GiveUpReason::Exhausted),
            ),
            (
                "A7 x-should-retry: false",
                should_retry(false),
                0.0,
                RetryDecision::GiveUp(GiveUpReason::ServerForbids),
            ),
            ("x-should-retry: true", should_retry(true), 0.0, RetryDecision::Wait(seconds(0.5))),
            (
                "x-should-retry: true does not help a bad request",
                invalid,
                0.0,
                RetryDecision::GiveUp(GiveUpReason::NotRetryable),
            ),
        ];
        for (name, error, waited, expected) in table {
            assert_eq!(RetryPolicy::default().decide(&error, 0, seconds(waited), 0.0), expected, "{name}");
        }
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let now = httpdate::parse_http_date("Sun, 15 Nov 2026 10:00:00 GMT").unwrap();
        let seconds = |s| Some(Duration::from_secs(s));
        type Headers = &'static [(&'static str, &'static str)];
        let table: &[(&str, Headers, Option<Duration>)] = &[
            ("absent", &[], None),
            ("seconds", &[("retry-after", "3")], seconds(3)),
            ("zero", &[("retry-after", "0")], seconds(0)),
            ("a fraction", &[("retry-after", "1.5")], Some(Duration::from_millis(1500))),
            (
                "milliseconds win",
                &[("retry-after-ms", "250"), ("retry-after", "3")],
                Some(Duration::from_millis(250)),
            ),
            ("a date", &[("retry-after", "Sun, 15 Nov 2026 10:00:07 GMT")], seconds(7)),
            ("a date in the past", &[("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT")], None),
            ("negative", &[("retry-after", "-3")], None),
            ("no number", &[("retry-after", "soon")], None),
            ("not finite", &[("retry-after", "inf")], None),
            ("absurd", &[("retry-after", "1e300")], None),
        ];
        for (name, headers, expected) in table {
            let header =
                |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            assert_eq!(parse_retry_after(header, now), *expected, "{name}");
        }
    }

    #[test]
    fn should_retry_header_is_read() {
        for (word, expected) in [("true", Some(true)), ("false", Some(false)), ("perhaps", None)] {
            let header = |name: &str| (name == "x-should-retry").then_some(word);
            let error =
                ModelError::new(ModelErrorKind::Server, "").with_headers(header, SystemTime::UNIX_EPOCH);
            assert_eq!(error.should_retry, expected, "{word}");
        }
    }
}
