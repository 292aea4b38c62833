//! Models behind TLS: a server on loopback with its own certificates, over HTTP/2 and HTTP/1.1.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod proxy;
mod server;
mod trust;
mod tunnels;

use std::sync::Arc;

use futures::StreamExt;
use futures::future::join_all;
use rcgen::CertificateParams;
use server::{TlsServer, self_signed_identity};
use whimbrel_models::anthropic::Anthropic;
use whimbrel_models::assemble::ReplyAssembler;
use whimbrel_models::http::HttpClient;
use whimbrel_models::{History, Model, ModelError, ModelErrorKind, Request, RequestPrefix};
use whimbrel_wire::{Block, Role};

impl TlsServer {
    /// A client of the server with an environment in which `variable` names its root certificate.
    fn model(&self, variable: Option<&str>) -> Anthropic {
        let root = self.root.path().to_str().unwrap().to_owned();
        let http = HttpClient::from_env(move |name| (Some(name) == variable).then(|| root.clone()));
        Anthropic::new(&self.url, Some("key".into()), http)
    }
}

fn certificate_for(host: &str) -> CertificateParams {
    CertificateParams::new(vec![host.to_owned()]).unwrap()
}

/// Returns the text of the reply to a prompt of `size` bytes.
async fn reply_text(model: &Anthropic, size: usize) -> Result<String, ModelError> {
    let mut history = History::new();
    history.push(Role::User, &Block::text("x".repeat(size)));
    let request = Request::new("m", Arc::new(RequestPrefix::new(Vec::new(), Vec::new())), history.snapshot());
    let mut events = model.stream_reply(Arc::new(request));
    let (mut assembler, mut reply) = (ReplyAssembler::default(), String::new());
    while let Some(item) = events.next().await {
        if let Some(finished) = assembler.push_event(&item?.event)?
            && let Block::Text { text, .. } = finished.block
        {
            reply += &text;
        }
    }
    Ok(reply)
}

#[tokio::test]
async fn many_turns_share_one_http2_connection() {
    let server = TlsServer::start(certificate_for("127.0.0.1"), &["h2", "http/1.1"]).await;
    let model = server.model(Some("NODE_EXTRA_CA_CERTS"));
    for _ in 0..3 {
        assert_eq!(reply_text(&model, 10).await.as_deref(), Ok("safe"));
    }
    // Larger than the window of an HTTP/2 stream, so that sending waits for the server.
    assert_eq!(reply_text(&model, 1 << 20).await.as_deref(), Ok("safe"));
    let concurrent = join_all((0..8).map(|_| reply_text(&model, 10))).await;
    assert!(concurrent.iter().all(|text| text.as_deref() == Ok("safe")), "{concurrent:?}");
    let counts = (
        server.count(|counts| &counts.connections),
        server.count(|counts| &counts.http2_connections),
        server.count(|counts| &counts.requests),
    );
    assert_eq!(counts, (1, 1, 12));
    assert!(server.count(|counts| &counts.body_bytes) > 1 << 20);
}

#[tokio::test]
async fn server_without_http2_is_used_with_http1() {
    let server = TlsServer::start(certificate_for("127.0.0.1"), &["http/1.1"]).await;
    let model = server.model(Some("SSL_CERT_FILE"));
    for _ in 0..3 {
        assert_eq!(reply_text(&model, 10).await.as_deref(), Ok("safe"));
    }
    assert_eq!(
        (server.count(|counts| &counts.http2_connections), server.count(|counts| &counts.requests)),
        (0, 3)
    );
}

#[tokio::test]
async fn untrusted_certificate_is_explained_with_a_remedy() {
    let mut old = certificate_for("127.0.0.1");
    old.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let trusting = Some("NODE_EXTRA_CA_CERTS");
    let table = [
        (
            "A17 unknown issuer",
            certificate_for("127.0.0.1"),
            None,
            ["its issuer is unknown", "NODE_EXTRA_CA_CERTS"],
        ),
        ("another host", certificate_for("elsewhere.test"), trusting, ["it is for another host", "base URL"]),
        ("too old", old, trusting, ["it has expired", "clock"]),
    ];
    for (name, certificate, variable, parts) in table {
        let server = TlsServer::start(certificate, &["h2"]).await;
        let error = reply_text(&server.model(variable), 10).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Certificate, "{name}: {error}");
        assert!(
            error.message.starts_with("The certificate of 127.0.0.1 is not trusted: "),
            "{name}: {error}"
        );
        assert!(parts.iter().all(|part| error.message.contains(part)), "{name}: {error}");
        assert_eq!(server.count(|counts| &counts.requests), 0, "{name}");
    }
}

#[tokio::test]
async fn self_signed_certificate_is_trusted_if_named() {
    let protocols = &["h2", "http/1.1"];
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        let server =
            TlsServer::with_identity(self_signed_identity(certificate_for("127.0.0.1"), protocols)).await;
        assert_eq!(reply_text(&server.model(Some(variable)), 10).await.as_deref(), Ok("safe"), "{variable}");
        assert_eq!(reply_text(&server.model(None), 10).await.unwrap_err().kind, ModelErrorKind::Certificate);
    }
}

#[tokio::test]
async fn self_signed_certificate_must_be_valid_for_host_and_date() {
    let mut expired = certificate_for("127.0.0.1");
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    for (certificate, reason) in
        [(expired, "it has expired"), (certificate_for("other.test"), "it is for another host")]
    {
        let server = TlsServer::with_identity(self_signed_identity(certificate, &["h2"])).await;
        let error = reply_text(&server.model(Some("NODE_EXTRA_CA_CERTS")), 10).await.unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
    }
}
