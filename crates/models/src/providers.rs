//! Maps a model name to the provider that serves it.
//!
//! `openai:NAME` uses the Chat Completions endpoint, `scripted:PATH` follows a script file, a registered prefix uses
//! its endpoint, a name added by the program uses the model given for it, and every other name goes to the Messages
//! API.

#[cfg(feature = "http")]
mod provider;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ModelError;
use crate::key_source::KeySource;
use crate::model::Model;
use crate::scripted::Scripted;

#[cfg(feature = "http")]
use crate::{
    anthropic::Anthropic, anthropic::KeyRefreshingModel, error::ModelErrorKind, http::HttpClient,
    openai_chat::OpenAiChat, prompt_cache::PromptCaching, recording::Recording,
};
#[cfg(feature = "http")]
pub use provider::Provider;
#[cfg(feature = "http")]
use provider::ProviderClient;

/// Lookup of environment variables.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A function that wraps a model: for caching, redaction, quotas.
pub type ModelLayer = Arc<dyn Fn(Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync>;

/// Prefix of scripted models.
const SCRIPTED_PREFIX: &str = "scripted";

/// All available providers.
pub struct Providers {
    /// Models created or added so far.
    models: Mutex<HashMap<ModelKey, Arc<dyn Model>>>,
    #[cfg(feature = "http")]
    http: Option<HttpProviders>,
    /// Functions that wrap every model, the innermost first.
    layers: Vec<ModelLayer>,
    /// Models with the layers around them, by their whole name.
    layered: Mutex<HashMap<String, ResolvedModel>>,
    /// Recording or replay that wraps all models.
    #[cfg(feature = "http")]
    recording: Option<Recording>,
}

/// A model, and its name at the provider.
type ResolvedModel = (Arc<dyn Model>, String);

/// Key under which a model is cached.
#[derive(PartialEq, Eq, Hash)]
enum ModelKey {
    /// A whole name: models added by the program, and scripts, which keep their position.
    Name(String),
    /// All names with a prefix.
    #[cfg(feature = "http")]
    Prefix(String),
}

#[cfg(feature = "http")]
struct HttpProviders {
    env: EnvLookup,
    http: HttpClient,
    anthropic: Arc<Anthropic>,
    endpoints: Vec<Endpoint>,
}

/// A registered endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Part of the model name before the colon.
    pub prefix: String,
    /// API dialect.
    pub dialect: ApiDialect,
    /// Base URL.
    pub base_url: String,
    /// Environment variable with the key; `None` for a server without authentication.
    pub key_variable: Option<String>,
}

/// API dialect of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiDialect {
    /// The Messages API.
    Messages,
    /// Chat Completions.
    Chat,
}

impl Providers {
    /// Providers without network access: scripts and added models only.
    pub fn offline() -> Self {
        Self {
            models: Mutex::default(),
            layers: Vec::new(),
            layered: Mutex::default(),
            #[cfg(feature = "http")]
            http: None,
            #[cfg(feature = "http")]
            recording: None,
        }
    }

    /// Configures the providers from the environment. The Messages API client is created at once, the others on first
    /// use.
    #[cfg(feature = "http")]
    pub fn from_env(env: EnvLookup, http: HttpClient) -> Self {
        let anthropic = Arc::new(Anthropic::from_env(|name| env(name), http.clone()));
        Self { http: Some(HttpProviders { env, http, anthropic, endpoints: Vec::new() }), ..Self::offline() }
    }

    /// Providers without any configuration, to which [`Providers::add_provider`] adds some. Connections go through no proxy.
    #[cfg(feature = "http")]
    pub fn empty() -> Self {
        Self::from_env(Arc::new(|_| None), HttpClient::from_env(|_| None))
    }

    /// Adds a provider. One with the same prefix is replaced; names without a prefix are served by the last one that has
    /// none.
    #[cfg(feature = "http")]
    pub fn add_provider(&mut self, provider: &Provider) {
        let Some(http) = &mut self.http else { return };
        let client = provider.connect(http.http.clone());
        match (&provider.prefix, client) {
            (None, ProviderClient::Messages(client)) => http.anthropic = client,
            (None, ProviderClient::Chat(_)) => {}
            (Some(prefix), client) => {
                let (prefix, dialect) = (prefix.clone(), provider.dialect);
                self.models().insert(ModelKey::Prefix(prefix.clone()), client.into_model());
                self.register_endpoint(Endpoint {
                    prefix,
                    dialect,
                    base_url: String::new(),
                    key_variable: None,
                });
            }
        }
    }

