//! `headersHelper`: a command of the person that prints headers as a JSON object, for tokens that live only a short time.
//! It is asked with every new connection, and once more when the server does not take what it has printed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::line::secret_header;
use crate::mcp::surroundings::Surroundings;
use crate::tasks::{Dialogue, Ending, Program};

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much it may print.
const LARGEST: usize = 64 * 1024;

/// How much of its complaints is told.
const SHOWN: usize = 300;

/// The command, and what it printed last. Cheap to clone.
#[derive(Clone)]
pub(super) struct Helper {
    program: Arc<Program>,
    last: Arc<Mutex<HeaderMap>>,
}

impl Helper {
    /// The command for a server. It is not asked yet.
    pub(super) fn new(command: &str, name: &str, url: &str, surroundings: &Surroundings) -> Self {
        let mut environment = surroundings.environment.clone();
        environment.insert("CLAUDE_CODE_MCP_SERVER_NAME".into(), name.into());
        environment.insert("CLAUDE_CODE_MCP_SERVER_URL".into(), url.into());
        let program = Program {
            command: "sh".into(),
            args: vec!["-c".into(), command.into()],
            cwd: surroundings.cwd.clone(),
            environment,
        };
        Self { program: Arc::new(program), last: Arc::default() }
    }

    /// What it printed last.
    pub(super) async fn last(&self) -> HeaderMap {
        self.last.lock().await.clone()
    }

    /// Asks the command.
    pub(super) async fn ask(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        *last = self
            .printed()
            .await
            .map_err(|what| format!("the command of `headersHelper` {what} Run it by hand and see."))?;
        Ok(())
    }

    /// Asks the command again because this was refused, unless somebody has done so meanwhile. None if it has nothing
    /// else to say.
    pub(super) async fn ask_again(&self, refused: &HeaderMap) -> Option<HeaderMap> {
        let mut last = self.last.lock().await;
        if *last == *refused {
            *last = self.printed().await.ok()?;
        }
        Some(last.clone()).filter(|headers| headers != refused)
    }

    /// Runs the command. Nothing of what it prints is told, for it may be a key.
    async fn printed(&self) -> Result<HeaderMap, String> {
        let mut dialogue =
            Dialogue::start(&self.program).map_err(|fault| format!("cannot be started: {fault}."))?;
        drop(dialogue.input());
        let leash = dialogue.leash();
        let heard = timeout(PATIENCE, async {
            let mut text = Vec::new();
            while let Some(bytes) = dialogue.hear().await {
                text.extend_from_slice(bytes);
                if text.len() > LARGEST {
                    return Err(format!("prints more than {} KB.", LARGEST >> 10));
                }
            }
            match dialogue.ending().await {
                Some(Ending::Exited(0)) => read(&text),
                ending => Err(failed(ending, &dialogue.complaints().await)),
            }
        })
        .await;
        leash.end().await;
        heard.unwrap_or_else(|_| Err(format!("did not end within {} s.", PATIENCE.as_secs())))
    }
}

fn failed(ending: Option<Ending>, complaints: &str) -> String {
    let how = match ending {
        Some(Ending::Exited(code)) => format!("ended with code {code}"),
        Some(Ending::Killed(signal)) => format!("was ended by signal {signal}"),
        Some(Ending::TimedOut | Ending::Unknown) | None => "ended without a word".to_owned(),
    };
    match complaints.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => {
            format!("{how} and says: {}.", line.chars().take(SHOWN).collect::<String>().trim_end_matches('.'))
        }
        None => format!("{how}."),
    }
}

fn read(text: &[u8]) -> Result<HeaderMap, String> {
    let fields: BTreeMap<String, String> = serde_json::from_slice(text).map_err(|_| {
        "must print a JSON object of texts, as in {\"Authorization\": \"Bearer ...\"}.".to_owned()
    })?;
    let unfit = |name: &str| format!("prints a header {name:?} that cannot be sent.");
    let header = |(name, value): (&String, &String)| secret_header(name, value).ok_or_else(|| unfit(name));
    fields.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_must_be_headers() {
        let good = read(br#" {"Authorization": "Bearer t", "X-Team": "birds"} "#).unwrap();
        assert_eq!(good.len(), 2);
        assert_eq!(good["authorization"], "Bearer t");
        for (text, words) in [
            ("Bearer t", "JSON object"),
            ("[]", "JSON object"),
            (r#"{"a": 1}"#, "JSON object"),
            (r#"{"a b": "x"}"#, "a b"),
            ("{\"a\": \"x\\ny\"}", "\"a\""),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(words) && !error.contains("Bearer t"), "{text}: {error}");
        }
    }
}
