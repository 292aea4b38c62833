//! Selects the proxy for a host, and the hosts that are reached directly.

use std::net::IpAddr;

use ::http::Uri;
use ::http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// Proxies from the environment, and the hosts that bypass them.
pub(super) struct ProxyRules {
    /// The proxies, and the hosts that bypass them on every port.
    matcher: Matcher,
    /// Hosts that bypass the proxies on one port. Such a matcher intercepts (towards a dummy proxy) every host that is
    /// not listed.
    direct_ports: Vec<(u16, Matcher)>,
}

impl ProxyRules {
    /// Creates the rules from the proxies for `http` and `https` and a list in the form of `NO_PROXY`: host and domain
    /// names (`corp`, `.corp` and `*.corp` are equivalent), IP addresses and networks, each with an optional port, and
    /// `*` for all, separated by commas or white space.
    pub(super) fn new(http: Option<String>, https: Option<String>, direct: &str) -> Self {
        let entries = direct.split(|c: char| c == ',' || c.is_whitespace());
        let (mut always, mut direct_ports) = (Vec::new(), Vec::new());
        for (host, port) in entries.filter_map(parse_entry) {
            match port {
                None => always.push(host),
                Some(port) => {
                    direct_ports
                        .push((port, Matcher::builder().all("http://proxy.invalid").no(host).build()));
                }
            }
        }
        let builder = Matcher::builder().http(http.unwrap_or_default()).https(https.unwrap_or_default());
        Self { matcher: builder.no(always.join(",")).build(), direct_ports }
    }

    /// Returns the proxy for a request. Requests to this machine never use one.
    pub(super) fn proxy_for(&self, to: &Uri) -> Option<Intercept> {
        let host = to.host()?.trim_start_matches('[').trim_end_matches(']');
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if is_local_host(&host, address) {
            return None;
        }
        let host = match address {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            Some(IpAddr::V4(address)) => address.to_string(),
            None => host,
        };
        let scheme = to.scheme()?.clone();
        let port = to.port_u16().unwrap_or(if scheme == Scheme::HTTPS { 443 } else { 80 });
        // Normalizes the URL, so that every spelling of a host matches alike.
        let normalized = Uri::builder().scheme(scheme).authority(host).path_and_query("/").build();
        let to = normalized.as_ref().unwrap_or(to);
        let is_direct = self
            .direct_ports
            .iter()
            .any(|(direct_port, matcher)| *direct_port == port && matcher.intercept(to).is_none());
        if is_direct { None } else { self.matcher.intercept(to) }
    }
}

/// Returns true if a host is this machine, by name or address.
fn is_local_host(host: &str, address: Option<IpAddr>) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_some_and(|address| address.is_loopback() || address.is_unspecified())
}

/// Converts an entry of the list to the syntax of the matcher, and its port.
fn parse_entry(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = split_port(text);
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    if host.is_empty() {
        return None;
    }
    // In the matcher a star covers all names but no IP address.
    let host = match host.trim_start_matches(['*', '.']) {
        "" => "*,0.0.0.0/0,::/0",
        host => host,
    };
    Some((host.to_owned(), port))
}

/// Splits host and port. Several colons without brackets are an IPv6 address without a port.
fn split_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_proxied(direct: &str, url: &str) -> bool {
        let proxy = || Some("http://proxy.test:3128".to_owned());
        ProxyRules::new(proxy(), proxy(), direct).proxy_for(&url.parse().unwrap()).is_some()
    }

    #[test]
    fn no_proxy_list_is_parsed_in_all_usual_forms() {
        let table = [
            (
                "corp",
                ["http://corp", "https://gw.corp:8080", "http://GW.Corp."].as_slice(),
                ["http://xcorp"].as_slice(),
            ),
            (".corp", &["http://corp", "http://a.gw.corp"], &["http://corp.test", "http://xcorp"]),
            ("*.corp", &["http://corp", "http://a.gw.corp"], &["http://corp.test", "http://xcorp"]),
            ("gw.corp.", &["http://gw.corp", "http://a.gw.corp"], &["http://corp"]),
            (
                "gw.corp:8080",
                &["http://gw.corp:8080", "https://a.gw.corp:8080"],
                &["http://gw.corp", "http://gw.corp:80"],
            ),
            ("gw.corp:443", &["https://gw.corp", "http://gw.corp:443"], &["http://gw.corp"]),
            ("*.corp:80", &["http://gw.corp"], &["https://gw.corp"]),
            (
                "a.test gw.corp\tb.test",
                &["http://a.test", "http://gw.corp", "http://b.test"],
                &["http://c.test"],
            ),
            (" ,a.test,, gw.corp , ", &["http://a.test", "http://gw.corp"], &["http://c.test"]),
            ("*", &["http://far.test", "https://10.1.2.3", "http://[fe80::1]:81"], &[]),
            ("a.test, *", &["http://far.test", "https://10.1.2.3"], &[]),
            ("*:81", &["http://far.test:81", "http://10.1.2.3:81"], &["http://far.test"]),
            (
                "10.0.0.0/8",
                &["http://10.1.2.3", "http://[::ffff:10.1.2.3]"],
                &["http://11.1.2.3", "http://far.test"],
            ),
            ("10.1.2.3:81", &["http://10.1.2.3:81"], &["http://10.1.2.3"]),
            ("fe80::/10,[fd00::1]", &["http://[fe80::7]", "http://[fd00::1]:81"], &["http://[fd00::2]"]),
            ("[fd00::1]:81", &["http://[fd00::1]:81"], &["http://[fd00::1]"]),
            ("gw.corp:port", &[], &["http://gw.corp"]),
            ("", &[], &["http://far.test", "https://far.test"]),
        ];
        for (list, direct, proxied) in table {
            for (urls, expected) in [(direct, false), (proxied, true)] {
                for url in urls {
                    assert_eq!(is_proxied(list, url), expected, "{list:?}: {url}");
                }
            }
        }
    }

    #[test]
    fn loopback_bypasses_the_proxy_in_every_spelling() {
        for here in [
            "localhost",
            "localhost.",
            "LOCALHOST",
            "app.localhost",
            "app.localhost.",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "0.0.0.0",
            "[::]",
        ] {
            assert!(!is_proxied("", &format!("http://{here}:9/x")), "{here}");
            assert!(!is_proxied("", &format!("https://{here}/")), "{here}");
        }
        for far in ["localhost.test", "notlocalhost", "128.0.0.1", "[::2]", "127.0.0.1.test"] {
            assert!(is_proxied("", &format!("http://{far}:9/x")), "{far}");
        }
    }
}
