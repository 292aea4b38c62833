//! Builds an engine from values: providers, models, layers around them.

use std::path::Path;
use std::sync::Arc;

use whimbrel_models::Model;
use whimbrel_models::providers::{Provider, Providers};
use whimbrel_models::recording::Recording;

use super::Engine;

/// Builder of an [`Engine`], made by [`Engine::builder`].
pub struct EngineBuilder {
    providers: Providers,
}

impl Engine {
    /// Builds an engine from values. Nothing is read from environment variables: without a provider or a model it answers
    /// nothing, and its connections use no proxy.
    pub fn builder() -> EngineBuilder {
        Self::builder_with(Providers::empty())
    }

    /// Builds an engine on top of these providers.
    #[doc(hidden)]
    pub fn builder_with(providers: Providers) -> EngineBuilder {
        EngineBuilder { providers }
    }
}

impl EngineBuilder {
    /// Adds a provider; one with the same prefix is replaced.
    #[expect(clippy::needless_pass_by_value, reason = "a builder takes what it is given")]
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.add_provider(&provider);
        self
    }

    /// Adds a model of the program under a name.
    #[must_use]
    pub fn model(self, name: &str, model: impl Model + 'static) -> Self {
        self.providers.add_model(name, Arc::new(model));
        self
    }

    /// Wraps every model by a function: for caching, redaction, quotas. Later layers are outside of earlier ones.
    #[must_use]
    pub fn layer(self, layer: impl Fn(Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync + 'static) -> Self {
        Self { providers: self.providers.with_layer(Arc::new(layer)) }
    }

    /// Records all replies of the models to a new file.
    #[must_use]
    pub fn record_to(self, file: impl AsRef<Path>) -> Self {
        Self { providers: self.providers.with_recording(Recording::record_to(file.as_ref())) }
    }

    /// Replays the replies of a file in place of models. A request that is not in it is an error that shows the difference.
    #[must_use]
    pub fn replay_from(self, file: impl AsRef<Path>) -> Self {
        Self { providers: self.providers.with_recording(Recording::replay_from(file.as_ref())) }
    }

    /// Creates the engine.
    pub fn build(self) -> Engine {
        Engine::new(self.providers)
    }
}
