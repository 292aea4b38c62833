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
        let held = store.load_async(server).await.ok().flatten()?;
        let (server, client, held) = (server.clone(), client.clone(), Mutex::new(held));
        Some(Self(Arc::new(Inner { store, server, http_client: client, token: held })))
    }

    /// Current `Authorization` header. Refreshes the token first if it is about to expire.
    pub(crate) async fn authorization(&self) -> Option<HeaderValue> {
        let mut held = self.0.token.lock().await;
        if held.is_expiring() {
            // If that fails, the old token is sent; the server decides.
            let _ = self.0.refresh(&mut held).await;
        }
        bearer_header(&held)
    }

    /// Header to use after `refused` got HTTP 401; `None` if no other token is available.
    pub(crate) async fn refresh_authorization(
        &self,
        refused: &HeaderValue,
    ) -> Result<Option<HeaderValue>, ModelError> {
        let mut held = self.0.token.lock().await;
        let shown = bearer_header(&held);
        if shown.as_ref() != Some(refused) {
            return Ok(shown);
        }
        match self.0.refresh(&mut held).await {
            Ok(()) => Ok(bearer_header(&held).filter(|shown| shown != refused)),
            Err(TokenError::Permanent(_)) => Ok(None),
            Err(TokenError::Temporary(text)) => Err(ModelError::new(ModelErrorKind::Connection, text)),
        }
    }
}

impl Inner {
    /// Replaces the token: by one that another process has stored, else by a refresh.
    async fn refresh(&self, held: &mut OauthToken) -> Result<(), TokenError> {
        if self.reload_if_newer(held).await {
            return Ok(());
        }
        match held.refresh(&self.http_client).await {
            Ok(grant) => {
                *held = grant.clone();
                let (store, server) = (self.store.clone(), self.server.clone());
                // A token that cannot be stored is used until the process ends.
                let _ = files::run_blocking(move || store.save(&server, &grant)).await;
                Ok(())
            }
            // Another process may have used the refresh token first.
            Err(TokenError::Permanent(_)) if self.reload_if_newer(held).await => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    async fn reload_if_newer(&self, held: &mut OauthToken) -> bool {
        match self.store.load_async(&self.server).await {
            Ok(Some(stored)) if stored.access_token != held.access_token && !stored.is_expiring() => {
                *held = stored;
                true
            }
            _ => false,
        }
    }
}

fn bearer_header(grant: &OauthToken) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", grant.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}
