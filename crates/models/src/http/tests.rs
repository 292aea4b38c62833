//! The HTTP client against local test servers.

mod gzip;
mod proxies;

use std::net::TcpListener;

use bytes::Bytes;
use futures::stream::StreamExt;

use super::*;
use crate::test_server::{ResponseAction, TestServer, response};

fn client(variables: &[(&str, &str)]) -> HttpClient {
    let get =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    HttpClient::from_env(get)
}

async fn post_error(http: &HttpClient, url: &str) -> ModelError {
    match http.post(url, HeaderMap::new(), String::from("{}")).await {
        Ok(response) => panic!("status {}", response.status),
        Err(error) => error,
    }
}

#[test]
fn environment_configures_the_network() {
    type Variables = &'static [(&'static str, &'static str)];
    let table: &[(&str, Variables, NetworkConfig)] = &[
        ("nothing", &[], NetworkConfig::default()),
        (
            "all",
            &[("ALL_PROXY", "http://p"), ("NO_PROXY", "intern")],
            NetworkConfig {
                http_proxy: Some("http://p".into()),
                https_proxy: Some("http://p".into()),
                no_proxy: "intern".into(),
                ..NetworkConfig::default()
            },
        ),
        (
            "lower case and empty",
            &[("https_proxy", "http://p"), ("HTTP_PROXY", " ")],
            NetworkConfig { https_proxy: Some("http://p".into()), ..NetworkConfig::default() },
        ),
    ];
    for (name, variables, expected) in table {
        assert_eq!(client(variables).inner.network_config, *expected, "{name}");
    }
}

#[tokio::test]
async fn plain_url_needs_no_tls() {
    let server = TestServer::start([response(204, "", "")]).await;
    let http = client(&[]);
    let response = http.post(&server.url, HeaderMap::new(), String::from("{}")).await.unwrap();
    assert_eq!(response.status, 204);
    assert!(http.inner.pool.get().is_some() && !http.inner.tls.is_initialized());
}

#[tokio::test]
async fn body_in_parts_has_a_content_length() {
    let server = TestServer::start([response(200, "", "")]).await;
    let pieces =
        vec![Bytes::from_static(b"[1,"), Bytes::from(vec![b' '; 200_000]), Bytes::from_static(b"2]")];
    client(&[]).post(&server.url, HeaderMap::new(), pieces).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(
        (request.header("content-length"), request.header("transfer-encoding")),
        (Some("200005"), None)
    );
    assert!(request.body.starts_with(b"[1, ") && request.body.ends_with(b" 2]"));
}

#[tokio::test]
async fn unreachable_server_is_a_connection_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = post_error(&client(&[]), &format!("http://{free}")).await;
    assert_eq!(refused.kind, ModelErrorKind::Connection);
    assert!(refused.message.starts_with("Could not connect to 127.0.0.1: "), "{}", refused.message);
    let unknown = post_error(&client(&[]), "http://host.invalid").await;
    assert_eq!(unknown.kind, ModelErrorKind::Connection);
    let nonsense = post_error(&client(&[]), "nonsense").await;
    assert_eq!(nonsense.kind, ModelErrorKind::InvalidRequest);
}

#[tokio::test]
async fn unresolvable_name_and_stalled_handshake_are_connection_errors() {
    // A label of 64 characters is invalid, so no DNS request is made.
    let unknown = post_error(&client(&[]), &format!("https://{}.invalid", "x".repeat(64))).await;
    assert_eq!(unknown.kind, ModelErrorKind::Connection, "{}", unknown.message);
    // The kernel accepts the connection; the test never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let limits =
        HttpClientLimits { connect_timeout: Duration::from_millis(100), ..HttpClientLimits::default() };
    let http = HttpClient::with_limits(|_| None, limits);
    let timed_out = post_error(&http, &format!("https://{}", mute.local_addr().unwrap())).await;
    assert_eq!(timed_out.kind, ModelErrorKind::Connection, "{}", timed_out.message);
    assert!(timed_out.message.contains("in time"), "{}", timed_out.message);
}

#[tokio::test]
async fn closing_before_the_response_is_a_connection_error() {
    let server = TestServer::start([vec![ResponseAction::Close]]).await;
    assert_eq!(post_error(&client(&[]), &server.url).await.kind, ModelErrorKind::Connection);
}

