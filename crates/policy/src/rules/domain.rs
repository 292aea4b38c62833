//! WebFetch rules: the host of a URL, and the hosts that a `domain:` rule matches.

use url::{Host, Url};

/// Parses the host of a URL, in lower-case ASCII without a final dot.
///
/// # Errors
///
/// If the URL must not be fetched. The text completes the sentence "The URL ..".
pub fn parse_host(address: &str) -> Result<String, &'static str> {
    let url = Url::parse(address).map_err(|_| "is not valid")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http: or https:");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    let host = match url.host() {
        Some(Host::Domain(name)) => normalize_host(name),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => format!("[{address}]"),
        None => return Err("has no host"),
    };
    let is_valid_label = |label: &str| !label.is_empty() && label.len() <= 63;
    let plain = host.starts_with('[') || host.split('.').all(is_valid_label);
    plain.then_some(host).ok_or("has an invalid host name")
}

fn normalize_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Pattern for host names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainPattern {
    /// Every host.
    Any,
    /// Hosts with at least one label before these label patterns, which are listed from left to right.
    Subdomains(Vec<String>),
    /// Hosts with exactly these labels; a label may contain `*`.
    Labels(Vec<String>),
}

impl DomainPattern {
    /// Parses the text after `domain:`.
    pub fn new(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        let labels =
            |text: &str| normalize_host(&to_ascii_host(text)).split('.').map(str::to_owned).collect();
        match text.strip_prefix("*.") {
            Some(rest) => Self::Subdomains(labels(rest)),
            None => Self::Labels(labels(text)),
        }
    }

    pub fn matches(&self, host: &str) -> bool {
        let labels: Vec<&str> = if host.starts_with('[') { vec![host] } else { host.split('.').collect() };
        match self {
            Self::Any => true,
            Self::Labels(patterns) => labels_match(patterns, &labels),
            Self::Subdomains(patterns) => match labels.len().checked_sub(patterns.len()) {
                None | Some(0) => false,
                Some(front) => labels_match(patterns, labels.get(front..).unwrap_or_default()),
            },
        }
    }
}

fn labels_match(patterns: &[String], labels: &[&str]) -> bool {
    patterns.len() == labels.len()
        && patterns
            .iter()
            .zip(labels)
            .all(|(pattern, label)| crate::rules::tool_name::name_matches(pattern, label))
}

/// Converts a host to ASCII as URLs do, if possible; stars are kept.
fn to_ascii_host(host: &str) -> String {
    if host.is_ascii() {
        return host.to_owned();
    }
    match Host::parse(&host.replace('*', "xn-star-xn")) {
        Ok(parsed) => parsed.to_string().replace("xn-star-xn", "*"),
        Err(_) => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_a_url() {
        let rows = [
            ("https://example.com/x", Ok("example.com")),
            ("https://EXAMPLE.com.:8443/", Ok("example.com")),
            ("https://%65vil.invalid/", Ok("evil.invalid")),
            ("https://evil.invalid#example.com", Ok("evil.invalid")),
            ("https://evil.invalid\\@example.com/", Ok("evil.invalid")),
            ("http://127.1/", Ok("127.0.0.1")),
            ("http://0x7f000001/", Ok("127.0.0.1")),
            ("http://[::ffff:169.254.169.254]/", Ok("[::ffff:169.254.169.254]")),
            ("https://b\u{fc}cher.example/", Ok("xn--bcher-kva.example")),
            ("file:///etc/passwd", Err(())),
            ("ftp://example.com/x", Err(())),
            ("https://example.com@evil.invalid/", Err(())),
            ("https://:secret@evil.invalid/", Err(())),
            ("not a url", Err(())),
            ("https://", Err(())),
            ("https://a..b/", Err(())),
        ];
        for (address, expected) in rows {
            assert_eq!(parse_host(address).map_err(|_| ()), expected.map(str::to_owned), "{address}");
        }
    }

    #[test]
    fn domain_rule_matches_hosts() {
        let rows = [
            ("example.com", "example.com", true),
            ("Example.COM.", "example.com", true),
            ("example.com", "sub.example.com", false),
            ("example.com", "example.com.evil.invalid", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("example.*", "example.net", true),
            ("example.*", "example.evil.com", false),
            ("a*c.com", "abc.com", true),
            ("a*c.com", "a.c.com", false),
            ("*", "anything.invalid", true),
            ("*.*", "a.b.c", true),
            ("b\u{fc}cher.example", "xn--bcher-kva.example", true),
            ("127.0.0.1", "127.0.0.1", true),
        ];
        for (pattern, host, expected) in rows {
            assert_eq!(DomainPattern::new(pattern).matches(host), expected, "{pattern} {host}");
        }
    }
}
