//! In place of `call_metrics` without the feature `metrics`: the same functions without any effect.

use std::time::Duration;

use whimbrel_wire::Usage;

pub fn record_model_call(_: &str, _: &Usage, _: f64) {}

pub fn record_turn(_: Duration) {}

/// Nothing.
#[derive(Debug)]
pub struct OpenSession;

impl OpenSession {
    pub fn begin() -> Self {
        Self
    }
}