#[tokio::test]
async fn server_that_does_not_read_times_out() {
    let server = TestServer::start([]).await;
    let limits =
        HttpClientLimits { write_timeout: Duration::from_millis(100), ..HttpClientLimits::default() };
    let megabyte = Bytes::from(vec![b' '; 1 << 20]);
    let http = HttpClient::with_limits(|_| None, limits);
    let outcome = http.post(&server.url, HeaderMap::new(), vec![megabyte; 64]).await;
    assert_eq!(outcome.err().map(|error| error.kind), Some(ModelErrorKind::Stalled));
}

#[tokio::test]
async fn clones_reuse_the_connection() {
    let server = TestServer::start((0..4).map(|_| response(200, "", "body"))).await;
    let first = client(&[]);
    for http in [first.clone(), first.clone(), first.clone(), first] {
        let response = http.post(&server.url, HeaderMap::new(), String::from("{}")).await.unwrap();
        assert_eq!(response.read_all(10).await.unwrap(), "body");
        yield_to_tasks().await;
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 4));
}

#[tokio::test]
async fn connection_closed_by_the_server_is_replaced() {
    let closing = [response(200, "", "body"), vec![ResponseAction::Close]].concat();
    let server = TestServer::start([closing.clone(), closing.clone(), closing]).await;
    let http = client(&[]);
    for _ in 0..3 {
        let response = http.post(&server.url, HeaderMap::new(), String::from("{}")).await.unwrap();
        assert_eq!(response.read_all(10).await.unwrap(), "body");
        yield_to_tasks().await;
    }
    assert_eq!((server.connections(), server.requests().len()), (3, 3));
}

/// Lets the connection tasks run.
async fn yield_to_tasks() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn request_has_default_headers_and_credentials_of_its_url() {
    let server = TestServer::start([response(200, "", ""), response(200, "", "")]).await;
    let http = client(&[]);
    http.post(&server.url, HeaderMap::new(), String::from("{}")).await.unwrap();
    let address = Url::parse(&server.url.replace("http://", "http://ann:secret@")).unwrap();
    let own = HeaderMap::from_iter([(::http::header::ACCEPT, HeaderValue::from_static("text/x"))]);
    http.request(Method::GET, address, own, RequestBody::default()).await.unwrap();
    let host = server.url.trim_start_matches("http://");
    let table = [
        ("POST / HTTP/1.1", "*/*", None, Some("2")),
        ("GET / HTTP/1.1", "text/x", Some("Basic YW5uOnNlY3JldA=="), None),
    ];
    for (request, (line, accept, login, length)) in server.requests().iter().zip(table) {
        assert_eq!(request.request_line.trim_end(), line);
        assert_eq!((request.header("accept"), request.header("authorization")), (Some(accept), login));
        assert_eq!(
            (request.header("accept-encoding"), request.header("host")),
            (Some("identity"), Some(host))
        );
        assert_eq!(request.header("content-length"), length);
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let server = TestServer::start([response(307, "location: http://127.0.0.1:9/\r\n", "")]).await;
    let response = client(&[]).post(&server.url, HeaderMap::new(), String::from("{}")).await.unwrap();
    assert_eq!((response.status, response.header("location")), (307, Some("http://127.0.0.1:9/")));
}

#[tokio::test]
async fn proxy_is_used_except_for_loopback() {
    let proxy = TestServer::start([response(200, "", "")]).await;
    let here = TestServer::start([response(204, "", "")]).await;
    let http = client(&[("HTTP_PROXY", &proxy.url)]);
    let remote = http.post("http://far.invalid/x", HeaderMap::new(), String::from("{}")).await.unwrap();
    let local = http.post(&here.url, HeaderMap::new(), String::from("{}")).await.unwrap();
    assert_eq!((remote.status, local.status), (200, 204));
    assert!(
        proxy.requests()[0].request_line.starts_with("POST http://far.invalid/x "),
        "{}",
        proxy.requests()[0].request_line
    );
}

#[tokio::test]
async fn invalid_extra_roots_fail_but_invalid_shared_roots_do_not() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    let broken = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(broken.path(), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let broken = broken.path().to_str().unwrap();
    for (path, why) in [
        ("/nowhere.pem", "No such file"),
        ("/dev/zero", "a device"),
        ("/", "a directory"),
        (empty, "contains no certificate"),
        (broken, "certificate 1 of 1"),
    ] {
        let error = post_error(&client(&[("NODE_EXTRA_CA_CERTS", path)]), "https://127.0.0.1:9").await;
        assert_eq!(error.kind, ModelErrorKind::Certificate);
        assert!(error.message.contains(path) && error.message.contains(why), "{}", error.message);
    }
    for path in ["/no-cert-file.crt", "/dev/zero", "/", empty, broken] {
        let shared = client(&[("SSL_CERT_FILE", path)]);
        assert_eq!(
            post_error(&shared, "https://127.0.0.1:9").await.kind,
            ModelErrorKind::Connection,
            "{path}"
        );
    }
}

/// A gzip stream that expands 13 bits to 258 bytes, repeatedly.
fn gzip_bomb(repetitions: usize) -> Vec<u8> {
    let code = |value: u32, bits: u32| (0..bits).rev().map(move |bit| value >> bit & 1 == 1);
    let opening = [true, true, false].into_iter().chain(code(0xA8, 8));
    let matches = (0..repetitions).flat_map(|_| code(0b1100_0101, 8).chain(code(0, 5)));
    let bits: Vec<bool> = opening.chain(matches).chain(code(0, 7)).collect();
    let bytes = bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit)));
    [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255].into_iter().chain(bytes).chain([0; 8]).collect()
}

