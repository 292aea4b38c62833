//! Which hosts may be contacted. Pure.
//!
//! A model can be tricked into fetching internal resources (SSRF), so only public addresses are allowed, unless
//! `WHIMBREL_FETCH_PRIVATE=1` is set in the session's environment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use whimbrel_models::http::AddressFilter;

/// Variable that allows loopback and private networks.
pub(super) const PRIVATE_NETWORK_VARIABLE: &str = "WHIMBREL_FETCH_PRIVATE";

/// Addresses that a session may contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkScope {
    /// Public addresses only.
    Public,
    /// Also loopback and private networks.
    Private,
}

impl NetworkScope {
    /// The scope that the variable sets.
    pub(super) fn from_variable(variable: Option<&str>) -> Self {
        if variable == Some("1") { Self::Private } else { Self::Public }
    }

    /// Predicate for addresses that may be connected to.
    pub(super) fn address_filter(self) -> AddressFilter {
        match self {
            Self::Public => is_public,
            Self::Private => |_| true,
        }
    }

    /// Returns whether a host name is allowed: the only check possible where a proxy resolves names.
    pub(super) fn allows_host(self, host: &str) -> bool {
        match self {
            Self::Public => !is_local_name(host),
            Self::Private => true,
        }
    }
}

/// Returns whether a name denotes this machine or its network, wherever it is resolved.
fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let last = host.rsplit('.').next().unwrap_or_default();
    ["localhost", "local", "internal"].iter().any(|local| last.eq_ignore_ascii_case(local))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let shared = matches!(address.octets(), [100, 64..=127, ..]);
    let special = matches!(address.octets(), [0, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..]);
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || shared
        || special)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let site_local = address.segments()[0] & 0xffc0 == 0xfec0;
    // Tunnels and local translators, whose embedded address is unknown; and the discard prefix.
    let tunnel = matches!(address.segments(), [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x100, 0, 0, 0, ..]);
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast()
        || site_local
        || tunnel)
}

/// The IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(joined(high, low))
        }
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let table = [
            ("a public one", "93.184.216.34", true),
            ("a public one, v6", "2606:2800:220:1:248:1893:25c8:1946", true),
            ("next to a private range", "172.32.0.1", true),
            ("next to the shared range", "100.128.0.1", true),
            ("loopback", "127.0.0.1", false),
            ("all of loopback", "127.9.9.9", false),
            ("unspecified", "0.0.0.0", false),
            ("this network", "0.1.2.3", false),
            ("private, 10", "10.1.2.3", false),
            ("private, 172", "172.16.0.1", false),
            ("private, 192", "192.168.1.1", false),
            ("link-local, cloud metadata", "169.254.169.254", false),
            ("shared, cloud metadata", "100.100.100.200", false),
            ("protocol assignments", "192.0.0.1", false),
            ("benchmarks", "198.18.0.1", false),
            ("multicast", "224.0.0.1", false),
            ("reserved", "240.0.0.1", false),
            ("broadcast", "255.255.255.255", false),
            ("loopback, v6", "::1", false),
            ("unspecified, v6", "::", false),
            ("unique local", "fd00::1", false),
            ("link-local, v6", "fe80::1", false),
            ("site-local", "fec0::1", false),
            ("multicast, v6", "ff02::1", false),
            ("mapped", "::ffff:127.0.0.1", false),
            ("mapped and private", "::ffff:10.0.0.1", false),
            ("mapped and public", "::ffff:93.184.216.34", true),
            ("compatible", "::127.0.0.1", false),
            ("NAT64", "64:ff9b::a9fe:a9fe", false),
            ("6to4", "2002:7f00:1::", false),
            ("Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", false),
            ("local NAT64", "64:ff9b:1::a9fe:a9fe", false),
            ("discard prefix", "100::1", false),
            ("next to the Teredo range", "2001:4860:4860::8888", true),
        ];
        for (name, address, expected) in table {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(NetworkScope::Public.address_filter()(address), expected, "{name}: {address}");
            assert!(NetworkScope::Private.address_filter()(address), "{name}");
        }
    }

    #[test]
    fn local_host_names_are_recognized() {
        let table = [
            ("example.com", true),
            ("localhost.example.com", true),
            ("localhost", false),
            ("LOCALHOST.", false),
            ("a.localhost", false),
            ("printer.local", false),
            ("metadata.google.internal", false),
        ];
        for (host, expected) in table {
            assert_eq!(NetworkScope::Public.allows_host(host), expected, "{host}");
            assert!(NetworkScope::Private.allows_host(host), "{host}");
        }
    }

    #[test]
    fn only_the_value_1_allows_private_networks() {
        assert_eq!(NetworkScope::from_variable(Some("1")), NetworkScope::Private);
        for variable in [None, Some(""), Some("0"), Some("true")] {
            assert_eq!(NetworkScope::from_variable(variable), NetworkScope::Public, "{variable:?}");
        }
    }
}
