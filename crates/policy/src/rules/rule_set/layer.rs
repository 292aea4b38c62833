//! The rules of one source, and adding them to a rule set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use whimbrel_wire::permission::PermissionBehavior;

use super::{CompiledRule, RuleMatcher, RuleSet, RuleSource, SourcedRule};
use crate::fs::FsView;
use crate::paths::resolve_physical_path;
use crate::rules::path_pattern::Anchors;
use crate::rules::rule::{Rule, RuleError};

/// Uncompiled rules of one source.
#[derive(Debug, Clone)]
pub struct RuleLayer {
    pub source: RuleSource,
    /// The settings file, if any.
    pub file: Option<PathBuf>,
    /// Directory that a leading `/` in a path rule stands for.
    pub root: PathBuf,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}

impl RuleLayer {
    pub fn new(source: RuleSource, root: &Path) -> Self {
        Self {
            source,
            file: None,
            root: root.to_owned(),
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// Warning about a rule that does not do what it seems to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleWarning {
    /// An invalid allow rule is skipped.
    #[error("{0}; the rule is ignored")]
    Skipped(RuleError),
    /// The tool does not support this specifier.
    #[error("rule `{rule}` has no effect; {remedy}")]
    NoEffect {
        rule: Rule,
        /// Advice on the rule to write instead.
        remedy: String,
    },
    /// The specifier is not supported, so the rule applies to every call.
    #[error(
        "{behavior} rule `{rule}` applies to every call of {tool}, which does not support this specifier",
        tool = rule.tool
    )]
    AppliesToAllCalls { rule: Rule, behavior: PermissionBehavior },
    /// A path rule for a tool that shares the rules of Read or Edit.
    #[error(
        "{behavior} rule `{rule}` applies as `{instead}`, to every tool that {} files; write that rule instead",
        if instead.tool == "Edit" { "edits" } else { "reads" }
    )]
    AppliesAs {
        rule: Rule,
        behavior: PermissionBehavior,
        /// The rule it is treated as.
        instead: Rule,
    },
    /// A path with one leading slash that seems to mean the root of the file system.
    #[error(
        "{behavior} rule `{rule}` refers to a missing path in {}; begin it with `//` to mean the root directory",
        base.display()
    )]
    SingleSlash {
        rule: Rule,
        behavior: PermissionBehavior,
        /// Directory that the leading slash stands for.
        base: PathBuf,
    },
    #[error("{behavior} rule `{rule}` names an unknown tool; check its spelling")]
    UnknownTool { rule: Rule, behavior: PermissionBehavior },
}

/// Warnings and errors from adding a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    pub warnings: Vec<RuleWarning>,
    /// Invalid deny and ask rules. A session should not start without them.
    pub errors: Vec<RuleError>,
}

/// Source, file and root of a layer, kept for rules that are added later.
#[derive(Debug, Clone)]
pub(super) struct RuleOrigin {
    pub(super) source: RuleSource,
    pub(super) file: Option<PathBuf>,
    pub(super) root: PathBuf,
}

impl RuleSet {
    /// Adds the rules of one source.
    pub fn add_layer(&mut self, layer: &RuleLayer, fs: &dyn FsView) -> LoadReport {
        let RuleLayer { source, file, root, .. } = layer;
        let origin = RuleOrigin { source: *source, file: file.clone(), root: root.clone() };
        self.layers.retain(|other| other.source != *source || other.file != *file);
        self.layers.push(origin);
        let mut report = LoadReport::default();
        self.add_rule_texts(&layer.allow, PermissionBehavior::Allow, layer, fs, &mut report);
        self.add_rule_texts(&layer.ask, PermissionBehavior::Ask, layer, fs, &mut report);
        self.add_rule_texts(&layer.deny, PermissionBehavior::Deny, layer, fs, &mut report);
        report
    }

