//! Lists of hosts. Pure.

use std::net::IpAddr;

use super::target::{Host, Target, TargetError, parse_port};

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPattern {
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Any,
    Exact(Host),
    /// One or more labels before this name, but not the name itself.
    Below(String),
}

/// An entry cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("{entry:?} is no host, `*.host`, `host:port` or address: {reason}")]
    Invalid { entry: String, reason: TargetError },
    #[error("{entry:?} would allow every host. Name the hosts, or allow them when asked")]
    AllowsEverything { entry: String },
}

impl DomainPattern {
    /// Reads an entry of a list of allowed hosts.
    pub fn parse_allowed(entry: &str) -> Result<Self, PatternError> {
        match Self::parse_denied(entry)? {
            Self { host: HostPattern::Any, .. } => {
                Err(PatternError::AllowsEverything { entry: entry.to_owned() })
            }
            pattern => Ok(pattern),
        }
    }

    /// Reads an entry of a list of denied hosts, where `*` and `*:port` are possible.
    pub fn parse_denied(entry: &str) -> Result<Self, PatternError> {
        Self::parse(entry).map_err(|reason| PatternError::Invalid { entry: entry.to_owned(), reason })
    }

    fn parse(entry: &str) -> Result<Self, TargetError> {
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(parse_port(port)?)),
            _ => (entry, None),
        };
        let host = if host == "*" {
            HostPattern::Any
        } else if let Some(rest) = host.strip_prefix("*.") {
            match Host::parse(rest)? {
                Host::Name(name) => HostPattern::Below(name),
                Host::Address(_) => return Err(TargetError::Address),
            }
        } else if host.contains('*') {
            return Err(TargetError::Character);
        } else {
            HostPattern::Exact(Host::parse(host)?)
        };
        Ok(Self { host, port })
    }

    /// Returns whether the entry means a target.
    pub fn matches(&self, target: &Target) -> bool {
        if self.port.is_some_and(|port| port != target.port) {
            return false;
        }
        match (&self.host, &target.host) {
            (HostPattern::Any, _) => true,
            (HostPattern::Exact(host), target) => host == target,
            (HostPattern::Below(name), Host::Name(target)) => target
                .strip_suffix(name.as_str())
                .is_some_and(|before| before.len() > 1 && before.ends_with('.')),
            (HostPattern::Below(_), Host::Address(_)) => false,
        }
    }
}

/// What happens to a host that is on no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlistedHosts {
    Ask,
    Refuse,
}

/// The lists of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainLists {
    pub allowed: Vec<DomainPattern>,
    pub denied: Vec<DomainPattern>,
    pub unlisted: UnlistedHosts,
}

/// What the lists say about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDecision {
    Denied,
    Allowed,
    /// On no list, and nothing is asked.
    Unlisted,
    Ask,
}

impl DomainLists {
    /// Decides about a target: denied before allowed, allowed before unlisted.
    pub fn decide(&self, target: &Target) -> ListDecision {
        if is_listed(&self.denied, target) {
            ListDecision::Denied
        } else if is_listed(&self.allowed, target) {
            ListDecision::Allowed
        } else {
            match self.unlisted {
                UnlistedHosts::Ask => ListDecision::Ask,
                UnlistedHosts::Refuse => ListDecision::Unlisted,
            }
        }
    }

    /// Returns whether an address is allowed by its literal.
    pub(crate) fn allows_address(&self, address: IpAddr, port: u16) -> bool {
        is_listed(&self.allowed, &Target { host: Host::Address(address), port })
    }

    /// Returns whether an address is denied by its literal. Denials of every host do not count here.
    pub(crate) fn denies_address(&self, address: IpAddr, port: u16) -> bool {
        is_listed(&self.denied, &Target { host: Host::Address(address), port })
    }
}

fn is_listed(list: &[DomainPattern], target: &Target) -> bool {
    list.iter().any(|pattern| pattern.matches(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-18.
    #[test]
    fn patterns_match_whole_labels_and_ports() {
        let rows = [
            ("good.test", "good.test:80", true),
            ("Good.Test.", "good.test:80", true),
            ("good.test", "a.good.test:80", false),
            ("*.good.test", "a.good.test:80", true),
            ("*.good.test", "a.b.good.test:80", true),
            ("*.good.test", "good.test:80", false),
            ("*.good.test", "xgood.test:80", false),
            ("*.good.test", "good.test.evil.test:80", false),
            ("good.test:80", "good.test:80", true),
            ("good.test:80", "good.test:443", false),
            ("*.good.test:80", "a.good.test:443", false),
            ("10.9.9.9", "10.9.9.9:1", true),
            ("10.9.9.9:2", "10.9.9.9:1", false),
            ("[::1]", "[0:0::1]:5", true),
            ("[::1]:6", "[::1]:5", false),
            ("*:22", "any.test:22", true),
            ("*:22", "any.test:80", false),
        ];
        for (entry, target, expected) in rows {
            let pattern = DomainPattern::parse_denied(entry).unwrap();
            assert_eq!(pattern.matches(&Target::parse(target).unwrap()), expected, "{entry} {target}");
        }
    }

    #[test]
    fn entries_that_are_too_wide_or_unclear_are_refused() {
        for entry in ["*", "*:443"] {
            assert!(
                matches!(DomainPattern::parse_allowed(entry), Err(PatternError::AllowsEverything { .. })),
                "{entry}"
            );
        }
        for entry in [
            "",
            "*.",
            "a*.test",
            "*.*.test",
            "http://good.test",
            "good.test/x",
            "good.test:",
            "127.1",
            "*.127.0.0.1",
            "::1",
        ] {
            assert!(
                matches!(DomainPattern::parse_allowed(entry), Err(PatternError::Invalid { .. })),
                "{entry}"
            );
        }
    }

    #[test]
    fn denied_comes_before_allowed_before_unlisted() {
        let patterns = |entries: &[&str]| {
            entries.iter().map(|entry| DomainPattern::parse_denied(entry).unwrap()).collect()
        };
        let lists = |unlisted| DomainLists {
            allowed: patterns(&["*.good.test", "good.test:80"]),
            denied: patterns(&["bad.good.test", "*:22"]),
            unlisted,
        };
        let rows = [
            ("a.good.test:443", ListDecision::Allowed),
            ("bad.good.test:443", ListDecision::Denied),
            ("a.good.test:22", ListDecision::Denied),
            ("good.test:80", ListDecision::Allowed),
            ("good.test:443", ListDecision::Ask),
            ("evil.test:80", ListDecision::Ask),
        ];
        for (target, expected) in rows {
            assert_eq!(
                lists(UnlistedHosts::Ask).decide(&Target::parse(target).unwrap()),
                expected,
                "{target}"
            );
        }
        let strict = lists(UnlistedHosts::Refuse).decide(&Target::parse("evil.test:80").unwrap());
        assert_eq!(strict, ListDecision::Unlisted);
    }
}
