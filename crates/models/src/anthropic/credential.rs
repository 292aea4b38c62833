//! The API key or token of the Messages API: which environment variable gives it, and the header that carries it.

use ::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::error::{ModelError, ModelErrorKind};
use crate::key_source::{API_KEY_HELPER, OAUTH_TOKEN_VARIABLE};

/// Beta feature that a request with an OAuth token needs.
pub(super) const OAUTH_BETA: &str = "oauth-2025-04-20";

/// Credential sent with each request.
pub(super) enum Credential {
    ApiKey(String),
    Bearer(String),
    /// OAuth token of an account, sent as a bearer token.
    OAuth(String),
    Missing,
    NotNeeded,
}

impl Credential {
    /// Reads `ANTHROPIC_AUTH_TOKEN`, else `ANTHROPIC_API_KEY`, else `CLAUDE_CODE_OAUTH_TOKEN`.
    pub(super) fn from_env(get: impl Fn(&'static str) -> Option<String>) -> Self {
        let token = || get("ANTHROPIC_AUTH_TOKEN").map(Self::Bearer);
        let key = || get("ANTHROPIC_API_KEY").map(Self::ApiKey);
        let oauth_token = || get(OAUTH_TOKEN_VARIABLE).map(Self::OAuth);
        token().or_else(key).or_else(oauth_token).unwrap_or(Self::Missing)
    }

    /// Variable that supplied the key, or `none`.
    pub(super) fn key_source(&self) -> &'static str {
        match self {
            Self::ApiKey(_) => "ANTHROPIC_API_KEY",
            Self::Bearer(_) => "ANTHROPIC_AUTH_TOKEN",
            Self::OAuth(_) => OAUTH_TOKEN_VARIABLE,
            Self::Missing | Self::NotNeeded => "none",
        }
    }

    /// Returns whether a key that a command prints is used instead.
    pub(super) fn yields_to_key_source(&self) -> bool {
        match self {
            Self::Missing | Self::OAuth(_) => true,
            Self::ApiKey(_) | Self::Bearer(_) | Self::NotNeeded => false,
        }
    }

    /// The header that carries the credential. A key with characters not allowed in a header counts as missing.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self {
            Self::ApiKey(key) => (HeaderName::from_static("x-api-key"), key.clone()),
            Self::Bearer(token) | Self::OAuth(token) => (AUTHORIZATION, format!("Bearer {token}")),
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
         for another server), or CLAUDE_CODE_OAUTH_TOKEN, or `apiKeyHelper` in your settings, or use OPENAI_BASE_URL \
         with the model `openai:NAME`.",
    )
}
