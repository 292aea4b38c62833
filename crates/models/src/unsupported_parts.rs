//! Request parts that a provider rejected, remembered per model so that later requests omit them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::request::OptionalPart;

/// Optional parts that a provider rejected, each with the model.
#[derive(Debug, Default)]
pub(crate) struct UnsupportedParts(Mutex<Vec<(String, OptionalPart)>>);

impl UnsupportedParts {
    pub(crate) fn add(&self, model: &str, part: &OptionalPart) {
        self.lock().push((model.to_owned(), part.clone()));
    }

    pub(crate) fn for_model(&self, model: &str) -> Vec<OptionalPart> {
        self.lock().iter().filter(|(name, _)| name == model).map(|(_, part)| part.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, OptionalPart)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
