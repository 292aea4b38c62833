//! Proxies for plain URLs, and invalid proxies.

use super::*;

/// A host that causes no DNS request, because its label is too long.
fn unresolvable_host() -> String {
    format!("{}.invalid", "x".repeat(64))
}

#[tokio::test]
async fn only_the_proxy_gets_absolute_url_and_credentials() {
    let proxy = TestServer::start([response(200, "", ""), response(200, "", "")]).await;
    let here = TestServer::start([response(200, "", "")]).await;
    let address = proxy.url.replace("http://", "http://ann:p%40ss@");
    let http = client(&[("http_proxy", &address)]);
    http.post("http://far.invalid:81/x?y", HeaderMap::new(), String::from("{}")).await.unwrap();
    http.get(&Url::parse("http://far.invalid/z").unwrap(), "*/*", |_| true).await.unwrap();
    http.post(&here.url, HeaderMap::new(), String::from("{}")).await.unwrap();
    let requests = proxy.requests();
    let lines: Vec<&str> = requests.iter().map(|requests| requests.request_line.trim_end()).collect();
    assert_eq!(lines, ["POST http://far.invalid:81/x?y HTTP/1.1", "GET http://far.invalid/z HTTP/1.1"]);
    for (requests, host) in requests.iter().zip(["far.invalid:81", "far.invalid"]) {
        assert_eq!(requests.header("proxy-authorization"), Some("Basic YW5uOnBAc3M="));
        assert_eq!(requests.header("host"), Some(host));
    }
    assert_eq!(here.requests()[0].request_line.trim_end(), "POST / HTTP/1.1");
    assert_eq!(here.requests()[0].header("proxy-authorization"), None);
}

#[tokio::test]
async fn proxy_needs_no_scheme() {
    let proxy = TestServer::start([response(200, "", "")]).await;
    let http = client(&[("ALL_PROXY", proxy.url.trim_start_matches("http://"))]);
    let response = http.post("http://far.invalid/", HeaderMap::new(), String::new()).await.unwrap();
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let proxy = TestServer::start([response(200, "", "")]).await;
    let url = format!("http://{}/", unresolvable_host());
    for (variable, list) in [
        ("NO_PROXY", "invalid"),
        ("no_proxy", "a.test, .invalid"),
        ("NO_PROXY", "a.test *.invalid"),
        ("NO_PROXY", "invalid:80"),
        ("NO_PROXY", "*"),
    ] {
        let http = client(&[("HTTP_PROXY", &proxy.url), (variable, list)]);
        assert_eq!(post_error(&http, &url).await.kind, ModelErrorKind::Connection, "{list}");
        assert_eq!(proxy.connections(), 0, "{list}");
    }
    let http = client(&[("HTTP_PROXY", &proxy.url), ("NO_PROXY", "other.test, invalid:81")]);
    assert_eq!(http.post(&url, HeaderMap::new(), String::new()).await.unwrap().status, 200);
}

#[tokio::test]
async fn loopback_bypasses_the_proxy_in_every_spelling() {
    let proxy = TestServer::start([response(200, "", "")]).await;
    let here = TestServer::start((0..2).map(|_| response(204, "", ""))).await;
    let http = client(&[("HTTP_PROXY", &proxy.url)]);
    for host in ["localhost", "127.0.0.1"] {
        let url = here.url.replace("127.0.0.1", host);
        assert_eq!(http.post(&url, HeaderMap::new(), String::new()).await.unwrap().status, 204, "{host}");
    }
    // Whether these connect depends on the system, but nothing goes to the proxy.
    for host in ["localhost.", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let _ = http.post(&format!("http://{host}:9/"), HeaderMap::new(), String::new()).await;
    }
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn invalid_proxy_is_reported_without_its_password() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (dead, unresolvable) =
        (format!("http://ann:secret@{free}"), format!("http://ann:secret@{}:81", unresolvable_host()));
    let refused =
        format!("through the proxy {free} (named in the environment, for far.invalid): Connection refused");
    let table = [
        ("socks5://ann:secret@127.0.0.1:9", ModelErrorKind::InvalidRequest, "uses socks5"),
        ("ftp://ann:secret@127.0.0.1:9", ModelErrorKind::InvalidRequest, "not a valid URL"),
        ("http://ann:secret@[127.0.0.1", ModelErrorKind::InvalidRequest, "not a valid URL"),
        ("http://", ModelErrorKind::InvalidRequest, "not a valid URL"),
        (&dead, ModelErrorKind::Connection, &refused),
        (
            &unresolvable,
            ModelErrorKind::Connection,
            ".invalid:81 (named in the environment, for far.invalid): ",
        ),
    ];
    for (address, kind, part) in table {
        for url in ["http://far.invalid", "https://far.invalid"] {
            let error = post_error(&client(&[("ALL_PROXY", address)]), url).await;
            assert_eq!(error.kind, kind, "{address}: {error}");
            assert!(error.message.contains(part), "{address}: {error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}

#[tokio::test]
async fn failing_proxy_is_named() {
    let proxy = TestServer::start([response(407, "", ""), vec![ResponseAction::Close]]).await;
    let at = proxy.url.trim_start_matches("http://");
    let named = format!("the proxy {at} (named in the environment, for far.invalid)");
    let http = client(&[("HTTP_PROXY", &proxy.url.replace("http://", "http://ann:secret@"))]);
    for (part, retry) in [("user and password", Some(false)), ("broke before a response", None)] {
        let error = post_error(&http, "http://far.invalid/").await;
        assert_eq!((error.kind, error.should_retry), (ModelErrorKind::Connection, retry), "{error}");
        assert!(error.message.contains(&named) && error.message.contains(part), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
    }
    // Without a proxy the status 407 belongs to the server.
    let server = TestServer::start([response(407, "", "")]).await;
    assert_eq!(http.post(&server.url, HeaderMap::new(), String::new()).await.unwrap().status, 407);
}

#[tokio::test]
async fn stalled_tunnel_times_out() {
    // The kernel accepts the connection; the test never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", mute.local_addr().unwrap());
    let limits =
        HttpClientLimits { connect_timeout: Duration::from_millis(100), ..HttpClientLimits::default() };
    let http = HttpClient::with_limits(|name| (name == "HTTPS_PROXY").then(|| proxy.clone()), limits);
    let timed_out = post_error(&http, "https://far.invalid").await;
    assert_eq!(timed_out.kind, ModelErrorKind::Connection, "{timed_out}");
    let at = mute.local_addr().unwrap();
    let named = format!(
        "through the proxy {at} (named in the environment, for far.invalid): the connection timed out."
    );
    assert!(timed_out.message.ends_with(&named), "{timed_out}");
}