#[tokio::test]
async fn decompression_is_limited() {
    let bomb = gzip_bomb(40_000);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let server =
        TestServer::start([vec![ResponseAction::Write(head.into_bytes()), ResponseAction::Write(bomb)]])
            .await;
    let limits = HttpClientLimits { max_decoded_bytes: 1 << 20, ..HttpClientLimits::default() };
    let http = HttpClient::with_limits(|_| None, limits);
    let mut chunks = http.post(&server.url, HeaderMap::new(), String::new()).await.unwrap().into_body();
    let mut size = 0;
    let error = loop {
        match chunks.next().await.unwrap() {
            Ok(chunk) => size += chunk.len(),
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind, error.should_retry), (ModelErrorKind::Protocol, Some(false)));
    assert!((1..=1 << 20).contains(&size), "{size}");
}

#[tokio::test]
async fn guarded_fetch_connects_to_allowed_addresses_only() {
    let server = TestServer::start([response(200, "", "hello"), response(404, "", "")]).await;
    let named = server.url.replace("127.0.0.1", "localhost");
    for url in [&server.url, &named] {
        let url = Url::parse(url).unwrap();
        let denied = client(&[]).get(&url, "*/*", |address| !address.is_loopback()).await.err();
        assert!(matches!(denied, Some(FetchError::AddressDenied(_))), "{url}: {denied:?}");
    }
    assert_eq!(server.connections(), 0);
    let found = client(&[]).get(&Url::parse(&named).unwrap(), "text/html", |_| true).await.unwrap();
    assert_eq!((found.status, found.status_text()), (200, "OK"));
    assert_eq!(found.read_all(5).await.unwrap(), "hello");
    assert_eq!(server.requests()[0].header("accept"), Some("text/html"));
    let missing = client(&[]).get(&Url::parse(&server.url).unwrap(), "*/*", |_| true).await.unwrap();
    assert_eq!((missing.status, missing.status_text()), (404, "Not Found"));
}

#[tokio::test]
async fn address_filter_does_not_apply_to_the_proxy() {
    let proxy = TestServer::start([response(200, "", "")]).await;
    let proxy_url = proxy.url.replace("127.0.0.1", "localhost");
    let http = client(&[("HTTP_PROXY", &proxy_url)]);
    let get = async |url: &str| http.get(&Url::parse(url).unwrap(), "*/*", |ip| !ip.is_loopback()).await;
    assert_eq!(get("http://far.invalid/x").await.unwrap().status, 200);
    for local in ["http://localhost:9/", "http://127.0.0.1:9/", "http://[::1]:9/"] {
        assert!(matches!(get(local).await, Err(FetchError::AddressDenied(_))), "{local}");
    }
}
