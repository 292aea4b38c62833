//! Mock of an MCP server that requires OAuth, on loopback, with its own authorization server. It follows OAuth 2.1 and
//! the MCP authorization spec and checks what clients tend to get wrong: the redirect URI, the PKCE verifier and the
//! resource of a token.
//!
//! Clients must discover the authorization server through the well-known metadata. The server stops when dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use whimbrel_models::http::Url;

use crate::http_mock::request::{self, HttpRequest};

/// The mock server. It stops when dropped.
#[derive(Debug)]
pub struct OauthMock {
    shared: Arc<Shared>,
    server_task: JoinHandle<()>,
}

/// Which clients may ask for tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientRegistration {
    /// Clients that register themselves (dynamic client registration).
    Dynamic,
    /// One preregistered client: its id and its secret.
    Preregistered(String, String),
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    clients: ClientRegistration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Method and path of every request.
    requests: Vec<String>,
    /// Number of ids issued so far.
    issued_ids: usize,
    /// Redirect URIs of registered clients, by client id.
    redirect_uris: BTreeMap<String, String>,
    /// Parameters of the authorization request behind each code.
    authorization_codes: BTreeMap<String, BTreeMap<String, String>>,
    access_tokens: BTreeSet<String>,
    refresh_tokens: BTreeSet<String>,
}

/// Status, additional headers and body.
type HttpResponse = (u16, Vec<(&'static str, String)>, Value);

impl OauthMock {
    /// Starts the server on a free port.
    pub async fn start(clients: ClientRegistration) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).await.context("cannot bind a port on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { address, clients, state: Mutex::default() });
        let server_task = tokio::spawn(accept_connections(listener, Arc::clone(&shared)));
        Ok(Self { shared, server_task })
    }

    /// The URL of the MCP server.
    pub fn url(&self) -> String {
        self.shared.url_for("/mcp")
    }

    /// Method and path of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.shared.lock_state().requests.clone()
    }

    /// Invalidates all access tokens; clients can still refresh.
    pub fn revoke_access_tokens(&self) {
        self.shared.lock_state().access_tokens.clear();
    }

    /// Invalidates all access and refresh tokens.
    pub fn revoke_all_tokens(&self) {
        let mut state = self.shared.lock_state();
        state.access_tokens.clear();
        state.refresh_tokens.clear();
    }
}

impl Drop for OauthMock {
    fn drop(&mut self) {
        self.server_task.abort();
    }
}

/// Acts as a browser whose user consents: opens the authorization URL, follows the redirect and returns the final page.
pub async fn complete_login(address: &str) -> anyhow::Result<String> {
    fetch_page(&Url::parse(&authorize_redirect(address).await?)?).await
}

/// Opens the authorization URL and returns the URL of the redirect.
pub async fn authorize_redirect(address: &str) -> anyhow::Result<String> {
    let page = fetch_page(&Url::parse(address)?).await?;
    let location = page.lines().find_map(|line| line.strip_prefix("location: "));
    location.map(str::to_owned).with_context(|| format!("the response has no redirect: {page}"))
}

/// Fetches a page from this machine; returns head and body.
async fn fetch_page(url: &Url) -> anyhow::Result<String> {
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let port = url.port().context("no port")?;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(handle_connection(stream, Arc::clone(&shared)));
    }
}

async fn handle_connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    let Ok(Some(request)) = request::read_request(&mut stream).await else { return };
    let (status, headers, body) = shared.handle_request(&request);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut head =
        format!("HTTP/1.1 {status} Mock\r\nconnection: close\r\ncontent-type: application/json\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n{body}", body.len());
    // The client may have disconnected.
    let _ = stream.into_inner().write_all(head.as_bytes()).await;
}

impl Shared {
    fn url_for(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_request(&self, request: &HttpRequest) -> HttpResponse {
        self.lock_state().requests.push(format!("{} {}", request.method, request.path));
        let body = String::from_utf8_lossy(&request.body);
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => ok_response(json!({
                "resource": self.url_for("/mcp"), "authorization_servers": [self.url_for("")], "scopes_supported": ["birds"],
            })),
            ("GET", "/.well-known/oauth-authorization-server") => ok_response(self.server_metadata()),
            ("POST", "/register") => self.register_client(&serde_json::from_str(&body).unwrap_or_default()),
            ("GET", "/authorize") => self.issue_code(parse_form(&request.query)),
            ("POST", "/token") => self.issue_tokens(&parse_form(&body), request.headers.get("authorization")),
            (_, "/mcp") => self.handle_mcp(request),
            _ => (404, Vec::new(), Value::Null),
        }
    }

