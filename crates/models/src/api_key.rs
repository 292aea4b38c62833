//! Where a key comes from that is fetched when it is needed and may change.

use futures::future::BoxFuture;

use crate::error::ModelError;

/// What such a key is called where other keys are called by their variable: the setting that names the command.
pub const API_KEY_HELPER: &str = "apiKeyHelper";

/// Keeps a key, or knows where to get one.
pub trait KeySource: Send + Sync {
    /// The key to ask with. One that a server has just refused is worth fetching anew.
    fn fetch_key(&self, refused: Option<String>) -> BoxFuture<'_, Result<String, ModelError>>;
}
