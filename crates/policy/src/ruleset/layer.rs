//! One source of rules, as it was read, and what came of taking it in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use whimbrel_wire::permission::PermissionBehavior;

use super::{Compiled, Matcher, RuleRef, RuleSet, Source};
use crate::fs::FsView;
use crate::path_pattern::Anchors;
use crate::paths::physical;
use crate::rule::{Rule, RuleError};

/// The rules of one source, as they are written.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The source.
    pub source: Source,
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

impl Layer {
    /// A layer without rules.
    pub fn new(source: Source, root: &Path) -> Self {
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
pub enum Warning {
    /// A grant that cannot be read is left out; the others stay.
    #[error("{0}; the rule is left out")]
    LeftOut(RuleError),
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
    CountsForAll {
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
    CountsAs {
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
    OneSlash {
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
pub struct Loaded {
    /// What to tell.
    pub warnings: Vec<Warning>,
    /// Refusing and asking rules that cannot be read. A session should not start without them.
    pub errors: Vec<RuleError>,
}

/// What is kept of a layer, for rules that are added to it later.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    pub(super) source: Source,
    pub(super) file: Option<PathBuf>,
    pub(super) root: PathBuf,
}

impl RuleSet {
    /// Takes in the rules of one source.
    pub fn add_layer(&mut self, layer: &Layer, fs: &dyn FsView) -> Loaded {
        let Layer { source, file, root, .. } = layer;
        let ground = Ground { source: *source, file: file.clone(), root: root.clone() };
        self.layers.retain(|other| other.source != *source || other.file != *file);
        self.layers.push(ground);
        let mut loaded = Loaded::default();
        self.add_texts(&layer.allow, PermissionBehavior::Allow, layer, fs, &mut loaded);
        self.add_texts(&layer.ask, PermissionBehavior::Ask, layer, fs, &mut loaded);
        self.add_texts(&layer.deny, PermissionBehavior::Deny, layer, fs, &mut loaded);
        loaded
    }

    fn add_texts(
        &mut self,
        texts: &[String],
        behavior: PermissionBehavior,
        layer: &Layer,
        fs: &dyn FsView,
        loaded: &mut Loaded,
    ) {
        for text in texts {
            let added = Rule::parse(text).and_then(|rule| {
                let reference = RuleRef { rule, behavior, source: layer.source, file: layer.file.clone() };
                self.add(reference, &layer.root, fs)
            });
            match added {
                Ok(warning) => loaded.warnings.extend(warning),
                Err(error) if behavior == PermissionBehavior::Allow => {
                    loaded.warnings.push(Warning::LeftOut(error));
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
        source: Source,
        fs: &dyn FsView,
    ) -> Result<Option<Warning>, RuleError> {
        let is_known = |known: &RuleRef| {
            known.source == source && known.behavior == behavior && known.rule.means(&rule, behavior)
        };
        if self.rules.iter().any(|known| is_known(&known.reference)) {
            return Ok(None);
        }
        let ground = self.layers.iter().find(|ground| ground.source == source);
        let file = ground.and_then(|ground| ground.file.clone());
        let root = ground.map_or_else(|| self.default_root(source), |ground| ground.root.clone());
        self.add(RuleRef { rule, behavior, source, file }, &root, fs)
    }

    /// Takes out the rules of a source that this holds for.
    pub fn remove_rules(
        &mut self,
        source: Source,
        behavior: PermissionBehavior,
        doomed: impl Fn(&Rule) -> bool,
    ) {
        self.rules.retain(|rule| {
            let reference = &rule.reference;
            reference.source != source || reference.behavior != behavior || !doomed(&reference.rule)
        });
    }

    fn add(
        &mut self,
        reference: RuleRef,
        root: &Path,
        fs: &dyn FsView,
    ) -> Result<Option<Warning>, RuleError> {
        if self.rules.iter().any(|known| known.reference == reference) {
            return Ok(None);
        }
        let anchors = Anchors {
            home: self.home.clone(),
            original_cwd: self.original_cwd.clone(),
            source_root: root.to_owned(),
        };
        let (compiled, warning) = Compiled::new(reference, &anchors, &|path| physical(path, fs))?;
        let warning = warning.or_else(|| one_slash(&compiled, root, fs));
        self.rules.push(Arc::new(compiled));
        Ok(warning)
    }

    /// What a leading `/` means in a source that has had no layer yet.
    fn default_root(&self, source: Source) -> PathBuf {
        match source {
            Source::UserSettings => self.home.join(".claude"),
            Source::Managed
            | Source::CliArg
            | Source::FlagSettings
            | Source::LocalSettings
            | Source::ProjectSettings
            | Source::Session
            | Source::Skill => self.original_cwd.clone(),
        }
    }
}

/// Whether a limit whose path begins with one `/` seems to mean the root of the file system: its first folder is there,
/// and not where the path really begins.
fn one_slash(compiled: &Compiled, root: &Path, fs: &dyn FsView) -> Option<Warning> {
    let RuleRef { rule, behavior, .. } = &compiled.reference;
    let is_path = matches!(compiled.matcher, Matcher::Read(_) | Matcher::Edit(_));
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
    meant.then(|| Warning::OneSlash { rule: rule.clone(), behavior: *behavior, base: root.to_owned() })
}
