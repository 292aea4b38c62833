//! Proxy on loopback that opens every tunnel to one fixed server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The proxy; it stops with the test's runtime.
pub(crate) struct TunnelProxy {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TunnelProxy {
    /// Starts a proxy for a server, optionally behind TLS, that answers tunnel requests with `answer`.
    pub(crate) async fn start(server: SocketAddr, tls: Option<TlsAcceptor>, response: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, recorded) = (tls.clone(), Arc::clone(&recorded));
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            tunnel(tls.accept(stream).await.ok()?, server, response, &recorded).await
                        }
                        None => tunnel(stream, server, response, &recorded).await,
                    }
                });
            }
        });
        Self { address, heads }
    }

    /// The request heads received.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn tunnel(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    server: SocketAddr,
    response: &str,
    heads: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        stream.read_line(&mut head).await.ok().filter(|size| *size > 0)?;
    }
    heads.lock().unwrap().push(head);
    stream.write_all(response.as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    let mut server = TcpStream::connect(server).await.ok()?;
    copy_bidirectional(&mut stream, &mut server).await.ok()?;
    Some(())
}
