//! Who gives out logins to a server: what the server says, or what lies at the usual places.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;
use whimbrel_models::http::{Door, Response, Url};
use whimbrel_wire::options::RemoteServer;

use super::{PATIENCE, challenge};

/// The largest description that is read.
const LARGEST: usize = 256 * 1024;

/// Asked for where it is offered, so that a login outlives its first token.
const LASTING: &str = "offline_access";

/// Everything that a login needs to know.
pub(super) struct Findings {
    pub(super) authority: Authority,
    /// What the token is for, as the server calls itself.
    pub(super) resource: String,
    /// What the refusal asked for, or else what the server knows.
    scopes: Option<String>,
}

/// Whoever gives out logins.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Authority {
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

/// How a server describes itself.
#[derive(Debug, Default, Deserialize)]
struct Resource {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<Url>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

impl Findings {
    /// What is asked for: what the person wants, or what the server does.
    pub(super) fn scope(&self, wanted: Option<&str>) -> Option<String> {
        let mut scope = wanted.map(str::to_owned).or_else(|| self.scopes.clone()).unwrap_or_default();
        let offered = self.authority.scopes_supported.iter().any(|scope| scope == LASTING);
        if offered && !scope.split_whitespace().any(|scope| scope == LASTING) {
            scope = format!("{scope} {LASTING}");
        }
        Some(scope.trim().to_owned()).filter(|scope| !scope.is_empty())
    }
}

/// Asks the server, and whoever it names.
pub(super) async fn discover(address: &Url, server: &RemoteServer, door: &Door) -> Result<Findings, String> {
    may_ask(address, address)?;
    let refusal = refusal(address, server, door).await?;
    let named = challenge::parameter(&refusal, "resource_metadata").and_then(|text| address.join(&text).ok());
    let places = named.map_or_else(|| resource_places(address), |place| vec![place]);
    let resource = first::<Resource>(&places, address, door).await?.unwrap_or_default();
    let name = match resource.resource {
        Some(name) if !is_same_place(&name, address) => {
            return Err(format!(
                "It calls itself {name:?}, which is another server. Nobody is asked for a login to that."
            ));
        }
        Some(name) => name,
        None => without_fragment(address),
    };
    let issuer = resource.authorization_servers.into_iter().next();
    let issuer = issuer.unwrap_or_else(|| at(address, "/"));
    let authority = match first(&authority_places(&issuer), address, door).await? {
        Some(authority) => authority,
        None => usual(&issuer),
    };
    checked(&authority, address)?;
    let all = Some(resource.scopes_supported.join(" ")).filter(|scopes| !scopes.is_empty());
    let scopes = challenge::parameter(&refusal, "scope").filter(|scope| !scope.is_empty()).or(all);
    Ok(Findings { authority, resource: name, scopes })
}

/// What the server says to whom it does not know.
async fn refusal(address: &Url, server: &RemoteServer, door: &Door) -> Result<String, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for (name, value) in &server.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "whimbrel", "version": env!("CARGO_PKG_VERSION")},
    }});
    let answer = asked(door, Method::POST, address, headers.clone(), hello.to_string().into()).await?;
    // A server of the older kind takes no messages at its address.
    let answer = match answer.status {
        404 | 405 => asked(door, Method::GET, address, headers, Bytes::new()).await?,
        _ => answer,
    };
    match answer.status {
        401 => {
            let challenges = answer.headers.get_all(WWW_AUTHENTICATE).iter();
            let texts: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
            Ok(texts.join(", "))
        }
        200..300 => Err("It does not ask for a login.".into()),
        status => {
            Err(format!("It answered HTTP {status} {} instead of asking for a login.", answer.status_text()))
        }
    }
}

/// One question, within bounds of time.
pub(super) async fn asked(
    door: &Door,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, String> {
    let asked = timeout(PATIENCE, door.request(method, url.clone(), headers, body)).await;
    let host = url.host_str().unwrap_or_default();
    let late = |_| format!("{host} did not answer within {} s.", PATIENCE.as_secs());
    asked.map_err(late)?.map_err(|fault| fault.message)
}

/// The first of these places at which a description lies.
async fn first<T: DeserializeOwned>(places: &[Url], server: &Url, door: &Door) -> Result<Option<T>, String> {
    for place in places {
        may_ask(place, server)?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let answer = asked(door, Method::GET, place, headers, Bytes::new()).await?;
        match answer.status {
            200..300 => {
                let text = timeout(PATIENCE, answer.whole(LARGEST)).await;
                let text =
                    text.map_err(|_| format!("{place} takes too long."))?.map_err(|fault| fault.message)?;
                // A page for people may stand where nothing else does.
                match serde_json::from_slice(&text) {
                    Ok(found) => return Ok(Some(found)),
                    Err(error) if text.trim_ascii_start().starts_with(b"{") => {
                        return Err(format!("What lies at {place} cannot be used: {error}."));
                    }
                    Err(_) => {}
                }
            }
            500.. => return Err(format!("{place} answered HTTP {}. Try again later.", answer.status)),
            _ => {}
        }
    }
    Ok(None)
}

/// Where a server may describe itself.
fn resource_places(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places = vec![at(server, &format!("/.well-known/oauth-protected-resource{path}"))];
    if !path.is_empty() {
        places.push(at(server, "/.well-known/oauth-protected-resource"));
    }
    places
}

/// Where whoever gives out logins may describe itself.
fn authority_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(issuer, &format!("/.well-known/oauth-authorization-server{path}")),
        at(issuer, &format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}/.well-known/openid-configuration")));
    }
    places
}

