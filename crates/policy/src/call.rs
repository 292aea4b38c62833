//! Input of a decision: the call and its context.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fs::FsView;
use crate::paths::PathContext;
use crate::rules::tool_name::ToolName;
use crate::sandbox::SandboxState;
use crate::tool_kind::ToolKind;

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's current name.
    pub tool: &'a str,
    pub input: &'a Value,
}

/// Context of a call: session state and environment that the decision depends on.
#[derive(Debug, Clone)]
pub struct CallContext<'a> {
    /// Current working directory of the shell.
    pub shell_cwd: &'a Path,
    /// The user's home directory.
    pub home: &'a Path,
    pub fs: &'a dyn FsView,
    /// Decision of the `PreToolUse` hooks, if any hook made one.
    pub hook: Option<PreToolDecision>,
    /// How a shell command runs; `None` if there is no sandbox.
    pub sandbox: Option<SandboxState>,
    /// File that plan mode may write.
    pub plan_file: Option<PathBuf>,
    /// Configuration and state files of the session itself. Writing them always requires permission, whatever they are
    /// called. Each path is listed in every relevant form.
    pub protected_paths: &'a [PathBuf],
    /// Inspector for git repositories; set only if the project is not trusted.
    pub git_inspector: Option<&'a dyn GitInspector>,
    pub tool: ToolProperties,
}

impl<'a> CallContext<'a> {
    /// Creates a context without hook decision, sandbox, plan file or protected paths.
    pub fn new(cwd: &'a Path, home: &'a Path, fs: &'a dyn FsView, tool: ToolProperties) -> Self {
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

    /// Context for resolving the paths of the call.
    pub fn path_context(&self) -> PathContext<'a> {
        PathContext { cwd: self.shell_cwd, home: self.home, fs: self.fs }
    }
}

/// Inspects git repositories for configuration that runs programs.
pub trait GitInspector: fmt::Debug {
    /// Returns a program that a read-only git command would run because the repository of this work tree configures
    /// it.
    fn configured_program(&self, work_tree: &Path) -> Option<GitProgram>;
}

/// Configuration in a repository that makes git run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitProgram {
    /// Name of the setting or hook.
    pub key: String,
    /// File that contains it.
    pub file: PathBuf,
}

/// Decision of the hooks about the call. A hook that denies ends the call before this stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreToolDecision {
    Allow {
        /// Name of the hook.
        source: String,
        /// Text given by the hook.
        text: String,
        /// True if the hook has rewritten the input.
        rewrote_input: bool,
    },
    Ask {
        /// Name of the hook.
        source: String,
        /// Text given by the hook.
        text: String,
    },
}

/// Properties of the called tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProperties {
    /// True if the session has the tool.
    pub known: bool,
    pub kind: ToolKind,
    /// MCP server of the tool, as it occurs in the tool's name.
    pub mcp_server: Option<String>,
    /// True if only the user can answer the call.
    pub requires_interaction: bool,
    /// True if the skill that the call loads adds permission rules or hooks.
    pub adds_rules_or_hooks: bool,
    /// Top-level fields of the tool's input.
    pub fields: Vec<String>,
}

impl ToolProperties {
    /// Derives the properties from the tool's name.
    pub fn for_tool(name: &str, fields: &[&str]) -> Self {
        let kind = ToolKind::from_name(name);
        let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        Self {
            known: true,
            kind,
            mcp_server: server.map(|(server, _)| server.to_owned()),
            requires_interaction: kind == ToolKind::Interaction,
            adds_rules_or_hooks: false,
            // `isolation` is accepted although the model's schema does not list it.
            fields: fields
                .iter()
                .copied()
                .chain((kind == ToolKind::Agent).then_some("isolation"))
                .map(Into::into)
                .collect(),
        }
    }

    /// The tool's name as rules match it.
    pub fn name<'a>(&'a self, call: &Call<'a>) -> ToolName<'a> {
        ToolName { name: call.tool, server: self.mcp_server.as_deref() }
    }
}
