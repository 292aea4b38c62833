//! Discovers the authorization server of an MCP server: from its metadata, or from the well-known URLs.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;
use whimbrel_models::http::{HttpClient, Response, Url};
use whimbrel_wire::options::RemoteServer;

use super::{REQUEST_TIMEOUT, challenge};

const MAX_METADATA_BYTES: usize = 256 * 1024;

/// Scope that requests a refresh token; added where the server supports it.
const OFFLINE_ACCESS: &str = "offline_access";

/// Result of the discovery.
pub(super) struct OauthMetadata {
    pub(super) authorization_server: AuthorizationServer,
    /// Resource identifier for the token.
    pub(super) resource: String,
    /// Scopes of the challenge, or else those of the resource metadata.
    scopes: Option<String>,
}

/// Authorization server metadata (RFC 8414).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
}

/// Protected resource metadata (RFC 9728).
#[derive(Debug, Default, Deserialize)]
struct ProtectedResource {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<Url>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

impl OauthMetadata {
    /// Scope to request: the configured one, or the discovered one.
    pub(super) fn scope(&self, configured: Option<&str>) -> Option<String> {
        let mut scope = configured.map(str::to_owned).or_else(|| self.scopes.clone()).unwrap_or_default();
        let supports_offline_access =
            self.authorization_server.scopes_supported.iter().any(|scope| scope == OFFLINE_ACCESS);
        if supports_offline_access && !scope.split_whitespace().any(|scope| scope == OFFLINE_ACCESS) {
            scope = format!("{scope} {OFFLINE_ACCESS}");
        }
        Some(scope.trim().to_owned()).filter(|scope| !scope.is_empty())
    }
}

/// Queries the MCP server and the authorization server that it names.
pub(super) async fn discover(
    server_url: &Url,
    server: &RemoteServer,
    http_client: &HttpClient,
) -> Result<OauthMetadata, String> {
    require_secure(server_url, server_url)?;
    let challenges = fetch_challenge(server_url, server, http_client).await?;
    let metadata_url =
        challenge::parameter(&challenges, "resource_metadata").and_then(|text| server_url.join(&text).ok());
    let urls = metadata_url.map_or_else(|| resource_metadata_urls(server_url), |url| vec![url]);
    let resource =
        fetch_first::<ProtectedResource>(&urls, server_url, http_client).await?.unwrap_or_default();
    let name = match resource.resource {
        Some(name) if !is_same_resource(&name, server_url) => {
            return Err(format!("Its metadata names another resource, {name:?}, so no login is attempted."));
        }
        Some(name) => name,
        None => without_fragment(server_url),
    };
    let issuer = resource.authorization_servers.into_iter().next();
    let issuer = issuer.unwrap_or_else(|| with_path(server_url, "/"));
    let authorization_server =
        match fetch_first(&server_metadata_urls(&issuer), server_url, http_client).await? {
            Some(authorization_server) => authorization_server,
            None => default_endpoints(&issuer),
        };
    validate(&authorization_server, server_url)?;
    let supported = Some(resource.scopes_supported.join(" ")).filter(|scopes| !scopes.is_empty());
    let scopes = challenge::parameter(&challenges, "scope").filter(|scope| !scope.is_empty()).or(supported);
    Ok(OauthMetadata { authorization_server, resource: name, scopes })
}

/// Sends an unauthenticated request and returns the challenges of the 401 response.
async fn fetch_challenge(
    url: &Url,
    server: &RemoteServer,
    http_client: &HttpClient,
) -> Result<String, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for (name, value) in &server.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "whimbrel", "version": env!("CARGO_PKG_VERSION")},
    }});
    let response =
        send_request(http_client, Method::POST, url, headers.clone(), initialize.to_string().into()).await?;
    // Servers with the SSE transport accept no POST at their URL.
    let response = match response.status {
        404 | 405 => send_request(http_client, Method::GET, url, headers, Bytes::new()).await?,
        _ => response,
    };
    match response.status {
        401 => {
            let challenges = response.headers.get_all(WWW_AUTHENTICATE).iter();
            let texts: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
            Ok(texts.join(", "))
        }
        200..300 => Err("It does not require a login.".into()),
        status => Err(format!(
            "It answered HTTP {status} {} instead of asking for a login.",
            response.status_text()
        )),
    }
}

/// Sends one request with a timeout.
pub(super) async fn send_request(
    http_client: &HttpClient,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, String> {
    let sent = timeout(REQUEST_TIMEOUT, http_client.request(method, url.clone(), headers, body)).await;
    let host = url.host_str().unwrap_or_default();
    let timed_out = |_| format!("{host} did not answer within {} s.", REQUEST_TIMEOUT.as_secs());
    sent.map_err(timed_out)?.map_err(|error| error.message)
}

/// Fetches the first of these URLs that has a document.
async fn fetch_first<T: DeserializeOwned>(
    urls: &[Url],
    server: &Url,
    http_client: &HttpClient,
) -> Result<Option<T>, String> {
    for url in urls {
        require_secure(url, server)?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let response = send_request(http_client, Method::GET, url, headers, Bytes::new()).await?;
        match response.status {
            200..300 => {
                let text = timeout(REQUEST_TIMEOUT, response.read_all(MAX_METADATA_BYTES)).await;
                let text = text
                    .map_err(|_| format!("{url} did not answer in time."))?
                    .map_err(|error| error.message)?;
                // A server may serve an HTML page for unknown paths.
                match serde_json::from_slice(&text) {
                    Ok(document) => return Ok(Some(document)),
                    Err(error) if text.trim_ascii_start().starts_with(b"{") => {
                        return Err(format!("The metadata at {url} is not valid: {error}."));
                    }
                    Err(_) => {}
                }
            }
            500.. => return Err(format!("{url} answered HTTP {}. Try again later.", response.status)),
            _ => {}
        }
    }
    Ok(None)
}

/// Well-known URLs of the protected resource metadata.
fn resource_metadata_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut urls = vec![with_path(server, &format!("/.well-known/oauth-protected-resource{path}"))];
    if !path.is_empty() {
        urls.push(with_path(server, "/.well-known/oauth-protected-resource"));
    }
    urls
}

