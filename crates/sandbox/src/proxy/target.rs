//! Hosts and ports, read strictly: what two programs could read differently is refused. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name of a host.
const MAX_NAME: usize = 253;
/// Longest part of a name.
const MAX_LABEL: usize = 63;

/// A host, in one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// ASCII, lower case, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// What a client wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    pub host: Host,
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// A text is no host or target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("the host is missing or too long")]
    Length,
    #[error("the host has a character that no host has")]
    Character,
    #[error("the address is not in the usual notation")]
    Address,
    #[error("the port is missing or not a number from 1 to 65535")]
    Port,
}

impl Target {
    /// Reads `host:port`.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::Port)?;
        Ok(Self { host: Host::parse(host)?, port: parse_port(port)? })
    }

    /// Reads `host` or `host:port`.
    pub fn parse_with_default(text: &str, default_port: u16) -> Result<Self, TargetError> {
        match text.rsplit_once(':') {
            Some((_, rest)) if !rest.ends_with(']') => Self::parse(text),
            _ => Ok(Self { host: Host::parse(text)?, port: default_port }),
        }
    }
}

/// Reads a port.
pub(crate) fn parse_port(text: &str) -> Result<u16, TargetError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0).ok_or(TargetError::Port)
}

impl Host {
    /// Reads a name, a dotted quad or an address in brackets.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if let Some(rest) = text.strip_prefix('[') {
            let address = rest.strip_suffix(']').ok_or(TargetError::Address)?;
            let address: Ipv6Addr = address.parse().map_err(|_| TargetError::Address)?;
            return Ok(Self::Address(address.into()));
        }
        if text.is_empty() || text.len() > 4 * MAX_NAME {
            return Err(TargetError::Length);
        }
        let is_refused = |c: char| c.is_control() || c.is_whitespace() || "%\\@/?#:[]".contains(c);
        if text.contains(is_refused) {
            return Err(TargetError::Character);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        match url::Host::parse(text.strip_suffix('.').unwrap_or(text)) {
            Ok(url::Host::Domain(name)) => check_name(name),
            // Octal, hexadecimal, short or one number: programs read them differently.
            Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => Err(TargetError::Address),
            Err(_) => Err(TargetError::Character),
        }
    }
}

fn check_name(name: String) -> Result<Host, TargetError> {
    if name.len() > MAX_NAME {
        return Err(TargetError::Length);
    }
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
    };
    if name.split('.').all(is_label) { Ok(Host::Name(name)) } else { Err(TargetError::Character) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_read_in_one_spelling() {
        let name = |text: &str| Ok(Host::Name(text.into()));
        let address = |text: &str| Ok(Host::Address(text.parse().unwrap()));
        let rows = [
            ("good.test", name("good.test")),
            ("GOOD.Test.", name("good.test")),
            ("a_b.test", name("a_b.test")),
            ("bücher.example", name("xn--bcher-kva.example")),
            ("ＧＯＯＤ.test", name("good.test")),
            ("good。test", name("good.test")),
            ("127.0.0.1", address("127.0.0.1")),
            ("[::1]", address("::1")),
            ("[::ffff:127.0.0.1]", address("::ffff:127.0.0.1")),
            ("", Err(TargetError::Length)),
            ("a..b", Err(TargetError::Character)),
            ("good.test..", Err(TargetError::Character)),
            (".good.test", Err(TargetError::Character)),
            ("good.test@evil.test", Err(TargetError::Character)),
            ("good.test/x", Err(TargetError::Character)),
            ("good.test\\x", Err(TargetError::Character)),
            ("good%2etest", Err(TargetError::Character)),
            ("good.test\0.evil", Err(TargetError::Character)),
            ("good test", Err(TargetError::Character)),
            ("::1", Err(TargetError::Character)),
            ("127.1", Err(TargetError::Address)),
            ("0x7f000001", Err(TargetError::Address)),
            ("0x7f.0.0.1", Err(TargetError::Address)),
            ("2130706433", Err(TargetError::Address)),
            ("0177.0.0.1", Err(TargetError::Address)),
            ("127.0.0.1.", Err(TargetError::Address)),
            ("１２７.0.0.1", Err(TargetError::Address)),
            ("[fe80::1%25eth0]", Err(TargetError::Address)),
            ("[127.0.0.1]", Err(TargetError::Address)),
        ];
        for (text, expected) in rows {
            assert_eq!(Host::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn targets_have_a_port() {
        let target = |host: &str, port| Ok(Target { host: Host::parse(host).unwrap(), port });
        let rows = [
            ("good.test:443", target("good.test", 443)),
            ("[::1]:80", target("[::1]", 80)),
            ("good.test", Err(TargetError::Port)),
            ("good.test:", Err(TargetError::Port)),
            ("good.test:0", Err(TargetError::Port)),
            ("good.test:+80", Err(TargetError::Port)),
            ("good.test:65536", Err(TargetError::Port)),
            ("good.test:80:80", Err(TargetError::Character)),
        ];
        for (text, expected) in rows {
            assert_eq!(Target::parse(text), expected, "{text:?}");
        }
        assert_eq!(Target::parse_with_default("good.test", 80), target("good.test", 80));
        assert_eq!(Target::parse_with_default("[::1]", 80), target("[::1]", 80));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// S-21: whatever is read has one spelling, which is read as the same again.
        #[test]
        fn reading_a_host_never_panics_and_is_stable(text in "\\PC{0,40}|[a-zA-Z0-9.:%@\\[\\]\\\\ -]{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
            }
            let _ = Target::parse(&text);
            let _ = Target::parse_with_default(&text, 80);
        }
    }
}
