//! A session around servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::control::McpServerStatus;

use super::player;
use crate::mcp::{Backoff, Limits, Origin, Roster, Servers, Surroundings};
use crate::tools::{AnyTool, Call, Output};
use crate::workspace::Workspace;

/// Longer than anything here takes.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A roster of servers in a folder of their own.
pub(super) struct Stage {
    pub(super) roster: Roster,
    pub(super) cancel: CancellationToken,
    folder: Arc<TempDir>,
}

/// Limits that tests can wait for.
pub(super) fn quick() -> Limits {
    let backoff = Backoff { first: Duration::from_millis(10), attempts: 3 };
    Limits { backoff, ..Limits::default() }
}

/// What servers are given in a folder.
pub(super) fn surroundings(folder: &Path) -> Surroundings {
    let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    Surroundings { limits: quick(), ..Surroundings::new(folder.to_path_buf(), environment) }
}

/// Entries as a flag would bring them.
pub(super) fn servers(entries: &Value) -> Servers {
    let mut servers = Servers::default();
    servers.add_text(Origin::Dynamic, "test", &json!({"mcpServers": entries}).to_string(), &|_| None);
    servers
}

impl Stage {
    /// Starts servers, and waits for them.
    pub(super) async fn of(entries: Value) -> Self {
        Self::with(entries, |surroundings| surroundings).await
    }

    /// The same, in other surroundings.
    pub(super) async fn with(entries: Value, change: impl FnOnce(Surroundings) -> Surroundings) -> Self {
        let stage = Self::beginning(&entries, change);
        stage.roster.ready(LONG).await;
        stage
    }

    /// The same, without waiting.
    pub(super) fn beginning(entries: &Value, change: impl FnOnce(Surroundings) -> Surroundings) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let roster = Roster::start(servers(entries), change(surroundings(folder.path())));
        Self { roster, cancel: CancellationToken::new(), folder }
    }

    /// One player.
    pub(super) async fn player() -> Self {
        Self::of(json!({"play": player::entry()})).await
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How a server is.
    pub(super) fn status(&self, name: &str) -> McpServerStatus {
        self.roster.status().into_iter().find(|server| server.name == name).unwrap()
    }

    /// The word for how a server is, and what is wrong with it.
    pub(super) fn state(&self, name: &str) -> (String, String) {
        let status = self.status(name);
        let word = serde_json::to_value(status.status).unwrap().as_str().unwrap().to_owned();
        (word, status.error.unwrap_or_default())
    }

    /// Waits until a server is so.
    pub(super) async fn becomes(&self, name: &str, word: &str) {
        self.comes_true(|stage| stage.state(name).0 == word).await;
    }

    /// Waits until something is so, looking at every change.
    pub(super) async fn comes_true(&self, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.roster.changes();
        let waiting = async {
            while !condition(self) {
                changes.changed().await.unwrap();
            }
        };
        let states: Vec<_> = self.roster.status();
        tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("{states:?}"));
    }

    /// Waits until a server has written a file.
    pub(super) async fn written(&self, name: &str) {
        let path = self.folder().join(name);
        let looking = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, looking).await.unwrap();
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.roster.tools().iter().map(|tool| tool.name().to_owned()).collect()
    }

    pub(super) fn tool(&self, name: &str) -> Arc<dyn AnyTool> {
        let tools = self.roster.tools();
        tools
            .into_iter()
            .find(|tool| tool.name() == name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.names()))
    }

    pub(super) fn call(&self) -> Call {
        let spill = self.folder().join("spill");
        let workspace = Arc::new(Workspace::new(self.folder().to_path_buf(), spill, BTreeMap::new()));
        Call { cancel: self.cancel.clone(), ..Call::alone(workspace) }
    }

    /// Calls a tool.
    pub(super) async fn run(&self, name: &str, input: Value) -> Output {
        self.tool(name).run(input, self.call()).await
    }

    /// What the model reads after a call.
    pub(super) async fn says(&self, name: &str, input: Value) -> String {
        match self.run(name, input).await {
            Ok(done) => match done.content {
                ResultContent::Text(text) => text,
                ResultContent::Blocks(_) => {
                    let texts =
                        done.meta.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap());
                    texts.collect::<Vec<_>>().join("\n")
                }
            },
            Err(trouble) => format!("error: {}", trouble.for_model()),
        }
    }
}
