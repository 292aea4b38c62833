//! Search filter: files that a rule denies reading are left out of search results and never opened.

use std::path::Path;
use std::sync::Arc;

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{PermissionSet, ReadFilter};

/// Snapshot of the rules that deny reading. By default nothing is hidden.
#[derive(Debug, Clone, Default)]
pub struct SearchFilter {
    rules: Option<FilterRules>,
}

/// Rules of which at least one denies reading.
#[derive(Debug, Clone)]
struct FilterRules {
    permissions: Arc<PermissionSet>,
    home: Arc<Path>,
}

impl SearchFilter {
    pub(super) fn new(permissions: Arc<PermissionSet>, home: Arc<Path>) -> Self {
        let is_limited = ReadFilter::new(&permissions.rules, &RealFs, &home).is_some();
        Self { rules: is_limited.then_some(FilterRules { permissions, home }) }
    }

    /// Returns true if the absolute path must not be shown; links are followed.
    pub fn hides(&self, path: &Path) -> bool {
        self.policy_filter().is_some_and(|filter| filter.hides(path))
    }

    /// Like [`hides`](Self::hides), for a path without links; does not read the disk.
    pub fn hides_unlinked(&self, path: &Path) -> bool {
        self.policy_filter().is_some_and(|filter| filter.hides_resolved(path))
    }

    fn policy_filter(&self) -> Option<ReadFilter<'_>> {
        let limits = self.rules.as_ref()?;
        ReadFilter::new(&limits.permissions.rules, &RealFs, &limits.home)
    }
}
