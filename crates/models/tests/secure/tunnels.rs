//! TLS servers behind a proxy, and proxies behind TLS.

use std::net::TcpListener;

use http::HeaderMap;
use tempfile::NamedTempFile;
use whimbrel_models::http::HttpClient;
use whimbrel_models::{ModelError, ModelErrorKind};

use super::certificate_for;
use super::proxy::TunnelProxy;
use super::server::{REPLY, TlsServer, tls_identity};

const TUNNEL_OPENED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A client with these variables that trusts this root file.
fn client(variables: &[(&str, String)], roots: &NamedTempFile) -> HttpClient {
    let roots = roots.path().to_str().unwrap();
    HttpClient::from_env(|name| {
        let known = variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        known.or_else(|| (name == "NODE_EXTRA_CA_CERTS").then(|| roots.to_owned()))
    })
}

async fn post(http: &HttpClient, url: &str) -> Result<Vec<u8>, ModelError> {
    let response = http.post(url, HeaderMap::new(), String::from("{}")).await?;
    response.read_all(1 << 20).await.map(Into::into)
}

#[tokio::test]
async fn tunnel_uses_the_proxy_credentials_and_is_reused() {
    for (protocols, http2_connections) in [(["h2", "http/1.1"].as_slice(), 1), (&["http/1.1"], 0)] {
        let server = TlsServer::start(certificate_for("far.test"), protocols).await;
        let proxy = TunnelProxy::start(server.address, None, TUNNEL_OPENED).await;
        let address = format!("http://ann:p%40ss@{}", proxy.address);
        let http = client(&[("https_proxy", address)], &server.root);
        for _ in 0..2 {
            assert_eq!(post(&http, "https://far.test:8443/x").await.unwrap(), REPLY.as_bytes());
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        let head = "CONNECT far.test:8443 HTTP/1.1\r\nHost: far.test:8443\r\n\
                    Proxy-Authorization: Basic YW5uOnBAc3M=\r\n\r\n";
        assert_eq!(proxy.heads(), [head]);
        assert_eq!(server.count(|counts| &counts.http2_connections), http2_connections);
        for head in server.counts.heads.lock().unwrap().iter() {
            assert!(head.starts_with("POST /x HTTP/1.1"), "{head}");
            assert!(!head.to_lowercase().contains("proxy-authorization"), "{head}");
        }
    }
}

#[tokio::test]
async fn proxy_may_be_behind_tls() {
    let server = TlsServer::start(certificate_for("far.test"), &["h2", "http/1.1"]).await;
    let (tls, root) = tls_identity(&certificate_for("127.0.0.1"), &["h2", "http/1.1"]);
    let proxy = TunnelProxy::start(server.address, Some(tls), TUNNEL_OPENED).await;
    let address = format!("https://{}", proxy.address);
    let both = NamedTempFile::new().unwrap();
    let known = std::fs::read_to_string(server.root.path()).unwrap();
    std::fs::write(both.path(), known + &root).unwrap();
    assert_eq!(
        post(&client(&[("HTTPS_PROXY", address.clone())], &both), "https://far.test/x").await.unwrap(),
        REPLY.as_bytes()
    );
    assert!(proxy.heads()[0].starts_with("CONNECT far.test:443 HTTP/1.1\r\n"), "{:?}", proxy.heads());
    assert_eq!(server.count(|counts| &counts.http2_connections), 1);
    let distrusting = client(&[("HTTPS_PROXY", address)], &server.root);
    let error = post(&distrusting, "https://far.test/x").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Certificate, "{error}");
    let named =
        format!("The certificate of the proxy {} (named in the environment, for far.test)", proxy.address);
    assert!(error.message.starts_with(&named), "{error}");
}

#[tokio::test]
async fn secure_proxy_forwards_plain_requests() {
    let proxy = TlsServer::start(certificate_for("127.0.0.1"), &["h2", "http/1.1"]).await;
    let address = proxy.url.replace("https://", "https://ann:secret@");
    let http = client(&[("HTTP_PROXY", address)], &proxy.root);
    assert_eq!(post(&http, "http://far.test/x").await.unwrap(), REPLY.as_bytes());
    let heads = proxy.counts.heads.lock().unwrap();
    assert!(heads[0].starts_with("POST http://far.test/x HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains("Basic YW5uOnNlY3JldA=="), "{heads:?}");
}

#[tokio::test]
async fn proxy_that_denies_the_tunnel_is_reported() {
    let server = TlsServer::start(certificate_for("far.test"), &["h2"]).await;
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (response, target, part) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            server.address,
            "it requires a valid user and password",
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", server.address, "it does not open the tunnel"),
        ("HTTP", unreachable, "it closed the connection without a response"),
    ] {
        let proxy = TunnelProxy::start(target, None, response).await;
        let http = client(&[("ALL_PROXY", format!("http://ann:secret@{}", proxy.address))], &server.root);
        let error = post(&http, "https://far.test/x").await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection, "{error}");
        assert!(error.message.contains(part), "{error}");
        let named = format!("the proxy {} (named in the environment, for far.test)", proxy.address);
        assert!(error.message.contains(&named) && !error.message.contains("secret"), "{error}");
        assert_eq!(server.count(|counts| &counts.requests), 0);
    }
}
