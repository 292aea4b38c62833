//! What settings say about hooks that are web addresses: which may be told (`allowedHttpHookUrls`), and which variables may
//! go into their headers (`httpHookAllowedEnvVars`). Pure.
//!
//! Without a list there is no limit; an empty one lets nothing through. Lists of one rank are joined. A list counts for
//! hooks of its own rank and of those below: nobody widens what a stronger one has limited, and no project can silence
//! what guards the person.

use fancy_regex::Regex;
use serde_json::Value;
use whimbrel_models::http::Url;

use super::layer::SettingsLayer;
use super::sources::{LayerOrigin, LayerScope, LayerSource};

/// The key that lists addresses.
pub const ALLOWED_URLS_KEY: &str = "allowedHttpHookUrls";
/// The key that lists variables.
pub const ALLOWED_ENV_VARS_KEY: &str = "httpHookAllowedEnvVars";

/// Whose word a hook or a list is, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// An administrator, by a file.
    Administrator,
    /// The host in an administrator's place.
    HostManaged,
    /// The person or the host.
    User,
    /// The project.
    Project,
}

impl Authority {
    /// The rank of what comes from there.
    pub fn from_origin(origin: &LayerOrigin) -> Self {
        match (origin.source, origin.scope) {
            (LayerSource::Managed, _) if origin.file.is_some() => Self::Administrator,
            (LayerSource::Managed, _) => Self::HostManaged,
            (_, LayerScope::User) => Self::User,
            (_, LayerScope::Project) => Self::Project,
        }
    }
}

/// The lists of all ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpHookLimits {
    allowed_urls: Vec<(Authority, Vec<String>)>,
    allowed_variables: Vec<(Authority, Vec<String>)>,
}

impl HttpHookLimits {
    /// The limits that these layers set.
    pub fn from_layers(layers: &[SettingsLayer]) -> Self {
        Self { allowed_urls: collect_lists(layers, ALLOWED_URLS_KEY), allowed_variables: collect_lists(layers, ALLOWED_ENV_VARS_KEY) }
    }

    /// Whether a hook of this rank may tell this address.
    pub fn allows_url(&self, rank: Authority, address: &str) -> bool {
        let mut lists = lists_for(&self.allowed_urls, rank).peekable();
        if lists.peek().is_none() {
            return true;
        }
        let Ok(address) = Url::parse(address) else { return false };
        lists.all(|list| list.iter().any(|pattern| matches_url(pattern, address.as_str())))
    }

    /// Those of the variables that a hook of this rank lists which may go into its headers.
    pub fn allowed_variables(&self, rank: Authority, listed: &[String]) -> Vec<String> {
        let may = |name: &&String| lists_for(&self.allowed_variables, rank).all(|list| list.contains(name));
        listed.iter().filter(may).cloned().collect()
    }
}

/// The lists under a key, those of one rank joined.
fn collect_lists(layers: &[SettingsLayer], key: &str) -> Vec<(Authority, Vec<String>)> {
    let mut lists: Vec<(Authority, Vec<String>)> = Vec::new();
    for layer in layers {
        let Some(list) = layer.values.get(key).and_then(Value::as_array) else { continue };
        let rank = Authority::from_origin(&layer.origin);
        let texts = list.iter().filter_map(Value::as_str).map(Into::into);
        match lists.iter_mut().find(|(other, _)| *other == rank) {
            Some((_, joined)) => joined.extend(texts),
            None => lists.push((rank, texts.collect())),
        }
    }
    lists
}

/// The lists that count for a rank.
fn lists_for(lists: &[(Authority, Vec<String>)], rank: Authority) -> impl Iterator<Item = &Vec<String>> {
    lists.iter().filter(move |(by, _)| *by <= rank).map(|(_, list)| list)
}

/// Whether an address fits a pattern, in which `*` stands for anything. In the part that names the host it stays there:
/// `https://*.example.com/*` does not mean `https://elsewhere.example/x.example.com/`.
fn matches_url(pattern: &str, address: &str) -> bool {
    let (host, path) = match pattern.find("://") {
        Some(at) => {
            let end = pattern[at + 3..].find(['/', '?', '#']).map_or(pattern.len(), |found| at + 3 + found);
            pattern.split_at(end)
        }
        None => ("", pattern),
    };
    let path = match path {
        "" if host.ends_with('*') => "*",
        "" => "/",
        path => path,
    };
    let expression = format!("(?s)^{}{}$", glob_to_regex(&host.to_lowercase(), "[^/?#@]*"), glob_to_regex(path, ".*"));
    Regex::new(&expression).is_ok_and(|expression| expression.is_match(address).unwrap_or(false))
}

/// A pattern as a regular expression; `star` is what `*` stands for.
fn glob_to_regex(pattern: &str, star: &str) -> String {
    pattern.split('*').map(fancy_regex::escape).collect::<Vec<_>>().join(star)
}

#[cfg(test)]
mod tests;
