//! Input of the decision steps: the call, its context, rules and directories, and lookups that several steps share.

mod direct_rules;

use crate::call::{Call, CallContext};
use crate::paths::protected;
use crate::rules::rule_set::RuleSet;
use crate::sandbox::SandboxState;
use crate::tool_kind::ToolKind;
use crate::work_dirs::WorkDirs;
use serde_json::Value;
use std::path::Path;
use whimbrel_wire::permission::PermissionMode;

/// Everything that a decision step may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionInput<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) rules: &'a RuleSet,
    pub(crate) mode: PermissionMode,
    pub(crate) dirs: &'a WorkDirs,
    pub(crate) context: &'a CallContext<'a>,
}

impl<'a> DecisionInput<'a> {
    pub(crate) fn is_auto_allowed_in_sandbox(&self) -> bool {
        self.context.tool.kind == ToolKind::Shell
            && self.mode != PermissionMode::Plan
            && matches!(self.context.sandbox, Some(SandboxState::Confined { auto_allow: true, .. }))
    }

    /// Returns true if the sandbox refuses to change this file.
    pub(crate) fn is_protected_by_sandbox(&self, path: &Path) -> bool {
        match self.context.sandbox {
            Some(SandboxState::Confined { files: Some(files), .. }) => files.covers(path, self.dirs),
            _ => false,
        }
    }

    /// Returns true if the model asks to run a command outside of the sandbox.
    pub(crate) fn leaves_sandbox(&self) -> bool {
        self.context.tool.kind == ToolKind::Shell && self.context.sandbox == Some(SandboxState::Overridden)
    }

    /// Returns true if writing the path always requires permission: by its name, or because it configures the session.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        protected::is_protected(path) || protected::is_in_any(path, self.context.protected_paths)
    }

    /// A string field of the input.
    pub(crate) fn input_text(&self, field: &str) -> Option<&'a str> {
        self.call.input.get(field).and_then(Value::as_str)
    }
}
