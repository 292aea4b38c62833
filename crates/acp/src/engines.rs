//! Engines that sessions share: one for each environment that is in use.

use std::sync::Arc;

use whimbrel::{Engine, Environment};

/// Engines by their environment. A session holds a clone of its engine; the others are dropped when a new one is made.
#[derive(Default)]
pub(crate) struct SharedEngines(Vec<(Environment, Arc<Engine>)>);

impl SharedEngines {
    /// The engine for an environment.
    pub(crate) fn get_or_create(&mut self, environment: Environment) -> Arc<Engine> {
        if let Some((_, engine)) = self.0.iter().find(|(known, _)| *known == environment) {
            return Arc::clone(engine);
        }
        self.0.retain(|(_, engine)| Arc::strong_count(engine) > 1);
        let engine = Arc::new(environment.engine());
        self.0.push((environment, Arc::clone(&engine)));
        engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_is_shared_and_dropped_when_unused() {
        let environment = |value: &str| Environment::from_iter([("ANTHROPIC_BASE_URL", value)]);
        let mut engines = SharedEngines::default();
        let used = engines.get_or_create(environment("http://a"));
        assert!(Arc::ptr_eq(&used, &engines.get_or_create(environment("http://a"))));
        for address in ["http://b", "http://c", "http://d"] {
            engines.get_or_create(environment(address));
        }
        assert_eq!(engines.0.len(), 2, "the one in use and the last one");
        assert!(Arc::ptr_eq(&used, &engines.get_or_create(environment("http://a"))));
    }
}
