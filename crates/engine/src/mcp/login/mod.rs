//! Logging in at a server that wants to know who asks: OAuth 2.1 as MCP has it, for a person with a browser.
//!
//! The rooms, along the way: `challenge` (what a refusal says), `discovery` (who gives out logins), `client` (under which
//! name we ask), `redirect` (where the browser brings the answer), `grant` (an answer to a token), [`Wallet`] (where it is
//! kept), `pass` (how requests carry it, and what happens when it runs out).
//!
//! All of it goes through the engine's one door to the network. No token is ever shown.

pub(super) mod challenge;
mod client;
mod discovery;
mod grant;
mod pass;
mod redirect;
mod wallet;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;
use whimbrel_models::http::{Door, Url};
use whimbrel_wire::options::{OauthTerms, RemoteServer};

use self::client::Client;
use self::discovery::Findings;
use self::redirect::{Outcome, Redirect};
use super::surroundings::Surroundings;
use crate::{files, ids};

pub(super) use self::pass::Pass;
pub use self::wallet::Wallet;

/// How long each question to a server may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The variable with the secret of a client that a person has registered.
pub const CLIENT_SECRET: &str = "MCP_CLIENT_SECRET";

/// A login that waits for the person.
pub struct Login {
    address: Url,
    server: Url,
    findings: Findings,
    client: Client,
    redirect: Redirect,
    state: String,
    verifier: String,
    door: Door,
    wallet: Wallet,
}

impl Login {
    /// Finds out who gives out logins to a server, introduces us, and gets ready for the answer. The error is for a
    /// person.
    pub async fn begin(server: &RemoteServer, around: &Surroundings) -> Result<Self, String> {
        if server.headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str())) {
            return Err(
                "Its entry has an Authorization header, which counts before a login. Remove it there first."
                    .into(),
            );
        }
        let wallet = Wallet::of(&around.environment).ok_or(wallet::NOWHERE)?;
        let address = Url::parse(&server.url).map_err(|error| format!("`url`: {error}."))?;
        let terms = server.oauth.clone().unwrap_or_default();
        let door = around.door.clone();
        let findings = discovery::discover(&address, server, &door).await?;
        let redirect = Redirect::open(&terms).await?;
        let secret = around.environment.get(CLIENT_SECRET).cloned();
        let client =
            client::introduced(&terms, secret, &findings.authority, redirect.address(), &door).await?;
        let (state, verifier) = (ids::secret(), ids::secret());
        let mut login = Self {
            address: address.clone(),
            server: address,
            findings,
            client,
            redirect,
            state,
            verifier,
            door,
            wallet,
        };
        login.address = login.question(&terms);
        Ok(login)
    }

    /// Where the person answers.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Waits until the browser comes back, or until its last address is among the `pasted` lines, and keeps what the
    /// login brought.
    pub async fn finish(self, mut pasted: UnboundedReceiver<String>) -> Result<(), String> {
        let code = loop {
            let outcome = tokio::select! {
                outcome = self.redirect.answer(&self.state) => outcome?,
                Some(line) = pasted.recv() => match redirect::pasted(&line, &self.state) {
                    Some(outcome) => outcome,
                    None => continue,
                },
            };
            break self.judged(outcome)?;
        };
        let grant = grant::exchanged(
            &self.door,
            &self.client,
            &self.findings,
            grant::Code { code: &code, verifier: &self.verifier, redirect: self.redirect.address() },
        );
        let grant = grant.await.map_err(|refusal| refusal.to_string())?;
        let (wallet, server) = (self.wallet, self.server);
        let kept = files::aside(move || wallet.put(&server, &grant)).await;
        kept.map_err(|error| format!("The login could not be kept: {error}."))?
    }

    /// The code in an answer, if it is one and comes from whom we asked.
    fn judged(&self, outcome: Outcome) -> Result<String, String> {
        let Outcome { code, error, issuer } = outcome;
        if let Some(error) = error {
            return Err(format!("The login was refused: {error}."));
        }
        match (&issuer, &self.findings.authority.issuer) {
            (Some(said), Some(known)) if said.trim_end_matches('/') != known.trim_end_matches('/') => {
                Err(format!("The answer comes from {said:?}, but {known} was asked. Nothing was kept."))
            }
            _ => code.ok_or_else(|| "The browser came back without a code. Try again.".into()),
        }
    }

    fn question(&self, terms: &OauthTerms) -> Url {
        let Self { findings, client, redirect, state, verifier, .. } = self;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        let mut address = findings.authority.authorization_endpoint.clone();
        let mut query = address.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect.address())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state)
            .append_pair("resource", &findings.resource);
        if let Some(scope) = findings.scope(terms.scopes.as_deref()) {
            query.append_pair("scope", &scope);
        }
        drop(query);
        address
    }
}
