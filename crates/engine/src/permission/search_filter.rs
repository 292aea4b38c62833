//! What a search may see: files that a rule denies reading are left out of its results and never opened.

use std::path::Path;
use std::sync::Arc;

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{ReadFilter, PermissionSet};

/// What may be read, as the rules stood when it was taken. By default everything.
#[derive(Debug, Clone, Default)]
pub struct SearchFilter {
    rules: Option<FilterRules>,
}

/// Rules of which at least one denies reading something.
#[derive(Debug, Clone)]
struct FilterRules {
    standing: Arc<PermissionSet>,
    home: Arc<Path>,
}

impl SearchFilter {
    pub(super) fn new(standing: Arc<PermissionSet>, home: Arc<Path>) -> Self {
        let is_limited = ReadFilter::new(&standing.rules, &RealFs, &home).is_some();
        Self { rules: is_limited.then_some(FilterRules { standing, home }) }
    }

    /// Whether a file or folder, by its absolute path, must not be shown, wherever links on the way lead.
    pub fn hides(&self, path: &Path) -> bool {
        self.policy_filter().is_some_and(|filter| filter.hides(path))
    }

    /// The same for a path that has no links on its way; it costs no look at the disk.
    pub fn hides_unlinked(&self, path: &Path) -> bool {
        self.policy_filter().is_some_and(|filter| filter.hides_resolved(path))
    }

    fn policy_filter(&self) -> Option<ReadFilter<'_>> {
        let limits = self.rules.as_ref()?;
        ReadFilter::new(&limits.standing.rules, &RealFs, &limits.home)
    }
}
