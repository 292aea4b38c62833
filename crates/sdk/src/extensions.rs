//! Values of the host, by their type, that reach tools, hooks and permission callbacks.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// At most one value per type. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    /// Adds a value; replaces one of the same type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} extensions", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_type_and_clones_are_independent() {
        let mut extensions = Extensions::default();
        extensions.insert(1_u8);
        let before = extensions.clone();
        extensions.insert(2_u8);
        extensions.insert("name".to_owned());
        assert_eq!((extensions.get::<u8>(), before.get::<u8>()), (Some(&2), Some(&1)));
        assert_eq!((extensions.get::<String>(), before.get::<String>()), (Some(&"name".to_owned()), None));
    }
}
