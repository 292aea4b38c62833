//! `headersHelper`: a user's command that prints headers as a JSON object, for short-lived tokens. It runs for every
//! new connection, and again after HTTP 401.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::Mutex;
use tokio::time::timeout;
use whimbrel_process::{ChildProcess, ChildProcessSpec, ProcessExit};

use super::authenticated_endpoint::sensitive_header;
use crate::deps::ServerDeps;

const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_OUTPUT_BYTES: usize = 64 * 1024;

const MAX_SHOWN_CHARS: usize = 300;

/// The command and its last output. Cheap to clone.
#[derive(Clone)]
pub(super) struct HeadersCommand {
    program: Arc<ChildProcessSpec>,
    cached: Arc<Mutex<HeaderMap>>,
}

impl HeadersCommand {
    /// Prepares the command without running it.
    pub(super) fn new(command: &str, name: &str, url: &str, deps: &ServerDeps) -> Self {
        let mut environment = deps.program_environment();
        environment.insert("CLAUDE_CODE_MCP_SERVER_NAME".into(), name.into());
        environment.insert("CLAUDE_CODE_MCP_SERVER_URL".into(), url.into());
        let program = ChildProcessSpec {
            command: "sh".into(),
            args: vec!["-c".into(), command.into()],
            cwd: deps.cwd.clone(),
            environment,
            prefix: None,
        };
        Self { program: Arc::new(program), cached: Arc::default() }
    }

    pub(super) async fn cached(&self) -> HeaderMap {
        self.cached.lock().await.clone()
    }

    /// Runs the command and caches its headers.
    pub(super) async fn run(&self) -> Result<(), String> {
        let mut cached = self.cached.lock().await;
        *cached = self
            .run_command()
            .await
            .map_err(|reason| format!("the `headersHelper` command {reason} Run it by hand to check."))?;
        Ok(())
    }

    /// Runs the command again because `rejected` got HTTP 401, unless another request has done so meanwhile. `None` if
    /// the headers did not change.
    pub(super) async fn rerun(&self, rejected: &HeaderMap) -> Option<HeaderMap> {
        let mut cached = self.cached.lock().await;
        if *cached == *rejected {
            *cached = self.run_command().await.ok()?;
        }
        Some(cached.clone()).filter(|headers| headers != rejected)
    }

    /// Runs the command. Its output never appears in the error, because it may be a secret.
    async fn run_command(&self) -> Result<HeaderMap, String> {
        let mut child =
            ChildProcess::spawn(&self.program).map_err(|error| format!("cannot be started: {error}."))?;
        drop(child.take_stdin());
        let kill_handle = child.kill_handle();
        let headers = timeout(COMMAND_TIMEOUT, async {
            let mut text = Vec::new();
            while let Some(bytes) = child.read_stdout().await {
                text.extend_from_slice(bytes);
                if text.len() > MAX_OUTPUT_BYTES {
                    return Err(format!("printed more than {} KB.", MAX_OUTPUT_BYTES >> 10));
                }
            }
            match child.wait_for_exit().await {
                Some(ProcessExit::Exited(0)) => parse_headers(&text),
                exit => Err(exit_message(exit, &child.stderr_tail().await)),
            }
        })
        .await;
        kill_handle.kill().await;
        headers.unwrap_or_else(|_| Err(format!("did not finish within {} s.", COMMAND_TIMEOUT.as_secs())))
    }
}

fn exit_message(exit: Option<ProcessExit>, stderr: &str) -> String {
    let outcome = match exit {
        Some(ProcessExit::Exited(code)) => format!("exited with code {code}"),
        Some(ProcessExit::Killed(signal)) => format!("was killed by signal {signal}"),
        Some(ProcessExit::TimedOut | ProcessExit::Unknown) | None => {
            "ended with an unknown status".to_owned()
        }
    };
    match stderr.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => {
            format!(
                "{outcome}: {}.",
                line.chars().take(MAX_SHOWN_CHARS).collect::<String>().trim_end_matches('.')
            )
        }
        None => format!("{outcome}."),
    }
}

fn parse_headers(text: &[u8]) -> Result<HeaderMap, String> {
    let fields: BTreeMap<String, String> = serde_json::from_slice(text).map_err(|_| {
        "must print a JSON object of strings, such as {\"Authorization\": \"Bearer ...\"}.".to_owned()
    })?;
    let invalid = |name: &str| format!("printed an invalid header {name:?}.");
    let header =
        |(name, value): (&String, &String)| sensitive_header(name, value).ok_or_else(|| invalid(name));
    fields.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_must_be_sendable_headers() {
        let good = parse_headers(br#" {"Authorization": "Bearer t", "X-Team": "birds"} "#).unwrap();
        assert_eq!(good.len(), 2);
        assert_eq!(good["authorization"], "Bearer t");
        for (text, expected) in [
            ("Bearer t", "JSON object"),
            ("[]", "JSON object"),
            (r#"{"a": 1}"#, "JSON object"),
            (r#"{"a b": "x"}"#, "a b"),
            ("{\"a\": \"x\\ny\"}", "\"a\""),
        ] {
            let error = parse_headers(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected) && !error.contains("Bearer t"), "{text}: {error}");
        }
    }
}
