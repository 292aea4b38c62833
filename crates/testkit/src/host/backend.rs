//! Whoever speaks for the model in a test.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_models::scripted::Scripted;

use crate::http_mock::MockApi;
use crate::script::{ModelRequest, ApiFormat};

/// Whoever plays the script.
pub(super) enum ModelBackend {
    /// A mock on loopback.
    Http(MockApi),
    /// The scripted model in our process.
    Scripted(Arc<Scripted>),
    /// The scripted model in the engine's process.
    ScriptedInEngine,
}

impl ModelBackend {
    /// What the engine must be told to find it.
    pub(super) fn env(&self) -> BTreeMap<String, String> {
        match self {
            Self::Http(api) => api.env(),
            Self::Scripted(_) | Self::ScriptedInEngine => BTreeMap::new(),
        }
    }

    /// What the model has been asked, as far as we can know.
    pub(super) fn model_requests(&self) -> Vec<ModelRequest> {
        match self {
            Self::Http(api) => api.model_requests(),
            Self::Scripted(model) => {
                let bodies = model.requests().into_iter().enumerate();
                bodies.map(|(number, body)| ModelRequest { number, api_format: ApiFormat::Messages, body }).collect()
            }
            Self::ScriptedInEngine => Vec::new(),
        }
    }
}