    /// Wraps every model by a function. Later layers are outside of earlier ones.
    #[must_use]
    pub fn with_layer(mut self, layer: ModelLayer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Puts the layers around a model, once for each name. A session with a key source of its own has its own model.
    fn add_layers(
        &self,
        name: &str,
        has_key_source: bool,
        (model, at_provider): ResolvedModel,
    ) -> ResolvedModel {
        let wrap = |model| self.layers.iter().fold(model, |model, layer| layer(model));
        match (self.layers.is_empty(), has_key_source) {
            (true, _) => (model, at_provider),
            (false, true) => (wrap(model), at_provider),
            (false, false) => {
                let mut layered = self.layered.lock().unwrap_or_else(PoisonError::into_inner);
                layered.entry(name.to_owned()).or_insert_with(|| (wrap(model), at_provider)).clone()
            }
        }
    }

    /// Records all replies, or replays a recording instead of calling models.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_recording(self, recording: Recording) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// Describes the steps of a replayed recording that were never requested.
    pub fn describe_unplayed(&self) -> Option<String> {
        #[cfg(feature = "http")]
        if let Some(recording) = &self.recording {
            return recording.describe_unplayed();
        }
        None
    }

    /// Registers an endpoint. An existing prefix, built-in ones included, is replaced.
    #[cfg(feature = "http")]
    pub fn register_endpoint(&mut self, endpoint: Endpoint) {
        if let Some(http) = &mut self.http {
            http.endpoints.insert(0, endpoint);
        }
    }

    /// Adds a script, available as `scripted:NAME`.
    pub fn add_script(&self, name: &str, script: Arc<Scripted>) {
        self.add_model(&format!("{SCRIPTED_PREFIX}:{name}"), script);
    }

    /// Adds a model under an exact name, for example a [`ClosureModel`](crate::scripted::ClosureModel) in a test or a
    /// model that the embedding program implements.
    pub fn add_model(&self, name: &str, model: Arc<dyn Model>) {
        self.models().insert(ModelKey::Name(name.to_owned()), model);
    }

    /// Variable that supplied the key of the Messages API, or `none`.
    pub fn key_source(&self) -> &'static str {
        #[cfg(feature = "http")]
        if let Some(http) = &self.http {
            return http.anthropic.key_source();
        }
        "none"
    }

    /// Returns the API dialect of a model's provider; `None` for scripts and added models.
    pub fn dialect(&self, name: &str) -> Option<ApiDialect> {
        let prefix = name.split_once(':').map(|(prefix, _)| prefix);
        if prefix == Some(SCRIPTED_PREFIX) || self.models().contains_key(&ModelKey::Name(name.to_owned())) {
            return None;
        }
        #[cfg(feature = "http")]
        if let Some(http) = &self.http {
            let registered = http.endpoints.iter().find(|endpoint| Some(endpoint.prefix.as_str()) == prefix);
            return Some(match registered {
                Some(endpoint) => endpoint.dialect,
                None if prefix == Some("openai") => ApiDialect::Chat,
                None => ApiDialect::Messages,
            });
        }
        None
    }

    /// Name of a model's provider, for telemetry.
    pub fn provider_name<'a>(&self, name: &'a str) -> &'a str {
        match (self.dialect(name), name.split_once(':')) {
            (None, _) => "custom",
            (Some(_), Some((prefix, _))) => prefix,
            (Some(_), None) => "anthropic",
        }
    }

    /// Returns the model for a name, and its name at the provider.
    pub fn resolve(&self, name: &str) -> Result<(Arc<dyn Model>, String), ModelError> {
        self.resolve_with_key_source(name, None)
    }

    /// As [`Providers::resolve`], with a key source for the Messages API in case the environment has no key. It goes
    /// before an OAuth token.
    pub fn resolve_with_key_source(
        &self,
        name: &str,
        source: Option<&Arc<dyn KeySource>>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        let resolved =
            self.find_model(name, source).map(|found| self.add_layers(name, source.is_some(), found));
        #[cfg(feature = "http")]
        if let Some(recording) = &self.recording {
            return recording.wrap_model(name, resolved);
        }
        resolved
    }

    fn find_model(
        &self,
        name: &str,
        source: Option<&Arc<dyn KeySource>>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        let split = name.split_once(':');
        if let Some((SCRIPTED_PREFIX, rest)) = split {
            let model = self.get_or_create(ModelKey::Name(name.to_owned()), || {
                Ok(Arc::new(Scripted::from_file(Path::new(rest))?.without_request_log()))
            })?;
            return Ok((model, rest.to_owned()));
        }
        if let Some(model) = self.models().get(&ModelKey::Name(name.to_owned())) {
            return Ok((Arc::clone(model), name.to_owned()));
        }
        #[cfg(feature = "http")]
        if let (Some(http), Some((prefix, rest))) = (&self.http, split)
            && http.has_prefix(prefix)
        {
            return Ok((
                self.get_or_create(ModelKey::Prefix(prefix.to_owned()), || http.create_model(prefix))?,
                rest.to_owned(),
            ));
        }
        self.messages_api_model(name, source)
    }

    #[cfg(feature = "http")]
    fn messages_api_model(
        &self,
        name: &str,
        source: Option<&Arc<dyn KeySource>>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        match (&self.http, source) {
            (Some(http), Some(source)) if http.anthropic.yields_to_key_source() => {
                let keyed = KeyRefreshingModel::new(http.anthropic.clone(), Arc::clone(source));
                Ok((Arc::new(keyed), name.to_owned()))
            }
            (Some(http), _) => Ok((http.anthropic.clone(), name.to_owned())),
            (None, _) => Err(offline_error(name)),
        }
    }

    #[cfg(not(feature = "http"))]
    fn messages_api_model(
        &self,
        name: &str,
        _: Option<&Arc<dyn KeySource>>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        Err(offline_error(name))
    }

    /// Returns the cached model for a key, creating it on first use.
    fn get_or_create(
        &self,
        key: ModelKey,
        create: impl FnOnce() -> Result<Arc<dyn Model>, ModelError>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let mut models = self.models();
        if let Some(model) = models.get(&key) {
            return Ok(model.clone());
        }
        let model = create()?;
        models.insert(key, model.clone());
        Ok(model)
    }

    fn models(&self) -> std::sync::MutexGuard<'_, HashMap<ModelKey, Arc<dyn Model>>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "http")]
