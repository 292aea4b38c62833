//! One source of rules, as it was read, and what came of taking it in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use whimbrel_wire::permission::PermissionBehavior;

use super::{CompiledRule, RuleMatcher, SourcedRule, RuleSet, RuleSource};
use crate::fs::FsView;
use crate::path_pattern::Anchors;
use crate::paths::physical_path;
use crate::rule::{Rule, RuleError};

/// The rules of one source, as they are written.
#[derive(Debug, Clone)]
pub struct RuleLayer {
    /// The source.
    pub source: RuleSource,
    /// The file, if they stand in one.
    pub file: Option<PathBuf>,
    /// What a leading `/` in a path rule means.
    pub root: PathBuf,
    /// Rules that grant.
    pub allow: Vec<String>,
    /// Rules that ask.
    pub ask: Vec<String>,
    /// Rules that refuse.
    pub deny: Vec<String>,
}

impl RuleLayer {
    /// A layer without rules.
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

/// Something to tell about a rule that does not do what it seems to say.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleWarning {
    /// A grant that cannot be read is left out; the others stay.
    #[error("{0}; the rule is left out")]
    Skipped(RuleError),
    /// A specifier that the tool does not look at.
    #[error("rule `{rule}` has no effect; {remedy}")]
    NoEffect {
        /// The rule.
        rule: Rule,
        /// What to write instead.
        remedy: String,
    },
    /// A specifier that cannot be told apart, so that the rule is about every call.
    #[error("{behavior} rule `{rule}` counts for every call of {tool}, which has no such specifier", tool = rule.tool)]
    AppliesToAllCalls {
        /// The rule.
        rule: Rule,
        /// What it says.
        behavior: PermissionBehavior,
    },
    /// A path rule of a tool that has none of its own.
    #[error(
        "{behavior} rule `{rule}` counts as `{instead}`, for everything that {}; write that",
        if instead.tool == "Edit" { "edits" } else { "reads" }
    )]
    AppliesAs {
        /// The rule.
        rule: Rule,
        /// What it says.
        behavior: PermissionBehavior,
        /// What it means.
        instead: Rule,
    },
    /// A path that begins like one from the root of the file system, and is not.
    #[error(
        "{behavior} rule `{rule}` is about {}, where there is no such thing; write `//` at its beginning to mean the root of the file system",
        base.display()
    )]
    SingleSlash {
        /// The rule.
        rule: Rule,
        /// What it says.
        behavior: PermissionBehavior,
        /// Where its path begins.
        base: PathBuf,
    },
    /// No tool has this name.
    #[error("{behavior} rule `{rule}` names a tool that is not known; check its spelling")]
    UnknownTool {
        /// The rule.
        rule: Rule,
        /// What it says.
        behavior: PermissionBehavior,
    },
}

/// What came of taking a layer in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// What to tell.
    pub warnings: Vec<RuleWarning>,
    /// Refusing and asking rules that cannot be read. A session should not start without them.
    pub errors: Vec<RuleError>,
}

/// What is kept of a layer, for rules that are added to it later.
#[derive(Debug, Clone)]
pub(super) struct LayerOrigin {
    pub(super) source: RuleSource,
    pub(super) file: Option<PathBuf>,
    pub(super) root: PathBuf,
}

impl RuleSet {
    /// Takes in the rules of one source.
    pub fn add_layer(&mut self, layer: &RuleLayer, fs: &dyn FsView) -> LoadReport {
        let RuleLayer { source, file, root, .. } = layer;
        let ground = LayerOrigin { source: *source, file: file.clone(), root: root.clone() };
        self.layers.retain(|other| other.source != *source || other.file != *file);
        self.layers.push(ground);
        let mut loaded = LoadReport::default();
        self.add_rule_texts(&layer.allow, PermissionBehavior::Allow, layer, fs, &mut loaded);
        self.add_rule_texts(&layer.ask, PermissionBehavior::Ask, layer, fs, &mut loaded);
        self.add_rule_texts(&layer.deny, PermissionBehavior::Deny, layer, fs, &mut loaded);
        loaded
    }

    fn add_rule_texts(
        &mut self,
        texts: &[String],
        behavior: PermissionBehavior,
        layer: &RuleLayer,
        fs: &dyn FsView,
        loaded: &mut LoadReport,
    ) {
        for text in texts {
            let added = Rule::parse(text).and_then(|rule| {
                let reference = SourcedRule { rule, behavior, source: layer.source, file: layer.file.clone() };
                self.add_compiled(reference, &layer.root, fs)
            });
            match added {
                Ok(warning) => loaded.warnings.extend(warning),
                Err(error) if behavior == PermissionBehavior::Allow => {
                    loaded.warnings.push(RuleWarning::Skipped(error));
                }
                Err(error) => loaded.errors.push(error),
            }
        }
    }

    /// Adds one rule to a source, unless it is there already.
    ///
    /// # Errors
    ///
    /// If the rule means nothing, or grants more than a rule may.
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
        let ground = self.layers.iter().find(|ground| ground.source == source);
        let file = ground.and_then(|ground| ground.file.clone());
        let root = ground.map_or_else(|| self.default_root(source), |ground| ground.root.clone());
        self.add_compiled(SourcedRule { rule, behavior, source, file }, &root, fs)
    }

    /// Takes out the rules of a source that this holds for.
    pub fn remove_rules(
        &mut self,
        source: RuleSource,
        behavior: PermissionBehavior,
        doomed: impl Fn(&Rule) -> bool,
    ) {
        self.rules.retain(|rule| {
            let reference = &rule.sourced;
            reference.source != source || reference.behavior != behavior || !doomed(&reference.rule)
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
        let (compiled, warning) = CompiledRule::new(reference, &anchors, &|path| physical_path(path, fs))?;
        let warning = warning.or_else(|| single_slash_warning(&compiled, root, fs));
        self.rules.push(Arc::new(compiled));
        Ok(warning)
    }

    /// What a leading `/` means in a source that has had no layer yet.
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

/// Whether a limit whose path begins with one `/` seems to mean the root of the file system: its first folder is there,
/// and not where the path really begins.
fn single_slash_warning(compiled: &CompiledRule, root: &Path, fs: &dyn FsView) -> Option<RuleWarning> {
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
    let is_there = |folder: &Path| fs.lstat(&folder.join(first)).is_some();
    let meant = is_there(Path::new("/")) && !is_there(root);
    meant.then(|| RuleWarning::SingleSlash { rule: rule.clone(), behavior: *behavior, base: root.to_owned() })
}
