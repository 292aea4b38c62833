//! Cache of the tools, prompts and instructions of all servers of a session. It is rebuilt once per change of the
//! registry's version, so that reads are cheap.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Block;

use super::build_tools;
use super::server_instructions::render_instructions;
use crate::api::{DynamicTools, ToolEntry};
use crate::permission::PermissionState;
use whimbrel_mcp::{PromptCommand, ServerRegistry};

/// Cached tools, prompts and instructions of the session's servers. Cheap to clone; empty in a session without servers.
#[derive(Clone)]
pub struct ToolCache(Arc<Inner>);

struct Inner {
    registry: OnceLock<ServerRegistry>,
    /// Tools that a rule denies outright are hidden from the model.
    permissions: PermissionState,
    /// Tool that answers permission requests (`--permission-prompt-tool`); hidden from the model.
    hidden_tool: Option<String>,
    cached: Mutex<Cached>,
}

/// Cached values and the registry version they were built from.
#[derive(Default)]
struct Cached {
    version: Option<u64>,
    tools: Arc<[Arc<ToolEntry>]>,
    instructions: Arc<[String]>,
}

impl ToolCache {
    /// Creates an empty cache. `hidden_tool` names a tool to hide from the model.
    pub fn new(permissions: PermissionState, hidden_tool: Option<String>) -> Self {
        Self(Arc::new(Inner {
            registry: OnceLock::new(),
            permissions,
            hidden_tool,
            cached: Mutex::default(),
        }))
    }

    /// Sets the registry to read from.
    pub fn set_registry(&self, registry: ServerRegistry) {
        // A session has one registry; a second call is ignored.
        let _ = self.0.registry.set(registry);
    }

    pub fn registry(&self) -> Option<&ServerRegistry> {
        self.0.registry.get()
    }

    /// Prompts of all servers, as slash commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        self.registry().map(ServerRegistry::prompts).unwrap_or_default()
    }

    /// Returns true if the command is a prompt of a server, or has the prefix of a server that is still starting.
    pub fn may_be_prompt(&self, command: &str) -> bool {
        command.starts_with("mcp__")
            && (self.prompts().iter().any(|prompt| prompt.name == command)
                || self.registry().is_some_and(|registry| registry.may_add_prompt(command)))
    }

    /// Fetches a prompt. Large contents are saved under `output_dir`.
    pub async fn get_prompt(
        &self,
        command: &PromptCommand,
        arguments: &str,
        output_dir: &Path,
    ) -> Result<Vec<Block>, String> {
        match self.registry() {
            Some(registry) => registry.get_prompt(command, arguments, output_dir).await,
            None => Err(NO_SERVERS.into()),
        }
    }

    /// Calls a tool by its full name outside the conversation. Waits for servers that are still starting.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        match self.registry() {
            Some(registry) => {
                registry.wait_ready(registry.connect_timeout()).await;
                registry.call_tool(tool, arguments, cancel).await
            }
            None => Err(NO_SERVERS.into()),
        }
    }

    fn with_cached<T>(&self, read: impl FnOnce(&Cached) -> T) -> Option<T> {
        let registry = self.registry()?;
        // Read before the lists: a change in between shows up at the next read.
        let version = registry.version();
        let mut cached = self.0.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.version != Some(version) {
            *cached = Cached {
                version: Some(version),
                tools: self.visible_tools(registry, &cached.tools),
                instructions: render_instructions(registry.instructions()),
            };
        }
        Some(read(&cached))
    }

    /// Tools that the model may see. An unchanged tool keeps its serialized spec, so that the request stays
    /// byte-identical and the prompt cache stays valid.
    fn visible_tools(&self, registry: &ServerRegistry, before: &[Arc<ToolEntry>]) -> Arc<[Arc<ToolEntry>]> {
        let Inner { permissions, hidden_tool, .. } = &*self.0;
        let tools =
            build_tools(registry).into_iter().filter(|tool| Some(tool.name()) != hidden_tool.as_deref());
        let listed = tools.map(|tool| match before.iter().find(|old| old.tool().name() == tool.name()) {
            Some(old) => ToolEntry::replacing(old, tool),
            None => ToolEntry::new(tool),
        });
        let allowed = listed.filter(|tool| !permissions.denies_tool(tool.tool().name(), tool.properties()));
        allowed.map(Arc::new).collect()
    }
}

impl DynamicTools for ToolCache {
    fn tools(&self) -> Arc<[Arc<ToolEntry>]> {
        self.with_cached(|cached| Arc::clone(&cached.tools)).unwrap_or_default()
    }

    fn instructions(&self) -> Arc<[String]> {
        self.with_cached(|cached| Arc::clone(&cached.instructions)).unwrap_or_default()
    }
}

const NO_SERVERS: &str = "This session has no MCP servers.";

impl fmt::Debug for ToolCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCache").field("servers", &self.registry().is_some()).finish_non_exhaustive()
    }
}
