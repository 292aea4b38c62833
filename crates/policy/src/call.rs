//! What is to be judged: the call, and what is known around it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fs::FsView;
use crate::paths::PathContext;
use crate::ruleset::ToolName;
use crate::tool_kind::ToolKind;

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's current name.
    pub tool: &'a str,
    /// Its input.
    pub input: &'a Value,
}

/// What is known around the call.
#[derive(Debug, Clone)]
pub struct CallContext<'a> {
    /// Where the shell is now.
    pub shell_cwd: &'a Path,
    /// The person's home.
    pub home: &'a Path,
    /// The disk.
    pub fs: &'a dyn FsView,
    /// What the hooks have said, if they had an opinion.
    pub hook: Option<PreToolDecision>,
    /// How a command would run confined, if it would.
    pub sandbox: Option<SandboxFacts>,
    /// The file that a plan is written to.
    pub plan_file: Option<PathBuf>,
    /// What the session itself is configured by and written to: never changed without a question, whatever it is called.
    /// Each in every spelling that counts.
    pub protected_paths: &'a [PathBuf],
    /// Who looks into the git repository, if it is one that nobody vouches for.
    pub git_inspector: Option<&'a dyn GitInspector>,
    /// The tool.
    pub tool: ToolFacts,
}

impl<'a> CallContext<'a> {
    /// Nothing special known: no hooks, no sandbox, no plan.
    pub fn new(cwd: &'a Path, home: &'a Path, fs: &'a dyn FsView, tool: ToolFacts) -> Self {
        Self {
            shell_cwd: cwd,
            home,
            fs,
            hook: None,
            sandbox: None,
            plan_file: None,
            protected_paths: &[],
            git_inspector: None,
            tool,
        }
    }

    /// What paths of the call are read against.
    pub fn path_context(&self) -> PathContext<'a> {
        PathContext { cwd: self.shell_cwd, home: self.home, fs: self.fs }
    }
}

/// A look into git repositories.
pub trait GitInspector: fmt::Debug {
    /// What a command that only reads the repository of this work tree would run, if it would run anything of the
    /// repository's choosing.
    fn configured_program(&self, work_tree: &Path) -> Option<GitProgram>;
}

/// Something in a repository that makes git run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitProgram {
    /// The setting or hook.
    pub key: String,
    /// The file that it stands in.
    pub file: PathBuf,
}

/// What the hooks have said about the call. A refusal ends it before it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreToolDecision {
    /// Make it.
    Allow {
        /// Which hook.
        source: String,
        /// Its words.
        text: String,
        /// Whether it has rewritten the input.
        rewrote_input: bool,
    },
    /// Ask.
    Ask {
        /// Which hook.
        source: String,
        /// Its words.
        text: String,
    },
}

/// How a command would run confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxFacts {
    /// Whether this command will run in the sandbox.
    pub will_run_sandboxed: bool,
    /// Whether commands in the sandbox need no approval.
    pub auto_allow: bool,
}

/// What is known of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFacts {
    /// Whether the session has it.
    pub known: bool,
    /// Its sort.
    pub kind: ToolKind,
    /// The MCP server that it belongs to, as it stands in the tool's name.
    pub mcp_server: Option<String>,
    /// Whether only a person can answer it.
    pub requires_interaction: bool,
    /// Whether the skill that it loads brings grants or hooks.
    pub adds_rules_or_hooks: bool,
    /// The fields at the top of its input.
    pub fields: Vec<String>,
}

impl ToolFacts {
    /// What a name alone says.
    pub fn for_tool(name: &str, fields: &[&str]) -> Self {
        let kind = ToolKind::from_name(name);
        let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        Self {
            known: true,
            kind,
            mcp_server: server.map(|(server, _)| server.to_owned()),
            requires_interaction: kind == ToolKind::Interaction,
            adds_rules_or_hooks: false,
            // Taken though the model is not shown it.
            fields: fields
                .iter()
                .copied()
                .chain((kind == ToolKind::Agent).then_some("isolation"))
                .map(Into::into)
                .collect(),
        }
    }

    /// The tool as rules see it.
    pub fn name<'a>(&'a self, call: &Call<'a>) -> ToolName<'a> {
        ToolName { name: call.tool, server: self.mcp_server.as_deref() }
    }
}
