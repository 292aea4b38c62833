//! Effort of a model: from the names of settings and definitions, and from the wire, to the models crate.

use whimbrel_models::Effort;
use whimbrel_wire::options;

/// The effort that a setting names.
pub(crate) fn parse_effort(name: &str) -> Option<Effort> {
    name.parse().ok().map(to_model_effort)
}

pub(crate) fn to_model_effort(effort: options::Effort) -> Effort {
    match effort {
        options::Effort::Low => Effort::Low,
        options::Effort::Medium => Effort::Medium,
        options::Effort::High => Effort::High,
        options::Effort::XHigh => Effort::Xhigh,
        options::Effort::Max => Effort::Max,
    }
}