/// Well-known URLs of the authorization server metadata.
fn server_metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        with_path(issuer, &format!("/.well-known/oauth-authorization-server{path}")),
        with_path(issuer, &format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        urls.push(with_path(issuer, &format!("{path}/.well-known/openid-configuration")));
    }
    urls
}

/// Endpoints of an authorization server without metadata.
fn default_endpoints(issuer: &Url) -> AuthorizationServer {
    AuthorizationServer {
        issuer: None,
        authorization_endpoint: with_path(issuer, "/authorize"),
        token_endpoint: with_path(issuer, "/token"),
        registration_endpoint: Some(with_path(issuer, "/register")),
        scopes_supported: Vec::new(),
        code_challenge_methods_supported: None,
        token_endpoint_auth_methods_supported: Vec::new(),
    }
}

fn validate(authorization_server: &AuthorizationServer, server: &Url) -> Result<(), String> {
    let AuthorizationServer { authorization_endpoint, token_endpoint, registration_endpoint, .. } =
        authorization_server;
    for url in [authorization_endpoint, token_endpoint].into_iter().chain(registration_endpoint) {
        require_secure(url, server)?;
    }
    match &authorization_server.code_challenge_methods_supported {
        Some(methods) if !methods.iter().any(|method| method == "S256") => {
            Err("Its authorization server does not support PKCE with S256, which protects the login from interception.".into())
        }
        _ => Ok(()),
    }
}

/// Requires https, or loopback if the MCP server is on loopback too: secrets must not travel in the clear.
fn require_secure(url: &Url, server: &Url) -> Result<(), String> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(url) && is_loopback(server) => Ok(()),
        _ => Err(format!("{url} does not use https:, so no login is attempted there.")),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn is_same_resource(name: &str, server: &Url) -> bool {
    Url::parse(name).is_ok_and(|url| {
        url.origin() == server.origin() && server.path().starts_with(url.path().trim_end_matches('/'))
    })
}

fn with_path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_looked_up_at_well_known_urls() {
        let texts = |urls: Vec<Url>| urls.iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(resource_metadata_urls(&url("https://x.test/a/mcp?k=1"))),
            [
                "https://x.test/.well-known/oauth-protected-resource/a/mcp",
                "https://x.test/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            texts(resource_metadata_urls(&url("https://x.test"))),
            ["https://x.test/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            texts(server_metadata_urls(&url("https://id.test/tenant/"))),
            [
                "https://id.test/.well-known/oauth-authorization-server/tenant",
                "https://id.test/.well-known/openid-configuration/tenant",
                "https://id.test/tenant/.well-known/openid-configuration"
            ]
        );
        assert_eq!(server_metadata_urls(&url("https://id.test")).len(), 2);
    }

    #[test]
    fn secrets_travel_by_https_or_loopback() {
        for (endpoint, server, allowed) in [
            ("https://id.test/t", "https://x.test", true),
            ("https://id.test/t", "http://127.0.0.1:1", true),
            ("http://127.0.0.1:9/t", "http://localhost:1", true),
            ("http://[::1]:9/t", "http://127.0.0.1:1", true),
            ("http://id.test/t", "https://x.test", false),
            ("http://127.0.0.1:9/t", "https://x.test", false),
            ("http://169.254.169.254/", "http://127.0.0.1:1", false),
            ("file:///etc/passwd", "http://127.0.0.1:1", false),
        ] {
            assert_eq!(
                require_secure(&url(endpoint), &url(server)).is_ok(),
                allowed,
                "{endpoint} for {server}"
            );
        }
    }

    #[test]
    fn a_resource_must_match_its_server() {
        for (name, same) in [
            ("https://x.test/a", true),
            ("https://x.test/", true),
            ("https://x.test/a/mcp", true),
            ("https://x.test/b", false),
            ("https://other.test/a", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_same_resource(name, &url("https://x.test/a/mcp")), same, "{name}");
        }
    }

    #[test]
    fn configured_scope_wins_over_discovered_scope() {
        let metadata_with = |scopes: Option<&str>, supported: &[&str]| {
            let mut authorization_server = default_endpoints(&url("https://id.test"));
            authorization_server.scopes_supported =
                supported.iter().map(|scope| (*scope).to_owned()).collect();
            OauthMetadata { authorization_server, resource: String::new(), scopes: scopes.map(str::to_owned) }
        };
        let rows = [
            (metadata_with(None, &[]), None, None),
            (metadata_with(Some("read"), &[]), None, Some("read")),
            (metadata_with(Some("read"), &[]), Some("write"), Some("write")),
            (metadata_with(Some("read"), &["read", "offline_access"]), None, Some("read offline_access")),
            (metadata_with(Some("offline_access"), &["offline_access"]), None, Some("offline_access")),
        ];
        for (metadata, configured, expected) in rows {
            assert_eq!(metadata.scope(configured).as_deref(), expected);
        }
    }

    #[test]
    fn a_server_without_s256_is_rejected() {
        let mut authorization_server = default_endpoints(&url("https://id.test"));
        assert_eq!(validate(&authorization_server, &url("https://x.test")), Ok(()));
        authorization_server.code_challenge_methods_supported = Some(vec!["plain".into()]);
        assert!(validate(&authorization_server, &url("https://x.test")).unwrap_err().contains("PKCE"));
    }
}
