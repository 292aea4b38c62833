//! Tokens for requests. An expired token is refreshed once for all waiting requests.

use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::Mutex;
use whimbrel_models::http::{HttpClient, Url};
use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_os::files;

use super::credential_store::CredentialStore;
use super::token::{OauthToken, TokenError};

/// Token provider of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TokenProvider(Arc<Inner>);

struct Inner {
    store: CredentialStore,
    server: Url,
    http_client: HttpClient,
    /// The holder of the lock refreshes; the others wait and find the new token.
    token: Mutex<OauthToken>,
}

impl TokenProvider {
    /// Loads the stored token of a server, if the user has logged in.
    pub(crate) async fn load(
        store: Option<CredentialStore>,
        server: &Url,
        client: &HttpClient,
    ) -> Option<Self> {
        let store = store?;
        let token = store.load_async(server).await.ok().flatten()?;
        let (server, client, token) = (server.clone(), client.clone(), Mutex::new(token));
        Some(Self(Arc::new(Inner { store, server, http_client: client, token })))
    }

    /// Current `Authorization` header. Refreshes the token first if it is about to expire.
    pub(crate) async fn authorization(&self) -> Option<HeaderValue> {
        let mut token = self.0.token.lock().await;
        if token.is_expiring() {
            // If that fails, the old token is sent; the server decides.
            let _ = self.0.refresh(&mut token).await;
        }
        bearer_header(&token)
    }

    /// Header to use after `rejected` got HTTP 401; `None` if no other token is available.
    pub(crate) async fn refresh_authorization(
        &self,
        rejected: &HeaderValue,
    ) -> Result<Option<HeaderValue>, ModelError> {
        let mut token = self.0.token.lock().await;
        let current = bearer_header(&token);
        if current.as_ref() != Some(rejected) {
            return Ok(current);
        }
        match self.0.refresh(&mut token).await {
            Ok(()) => Ok(bearer_header(&token).filter(|current| current != rejected)),
            Err(TokenError::Permanent(_)) => Ok(None),
            Err(TokenError::Temporary(text)) => Err(ModelError::new(ModelErrorKind::Connection, text)),
        }
    }
}

impl Inner {
    /// Replaces the token: by one that another process has stored, else by a refresh.
    async fn refresh(&self, token: &mut OauthToken) -> Result<(), TokenError> {
        if self.reload_if_newer(token).await {
            return Ok(());
        }
        match token.refresh(&self.http_client).await {
            Ok(refreshed) => {
                *token = refreshed.clone();
                let (store, server) = (self.store.clone(), self.server.clone());
                // A token that cannot be stored is used until the process ends.
                let _ = files::run_blocking(move || store.save(&server, &refreshed)).await;
                Ok(())
            }
            // Another process may have used the refresh token first.
            Err(TokenError::Permanent(_)) if self.reload_if_newer(token).await => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn reload_if_newer(&self, token: &mut OauthToken) -> bool {
        match self.store.load_async(&self.server).await {
            Ok(Some(stored)) if stored.access_token != token.access_token && !stored.is_expiring() => {
                *token = stored;
                true
            }
            _ => false,
        }
    }
}

fn bearer_header(token: &OauthToken) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}