impl HttpProviders {
    fn has_prefix(&self, prefix: &str) -> bool {
        prefix == "openai" || self.endpoints.iter().any(|endpoint| endpoint.prefix == prefix)
    }

    fn create_model(&self, prefix: &str) -> Result<Arc<dyn Model>, ModelError> {
        let Some(endpoint) = self.endpoints.iter().find(|endpoint| endpoint.prefix == prefix) else {
            return Ok(Arc::new(OpenAiChat::from_env(|name| (self.env)(name), self.http.clone())));
        };
        let key = match &endpoint.key_variable {
            Some(variable) => {
                let unset = || {
                    ModelError::new(
                        ModelErrorKind::NoCredentials,
                        format!("{variable} is not set. Set it to use models with the prefix {prefix}:."),
                    )
                };
                Some((self.env)(variable).filter(|key| !key.trim().is_empty()).ok_or_else(unset)?)
            }
            None => None,
        };
        Ok(match endpoint.dialect {
            ApiDialect::Chat => Arc::new(
                OpenAiChat::new(&endpoint.base_url, key, self.http.clone())
                    .with_key_variable(endpoint.key_variable.clone()),
            ),
            ApiDialect::Messages => Arc::new(
                Anthropic::new(&endpoint.base_url, key, self.http.clone())
                    .with_prompt_caching(PromptCaching::from_env(|name| (self.env)(name)))
                    .with_key_variable(endpoint.key_variable.clone()),
            ),
        })
    }
}

