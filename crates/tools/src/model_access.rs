//! Access to models: providers, catalog, API key and log. Everything that calls a model has it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use whimbrel_models::catalog::Catalog;
use whimbrel_models::key_source::{API_KEY_HELPER, KeySource, OAUTH_TOKEN_VARIABLE};
use whimbrel_models::model_call::ScheduledRetry;
use whimbrel_models::providers::Providers;
use whimbrel_models::{Model, ModelError, RequestPrefix, ToolSpec};
use whimbrel_os::log::Log;
use whimbrel_wire::system::ApiRetry;

/// Providers and catalog, shared by all sessions of a process, with the key and the log of one session. Cheap to clone.
#[derive(Clone)]
pub struct ModelAccess {
    shared: Arc<Shared>,
    /// Source of the session's API key if the environment has none.
    key: Option<Arc<dyn KeySource>>,
    log: Log,
}

struct Shared {
    providers: Providers,
    catalog: Catalog,
    /// Cached request prefixes, so that sessions with the same system prompt and tools share one.
    prefixes: Mutex<Vec<Weak<RequestPrefix>>>,
}

impl ModelAccess {
    pub fn new(providers: Providers) -> Self {
        let shared = Shared { providers, catalog: Catalog::default(), prefixes: Mutex::default() };
        Self { shared: Arc::new(shared), key: None, log: Log::default() }
    }

    /// Uses this key source for a session.
    #[must_use]
    pub fn with_key_source(self, key: Option<Arc<dyn KeySource>>) -> Self {
        Self { key, ..self }
    }

    /// Writes debug output to this log.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The provider that serves a model, and the model's name there.
    pub fn resolve(&self, name: &str) -> Result<(Arc<dyn Model>, String), ModelError> {
        self.providers().resolve_with_key_source(name, self.key.as_ref())
    }

    /// Source of the API key, as shown to hosts.
    pub fn key_source(&self) -> &'static str {
        match (self.providers().key_source(), &self.key) {
            ("none" | OAUTH_TOKEN_VARIABLE, Some(_)) => API_KEY_HELPER,
            (OAUTH_TOKEN_VARIABLE, None) => "oauth",
            (variable, _) => variable,
        }
    }

    pub fn providers(&self) -> &Providers {
        &self.shared.providers
    }

    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// Returns a request prefix with this system prompt and these tools; a cached one if it is in use elsewhere.
    pub fn request_prefix(&self, system: Vec<String>, tools: Vec<Arc<ToolSpec>>) -> Arc<RequestPrefix> {
        let mut cached = self.shared.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        cached.retain(|prefix| prefix.strong_count() > 0);
        let existing =
            cached.iter().filter_map(Weak::upgrade).find(|prefix| prefix.is_built_from(&system, &tools));
        existing.unwrap_or_else(|| {
            let created = Arc::new(RequestPrefix::new(system, tools));
            cached.push(Arc::downgrade(&created));
            created
        })
    }
}

/// The notice to the host about a retry.
pub fn retry_notice(retry: &ScheduledRetry) -> ApiRetry {
    ApiRetry {
        attempt: retry.attempt,
        max_retries: retry.max_retries,
        retry_delay_ms: u64::try_from(retry.delay.as_millis()).unwrap_or(u64::MAX),
        error_status: retry.status,
        error: retry.failure.clone(),
        ..ApiRetry::default()
    }
}
