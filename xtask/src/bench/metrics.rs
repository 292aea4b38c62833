//! Metrics of a run, and their statistics.

use super::clock::to_ms;
use super::model_server::StepTiming;

/// Named metrics in display order. Lower is better for all of them.
pub(super) type Metrics = Vec<(&'static str, f64)>;

/// Named metrics of baselines that are not engines.
pub(super) type BaselineMetrics = Vec<(String, Metrics)>;

pub(super) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The value that `percent` percent of the values do not exceed.
pub(super) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// Times from the end of each reply to the next request, in milliseconds.
pub(super) fn turn_gaps(steps: &[StepTiming]) -> Vec<f64> {
    steps
        .windows(2)
        .map(|pair| to_ms(pair[1].request_at.saturating_duration_since(pair[0].reply_at)))
        .collect()
}

/// Formats a metric with three digits.
pub(super) fn format_metric(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a ratio: `1/40` or `1.3x`.
pub(super) fn format_ratio(ours: f64, theirs: f64) -> String {
    match ours / theirs {
        quotient if !quotient.is_finite() || quotient <= 0.0 => "-".into(),
        quotient if quotient < 0.5 => format!("1/{:.0}", 1.0 / quotient),
        quotient => format!("{quotient:.2}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_stay_within_the_list() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!((percentile(&[1.0, 2.0], 100), percentile(&[7.0], 99)), (2.0, 7.0));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn small_ratio_is_shown_as_a_fraction() {
        let rows = [(1.0, 50.0, "1/50"), (3.0, 2.0, "1.50x"), (1.0, 0.0, "-"), (-1.0, 2.0, "-")];
        for (ours, theirs, expected) in rows {
            assert_eq!(format_ratio(ours, theirs), expected);
        }
    }
}
