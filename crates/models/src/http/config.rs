//! Network configuration from the environment.

use ::http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use super::proxy_rules::ProxyRules;
use crate::error::{ModelError, ModelErrorKind};

/// Proxies and root certificate files named in the environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NetworkConfig {
    pub(super) http_proxy: Option<String>,
    pub(super) https_proxy: Option<String>,
    /// Hosts that bypass the proxies.
    pub(super) no_proxy: String,
    /// PEM file with additional root certificates.
    pub(super) extra_roots: Option<String>,
    /// PEM file shared with other programs; may be missing or invalid.
    pub(super) shared_roots: Option<String>,
}

impl NetworkConfig {
    pub(super) fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        let any =
            |names: &[&str]| names.iter().find_map(|name| get(name).filter(|value| !value.trim().is_empty()));
        let all = any(&["ALL_PROXY", "all_proxy"]);
        Self {
            http_proxy: any(&["HTTP_PROXY", "http_proxy"]).or_else(|| all.clone()),
            https_proxy: any(&["HTTPS_PROXY", "https_proxy"]).or(all),
            no_proxy: any(&["NO_PROXY", "no_proxy"]).unwrap_or_default(),
            extra_roots: any(&["NODE_EXTRA_CA_CERTS"]),
            shared_roots: any(&["SSL_CERT_FILE"]),
        }
    }

    /// Returns the proxy rules, if any proxy is configured.
    pub(super) fn proxy_rules(&self) -> Result<Option<ProxyRules>, ModelError> {
        if self.http_proxy.is_none() && self.https_proxy.is_none() {
            return Ok(None);
        }
        let parse = |url: &Option<String>| url.as_deref().map(parse_proxy).transpose();
        Ok(Some(ProxyRules::new(parse(&self.http_proxy)?, parse(&self.https_proxy)?, &self.no_proxy)))
    }
}

/// Validates the URL of a proxy, which may lack its `http://`.
fn parse_proxy(text: &str) -> Result<String, ModelError> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&url).ok().filter(Url::has_host).map(String::from);
    // The matcher would ignore a URL it cannot parse, and requests would bypass the proxy.
    let probe = Uri::from_static("http://far.invalid/");
    let is_usable = |url: &String| Matcher::builder().http(url.as_str()).build().intercept(&probe).is_some();
    // The URL may contain a password, so the message does not repeat it.
    url.filter(is_usable).ok_or_else(|| {
        let message = "The proxy named in the environment is not a valid URL: it must have the form http://host:port \
                       or https://host:port.";
        ModelError::new(ModelErrorKind::InvalidRequest, message)
    })
}
