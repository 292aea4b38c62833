//! Accepts connections and tells the protocols apart by their first byte.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{HostProxy, Proxy, http, socks};

/// How long a client may take for its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after an error of the system, such as too many open files.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Accepts until the task is aborted.
pub(crate) async fn accept(proxy: Arc<Proxy>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ERROR_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&proxy.connections).acquire_owned().await else { return };
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move { serve(proxy, stream, permit).await });
    }
}

/// Passes a connection on to the caller's own proxy.
async fn pass_on(mut stream: TcpStream, first: u8, host_proxy: HostProxy) {
    let port = if first == socks::VERSION { host_proxy.socks } else { host_proxy.http };
    let Some(port) = port else { return };
    // The client sees the end of its connection if the proxy of the caller is not there.
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
}

async fn serve(proxy: Arc<Proxy>, stream: TcpStream, permit: OwnedSemaphorePermit) {
    // Only delays small packets if it fails.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    if let Some(host_proxy) = proxy.route().host_proxy {
        if let Ok(Ok(1)) = timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await {
            pass_on(stream, first[0], host_proxy).await;
        }
        return;
    }
    // The client has closed, or says nothing: there is nothing to answer.
    match timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == socks::VERSION => socks::serve(&proxy, stream).await,
        Ok(Ok(1)) => http::serve(proxy, stream, permit).await,
        _ => {}
    }
}
