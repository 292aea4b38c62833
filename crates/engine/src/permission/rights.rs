//! What a session may do now: mode, rules and directories. One for the whole tree of agents.

mod loan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{
    Bounds, Call, Decision, Facts, HookVerdict, Layer, RuleSet, Source, Standing, ToolFacts, WorkDirs, apply,
    decide,
};
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use crate::workspace::Workspace;

/// The rights of a session. Cheap to clone; a change is seen by all at once.
#[derive(Debug, Clone)]
pub struct Rights {
    standing: watch::Sender<Arc<Standing>>,
    workspace: Arc<Workspace>,
    home: Arc<Path>,
    bypass: Bypass,
}

/// Whether a session may be switched to `bypassPermissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// It was started so that it may.
    Available,
    /// It may not.
    Unavailable,
}

/// What a session begins with.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// The mode.
    pub mode: PermissionMode,
    /// Rules that allow, from the options.
    pub allow: Vec<String>,
    /// Rules that deny, from the options.
    pub deny: Vec<String>,
    /// Further directories.
    pub directories: Vec<PathBuf>,
}

/// Rights, and what the host should know about the rules they were made of.
#[derive(Debug)]
pub struct Granted {
    /// The rights.
    pub rights: Rights,
    /// What rules do not do although they seem to.
    pub warnings: Vec<String>,
}

impl Rights {
    /// The rights that a session begins with. A rule that should deny and cannot be read is an error.
    pub fn grant(workspace: Arc<Workspace>, grants: Grants, bypass: Bypass) -> Result<Granted, String> {
        let home = PathBuf::from(workspace.variable("HOME").unwrap_or_default());
        let mut rules = RuleSet::new(&home, workspace.root());
        let mut layer = Layer::new(Source::CliArg, workspace.root());
        // `Tool()` in the options has always meant the whole tool.
        let whole = |rule: String| rule.strip_suffix("()").map(str::to_owned).unwrap_or(rule);
        layer.allow = grants.allow.into_iter().map(whole).collect();
        layer.deny = grants.deny;
        let loaded = rules.add_layer(&layer, &RealFs);
        if let Some(error) = loaded.errors.first() {
            return Err(format!("The session does not start without a rule that should deny: {error}."));
        }
        let mut dirs = WorkDirs::new(workspace.root(), &RealFs);
        for directory in &grants.directories {
            dirs.add(directory, Source::CliArg, &RealFs);
        }
        let standing = Standing { rules, mode: grants.mode, dirs };
        let rights =
            Self { standing: watch::Sender::new(Arc::new(standing)), workspace, home: home.into(), bypass };
        rights.tell_workspace();
        Ok(Granted { rights, warnings: loaded.warnings.iter().map(ToString::to_string).collect() })
    }

    /// The mode.
    pub fn mode(&self) -> PermissionMode {
        self.standing.borrow().mode
    }

    /// Switches the mode. False if the session may not be switched to it.
    pub fn set_mode(&self, mode: PermissionMode) -> bool {
        if mode == PermissionMode::BypassPermissions && self.bypass == Bypass::Unavailable {
            return false;
        }
        self.standing.send_modify(|standing| Arc::make_mut(standing).mode = mode);
        true
    }

    /// Whether a rule takes a tool away altogether.
    pub fn removes(&self, name: &str) -> bool {
        let facts = ToolFacts::named(name, &[]);
        let call = Call { tool: name, input: &Value::Null };
        self.standing.borrow().rules.removing(facts.name(&call)).is_some()
    }

    /// Judges one call, as things stand.
    pub fn judge(&self, tool: &str, facts: &ToolFacts, input: &Value, hook: Option<HookVerdict>) -> Decision {
        let standing = Arc::clone(&self.standing.borrow());
        let cwd = self.workspace.cwd();
        let facts = Facts { hook, ..Facts::new(&cwd, &self.home, &RealFs, facts.clone()) };
        let call = Call { tool, input };
        decide(&call, &standing.rules, standing.mode, &standing.dirs, &facts).in_mode(standing.mode)
    }

    /// Makes changes as a host says. What cannot be done is left out and told; the rest is done.
    pub fn apply(&self, updates: &[PermissionUpdate]) -> Vec<String> {
        let bounds = Bounds { bypass_available: self.bypass == Bypass::Available, fs: &RealFs };
        let mut problems = Vec::new();
        self.standing.send_modify(|standing| {
            let standing = Arc::make_mut(standing);
            for update in updates {
                problems.extend(apply(standing, update, &bounds).iter().map(ToString::to_string));
            }
        });
        self.tell_workspace();
        problems
    }

    fn tell_workspace(&self) {
        self.workspace.set_directories(self.standing.borrow().dirs.real_paths());
    }
}
