//! Addresses that a name must not lead to: this machine, its networks, and where clouds keep secrets. Pure, but for the
//! list of this machine's own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Servers of clouds that give secrets to any program on their machines, at addresses that look public.
const CLOUD_SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// Returns whether an address is refused unless a list names it.
pub fn is_refused(address: IpAddr, own: &[IpAddr]) -> bool {
    let address = unwrap_embedded(address);
    own.iter().any(|own| unwrap_embedded(*own) == address)
        || match address {
            IpAddr::V4(address) => is_refused_v4(address),
            IpAddr::V6(address) => is_refused_v6(address),
        }
}

fn is_refused_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    first == 0
        || first >= 240
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || (first == 100 && second & 0xc0 == 64)
        || (first == 192 && second == 0 && third == 0)
        || CLOUD_SERVERS.contains(&address)
}

fn is_refused_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || first & 0xfe00 == 0xfc00
        // Link-local, and the site-local range of old.
        || first & 0xff80 == 0xfe80
        // Teredo: the address inside is disguised.
        || (first == 0x2001 && second == 0)
}

/// Returns the address of version 4 in one of version 6 that stands for it.
pub(crate) fn unwrap_embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(long) = address else { return address };
    let octets = long.octets();
    let last =
        |start: usize| Ipv4Addr::new(octets[start], octets[start + 1], octets[start + 2], octets[start + 3]);
    let embedded = match long.segments() {
        // Mapped, and compatible but for `::` and `::1`.
        [0, 0, 0, 0, 0, 0xffff, ..] => last(12),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => last(12),
        // Translated, NAT64 and its local range.
        [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => last(12),
        // 6to4.
        [0x2002, ..] => last(2),
        _ => return address,
    };
    IpAddr::V4(embedded)
}

/// Returns the addresses of this machine's interfaces.
pub(crate) fn read_own_addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    interfaces.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-19.
    #[test]
    fn private_local_and_embedded_addresses_are_refused() {
        let own: Vec<IpAddr> = vec!["11.7.0.2".parse().unwrap(), "2a0a:7::2".parse().unwrap()];
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.192",
            "168.63.129.16",
            "11.7.0.2",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fd00:ec2::254",
            "fc00::1",
            "ff02::1",
            "2a0a:7::2",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "::ffff:11.7.0.2",
            "2001:0:1::1",
            "::ffff:0:127.0.0.1",
        ];
        for text in refused {
            assert!(is_refused(text.parse().unwrap(), &own), "{text}");
        }
        let passed = [
            "11.8.0.10",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.2.1",
            "2a0a:8::10",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2001:4860::1",
        ];
        for text in passed {
            assert!(!is_refused(text.parse().unwrap(), &own), "{text}");
        }
    }

    #[test]
    fn own_addresses_contain_loopback() {
        assert!(read_own_addresses().iter().all(|address| is_refused(*address, &read_own_addresses())));
        assert!(read_own_addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
