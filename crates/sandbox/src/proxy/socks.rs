//! SOCKS 5: one request form, connections to hosts, with the token as the password.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Proxy;
use super::dial::DialError;
use super::refusals::Reason;
use super::target::{Host, Target};
use super::tunnel::{TunnelEnd, carry};

/// First byte of every connection.
pub(crate) const VERSION: u8 = 5;
const PASSWORD_METHOD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// How long the client may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Replies of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// Serves one connection.
pub(crate) async fn serve(proxy: &Proxy, mut stream: TcpStream) {
    let request = timeout(REQUEST_TIMEOUT, read_request(proxy, &mut stream)).await;
    // The client is gone, does not know the token, or does not speak the protocol.
    let Ok(Ok((command, request))) = request else { return };
    let target = match request {
        Ok(target) => target,
        Err(reply) => return send_reply(&mut stream, reply).await,
    };
    let server = match proxy.dial(&command, &target).await {
        Ok(server) => server,
        Err(DialError::Refused(_)) => return send_reply(&mut stream, Reply::NotAllowed).await,
        Err(DialError::Unreachable(_)) => return send_reply(&mut stream, Reply::HostUnreachable).await,
    };
    send_reply(&mut stream, Reply::Succeeded).await;
    if let Ok(TunnelEnd::OtherServerName) = carry(stream, server, &target.host).await {
        proxy.refusals.add(&command, &target, Reason::OtherServerName);
    }
}

/// Reads greeting, password and request. The inner error is a reply to a request that is understood and not served.
async fn read_request(proxy: &Proxy, stream: &mut TcpStream) -> io::Result<(String, Result<Target, Reply>)> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let [_, count] = read_array(stream).await?;
    let methods = read_bytes(stream, count.into()).await?;
    if !methods.contains(&PASSWORD_METHOD) {
        stream.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(malformed());
    }
    stream.write_all(&[VERSION, PASSWORD_METHOD]).await?;
    let [_, length] = read_array(stream).await?;
    let user = read_bytes(stream, length.into()).await?;
    let [length] = read_array(stream).await?;
    let password = read_bytes(stream, length.into()).await?;
    if !proxy.token.is(&password) {
        stream.write_all(&[1, 1]).await?;
        return Err(malformed());
    }
    stream.write_all(&[1, 0]).await?;
    let command = String::from_utf8_lossy(&user).into_owned();
    let [version, verb, _, kind] = read_array(stream).await?;
    if version != VERSION {
        return Err(malformed());
    }
    let host = match kind {
        1 => Ok(Host::Address(Ipv4Addr::from(read_array::<4>(stream).await?).into())),
        4 => Ok(Host::Address(Ipv6Addr::from(read_array::<16>(stream).await?).into())),
        3 => {
            let [length] = read_array(stream).await?;
            let name = read_bytes(stream, length.into()).await?;
            std::str::from_utf8(&name)
                .ok()
                .and_then(|name| Host::parse(name).ok())
                .ok_or(Reply::AddressNotSupported)
        }
        _ => return Ok((command, Err(Reply::AddressNotSupported))),
    };
    let port = u16::from_be_bytes(read_array(stream).await?);
    let target = match (verb, host) {
        (CONNECT, Ok(_)) if port == 0 => Err(Reply::AddressNotSupported),
        (CONNECT, Ok(host)) => Ok(Target { host, port }),
        (CONNECT, Err(reply)) => Err(reply),
        _ => Err(Reply::CommandNotSupported),
    };
    Ok((command, target))
}

async fn send_reply(stream: &mut TcpStream, reply: Reply) {
    // The client may be gone.
    let _ = stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await;
}

async fn read_array<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_bytes(stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