/// What holds of one that does not describe itself.
fn usual(issuer: &Url) -> Authority {
    Authority {
        issuer: None,
        authorization_endpoint: at(issuer, "/authorize"),
        token_endpoint: at(issuer, "/token"),
        registration_endpoint: Some(at(issuer, "/register")),
        scopes_supported: Vec::new(),
        code_challenge_methods_supported: None,
        token_endpoint_auth_methods_supported: Vec::new(),
    }
}

fn checked(authority: &Authority, server: &Url) -> Result<(), String> {
    let Authority { authorization_endpoint, token_endpoint, registration_endpoint, .. } = authority;
    for place in [authorization_endpoint, token_endpoint].into_iter().chain(registration_endpoint) {
        may_ask(place, server)?;
    }
    match &authority.code_challenge_methods_supported {
        Some(methods) if !methods.iter().any(|method| method == "S256") => {
            Err("Whoever gives out logins to it does not know PKCE with S256, without which a login can be stolen on the way.".into())
        }
        _ => Ok(()),
    }
}

/// Secrets travel by https, or stay on this machine if the server does.
fn may_ask(place: &Url, server: &Url) -> Result<(), String> {
    match place.scheme() {
        "https" => Ok(()),
        "http" if is_here(place) && is_here(server) => Ok(()),
        _ => Err(format!("{place} is not reached by https:, so no login is asked for there.")),
    }
}

fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn is_same_place(name: &str, server: &Url) -> bool {
    Url::parse(name).is_ok_and(|url| {
        url.origin() == server.origin() && server.path().starts_with(url.path().trim_end_matches('/'))
    })
}

fn at(base: &Url, path: &str) -> Url {
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
    fn descriptions_are_looked_for_at_the_usual_places() {
        let texts = |places: Vec<Url>| places.iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(resource_places(&url("https://x.test/a/mcp?k=1"))),
            [
                "https://x.test/.well-known/oauth-protected-resource/a/mcp",
                "https://x.test/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            texts(resource_places(&url("https://x.test"))),
            ["https://x.test/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            texts(authority_places(&url("https://id.test/tenant/"))),
            [
                "https://id.test/.well-known/oauth-authorization-server/tenant",
                "https://id.test/.well-known/openid-configuration/tenant",
                "https://id.test/tenant/.well-known/openid-configuration"
            ]
        );
        assert_eq!(authority_places(&url("https://id.test")).len(), 2);
    }

    #[test]
    fn secrets_travel_by_https_or_stay_here() {
        for (place, server, allowed) in [
            ("https://id.test/t", "https://x.test", true),
            ("https://id.test/t", "http://127.0.0.1:1", true),
            ("http://127.0.0.1:9/t", "http://localhost:1", true),
            ("http://[::1]:9/t", "http://127.0.0.1:1", true),
            ("http://id.test/t", "https://x.test", false),
            ("http://127.0.0.1:9/t", "https://x.test", false),
            ("http://169.254.169.254/", "http://127.0.0.1:1", false),
            ("file:///etc/passwd", "http://127.0.0.1:1", false),
        ] {
            assert_eq!(may_ask(&url(place), &url(server)).is_ok(), allowed, "{place} for {server}");
        }
    }

    #[test]
    fn a_server_speaks_for_its_own_place_only() {
        for (name, same) in [
            ("https://x.test/a", true),
            ("https://x.test/", true),
            ("https://x.test/a/mcp", true),
            ("https://x.test/b", false),
            ("https://other.test/a", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_same_place(name, &url("https://x.test/a/mcp")), same, "{name}");
        }
    }

    #[test]
    fn what_is_asked_for_is_what_somebody_wants() {
        let with = |scopes: Option<&str>, supported: &[&str]| {
            let mut authority = usual(&url("https://id.test"));
            authority.scopes_supported = supported.iter().map(|scope| (*scope).to_owned()).collect();
            Findings { authority, resource: String::new(), scopes: scopes.map(str::to_owned) }
        };
        let rows = [
            (with(None, &[]), None, None),
            (with(Some("read"), &[]), None, Some("read")),
            (with(Some("read"), &[]), Some("write"), Some("write")),
            (with(Some("read"), &["read", "offline_access"]), None, Some("read offline_access")),
            (with(Some("offline_access"), &["offline_access"]), None, Some("offline_access")),
        ];
        for (findings, wanted, expected) in rows {
            assert_eq!(findings.scope(wanted).as_deref(), expected);
        }
    }

    #[test]
    fn one_that_does_not_know_pkce_is_refused() {
        let mut authority = usual(&url("https://id.test"));
        assert_eq!(checked(&authority, &url("https://x.test")), Ok(()));
        authority.code_challenge_methods_supported = Some(vec!["plain".into()]);
        assert!(checked(&authority, &url("https://x.test")).unwrap_err().contains("PKCE"));
    }
}
