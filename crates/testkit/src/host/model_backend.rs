//! Backends that play the script in place of a model: a mock API over HTTP, or the engine's own scripted model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use whimbrel_models::scripted::Scripted;
use whimbrel_wire::options::Options;

use crate::http_mock::MockApi;
use crate::script::{ApiFormat, ModelRequest, Script};
use crate::test_dirs::{self, TestDirs};

/// Default model; its price is known and does not change.
const DEFAULT_MODEL: &str = "claude-opus-4-5-20251101";

/// Name under which the script is registered with the scripted provider.
pub(super) const SCRIPT_NAME: &str = "test";

/// How the engine reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackendKind {
    Http,
    Scripted,
}

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
    /// Starts the backend and points the options at it.
    pub(super) async fn start(
        script: Script,
        kind: BackendKind,
        program: Option<&Path>,
        dirs: &TestDirs,
        options: &mut Options,
    ) -> anyhow::Result<Self> {
        match (kind, program) {
            (BackendKind::Http, _) => {
                options.model.get_or_insert_with(|| DEFAULT_MODEL.to_owned());
                Ok(Self::Http(MockApi::start(script).await?))
            }
            (BackendKind::Scripted, None) => {
                options.model = Some(format!("scripted:{SCRIPT_NAME}"));
                Ok(Self::Scripted(script.to_scripted()?))
            }
            (BackendKind::Scripted, Some(_)) => {
                let file = dirs.temp_dir().join("script.json");
                test_dirs::write_file(&file, script.to_scripted_json()?.to_string().as_bytes())?;
                options.model = Some(format!("scripted:{}", file.display()));
                Ok(Self::ScriptedInEngine)
            }
        }
    }

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