    fn server_metadata(&self) -> Value {
        let mut metadata = json!({
            "issuer": self.url_for(""),
            "authorization_endpoint": self.url_for("/authorize"),
            "token_endpoint": self.url_for("/token"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        });
        if self.clients == ClientRegistration::Dynamic {
            metadata["registration_endpoint"] = json!(self.url_for("/register"));
        }
        metadata
    }

    fn register_client(&self, request: &Value) -> HttpResponse {
        let Some(redirect) = request["redirect_uris"][0].as_str() else {
            return error_response("invalid_redirect_uri");
        };
        let mut state = self.lock_state();
        let id = state.next_id("client");
        state.redirect_uris.insert(id.clone(), redirect.to_owned());
        (201, Vec::new(), json!({"client_id": id, "token_endpoint_auth_method": "none"}))
    }

    fn issue_code(&self, params: BTreeMap<String, String>) -> HttpResponse {
        let mut state = self.lock_state();
        let field = |name: &str| params.get(name).map(String::as_str).unwrap_or_default();
        let known = match &self.clients {
            ClientRegistration::Dynamic => {
                state.redirect_uris.get(field("client_id")).map(String::as_str) == Some(field("redirect_uri"))
            }
            ClientRegistration::Preregistered(id, _) => id == field("client_id"),
        };
        let expected = ("code", "S256", self.url_for("/mcp"));
        if !known
            || (field("response_type"), field("code_challenge_method"), field("resource").to_owned())
                != expected
        {
            return error_response("invalid_request");
        }
        let Ok(mut redirect) = Url::parse(field("redirect_uri")) else {
            return error_response("invalid_request");
        };
        let code = state.next_id("code");
        redirect.query_pairs_mut().append_pair("code", &code).append_pair("state", field("state"));
        redirect.query_pairs_mut().append_pair("iss", &self.url_for(""));
        state.authorization_codes.insert(code, params);
        (302, vec![("location", redirect.into())], Value::Null)
    }

    fn issue_tokens(&self, params: &BTreeMap<String, String>, header: Option<&String>) -> HttpResponse {
        let field = |name: &str| params.get(name).map(String::as_str).unwrap_or_default();
        if let ClientRegistration::Preregistered(id, secret) = &self.clients {
            let credentials = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
            if header != Some(&format!("Basic {credentials}")) {
                return error_response("invalid_client");
            }
        }
        let mut state = self.lock_state();
        let valid_grant = match field("grant_type") {
            // Codes and refresh tokens are valid once.
            "authorization_code" => {
                state.authorization_codes.remove(field("code")).is_some_and(|authorization| {
                    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
                    authorization.get("code_challenge") == Some(&challenge)
                        && authorization.get("redirect_uri") == params.get("redirect_uri")
                })
            }
            "refresh_token" => state.refresh_tokens.remove(field("refresh_token")),
            _ => false,
        };
        if !valid_grant || field("resource") != self.url_for("/mcp") {
            return error_response("invalid_grant");
        }
        let (access, refresh) = (state.next_id("access"), state.next_id("refresh"));
        state.access_tokens.insert(access.clone());
        state.refresh_tokens.insert(refresh.clone());
        ok_response(
            json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}),
        )
    }

    fn handle_mcp(&self, request: &HttpRequest) -> HttpResponse {
        let token = request.headers.get("authorization").and_then(|header| header.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.lock_state().access_tokens.contains(token)) {
            let metadata_url = self.url_for("/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata_url}\"");
            return (401, vec![("www-authenticate", challenge)], Value::Null);
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "count", "description": "Counts birds", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "seven curlews"}]}),
            _ if request.method == "POST" => return (202, Vec::new(), Value::Null),
            _ => return (405, Vec::new(), Value::Null),
        };
        ok_response(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

impl State {
    /// Returns an unused id.
    fn next_id(&mut self, kind: &str) -> String {
        self.issued_ids += 1;
        format!("{kind}-{}", self.issued_ids)
    }
}

fn ok_response(body: Value) -> HttpResponse {
    (200, Vec::new(), body)
}

fn error_response(error: &str) -> HttpResponse {
    (400, Vec::new(), json!({"error": error}))
}

/// Parses a query string or a form.
fn parse_form(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://x/?{text}"));
    let pairs = url.iter().flat_map(Url::query_pairs);
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}
