//! OAuth 2.1 login at MCP servers, for a user with a browser.
//!
//! In the order of the flow: `challenge` (parses `WWW-Authenticate`), `discovery` (finds the authorization server),
//! `client` (client registration), `callback` (redirect listener), `token` (code exchange and refresh),
//! [`CredentialStore`] (tokens on disk), `token_provider` (tokens for requests).
//!
//! All requests go through the engine's HTTP client. Tokens are never logged or shown.

mod callback;
pub(super) mod challenge;
mod client;
mod credential_store;
mod discovery;
mod token;
mod token_provider;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;
use whimbrel_models::http::{HttpClient, Url};
use whimbrel_os::{files, ids};
use whimbrel_wire::options::{OauthTerms, RemoteServer};

use self::callback::{CallbackListener, CallbackParams};
use self::client::OauthClient;
pub use self::credential_store::CredentialStore;
use self::discovery::OauthMetadata;
pub(super) use self::token_provider::TokenProvider;
use super::deps::ServerDeps;

/// Timeout of each request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Environment variable with the secret of a registered client.
pub const CLIENT_SECRET: &str = "MCP_CLIENT_SECRET";

/// Login that waits for the user.
pub struct LoginFlow {
    authorization_url: Url,
    server: Url,
    metadata: OauthMetadata,
    client: OauthClient,
    callback: CallbackListener,
    state: String,
    verifier: String,
    http_client: HttpClient,
    store: CredentialStore,
}

impl LoginFlow {
    /// Discovers the authorization server, registers a client and opens the redirect listener. The error text is for
    /// the user.
    pub async fn start(server: &RemoteServer, deps: &ServerDeps) -> Result<Self, String> {
        if server.headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str())) {
            return Err(
                "Its entry has an Authorization header, which takes precedence over a login. Remove the header first."
                    .into(),
            );
        }
        let store = CredentialStore::from_env(&deps.environment).ok_or(credential_store::NO_HOME)?;
        let server_url = Url::parse(&server.url).map_err(|error| format!("`url`: {error}."))?;
        let terms = server.oauth.clone().unwrap_or_default();
        let http_client = deps.http_client.clone();
        let metadata = discovery::discover(&server_url, server, &http_client).await?;
        let callback = CallbackListener::bind(&terms).await?;
        let secret = deps.environment.get(CLIENT_SECRET).cloned();
        let client = client::register_client(
            &terms,
            secret,
            &metadata.authorization_server,
            callback.url(),
            &http_client,
        )
        .await?;
        let (state, verifier) = (ids::new_secret(), ids::new_secret());
        let mut login = Self {
            authorization_url: server_url.clone(),
            server: server_url,
            metadata,
            client,
            callback,
            state,
            verifier,
            http_client,
            store,
        };
        login.authorization_url = login.build_authorization_url(&terms);
        Ok(login)
    }

    /// URL to open in the browser.
    pub fn authorization_url(&self) -> &str {
        self.authorization_url.as_str()
    }

    /// Waits for the redirect, or for a pasted redirect URL, exchanges the code and stores the token.
    pub async fn finish(self, mut pasted: UnboundedReceiver<String>) -> Result<(), String> {
        let code = loop {
            let params = tokio::select! {
                params = self.callback.wait_callback(&self.state) => params?,
                Some(line) = pasted.recv() => match callback::parse_pasted(&line, &self.state) {
                    Some(params) => params,
                    None => continue,
                },
            };
            break self.check_callback(params)?;
        };
        let token = token::exchange_code(
            &self.http_client,
            &self.client,
            &self.metadata,
            token::CodeExchange { code: &code, verifier: &self.verifier, redirect_url: self.callback.url() },
        );
        let token = token.await.map_err(|error| error.to_string())?;
        let (store, server) = (self.store, self.server);
        let saved = files::run_blocking(move || store.save(&server, &token)).await;
        saved.map_err(|error| format!("The login could not be saved: {error}."))?
    }

    /// Checks the redirect's parameters and returns the code. The issuer must be the one of the login.
    fn check_callback(&self, params: CallbackParams) -> Result<String, String> {
        let CallbackParams { code, error, issuer } = params;
        if let Some(error) = error {
            return Err(format!("The login was denied: {error}."));
        }
        match (&issuer, &self.metadata.authorization_server.issuer) {
            (Some(received), Some(expected))
                if received.trim_end_matches('/') != expected.trim_end_matches('/') =>
            {
                Err(format!(
                    "The response comes from {received:?}, but the login was started at {expected}. Nothing was saved."
                ))
            }
            _ => code.ok_or_else(|| "The redirect has no authorization code. Try again.".into()),
        }
    }

    fn build_authorization_url(&self, terms: &OauthTerms) -> Url {
        let Self { metadata, client, callback, state, verifier, .. } = self;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        let mut url = metadata.authorization_server.authorization_endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", callback.url())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state)
            .append_pair("resource", &metadata.resource);
        if let Some(scope) = metadata.scope(terms.scopes.as_deref()) {
            query.append_pair("scope", &scope);
        }
        drop(query);
        url
    }
}
