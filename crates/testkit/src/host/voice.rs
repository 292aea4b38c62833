//! Whoever speaks for the model in a test.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_models::scripted::Scripted;

use crate::http_mock::MockApi;
use crate::script::{Asked, Dialect};

/// Whoever plays the script.
pub(super) enum Voice {
    /// A mock on loopback.
    Http(MockApi),
    /// The scripted model in our process.
    Scripted(Arc<Scripted>),
    /// The scripted model in the engine's process.
    Elsewhere,
}

impl Voice {
    /// What the engine must be told to find it.
    pub(super) fn env(&self) -> BTreeMap<String, String> {
        match self {
            Self::Http(api) => api.env(),
            Self::Scripted(_) | Self::Elsewhere => BTreeMap::new(),
        }
    }

    /// What the model has been asked, as far as we can know.
    pub(super) fn asked(&self) -> Vec<Asked> {
        match self {
            Self::Http(api) => api.asked(),
            Self::Scripted(model) => {
                let bodies = model.requests().into_iter().enumerate();
                bodies.map(|(number, body)| Asked { number, dialect: Dialect::Messages, body }).collect()
            }
            Self::Elsewhere => Vec::new(),
        }
    }
}
