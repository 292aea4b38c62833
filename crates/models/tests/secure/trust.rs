//! Root certificates named by variables of the process itself.

use std::io::Write;
use std::process::Command;

use tempfile::NamedTempFile;
use whimbrel_models::anthropic::Anthropic;
use whimbrel_models::http::HttpClient;

use super::server::TlsServer;
use super::{certificate_for, reply_text};

const URL_VARIABLE: &str = "WHIMBREL_TEST_URL";

/// Child process of the test below, which runs this test by name: sends one request and prints the outcome.
#[tokio::test]
async fn child_process() {
    let Ok(url) = std::env::var(URL_VARIABLE) else { return };
    let http = HttpClient::from_env(|name| std::env::var(name).ok());
    match reply_text(&Anthropic::new(&url, Some("key".into()), http), 10).await {
        Ok(outcome) => println!("outcome: {outcome}"),
        Err(error) => println!("outcome: {error}"),
    }
}

/// Runs the child process with these variables and returns its outcome.
async fn run_child(server: &TlsServer, variables: &[(&str, &str)]) -> String {
    #[expect(clippy::disallowed_methods, reason = "this test is about the variables of a process")]
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "trust::child_process", "--nocapture"]);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"] {
        child.env_remove(name);
    }
    child.env(URL_VARIABLE, &server.url).envs(variables.iter().copied());
    // The server runs on this thread.
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let outcome = String::from_utf8(output.stdout).unwrap();
    outcome.split_once("outcome: ").unwrap().1.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn shared_roots_extend_the_system_roots_even_if_invalid() {
    let server = TlsServer::start(certificate_for("127.0.0.1"), &["h2", "http/1.1"]).await;
    let root = server.root.path().to_str().unwrap();
    let unknown = "The certificate of 127.0.0.1 is not trusted: its issuer is unknown";
    let mut mixed = NamedTempFile::new().unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    mixed.write_all(broken.as_bytes()).unwrap();
    mixed.write_all(&std::fs::read(root).unwrap()).unwrap();
    let mixed = mixed.path().to_str().unwrap();
    for (variables, expected) in [
        ([].as_slice(), unknown),
        (&[("SSL_CERT_FILE", root)], "safe"),
        (&[("SSL_CERT_FILE", mixed)], "safe"),
        (&[("SSL_CERT_FILE", "/nowhere.pem")], unknown),
        (&[("SSL_CERT_FILE", "")], unknown),
        (&[("SSL_CERT_DIR", "/nowhere")], unknown),
        (&[("SSL_CERT_FILE", "/nowhere.pem"), ("NODE_EXTRA_CA_CERTS", root)], "safe"),
        (&[("NODE_EXTRA_CA_CERTS", mixed)], "NODE_EXTRA_CA_CERTS"),
    ] {
        let outcome = run_child(&server, variables).await;
        assert!(outcome.contains(expected), "{variables:?}: {outcome}");
    }
}
