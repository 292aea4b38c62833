//! A provider as a value: URL, key and headers, without environment variables.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::ApiDialect;
use crate::anthropic::Anthropic;
use crate::http::HttpClient;
use crate::model::Model;
use crate::openai_chat::OpenAiChat;

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// A provider of models: where it is, which API it speaks, and its key.
///
/// The prefix of a model's name selects the provider: `ollama:llama3` asks the one with the prefix `ollama`. Names without a
/// prefix go to the provider that [`Provider::anthropic`] makes.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// `None` for names without a prefix.
    pub(super) prefix: Option<String>,
    pub(super) dialect: ApiDialect,
    base_url: String,
    key: Option<String>,
    headers: Vec<(String, String)>,
    body_fields: Map<String, Value>,
}

impl Provider {
    /// The Messages API of Anthropic, for names without a prefix.
    pub fn anthropic(key: impl Into<String>) -> Self {
        Self::new(None, ApiDialect::Messages, ANTHROPIC_URL).key(key)
    }

    /// The Chat Completions API of OpenAI, with the prefix `openai`.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new(Some("openai".into()), ApiDialect::Chat, OPENAI_URL).key(key)
    }

    /// A server that speaks the Messages API.
    pub fn messages(prefix: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self::new(Some(prefix.into()), ApiDialect::Messages, base_url)
    }

    /// A server that speaks Chat Completions, as Ollama, vLLM and many others do.
    pub fn chat(prefix: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self::new(Some(prefix.into()), ApiDialect::Chat, base_url)
    }

    fn new(prefix: Option<String>, dialect: ApiDialect, base_url: impl Into<String>) -> Self {
        Self {
            prefix,
            dialect,
            base_url: base_url.into(),
            key: None,
            headers: Vec::new(),
            body_fields: Map::new(),
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the URL, for a proxy or a gateway.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Adds a header to every request. A header that HTTP does not allow is left out.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a field to the body of every request, in place of one of the same name; Chat Completions only.
    #[must_use]
    pub fn body_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.body_fields.insert(name.into(), value.into());
        self
    }

    /// Creates the client.
    pub(super) fn connect(&self, http: HttpClient) -> ProviderClient {
        match self.dialect {
            ApiDialect::Messages => {
                let client = Anthropic::new(&self.base_url, self.key.clone(), http);
                ProviderClient::Messages(Arc::new(client.with_headers(&self.headers)))
            }
            ApiDialect::Chat => {
                let client = OpenAiChat::new(&self.base_url, self.key.clone(), http);
                let client = client.with_headers(&self.headers).with_body_fields(self.body_fields.clone());
                ProviderClient::Chat(Arc::new(client))
            }
        }
    }
}

/// A client of a provider.
pub(super) enum ProviderClient {
    Messages(Arc<Anthropic>),
    Chat(Arc<OpenAiChat>),
}

impl ProviderClient {
    pub(super) fn into_model(self) -> Arc<dyn Model> {
        match self {
            Self::Messages(client) => client,
            Self::Chat(client) => client,
        }
    }
}

/// Without the key and the values of the headers, which may be secrets.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("prefix", &self.prefix)
            .field("dialect", &self.dialect)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}
