//! The API key or token of the Messages API: which environment variable gives it, and the header that carries it.

use ::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::error::{ModelError, ModelErrorKind};
use crate::key_source::API_KEY_HELPER;

/// Credential sent with each request.
pub(super) enum Credential {
    ApiKey(String),
    Bearer(String),
    Missing,
    NotNeeded,
}

impl Credential {
    /// Reads `ANTHROPIC_AUTH_TOKEN`, else `ANTHROPIC_API_KEY`.
    pub(super) fn from_env(get: impl Fn(&'static str) -> Option<String>) -> Self {
        match (get("ANTHROPIC_AUTH_TOKEN"), get("ANTHROPIC_API_KEY")) {
            (Some(token), _) => Self::Bearer(token),
            (None, Some(key)) => Self::ApiKey(key),
            (None, None) => Self::Missing,
        }
    }

    /// Variable that supplied the key: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN` or `none`.
    pub(super) fn key_source(&self) -> &'static str {
        match self {
            Self::ApiKey(_) => "ANTHROPIC_API_KEY",
            Self::Bearer(_) => "ANTHROPIC_AUTH_TOKEN",
            Self::Missing | Self::NotNeeded => "none",
        }
    }

    /// The header that carries the credential. A key with characters not allowed in a header counts as missing.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self {
            Self::ApiKey(key) => (HeaderName::from_static("x-api-key"), key.clone()),
            Self::Bearer(token) => (AUTHORIZATION, format!("Bearer {token}")),
            Self::Missing | Self::NotNeeded => return None,
        };
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

/// Adds a fetched key to the headers, both as API key and as bearer token, because its kind is not known.
pub(super) fn insert_key(headers: &mut HeaderMap, key: &str) -> Result<(), ModelError> {
    for key in [Credential::ApiKey(key.to_owned()), Credential::Bearer(key.to_owned())] {
        let (name, value) = key.header().ok_or_else(|| {
            let message = format!(
                "The command of {API_KEY_HELPER} prints a key with invalid characters: run it by hand."
            );
            ModelError::new(ModelErrorKind::NoCredentials, message)
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

pub(super) fn missing_key_error() -> ModelError {
    ModelError::new(
        ModelErrorKind::NoCredentials,
        "No API key is configured. Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN (with ANTHROPIC_BASE_URL \
         for another server), or `apiKeyHelper` in your settings, or use OPENAI_BASE_URL with `--model openai:NAME`.",
    )
}
