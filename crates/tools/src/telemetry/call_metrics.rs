//! Figures of the crate `metrics`: a facade like `tracing`, for which a program installs a recorder.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use whimbrel_wire::Usage;

/// Records a model call: `whimbrel_tokens_total` by model and kind, and `whimbrel_cost_usd_total` by model. The latter is
/// a gauge, because counters of the facade are whole numbers; it only grows.
pub fn record_model_call(model: &str, usage: &Usage, cost_usd: f64) {
    let kinds = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cache_read_input_tokens),
        ("cache_creation", usage.cache_creation_input_tokens),
    ];
    for (kind, tokens) in kinds {
        counter!("whimbrel_tokens_total", "model" => model.to_owned(), "kind" => kind).increment(tokens);
    }
    gauge!("whimbrel_cost_usd_total", "model" => model.to_owned()).increment(cost_usd);
}

/// Records the time of a turn in `whimbrel_turn_seconds`.
pub fn record_turn(elapsed: Duration) {
    histogram!("whimbrel_turn_seconds").record(elapsed);
}

/// An open session, counted in `whimbrel_sessions_open` until it is dropped.
#[derive(Debug)]
pub struct OpenSession(());

impl OpenSession {
    pub fn begin() -> Self {
        gauge!("whimbrel_sessions_open").increment(1.0);
        Self(())
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        gauge!("whimbrel_sessions_open").decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
        SharedString, Unit,
    };

    use super::*;

    /// Sums by name and labels.
    #[derive(Clone, Default)]
    struct Sums(Arc<Mutex<BTreeMap<String, f64>>>);

    /// One sum.
    struct Sum {
        name: String,
        sums: Sums,
    }

    impl Sum {
        fn add(&self, value: f64) {
            *self.sums.0.lock().unwrap().entry(self.name.clone()).or_default() += value;
        }
    }

    impl CounterFn for Sum {
        fn increment(&self, value: u64) {
            self.add(value as f64);
        }

        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for Sum {
        fn increment(&self, value: f64) {
            self.add(value);
        }

        fn decrement(&self, value: f64) {
            self.add(-value);
        }

        fn set(&self, _: f64) {}
    }

    impl HistogramFn for Sum {
        fn record(&self, value: f64) {
            self.add(value);
        }
    }

    impl Sums {
        fn sum(&self, key: &Key) -> Arc<Sum> {
            let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
            Arc::new(Sum { name: [&[key.name()], &labels[..]].concat().join(" "), sums: self.clone() })
        }
    }

    impl Recorder for Sums {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.sum(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.sum(key))
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.sum(key))
        }
    }

    #[test]
    fn calls_turns_and_sessions_are_counted() {
        let sums = Sums::default();
        metrics::with_local_recorder(&sums, || {
            let usage = Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() };
            record_model_call("m", &usage, 0.5);
            record_model_call("m", &usage, 0.25);
            record_turn(Duration::from_secs(4));
            let _open = OpenSession::begin();
            drop(OpenSession::begin());
        });
        // Both sessions have ended.
        let expected = [
            ("whimbrel_cost_usd_total m", 0.75),
            ("whimbrel_sessions_open", 0.0),
            ("whimbrel_tokens_total m cache_creation", 0.0),
            ("whimbrel_tokens_total m cache_read", 0.0),
            ("whimbrel_tokens_total m input", 6.0),
            ("whimbrel_tokens_total m output", 4.0),
            ("whimbrel_turn_seconds", 4.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(*sums.0.lock().unwrap(), BTreeMap::from(expected));
    }
}
