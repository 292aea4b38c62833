//! Servers that want to know who asks.

use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use whimbrel_engine::mcp::Surroundings;
use whimbrel_engine::mcp::login::Login;
use whimbrel_testkit::guarded::{Clients, agree, browse};
use whimbrel_testkit::{Guarded, Host, Reply, Stage};
use whimbrel_wire::control::{McpReconnect, McpStatus};
use whimbrel_wire::options::{McpServerConfig, Options, RemoteServer};
use whimbrel_wire::permission::PermissionMode;

use crate::rig::{entry, init, servers};

fn options(birds: &McpServerConfig) -> Options {
    Options {
        mcp_servers: [("birds".to_owned(), birds.clone()), ("sh".to_owned(), entry())].into(),
        permission_mode: Some(PermissionMode::BypassPermissions),
        ..Options::default()
    }
}

fn at(url: &str, more: &Value) -> McpServerConfig {
    let mut entry = json!({"type": "http", "url": url});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

fn remote(config: &McpServerConfig) -> &RemoteServer {
    let McpServerConfig::Http(server) = config else { panic!("{config:?}") };
    server
}

fn surroundings(stage: &Stage, secret: Option<&str>) -> Surroundings {
    let mut env = stage.env();
    env.extend(secret.map(|secret| ("MCP_CLIENT_SECRET".to_owned(), secret.to_owned())));
    Surroundings::new(stage.workspace(), env)
}

async fn state(host: &mut Host) -> (String, String) {
    let status = host.ask(McpStatus::default()).await.unwrap();
    let birds = status.mcp_servers.into_iter().find(|server| server.name == "birds").unwrap();
    let word = serde_json::to_value(birds.status).unwrap().as_str().unwrap().to_owned();
    (word, birds.error.unwrap_or_default())
}

#[tokio::test]
async fn a_login_is_asked_for_found_renewed_and_missed() {
    let guarded = Guarded::start(Clients::Anybody).await.unwrap();
    let birds = at(&guarded.url(), &json!({}));
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
    let mut host = Host::with(script).options(options(&birds)).env("IS_SANDBOX", "1").start().await.unwrap();
    host.run("Go.").await.unwrap();
    let expected =
        [("birds", "needs-auth"), ("sh", "connected")].map(|(name, state)| (name.into(), state.into()));
    assert_eq!(servers(&init(&host)), expected);
    let (word, error) = state(&mut host).await;
    assert!(word == "needs-auth" && error.contains("whimbrel mcp login"), "{word}: {error}");
    assert_eq!(guarded.heard(), ["POST /mcp"], "it is not tried again and again");

    let login = Login::begin(remote(&birds), &surroundings(host.stage(), None)).await.unwrap();
    let (_keep, lines) = unbounded_channel();
    let address = login.address().to_owned();
    let (finished, page) = tokio::join!(login.finish(lines), browse(&address));
    finished.unwrap();
    assert!(page.unwrap().contains("You can close this page"));
    host.ask(McpReconnect { server_name: "birds".into() }).await.unwrap();
    host.run("Count.").await.unwrap();
    assert!(host.asked()[2].says("seven curlews"));

    guarded.end_tokens();
    host.run("Count again.").await.unwrap();
    assert!(host.asked()[4].says("seven curlews"), "another token was had");
    assert_eq!(guarded.heard().iter().filter(|path| *path == "POST /token").count(), 2);

    guarded.end_logins();
    host.run("And again.").await.unwrap();
    assert!(host.asked()[6].says("the login that is kept for it no longer holds"));
    let (word, _) = state(&mut host).await;
    assert_eq!(word, "needs-auth");
    host.finish().await.unwrap();
}

#[tokio::test]
async fn a_client_that_was_registered_by_hand_is_used_and_an_address_can_be_pasted() {
    let guarded = Guarded::start(Clients::Known("our-id".into(), "s3cret".into())).await.unwrap();
    let stage = Stage::new().unwrap();
    let unknown = at(&guarded.url(), &json!({}));
    let refused = Login::begin(remote(&unknown), &surroundings(&stage, None)).await.err().unwrap();
    assert!(refused.contains("`oauth.clientId`"), "{refused}");

    let birds = at(&guarded.url(), &json!({"oauth": {"clientId": "our-id"}}));
    let login = Login::begin(remote(&birds), &surroundings(&stage, Some("wrong"))).await.unwrap();
    let (_keep, lines) = unbounded_channel();
    let address = login.address().to_owned();
    let (finished, _) = tokio::join!(login.finish(lines), browse(&address));
    assert!(finished.unwrap_err().contains("invalid_client"));

    let login = Login::begin(remote(&birds), &surroundings(&stage, Some("s3cret"))).await.unwrap();
    assert!(login.address().contains("redirect_uri=http%3A%2F%2Flocalhost%3A"), "{}", login.address());
    let end = agree(login.address()).await.unwrap();
    let (paste, lines) = unbounded_channel();
    for line in ["", "what now?", "http://localhost/callback?code=x&state=not-ours", &end] {
        paste.send(line.to_owned()).unwrap();
    }
    login.finish(lines).await.unwrap();
    let mut host = Host::with([Reply::text("Done.")])
        .options(options(&birds))
        .env("IS_SANDBOX", "1")
        .stage(stage)
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(servers(&init(&host))[0], ("birds".into(), "connected".into()));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn what_makes_no_login_is_said() {
    let guarded = Guarded::start(Clients::Anybody).await.unwrap();
    let stage = Stage::new().unwrap();
    let rows = [
        (at(&guarded.url(), &json!({"headers": {"authorization": "Bearer x"}})), "Authorization header"),
        (at(&guarded.url().replace("/mcp", "/nothing"), &json!({})), "HTTP 404"),
        (at("http://127.0.0.1:1/mcp", &json!({})), "127.0.0.1"),
        (at("http://birds.test/mcp", &json!({})), "not reached by https:"),
    ];
    for (config, words) in rows {
        let error = Login::begin(remote(&config), &surroundings(&stage, None)).await.err().unwrap();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(std::fs::read_dir(stage.home()).unwrap().count(), 0, "nothing was kept");
}
