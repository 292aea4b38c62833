//! What a search may see: files that a rule denies reading are left out of its results and never opened.

use std::path::Path;
use std::sync::Arc;

use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{ReadFilter, Standing};

/// What may be read, as the rules stood when it was taken. By default everything.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    limits: Option<Limits>,
}

/// Rules of which at least one denies reading something.
#[derive(Debug, Clone)]
struct Limits {
    standing: Arc<Standing>,
    home: Arc<Path>,
}

impl Sight {
    pub(super) fn of(standing: Arc<Standing>, home: Arc<Path>) -> Self {
        let is_limited = ReadFilter::new(&standing.rules, &RealFs, &home).is_some();
        Self { limits: is_limited.then_some(Limits { standing, home }) }
    }

    /// Whether a file or folder, by its absolute path, must not be shown, wherever links on the way lead.
    pub fn hides(&self, path: &Path) -> bool {
        self.filter().is_some_and(|filter| filter.hides(path))
    }

    /// The same for a path that has no links on its way; it costs no look at the disk.
    pub fn hides_unlinked(&self, path: &Path) -> bool {
        self.filter().is_some_and(|filter| filter.hides_unlinked(path))
    }

    fn filter(&self) -> Option<ReadFilter<'_>> {
        let limits = self.limits.as_ref()?;
        ReadFilter::new(&limits.standing.rules, &RealFs, &limits.home)
    }
}
