//! Figures of one run, by name, and what is made of several of them.

use super::clock::to_ms;
use super::server::StepTiming;

/// Figures in the order in which they are shown. Less is better in all of them.
pub(super) type Metrics = Vec<(&'static str, f64)>;

/// Figures of what is no engine, by name.
pub(super) type BaselineMetrics = Vec<(String, Metrics)>;

/// The middle one.
pub(super) fn median(figures: &[f64]) -> f64 {
    percentile(figures, 50)
}

/// The one that so many in a hundred do not exceed.
pub(super) fn percentile(figures: &[f64], hundredths: usize) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len() * hundredths / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// From the end of each reply to the next request, in milliseconds.
pub(super) fn turn_gaps(steps: &[StepTiming]) -> Vec<f64> {
    steps.windows(2).map(|pair| to_ms(pair[1].request_at.saturating_duration_since(pair[0].reply_at))).collect()
}

/// A figure in three digits.
pub(super) fn format_metric(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        small if small >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// How two figures compare: `1/40` or `1.3x`.
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
    fn the_median_is_the_middle_one_and_a_percentile_never_leaves_the_list() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!((percentile(&[1.0, 2.0], 100), percentile(&[7.0], 99)), (2.0, 7.0));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_ratio_reads_as_a_fraction_when_we_are_far_below() {
        let rows = [(1.0, 50.0, "1/50"), (3.0, 2.0, "1.50x"), (1.0, 0.0, "-"), (-1.0, 2.0, "-")];
        for (ours, theirs, expected) in rows {
            assert_eq!(format_ratio(ours, theirs), expected);
        }
    }
}
