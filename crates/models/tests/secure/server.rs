//! TLS server on loopback with its own certificate.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tokio_rustls::server::TlsStream;

pub(crate) const REPLY: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"safe\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// A server that sends the same reply to every request; it stops with the test's runtime.
pub(crate) struct TlsServer {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    /// Certificate of the authority that signed the server's certificate.
    pub(crate) root: NamedTempFile,
    pub(crate) counts: Arc<ServerCounts>,
}

#[derive(Default)]
pub(crate) struct ServerCounts {
    pub(crate) connections: AtomicUsize,
    /// Connections that negotiated HTTP/2.
    pub(crate) http2_connections: AtomicUsize,
    pub(crate) requests: AtomicUsize,
    /// Total size of the request bodies over HTTP/2.
    pub(crate) body_bytes: AtomicUsize,
    /// Request heads received over HTTP/1.1.
    pub(crate) heads: Mutex<Vec<String>>,
}

/// Signs a certificate with a new authority. Returns the acceptor for these protocols, in order of preference, and the
/// authority's certificate as PEM.
pub(crate) fn tls_identity(certificate: &CertificateParams, protocols: &[&str]) -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&key).unwrap().pem();
    let own_key = KeyPair::generate().unwrap();
    let signed = certificate.signed_by(&own_key, &Issuer::new(authority, key)).unwrap();
    (acceptor(&signed, &own_key, protocols), root)
}

/// Creates a certificate that is its own authority, as `openssl req -x509` does. Returns the acceptor and the
/// certificate as PEM.
pub(crate) fn self_signed_identity(
    mut certificate: CertificateParams,
    protocols: &[&str],
) -> (TlsAcceptor, String) {
    certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let signed = certificate.self_signed(&key).unwrap();
    (acceptor(&signed, &key, protocols), signed.pem())
}

fn acceptor(certificate: &Certificate, key: &KeyPair, protocols: &[&str]) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config =
        builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

impl TlsServer {
    /// Starts a server with this certificate and these protocols, in order of preference.
    pub(crate) async fn start(certificate: CertificateParams, protocols: &[&str]) -> Self {
        Self::with_identity(tls_identity(&certificate, protocols)).await
    }

    /// Starts a server with an identity of [`tls_identity`] or [`self_signed_identity`].
    pub(crate) async fn with_identity((tls, pem): (TlsAcceptor, String)) -> Self {
        let mut root = NamedTempFile::new().unwrap();
        root.write_all(pem.as_bytes()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(ServerCounts::default());
        tokio::spawn(accept(listener, tls, Arc::clone(&counts)));
        Self { url: format!("https://{address}"), address, root, counts }
    }

    pub(crate) fn count(&self, field: impl Fn(&ServerCounts) -> &AtomicUsize) -> usize {
        field(&self.counts).load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, counts: Arc<ServerCounts>) {
    while let Ok((stream, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let (tls, counts) = (tls.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                counts.http2_connections.fetch_add(1, Ordering::SeqCst);
                serve_http2(stream, counts).await;
            } else {
                let _ = serve_http1(stream, counts).await;
            }
        });
    }
}

async fn serve_http2(stream: TlsStream<TcpStream>, counts: Arc<ServerCounts>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut response))) = connection.accept().await {
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(piece)) = body.data().await {
                counts.body_bytes.fetch_add(piece.len(), Ordering::SeqCst);
                body.flow_control().release_capacity(piece.len()).unwrap();
            }
            counts.requests.fetch_add(1, Ordering::SeqCst);
            let head = http::Response::builder().header("content-type", "text/event-stream");
            let mut body_sender = response.send_response(head.body(()).unwrap(), false).unwrap();
            body_sender.send_data(Bytes::from_static(REPLY.as_bytes()), true).unwrap();
        });
    }
}

async fn serve_http1(stream: TlsStream<TcpStream>, counts: Arc<ServerCounts>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut head) = (0, String::new());
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head += &line;
        }
        stream.read_exact(&mut vec![0; length]).await?;
        counts.heads.lock().unwrap().push(head);
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            REPLY.len()
        );
        stream.write_all(format!("{head}{REPLY}").as_bytes()).await?;
        stream.flush().await?;
    }
}
