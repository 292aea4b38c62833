//! Limits of settings on HTTP hooks: allowed URLs (`allowedHttpHookUrls`) and environment variables allowed in headers
//! (`httpHookAllowedEnvVars`). Pure.
//!
//! Without a list there is no limit; an empty list allows nothing. Lists of the same authority are joined. A list
//! applies to hooks of its own authority and weaker ones, so that none can widen what a stronger one has limited, and
//! no project can disable hooks of the user.

use fancy_regex::Regex;
use serde_json::Value;
use whimbrel_models::http::Url;

use crate::settings::layer::SettingsLayer;
use crate::settings::sources::{LayerOrigin, LayerScope, LayerSource};

pub const ALLOWED_URLS_KEY: &str = "allowedHttpHookUrls";
pub const ALLOWED_ENV_VARS_KEY: &str = "httpHookAllowedEnvVars";

/// Authority of the author of a hook or list, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// An administrator, by a file.
    Administrator,
    /// The host, by managed settings.
    HostManaged,
    /// The user or the host.
    User,
    Project,
}

impl Authority {
    pub(crate) fn from_origin(origin: &LayerOrigin) -> Self {
        match (origin.source, origin.scope) {
            (LayerSource::Managed, _) if origin.file.is_some() => Self::Administrator,
            (LayerSource::Managed, _) => Self::HostManaged,
            (_, LayerScope::User) => Self::User,
            (_, LayerScope::Project) => Self::Project,
        }
    }
}

/// The lists of all authorities.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpHookLimits {
    allowed_urls: Vec<(Authority, Vec<String>)>,
    allowed_variables: Vec<(Authority, Vec<String>)>,
}

impl HttpHookLimits {
    pub(crate) fn from_layers(layers: &[SettingsLayer]) -> Self {
        Self {
            allowed_urls: collect_lists(layers, ALLOWED_URLS_KEY),
            allowed_variables: collect_lists(layers, ALLOWED_ENV_VARS_KEY),
        }
    }

    /// Whether a hook of this authority may send to a URL.
    pub fn allows_url(&self, authority: Authority, address: &str) -> bool {
        let mut lists = lists_for(&self.allowed_urls, authority).peekable();
        if lists.peek().is_none() {
            return true;
        }
        let Ok(address) = Url::parse(address) else { return false };
        lists.all(|list| list.iter().any(|pattern| matches_url(pattern, address.as_str())))
    }

    /// Filters the variables that a hook of this authority may put into its headers.
    pub fn allowed_variables(&self, authority: Authority, listed: &[String]) -> Vec<String> {
        let may =
            |name: &&String| lists_for(&self.allowed_variables, authority).all(|list| list.contains(name));
        listed.iter().filter(may).cloned().collect()
    }
}

/// The lists under a key, joined by authority.
fn collect_lists(layers: &[SettingsLayer], key: &str) -> Vec<(Authority, Vec<String>)> {
    let mut lists: Vec<(Authority, Vec<String>)> = Vec::new();
    for layer in layers {
        let Some(list) = layer.values.get(key).and_then(Value::as_array) else { continue };
        let authority = Authority::from_origin(&layer.origin);
        let texts = list.iter().filter_map(Value::as_str).map(Into::into);
        match lists.iter_mut().find(|(other, _)| *other == authority) {
            Some((_, joined)) => joined.extend(texts),
            None => lists.push((authority, texts.collect())),
        }
    }
    lists
}

/// The lists that apply to an authority.
fn lists_for(lists: &[(Authority, Vec<String>)], authority: Authority) -> impl Iterator<Item = &Vec<String>> {
    lists.iter().filter(move |(by, _)| *by <= authority).map(|(_, list)| list)
}

/// Matches a URL against a pattern in which `*` matches anything. Within scheme and host, `*` does not match beyond the
/// host: `https://*.example.com/*` does not match `https://elsewhere.example/x.example.com/`.
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
    let expression =
        format!("(?s)^{}{}$", glob_to_regex(&host.to_lowercase(), "[^/?#@]*"), glob_to_regex(path, ".*"));
    Regex::new(&expression).is_ok_and(|expression| expression.is_match(address).unwrap_or(false))
}

/// Converts a pattern to a regular expression; `wildcard` replaces `*`.
fn glob_to_regex(pattern: &str, wildcard: &str) -> String {
    pattern.split('*').map(fancy_regex::escape).collect::<Vec<_>>().join(wildcard)
}

#[cfg(test)]
mod tests;
