//! Environment variables of an engine: keys, endpoints, switches.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

/// Environment of an engine and of the commands it runs. Cheap to clone.
///
/// By default it is that of this process. A program that serves several users can give each agent its own:
///
/// ```
/// use whimbrel::{Agent, Environment};
///
/// let environment = Environment::from_iter([
///     ("PATH", "/usr/bin:/bin"),
///     ("ANTHROPIC_API_KEY", "the key of this customer"),
/// ]);
/// let agent = Agent::new().environment(environment);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Arc<BTreeMap<String, String>>,
}

impl Environment {
    /// Copies the variables of this process. Those that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        std::env::vars_os().filter_map(text).collect()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Returns these variables with others on top.
    #[cfg(feature = "in-process")]
    pub(crate) fn extended(&self, others: &BTreeMap<String, String>) -> Self {
        if others.is_empty() {
            return self.clone();
        }
        let mut all = self.variables().clone();
        all.extend(others.clone());
        Self { variables: Arc::new(all) }
    }

    /// Creates an engine for the providers that these variables configure. Sessions with the same engine share its
    /// connections and prompts; see [`Agent::engine`](crate::Agent::engine).
    #[cfg(feature = "in-process")]
    pub fn engine(&self) -> whimbrel_engine::Engine {
        self.engine_builder().build()
    }

    /// Builds an engine for the providers and the proxies that these variables configure, with more on top.
    #[cfg(feature = "in-process")]
    pub fn engine_builder(&self) -> whimbrel_engine::EngineBuilder {
        let variables = self.clone();
        let get = move |name: &str| variables.get(name).map(str::to_owned);
        let http_client = whimbrel_models::http::HttpClient::from_env(&get);
        let providers = whimbrel_models::providers::Providers::from_env(Arc::new(get), http_client);
        whimbrel_engine::Engine::builder_with(providers)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: Arc::new(variables.collect()) }
    }
}

/// Prints the names only: values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
