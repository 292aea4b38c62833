//! A login as requests carry it. A token that has run out is replaced by another, once for all who wait for it.

use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::Mutex;
use whimbrel_models::http::{Door, Url};
use whimbrel_models::{Fault, FaultKind};

use super::grant::{Grant, Refusal};
use super::wallet::Wallet;
use crate::files;

/// The login to one server. Cheap to clone.
#[derive(Clone)]
pub(in crate::mcp) struct Pass(Arc<Inner>);

struct Inner {
    wallet: Wallet,
    server: Url,
    door: Door,
    /// Whoever holds it gets the next token; the others wait, and find it.
    held: Mutex<Grant>,
}

impl Pass {
    /// The pass for a server, if the person has logged in there.
    pub(in crate::mcp) async fn find(wallet: Option<Wallet>, server: &Url, door: &Door) -> Option<Self> {
        let wallet = wallet?;
        let held = wallet.found(server).await.ok().flatten()?;
        let (server, door, held) = (server.clone(), door.clone(), Mutex::new(held));
        Some(Self(Arc::new(Inner { wallet, server, door, held })))
    }

    /// What to show. One that is about to end is replaced first, if that can be.
    pub(in crate::mcp) async fn show(&self) -> Option<HeaderValue> {
        let mut held = self.0.held.lock().await;
        if held.is_old() {
            // The server judges an old one; it may even take it.
            let _ = self.0.replace(&mut held).await;
        }
        header(&held)
    }

    /// What to show instead of what was refused. None if there is nothing else.
    pub(in crate::mcp) async fn show_another(
        &self,
        refused: &HeaderValue,
    ) -> Result<Option<HeaderValue>, Fault> {
        let mut held = self.0.held.lock().await;
        let shown = header(&held);
        if shown.as_ref() != Some(refused) {
            return Ok(shown);
        }
        match self.0.replace(&mut held).await {
            Ok(()) => Ok(header(&held).filter(|shown| shown != refused)),
            Err(Refusal::Never(_)) => Ok(None),
            Err(Refusal::NotNow(text)) => Err(Fault::new(FaultKind::Connection, text)),
        }
    }
}

impl Inner {
    /// Gets another token: from the wallet if somebody else was faster, otherwise from whoever gives them out.
    async fn replace(&self, held: &mut Grant) -> Result<(), Refusal> {
        if self.is_newer(held).await {
            return Ok(());
        }
        match held.renewed(&self.door).await {
            Ok(grant) => {
                *held = grant.clone();
                let (wallet, server) = (self.wallet.clone(), self.server.clone());
                // If it cannot be kept, it serves as long as we live.
                let _ = files::aside(move || wallet.put(&server, &grant)).await;
                Ok(())
            }
            // Two may have asked at once, and only one of them has got an answer.
            Err(Refusal::Never(_)) if self.is_newer(held).await => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    async fn is_newer(&self, held: &mut Grant) -> bool {
        match self.wallet.found(&self.server).await {
            Ok(Some(kept)) if kept.access_token != held.access_token && !kept.is_old() => {
                *held = kept;
                true
            }
            _ => false,
        }
    }
}

fn header(grant: &Grant) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", grant.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}
