//! A login as requests carry it. A token that has run out is replaced by another, once for all who wait for it.

use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::Mutex;
use whimbrel_models::http::{HttpClient, Url};
use whimbrel_models::{ModelError, ModelErrorKind};

use super::token::{OauthToken, TokenError};
use super::credential_store::CredentialStore;
use crate::files;

/// The login to one server. Cheap to clone.
#[derive(Clone)]
pub(in crate::mcp) struct TokenProvider(Arc<Inner>);

struct Inner {
    store: CredentialStore,
    server: Url,
    http_client: HttpClient,
    /// Whoever holds it gets the next token; the others wait, and find it.
    token: Mutex<OauthToken>,
}

impl TokenProvider {
    /// The pass for a server, if the person has logged in there.
    pub(in crate::mcp) async fn load(wallet: Option<CredentialStore>, server: &Url, door: &HttpClient) -> Option<Self> {
        let wallet = wallet?;
        let held = wallet.load_async(server).await.ok().flatten()?;
        let (server, door, held) = (server.clone(), door.clone(), Mutex::new(held));
        Some(Self(Arc::new(Inner { store: wallet, server, http_client: door, token: held })))
    }

    /// What to show. One that is about to end is replaced first, if that can be.
    pub(in crate::mcp) async fn authorization(&self) -> Option<HeaderValue> {
        let mut held = self.0.token.lock().await;
        if held.is_expiring() {
            // The server judges an old one; it may even take it.
            let _ = self.0.refresh(&mut held).await;
        }
        bearer_header(&held)
    }

    /// What to show instead of what was refused. None if there is nothing else.
    pub(in crate::mcp) async fn refresh_authorization(
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
    /// Gets another token: from the wallet if somebody else was faster, otherwise from whoever gives them out.
    async fn refresh(&self, held: &mut OauthToken) -> Result<(), TokenError> {
        if self.reload_if_newer(held).await {
            return Ok(());
        }
        match held.refresh(&self.http_client).await {
            Ok(grant) => {
                *held = grant.clone();
                let (wallet, server) = (self.store.clone(), self.server.clone());
                // If it cannot be kept, it serves as long as we live.
                let _ = files::run_blocking(move || wallet.save(&server, &grant)).await;
                Ok(())
            }
            // Two may have asked at once, and only one of them has got an answer.
            Err(TokenError::Permanent(_)) if self.reload_if_newer(held).await => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    async fn reload_if_newer(&self, held: &mut OauthToken) -> bool {
        match self.store.load_async(&self.server).await {
            Ok(Some(kept)) if kept.access_token != held.access_token && !kept.is_expiring() => {
                *held = kept;
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