    fn add_rule_texts(
        &mut self,
        texts: &[String],
        behavior: PermissionBehavior,
        layer: &RuleLayer,
        fs: &dyn FsView,
        report: &mut LoadReport,
    ) {
        for text in texts {
            let added = Rule::parse(text).and_then(|rule| {
                let reference =
                    SourcedRule { rule, behavior, source: layer.source, file: layer.file.clone() };
                self.add_compiled(reference, &layer.root, fs)
            });
            match added {
                Ok(warning) => report.warnings.extend(warning),
                Err(error) if behavior == PermissionBehavior::Allow => {
                    report.warnings.push(RuleWarning::Skipped(error));
                }
                Err(error) => report.errors.push(error),
            }
        }
    }

    /// Adds one rule to a source, unless an equivalent one exists.
    ///
    /// # Errors
    ///
    /// If the rule is invalid, or an allow rule that is too broad.
    pub fn add_rule(
        &mut self,
        rule: Rule,
        behavior: PermissionBehavior,
        source: RuleSource,
        fs: &dyn FsView,
    ) -> Result<Option<RuleWarning>, RuleError> {
        let is_known = |known: &SourcedRule| {
            known.source == source && known.behavior == behavior && known.rule.is_equivalent(&rule, behavior)
        };
        if self.rules.iter().any(|known| is_known(&known.sourced)) {
            return Ok(None);
        }
        let origin = self.layers.iter().find(|origin| origin.source == source);
        let file = origin.and_then(|origin| origin.file.clone());
        let root = origin.map_or_else(|| self.default_root(source), |origin| origin.root.clone());
        self.add_compiled(SourcedRule { rule, behavior, source, file }, &root, fs)
    }

    /// Removes the rules of a source for which the predicate holds.
    pub fn remove_rules(
        &mut self,
        source: RuleSource,
        behavior: PermissionBehavior,
        should_remove: impl Fn(&Rule) -> bool,
    ) {
        self.rules.retain(|rule| {
            let reference = &rule.sourced;
            reference.source != source || reference.behavior != behavior || !should_remove(&reference.rule)
        });
    }

    fn add_compiled(
        &mut self,
        reference: SourcedRule,
        root: &Path,
        fs: &dyn FsView,
    ) -> Result<Option<RuleWarning>, RuleError> {
        if self.rules.iter().any(|known| known.sourced == reference) {
            return Ok(None);
        }
        let anchors = Anchors {
            home: self.home.clone(),
            original_cwd: self.original_cwd.clone(),
            source_root: root.to_owned(),
        };
        let (compiled, warning) =
            CompiledRule::new(reference, &anchors, &|path| resolve_physical_path(path, fs))?;
        let warning = warning.or_else(|| warn_about_single_slash(&compiled, root, fs));
        self.rules.push(Arc::new(compiled));
        Ok(warning)
    }

    /// Directory that a leading `/` stands for in a source without a layer.
    fn default_root(&self, source: RuleSource) -> PathBuf {
        match source {
            RuleSource::UserSettings => self.home.join(".claude"),
            RuleSource::Managed
            | RuleSource::CliArg
            | RuleSource::FlagSettings
            | RuleSource::LocalSettings
            | RuleSource::ProjectSettings
            | RuleSource::Session
            | RuleSource::Skill => self.original_cwd.clone(),
        }
    }
}

/// Warns about a deny or ask rule whose path begins with one `/` but seems to mean the file system root: its first
/// component exists there and not in the rule's root.
fn warn_about_single_slash(compiled: &CompiledRule, root: &Path, fs: &dyn FsView) -> Option<RuleWarning> {
    let SourcedRule { rule, behavior, .. } = &compiled.sourced;
    let is_path = matches!(compiled.matcher, RuleMatcher::Read(_) | RuleMatcher::Edit(_));
    if *behavior == PermissionBehavior::Allow || !is_path {
        return None;
    }
    let below = rule.content.as_deref()?.trim().strip_prefix('/').filter(|below| !below.starts_with('/'))?;
    let first = below
        .split('/')
        .next()
        .filter(|first| !first.is_empty() && !first.contains(['*', '?', '[', '\\']))?;
    let exists_in = |dir: &Path| fs.lstat(&dir.join(first)).is_some();
    let means_root = exists_in(Path::new("/")) && !exists_in(root);
    means_root.then(|| RuleWarning::SingleSlash {
        rule: rule.clone(),
        behavior: *behavior,
        base: root.to_owned(),
    })
}
