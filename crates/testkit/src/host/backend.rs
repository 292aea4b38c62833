//! Backends that play the script in place of a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_models::scripted::Scripted;

use crate::http_mock::MockApi;
use crate::script::{ApiFormat, ModelRequest};

/// The backend of one host.
pub(super) enum ModelBackend {
    /// A mock API on loopback.
    Http(MockApi),
    /// The scripted model in this process.
    Scripted(Arc<Scripted>),
    /// The scripted model in the engine's process; its requests cannot be seen.
    ScriptedInEngine,
}

impl ModelBackend {
    /// Environment variables that direct the engine to the backend.
    pub(super) fn env(&self) -> BTreeMap<String, String> {
        match self {
            Self::Http(api) => api.env(),
            Self::Scripted(_) | Self::ScriptedInEngine => BTreeMap::new(),
        }
    }

    /// The requests so far, where they can be seen.
    pub(super) fn model_requests(&self) -> Vec<ModelRequest> {
        match self {
            Self::Http(api) => api.model_requests(),
            Self::Scripted(model) => {
                let bodies = model.requests().into_iter().enumerate();
                bodies
                    .map(|(number, body)| ModelRequest { number, api_format: ApiFormat::Messages, body })
                    .collect()
            }
            Self::ScriptedInEngine => Vec::new(),
        }
    }
}
