//! The output styles of the engine.

use std::sync::{Arc, LazyLock};

use super::{Coding, DEFAULT, Style};

/// All of them, the default first. Every session of the process shares them.
pub(super) fn all() -> Vec<Arc<Style>> {
    static ALL: LazyLock<Vec<Arc<Style>>> = LazyLock::new(made);
    ALL.clone()
}

fn made() -> Vec<Arc<Style>> {
    let style = |name: &str, description: &str, text: &str| {
        Arc::new(Style {
            name: name.into(),
            description: description.into(),
            coding: Coding::Kept,
            text: text.trim().into(),
        })
    };
    vec![
        style(DEFAULT, "Short and to the point", ""),
        style("Explanatory", "Also explains the choices it makes", include_str!("explanatory.md")),
        style("Learning", "Leaves parts of the work to you, so that you learn", include_str!("learning.md")),
    ]
}
