//! Servers that require OAuth.

use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use whimbrel_mcp::ServerDeps;
use whimbrel_mcp::oauth::LoginFlow;
use whimbrel_testkit::oauth_mock::{ClientRegistration, authorize_redirect, complete_login};
use whimbrel_testkit::{Host, OauthMock, Reply, TestDirs};
use whimbrel_wire::control::{McpReconnect, McpStatus};
use whimbrel_wire::options::{McpServerConfig, Options, RemoteServer};
use whimbrel_wire::permission::PermissionMode;

use crate::fixture::{server_states, shell_server};

fn options(birds: &McpServerConfig) -> Options {
    Options {
        mcp_servers: [("birds".to_owned(), birds.clone()), ("sh".to_owned(), shell_server())].into(),
        permission_mode: Some(PermissionMode::BypassPermissions),
        ..Options::default()
    }
}

fn http_server(url: &str, more: &Value) -> McpServerConfig {
    let mut entry = json!({"type": "http", "url": url});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

fn as_remote(config: &McpServerConfig) -> &RemoteServer {
    let McpServerConfig::Http(server) = config else { panic!("{config:?}") };
    server
}

fn server_environment(dirs: &TestDirs, secret: Option<&str>) -> ServerDeps {
    let mut env = dirs.env();
    env.extend(secret.map(|secret| ("MCP_CLIENT_SECRET".to_owned(), secret.to_owned())));
    ServerDeps::new(dirs.workspace(), env)
}

async fn birds_status(host: &mut Host) -> (String, String) {
    let status = host.send_request(McpStatus::default()).await.unwrap();
    let birds = status.mcp_servers.into_iter().find(|server| server.name == "birds").unwrap();
    let status_name = serde_json::to_value(birds.status).unwrap().as_str().unwrap().to_owned();
    (status_name, birds.error.unwrap_or_default())
}

#[tokio::test]
async fn login_is_requested_used_refreshed_and_lost() {
    let mock = OauthMock::start(ClientRegistration::Dynamic).await.unwrap();
    let birds = http_server(&mock.url(), &json!({}));
    let count = || Reply::tool("mcp__birds__count", json!({}));
    let script = [
        Reply::text("Not yet."),
        count(),
        Reply::text("Seven."),
        count(),
        Reply::text("Still seven."),
        count(),
        Reply::text("No more."),
    ];
    let mut host =
        Host::with_script(script).options(options(&birds)).env("IS_SANDBOX", "1").start().await.unwrap();
    host.run("Go.").await.unwrap();
    let expected =
        [("birds", "needs-auth"), ("sh", "connected")].map(|(name, state)| (name.into(), state.into()));
    assert_eq!(server_states(host.init_frame().unwrap()), expected);
    let (status, error) = birds_status(&mut host).await;
    assert!(status == "needs-auth" && error.contains("whimbrel mcp login"), "{status}: {error}");
    assert_eq!(mock.requests(), ["POST /mcp"], "the refresh is not repeated");

    let login = LoginFlow::start(as_remote(&birds), &server_environment(host.dirs(), None)).await.unwrap();
    let (_sender, lines) = unbounded_channel();
    let address = login.authorization_url().to_owned();
    let (finished, page) = tokio::join!(login.finish(lines), complete_login(&address));
    finished.unwrap();
    assert!(page.unwrap().contains("You can close this page"));
    host.send_request(McpReconnect { server_name: "birds".into() }).await.unwrap();
    host.run("Count.").await.unwrap();
    assert!(host.model_requests()[2].contains_text("seven curlews"));

    mock.revoke_access_tokens();
    host.run("Count again.").await.unwrap();
    assert!(host.model_requests()[4].contains_text("seven curlews"), "the token was refreshed");
    assert_eq!(mock.requests().iter().filter(|path| *path == "POST /token").count(), 2);

    mock.revoke_all_tokens();
    host.run("And again.").await.unwrap();
    assert!(host.model_requests()[6].contains_text("the saved login is no longer valid"));
    let (status, _) = birds_status(&mut host).await;
    assert_eq!(status, "needs-auth");
    host.finish().await.unwrap();
}

#[tokio::test]
async fn preregistered_client_logs_in_with_pasted_redirect() {
    let mock =
        OauthMock::start(ClientRegistration::Preregistered("our-id".into(), "s3cret".into())).await.unwrap();
    let dirs = TestDirs::new().unwrap();
    let unknown = http_server(&mock.url(), &json!({}));
    let rejected =
        LoginFlow::start(as_remote(&unknown), &server_environment(&dirs, None)).await.err().unwrap();
    assert!(rejected.contains("`oauth.clientId`"), "{rejected}");

    let birds = http_server(&mock.url(), &json!({"oauth": {"clientId": "our-id"}}));
    let login = LoginFlow::start(as_remote(&birds), &server_environment(&dirs, Some("wrong"))).await.unwrap();
    let (_sender, lines) = unbounded_channel();
    let address = login.authorization_url().to_owned();
    let (finished, _) = tokio::join!(login.finish(lines), complete_login(&address));
    assert!(finished.unwrap_err().contains("invalid_client"));

    let login =
        LoginFlow::start(as_remote(&birds), &server_environment(&dirs, Some("s3cret"))).await.unwrap();
    assert!(
        login.authorization_url().contains("redirect_uri=http%3A%2F%2Flocalhost%3A"),
        "{}",
        login.authorization_url()
    );
    let redirect = authorize_redirect(login.authorization_url()).await.unwrap();
    let (paste, lines) = unbounded_channel();
    for line in ["", "what now?", "http://localhost/callback?code=x&state=not-ours", &redirect] {
        paste.send(line.to_owned()).unwrap();
    }
    login.finish(lines).await.unwrap();
    let mut host = Host::with_script([Reply::text("Done.")])
        .options(options(&birds))
        .env("IS_SANDBOX", "1")
        .dirs(dirs)
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(server_states(host.init_frame().unwrap())[0], ("birds".into(), "connected".into()));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn failed_login_names_the_reason() {
    let mock = OauthMock::start(ClientRegistration::Dynamic).await.unwrap();
    let dirs = TestDirs::new().unwrap();
    let rows = [
        (
            http_server(&mock.url(), &json!({"headers": {"authorization": "Bearer x"}})),
            "Authorization header",
        ),
        (http_server(&mock.url().replace("/mcp", "/nothing"), &json!({})), "HTTP 404"),
        (http_server("http://127.0.0.1:1/mcp", &json!({})), "127.0.0.1"),
        (http_server("http://birds.test/mcp", &json!({})), "does not use https:"),
    ];
    for (config, part) in rows {
        let error =
            LoginFlow::start(as_remote(&config), &server_environment(&dirs, None)).await.err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(std::fs::read_dir(dirs.home()).unwrap().count(), 0, "no credentials are stored");
}
