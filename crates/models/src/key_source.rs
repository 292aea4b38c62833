//! API keys that are fetched on demand and may change during a session.

use futures::future::BoxFuture;

use crate::error::ModelError;

/// The setting that names the key command; error messages use it where other keys are named by their variable.
pub const API_KEY_HELPER: &str = "apiKeyHelper";

/// Variable with the OAuth token of an account.
pub const OAUTH_TOKEN_VARIABLE: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// Supplies an API key, for example by running a command.
pub trait KeySource: Send + Sync {
    /// Returns the key. `rejected` is a key that the server has just rejected; the source should then fetch a new one.
    fn fetch_key(&self, rejected: Option<String>) -> BoxFuture<'_, Result<String, ModelError>>;
}
