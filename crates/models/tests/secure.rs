//! Models behind TLS: a server on loopback with certificates of its own, over HTTP/2 and HTTP/1.1.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tokio_rustls::server::TlsStream;
use whimbrel_models::anthropic::Anthropic;
use whimbrel_models::assemble::Assembly;
use whimbrel_models::http::Door;
use whimbrel_models::{Fault, FaultKind, History, Model, Preamble, Request};
use whimbrel_wire::{Block, Role};

const REPLY: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"safe\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// A server that says the same to everybody; it ends with the test's runtime.
struct Server {
    url: String,
    /// The certificate of whoever signed the server's.
    root: NamedTempFile,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    /// Connections that agreed on HTTP/2.
    modern: AtomicUsize,
    requests: AtomicUsize,
    /// The bytes of all requests together.
    heard: AtomicUsize,
}

impl Server {
    /// A server with a certificate like this, which speaks these protocols, the best first.
    async fn start(certificate: CertificateParams, protocols: &[&str]) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let mut root = NamedTempFile::new().unwrap();
        root.write_all(authority.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        let own_key = KeyPair::generate().unwrap();
        let signed = certificate.signed_by(&own_key, &Issuer::new(authority, key)).unwrap();
        let own_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_key.serialize_der()));

        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config =
            builder.with_no_client_auth().with_single_cert(vec![signed.der().clone()], own_key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let counts = Arc::new(Counts::default());
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&counts)));
        Self { url, root, counts }
    }

    /// The model behind the server, as somebody asks it whose environment has this variable.
    fn model(&self, variable: Option<&str>) -> Anthropic {
        let root = self.root.path().to_str().unwrap().to_owned();
        let door = Door::from_env(move |name| (Some(name) == variable).then(|| root.clone()));
        Anthropic::new(&self.url, Some("key".into()), door)
    }

    fn count(&self, of: impl Fn(&Counts) -> &AtomicUsize) -> usize {
        of(&self.counts).load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, counts: Arc<Counts>) {
    while let Ok((stream, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let (tls, counts) = (tls.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                counts.modern.fetch_add(1, Ordering::SeqCst);
                serve_modern(stream, counts).await;
            } else {
                let _ = serve_plain(stream, counts).await;
            }
        });
    }
}

async fn serve_modern(stream: TlsStream<TcpStream>, counts: Arc<Counts>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut answer))) = connection.accept().await {
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(piece)) = body.data().await {
                counts.heard.fetch_add(piece.len(), Ordering::SeqCst);
                body.flow_control().release_capacity(piece.len()).unwrap();
            }
            counts.requests.fetch_add(1, Ordering::SeqCst);
            let head = http::Response::builder().header("content-type", "text/event-stream");
            let mut sending = answer.send_response(head.body(()).unwrap(), false).unwrap();
            sending.send_data(Bytes::from_static(REPLY.as_bytes()), true).unwrap();
        });
    }
}

async fn serve_plain(stream: TlsStream<TcpStream>, counts: Arc<Counts>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
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
        }
        stream.read_exact(&mut vec![0; length]).await?;
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            REPLY.len()
        );
        stream.write_all(format!("{head}{REPLY}").as_bytes()).await?;
        stream.flush().await?;
    }
}

fn named(host: &str) -> CertificateParams {
    CertificateParams::new(vec![host.to_owned()]).unwrap()
}

/// The text of one reply to a prompt of so many bytes.
async fn ask(model: &Anthropic, size: usize) -> Result<String, Fault> {
    let mut history = History::new();
    history.push(Role::User, &Block::text("x".repeat(size)));
    let request = Request::new("m", Arc::new(Preamble::new(Vec::new(), Vec::new())), history.ask());
    let mut events = model.ask(Arc::new(request));
    let (mut assembly, mut said) = (Assembly::default(), String::new());
    while let Some(delta) = events.next().await {
        if let Some(finished) = assembly.take(&delta?.event)?
            && let Block::Text { text, .. } = finished.block
        {
            said += &text;
        }
    }
    Ok(said)
}

#[tokio::test]
async fn many_turns_go_over_one_connection_of_http_2() {
    let server = Server::start(named("127.0.0.1"), &["h2", "http/1.1"]).await;
    let model = server.model(Some("NODE_EXTRA_CA_CERTS"));
    for _ in 0..3 {
        assert_eq!(ask(&model, 10).await.as_deref(), Ok("safe"));
    }
    // More than the window of a stream, so that sending has to wait for the server.
    assert_eq!(ask(&model, 1 << 20).await.as_deref(), Ok("safe"));
    let at_once = join_all((0..8).map(|_| ask(&model, 10))).await;
    assert!(at_once.iter().all(|said| said.as_deref() == Ok("safe")), "{at_once:?}");
    let counts = (
        server.count(|counts| &counts.connections),
        server.count(|counts| &counts.modern),
        server.count(|counts| &counts.requests),
    );
    assert_eq!(counts, (1, 1, 12));
    assert!(server.count(|counts| &counts.heard) > 1 << 20);
}

#[tokio::test]
async fn a_server_without_http_2_is_spoken_to_as_it_can() {
    let server = Server::start(named("127.0.0.1"), &["http/1.1"]).await;
    let model = server.model(Some("SSL_CERT_FILE"));
    for _ in 0..3 {
        assert_eq!(ask(&model, 10).await.as_deref(), Ok("safe"));
    }
    assert_eq!((server.count(|counts| &counts.modern), server.count(|counts| &counts.requests)), (0, 3));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_with_cause_and_remedy() {
    let mut old = named("127.0.0.1");
    old.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let trusting = Some("NODE_EXTRA_CA_CERTS");
    let table = [
        ("A17 nobody known", named("127.0.0.1"), None, ["nobody known has signed it", "NODE_EXTRA_CA_CERTS"]),
        ("another host", named("elsewhere.test"), trusting, ["it is for another host", "base URL"]),
        ("too old", old, trusting, ["it has expired", "clock"]),
    ];
    for (name, certificate, variable, parts) in table {
        let server = Server::start(certificate, &["h2"]).await;
        let fault = ask(&server.model(variable), 10).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Certificate, "{name}: {fault}");
        assert!(
            fault.message.starts_with("The certificate of 127.0.0.1 is not trusted: "),
            "{name}: {fault}"
        );
        assert!(parts.iter().all(|part| fault.message.contains(part)), "{name}: {fault}");
        assert_eq!(server.count(|counts| &counts.requests), 0, "{name}");
    }
}
