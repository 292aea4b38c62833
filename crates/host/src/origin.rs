//! Which hosts and origins a request may name. Pure.

use axum::http::Method;
use std::net::SocketAddr;

use crate::access::Credential;
use crate::error::{ApiError, ApiResult};

/// The names under which this host is reached.
#[derive(Debug, Clone)]
pub(crate) struct SiteNames {
    /// Host headers, such as `127.0.0.1:7717`.
    hosts: Vec<String>,
    /// Origins, such as `http://127.0.0.1:7717`.
    origins: Vec<String>,
    /// URL of the page.
    pub(crate) url: String,
    /// The page is reached over TLS.
    pub(crate) is_secure: bool,
}

/// What a request says of where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestSource<'a> {
    pub(crate) method: &'a Method,
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) fetch_site: Option<&'a str>,
    pub(crate) is_socket: bool,
}

impl SiteNames {
    pub(crate) fn new(address: SocketAddr, public_url: Option<&str>) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{port}"));
        }
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        let mut url = format!("http://{address}");
        let mut is_secure = false;
        if let Some(public) = public_url {
            let public = public.trim_end_matches('/');
            is_secure = public.starts_with("https://");
            if let Some((_, host)) = public.split_once("://") {
                hosts.push(host.to_ascii_lowercase());
            }
            origins.push(public.to_ascii_lowercase());
            public.clone_into(&mut url);
        }
        Self { hosts, origins, url, is_secure }
    }

    /// Name of the cookie.
    pub(crate) fn cookie_name(&self) -> &'static str {
        if self.is_secure { "__Host-whimbrel" } else { "whimbrel" }
    }

    /// Checks host and origin of a request, before it is authenticated.
    pub(crate) fn check(&self, source: RequestSource<'_>) -> ApiResult<()> {
        let is_ours = source.host.is_some_and(|host| self.hosts.contains(&host.to_ascii_lowercase()));
        if !is_ours {
            return Err(ApiError::wrong_host(format!(
                "this host is not served here: use {}, or start the host with --public-url",
                self.url
            )));
        }
        let changes = !matches!(*source.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if (changes || source.is_socket) && source.origin.is_some_and(|origin| !self.is_our_origin(origin)) {
            return Err(ApiError::wrong_origin("a page of another site may not use this host"));
        }
        Ok(())
    }

    /// A request by cookie that changes something must come from our page.
    pub(crate) fn check_credential(
        &self,
        source: RequestSource<'_>,
        credential: Credential,
    ) -> ApiResult<()> {
        let changes = !matches!(*source.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if credential == Credential::Bearer || !(changes || source.is_socket) {
            return Ok(());
        }
        let is_same_origin = source.origin.is_some_and(|origin| self.is_our_origin(origin))
            || source.fetch_site == Some("same-origin");
        if is_same_origin {
            return Ok(());
        }
        Err(ApiError::wrong_origin(
            "a request by cookie must come from the page of this host; programs use a key: `whimbrel serve key NAME`",
        ))
    }

    fn is_our_origin(&self, origin: &str) -> bool {
        self.origins.contains(&origin.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "http://127.0.0.1:7717";

    fn source<'a>(method: &'a Method, host: &'a str, origin: &'a str, is_socket: bool) -> RequestSource<'a> {
        let present = |text: &'a str| (!text.is_empty()).then_some(text);
        RequestSource { method, host: present(host), origin: present(origin), fetch_site: None, is_socket }
    }

    #[test]
    fn hosts_and_origins_are_checked() {
        let names = SiteNames::new("127.0.0.1:7717".parse().unwrap(), Some("https://agents.example.org/"));
        let ok = "";
        let rows = [
            (Method::GET, "127.0.0.1:7717", "", false, ok),
            (Method::GET, "localhost:7717", "", false, ok),
            (Method::GET, "LOCALHOST:7717", "", false, ok),
            (Method::GET, "agents.example.org", "", false, ok),
            (Method::GET, "", "", false, "wrong_host"),
            (Method::GET, "127.0.0.1", "", false, "wrong_host"),
            (Method::GET, "127.0.0.1:7718", "", false, "wrong_host"),
            (Method::GET, "evil.example", "", false, "wrong_host"),
            (Method::GET, "127.0.0.1:7717.evil.example", "", false, "wrong_host"),
            (Method::GET, "127.0.0.1:7717", "https://evil.example", false, ok),
            (Method::GET, "127.0.0.1:7717", "https://evil.example", true, "wrong_origin"),
            (Method::GET, "127.0.0.1:7717", OURS, true, ok),
            (Method::POST, "127.0.0.1:7717", OURS, false, ok),
            (Method::POST, "127.0.0.1:7717", "https://agents.example.org", false, ok),
            (Method::POST, "127.0.0.1:7717", "http://agents.example.org", false, "wrong_origin"),
            (Method::POST, "127.0.0.1:7717", "null", false, "wrong_origin"),
            (Method::DELETE, "127.0.0.1:7717", "http://127.0.0.1:7718", false, "wrong_origin"),
            (Method::POST, "127.0.0.1:7717", "", false, ok),
        ];
        for (method, host, origin, is_socket, expected) in rows {
            let checked = names.check(source(&method, host, origin, is_socket));
            let code = checked.map_or_else(|error| error.code, |()| ok);
            assert_eq!(code, expected, "{method} {host} {origin} {is_socket}");
        }
    }

    #[test]
    fn a_cookie_needs_our_origin() {
        let names = SiteNames::new("127.0.0.1:7717".parse().unwrap(), None);
        let check = |method: &Method, origin, fetch_site, is_socket, credential| {
            let source = RequestSource { fetch_site, ..source(method, "127.0.0.1:7717", origin, is_socket) };
            names.check_credential(source, credential).is_ok()
        };
        assert!(check(&Method::GET, "", None, false, Credential::Cookie));
        assert!(!check(&Method::GET, "", None, true, Credential::Cookie));
        assert!(!check(&Method::POST, "", None, false, Credential::Cookie));
        assert!(!check(&Method::POST, "", Some("cross-site"), false, Credential::Cookie));
        assert!(check(&Method::POST, "", Some("same-origin"), false, Credential::Cookie));
        assert!(check(&Method::POST, OURS, None, false, Credential::Cookie));
        assert!(check(&Method::POST, "", None, false, Credential::Bearer));
    }
}