fn offline_error(name: &str) -> ModelError {
    use crate::error::ModelErrorKind;
    ModelError::new(
        ModelErrorKind::NoCredentials,
        format!(
            "{name} is not available without network access. Use a script (`scripted:PATH`) or add a model."
        ),
    )
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use serde_json::json;

    use super::*;

    fn providers(variables: &'static [(&'static str, &'static str)]) -> Providers {
        let env: EnvLookup = Arc::new(move |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        });
        Providers::from_env(env, HttpClient::from_env(|_| None))
    }

    fn endpoint(prefix: &str, dialect: ApiDialect, key: Option<&str>) -> Endpoint {
        Endpoint {
            prefix: prefix.into(),
            dialect,
            base_url: "http://127.0.0.1:9".into(),
            key_variable: key.map(str::to_owned),
        }
    }

    #[test]
    fn name_selects_the_provider() {
        let mut providers = providers(&[("KIMI_KEY", "k")]);
        providers.register_endpoint(endpoint("kimi", ApiDialect::Chat, Some("KIMI_KEY")));
        providers.register_endpoint(endpoint("local", ApiDialect::Messages, None));
        providers.add_script("demo", Arc::new(Scripted::replies(json!(["hi"])).unwrap()));
        let table = [
            ("claude-opus-5-5", "claude-opus-5-5"),
            ("anthropic.claude-v1:0", "anthropic.claude-v1:0"),
            ("openai:qwen3:8b", "qwen3:8b"),
            ("kimi:k3", "k3"),
            ("local:llama", "llama"),
            ("scripted:demo", "demo"),
        ];
        let resolved: Vec<_> = table.iter().map(|(name, _)| providers.resolve(name).unwrap()).collect();
        for ((name, expected), (model, at_provider)) in table.iter().zip(&resolved) {
            assert_eq!(at_provider, expected, "{name}");
            assert!(Arc::ptr_eq(model, &providers.resolve(name).unwrap().0), "{name} is made once");
        }
        let dialects = table.map(|(name, _)| providers.dialect(name));
        let (messages, chat) = (Some(ApiDialect::Messages), Some(ApiDialect::Chat));
        assert_eq!(dialects, [messages, messages, chat, chat, messages, None]);
        let differ = |a: usize, b: usize| !Arc::ptr_eq(&resolved[a].0, &resolved[b].0);
        assert!(!differ(0, 1) && differ(1, 2) && differ(2, 3) && differ(3, 4) && differ(4, 5));
    }

    #[test]
    fn provider_given_as_a_value_serves_its_prefix() {
        let mut providers = Providers::empty();
        providers.add_provider(&Provider::anthropic("k"));
        providers.add_provider(&Provider::chat("ollama", "http://127.0.0.1:9/v1"));
        let names = ["claude-opus-5-5", "ollama:llama3"].map(|name| providers.resolve(name).unwrap().1);
        assert_eq!(names, ["claude-opus-5-5", "llama3"]);
        let dialects = ["claude-opus-5-5", "ollama:llama3"].map(|name| providers.dialect(name));
        assert_eq!(dialects, [Some(ApiDialect::Messages), Some(ApiDialect::Chat)]);
        let secret = Provider::anthropic("sk-secret").header("x-team", "hidden");
        assert!(!format!("{secret:?}").contains("secret") && !format!("{secret:?}").contains("hidden"));
    }

    #[test]
    fn layers_wrap_each_model_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let wrapped = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&wrapped);
        let providers = Providers::offline().with_layer(Arc::new(move |model| {
            count.fetch_add(1, Ordering::Relaxed);
            model
        }));
        providers.add_script("a", Arc::new(Scripted::replies(json!(["hi"])).unwrap()));
        for _ in 0..3 {
            providers.resolve("scripted:a").unwrap();
        }
        assert_eq!(wrapped.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn closure_model_needs_no_file() {
        use futures::StreamExt;

        use crate::history::History;
        use crate::request::{Request, RequestPrefix};
        use crate::scripted::{ClosureModel, ScriptedReply};

        let providers = Providers::offline();
        providers.add_model(
            "openai:mine",
            Arc::new(ClosureModel::new(|request, number| match number {
                0 => Ok(ScriptedReply::text(format!("I am {}.", request.model))),
                _ => Err(ModelError::new(ModelErrorKind::Overloaded, "No more.")),
            })),
        );
        let (model, name) = providers.resolve("openai:mine").unwrap();
        let prefix = Arc::new(RequestPrefix::new(Vec::new(), Vec::new()));
        let request = Arc::new(Request::new(name, prefix, History::new().snapshot()));
        let mut assembler = crate::assemble::ReplyAssembler::default();
        let items: Vec<_> = model.stream_reply(Arc::clone(&request)).collect().await;
        let blocks: Vec<_> = items
            .iter()
            .filter_map(|item| assembler.push_event(&item.as_ref().unwrap().event).unwrap())
            .collect();
        assert_eq!(blocks[0].block, whimbrel_wire::Block::text("I am openai:mine."));
        assert_eq!(model.stream_reply(request).next().await.unwrap().unwrap_err().message, "No more.");
        assert!(providers.resolve("openai:other").is_err());
    }

    #[test]
    fn errors_name_what_is_missing() {
        let mut providers = providers(&[]);
        providers.register_endpoint(endpoint("kimi", ApiDialect::Chat, Some("KIMI_KEY")));
        let message = |name: &str| providers.resolve(name).err().unwrap().message;
        assert_eq!(message("kimi:k3"), "KIMI_KEY is not set. Set it to use models with the prefix kimi:.");
        assert!(message("scripted:/nowhere.json").contains("/nowhere.json"));
        assert!(Providers::offline().resolve("opus").err().unwrap().message.contains("scripted:PATH"));
    }

    #[test]
    fn key_source_names_the_variable() {
        assert_eq!(providers(&[]).key_source(), "none");
        assert_eq!(providers(&[("ANTHROPIC_API_KEY", "k")]).key_source(), "ANTHROPIC_API_KEY");
        let both = providers(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]);
        assert_eq!(both.key_source(), "ANTHROPIC_AUTH_TOKEN");
        assert_eq!(providers(&[("CLAUDE_CODE_OAUTH_TOKEN", "o")]).key_source(), "CLAUDE_CODE_OAUTH_TOKEN");
        let key = providers(&[("ANTHROPIC_API_KEY", "k"), ("CLAUDE_CODE_OAUTH_TOKEN", "o")]);
        assert_eq!(key.key_source(), "ANTHROPIC_API_KEY");
    }
}
