//! Built-in output styles.

use std::sync::{Arc, LazyLock};

use crate::output_styles::{CodingInstructions, DEFAULT_STYLE, OutputStyle};

/// All built-in styles, the default first; shared by all sessions of the process.
pub(super) fn all() -> Vec<Arc<OutputStyle>> {
    static ALL: LazyLock<Vec<Arc<OutputStyle>>> = LazyLock::new(build_all);
    ALL.clone()
}

fn build_all() -> Vec<Arc<OutputStyle>> {
    let style = |name: &str, description: &str, text: &str| {
        Arc::new(OutputStyle {
            name: name.into(),
            description: description.into(),
            coding_instructions: CodingInstructions::Keep,
            text: text.trim().into(),
        })
    };
    vec![
        style(DEFAULT_STYLE, "Short and to the point", ""),
        style("Explanatory", "Also explains the choices it makes", include_str!("explanatory.md")),
        style("Learning", "Leaves parts of the work to you, so that you learn", include_str!("learning.md")),
    ]
}
