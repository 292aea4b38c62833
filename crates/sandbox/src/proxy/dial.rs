//! The connection to a host: decided, looked up once, checked, and made to the checked address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Proxy;
use super::refusals::{Reason, Refusal};
use super::target::{Host, Target};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one address is tried before the next one is tried too.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// No connection was made.
#[derive(Debug)]
pub(crate) enum DialError {
    Refused(Refusal),
    /// The host is allowed, but cannot be reached.
    Unreachable(io::Error),
}

impl Proxy {
    /// Connects to a target for a command, if that is allowed.
    pub(crate) async fn dial(&self, command: &str, target: &Target) -> Result<TcpStream, DialError> {
        let refuse = |reason| DialError::Refused(self.refusals.add(command, target, reason));
        self.decisions.decide(target).await.map_err(refuse)?;
        if let Some(upstream) = self.route().upstream {
            // The name is looked up elsewhere; an address can still be checked.
            if let Host::Address(address) = target.host
                && self.decisions.filter_addresses(&[address], target.port, &self.own_addresses).is_empty()
            {
                return Err(refuse(Reason::ForbiddenAddress));
            }
            return upstream.connect(target).await.map_err(DialError::Unreachable);
        }
        let found = look_up(target).await.map_err(DialError::Unreachable)?;
        let open = self.decisions.filter_addresses(&found, target.port, &self.own_addresses);
        if open.is_empty() && !found.is_empty() {
            return Err(refuse(Reason::ForbiddenAddress));
        }
        connect(&open, target.port).await.map_err(DialError::Unreachable)
    }
}

async fn look_up(target: &Target) -> io::Result<Vec<IpAddr>> {
    let name = match &target.host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    // The dot keeps the resolver from trying the search domains of this machine.
    let query = format!("{name}.");
    let mut found = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((query.as_str(), target.port))).await;
    if matches!(&found, Ok(Err(_))) {
        // Names of the hosts file are found without the dot only.
        found = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name.as_str(), target.port))).await;
    }
    let found =
        found.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the name was not found in time"))?;
    let mut addresses = Vec::new();
    for address in found? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

/// Tries the addresses one after the other, each a little later, and takes the first that answers.
async fn connect(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for (index, address) in interleave(addresses).into_iter().enumerate() {
        let delay = ATTEMPT_DELAY.saturating_mul(index as u32);
        attempts.spawn(async move {
            sleep(delay).await;
            TcpStream::connect(SocketAddr::new(address, port)).await
        });
    }
    let first = async {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        while let Some(attempt) = attempts.join_next().await {
            match attempt.map_err(io::Error::other)? {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    let stream =
        timeout(CONNECT_TIMEOUT, first).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Only delays small packets if it fails.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Orders addresses so that the families take turns, beginning with the first one found.
fn interleave(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let is_first =
        |address: &&IpAddr| addresses.first().is_some_and(|first| first.is_ipv4() == address.is_ipv4());
    let (first, second): (Vec<&IpAddr>, Vec<&IpAddr>) = addresses.iter().partition(is_first);
    let mut ordered = Vec::with_capacity(addresses.len());
    let mut second = second.into_iter();
    for address in first {
        ordered.push(*address);
        ordered.extend(second.next());
    }
    ordered.extend(second);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_take_turns() {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(interleave(&parse(&["::1", "::2", "1.1.1.1"])), parse(&["::1", "1.1.1.1", "::2"]));
        assert_eq!(interleave(&parse(&["1.1.1.1", "::1", "::2"])), parse(&["1.1.1.1", "::1", "::2"]));
        assert!(interleave(&[]).is_empty());
    }
}
