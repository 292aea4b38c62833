//! Counters of the host, and their text for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::histogram::Histogram;
use crate::store::turns::{CAUSE_BACKGROUND, CAUSE_MESSAGE};

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    Done,
    Failed,
    Interrupted,
}

impl TurnOutcome {
    const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Interrupted];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

const CAUSES: [&str; 2] = [CAUSE_MESSAGE, CAUSE_BACKGROUND];

/// Turns that have ended, by outcome and cause.
#[derive(Debug, Default)]
pub(crate) struct TurnCounts([[AtomicU64; 2]; 3]);

impl TurnCounts {
    pub(crate) fn count(&self, outcome: TurnOutcome, has_message: bool) {
        let counts = &self.0[outcome as usize];
        counts[usize::from(!has_message)].fetch_add(1, Ordering::Relaxed);
    }
}

/// What the host counts. No ids or names are labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) sessions_open: AtomicI64,
    pub(crate) turns_running: AtomicI64,
    pub(crate) turns: TurnCounts,
    /// Writes that were refused because another host has the session.
    pub(crate) lease_losses: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) sockets: AtomicI64,
    pub(crate) socket_resyncs: AtomicU64,
    pub(crate) first_request: Histogram,
}

impl Metrics {
    pub(crate) fn render(
        &self,
        commits: &Histogram,
        open_requests: i64,
        cost_by_model: &[(String, f64)],
    ) -> String {
        let mut text = String::new();
        let gauges = [
            ("whimbrel_sessions_open", &self.sessions_open),
            ("whimbrel_turns_running", &self.turns_running),
            ("whimbrel_sockets", &self.sockets),
        ];
        for (name, gauge) in gauges {
            let _ = writeln!(text, "# TYPE {name} gauge\n{name} {}", gauge.load(Ordering::Relaxed));
        }
        let _ = writeln!(text, "# TYPE whimbrel_requests_open gauge\nwhimbrel_requests_open {open_requests}");
        let _ = writeln!(text, "# TYPE whimbrel_turns_total counter");
        for (outcome, counts) in TurnOutcome::ALL.into_iter().zip(&self.turns.0) {
            for (cause, count) in CAUSES.into_iter().zip(counts) {
                let (outcome, count) = (outcome.as_str(), count.load(Ordering::Relaxed));
                let _ =
                    writeln!(text, "whimbrel_turns_total{{outcome=\"{outcome}\",cause=\"{cause}\"}} {count}");
            }
        }
        let counters = [
            ("whimbrel_events_total", &self.events),
            ("whimbrel_socket_resyncs_total", &self.socket_resyncs),
            ("whimbrel_lease_losses_total", &self.lease_losses),
        ];
        for (name, counter) in counters {
            let _ = writeln!(text, "# TYPE {name} counter\n{name} {}", counter.load(Ordering::Relaxed));
        }
        commits.render("whimbrel_store_commit_seconds", &mut text);
        self.first_request.render("whimbrel_first_request_seconds", &mut text);
        let _ = writeln!(text, "# TYPE whimbrel_cost_usd_total counter");
        for (model, cost) in cost_by_model {
            let model = model.replace(['"', '\\', '\n'], "_");
            let _ = writeln!(text, "whimbrel_cost_usd_total{{model=\"{model}\"}} {cost}");
        }
        text
    }
}
