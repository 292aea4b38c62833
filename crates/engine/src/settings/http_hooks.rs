//! What settings say about hooks that are web addresses: which may be told (`allowedHttpHookUrls`), and which variables may
//! go into their headers (`httpHookAllowedEnvVars`). Pure.
//!
//! Without a list there is no limit; an empty one lets nothing through. Lists of one rank are joined. A list counts for
//! hooks of its own rank and of those below: nobody widens what a stronger one has limited, and no project can silence
//! what guards the person.

use fancy_regex::Regex;
use serde_json::Value;
use whimbrel_models::http::Url;

use super::layer::Layer;
use super::sources::{Origin, Scope, Source};

/// The key that lists addresses.
pub const ADDRESSES: &str = "allowedHttpHookUrls";
/// The key that lists variables.
pub const VARIABLES: &str = "httpHookAllowedEnvVars";

/// Whose word a hook or a list is, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// An administrator, by a file.
    Administrator,
    /// The host in an administrator's place.
    Steward,
    /// The person or the host.
    Person,
    /// The project.
    Project,
}

impl Rank {
    /// The rank of what comes from there.
    pub fn of(origin: &Origin) -> Self {
        match (origin.source, origin.scope) {
            (Source::Managed, _) if origin.file.is_some() => Self::Administrator,
            (Source::Managed, _) => Self::Steward,
            (_, Scope::Person) => Self::Person,
            (_, Scope::Project) => Self::Project,
        }
    }
}

/// The lists of all ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpLimits {
    addresses: Vec<(Rank, Vec<String>)>,
    variables: Vec<(Rank, Vec<String>)>,
}

impl HttpLimits {
    /// The limits that these layers set.
    pub fn of(layers: &[Layer]) -> Self {
        Self { addresses: lists(layers, ADDRESSES), variables: lists(layers, VARIABLES) }
    }

    /// Whether a hook of this rank may tell this address.
    pub fn admit(&self, rank: Rank, address: &str) -> bool {
        let mut lists = binding(&self.addresses, rank).peekable();
        if lists.peek().is_none() {
            return true;
        }
        let Ok(address) = Url::parse(address) else { return false };
        lists.all(|list| list.iter().any(|pattern| fits(pattern, address.as_str())))
    }

    /// Those of the variables that a hook of this rank lists which may go into its headers.
    pub fn variables(&self, rank: Rank, listed: &[String]) -> Vec<String> {
        let may = |name: &&String| binding(&self.variables, rank).all(|list| list.contains(name));
        listed.iter().filter(may).cloned().collect()
    }
}

/// The lists under a key, those of one rank joined.
fn lists(layers: &[Layer], key: &str) -> Vec<(Rank, Vec<String>)> {
    let mut lists: Vec<(Rank, Vec<String>)> = Vec::new();
    for layer in layers {
        let Some(list) = layer.values.get(key).and_then(Value::as_array) else { continue };
        let rank = Rank::of(&layer.origin);
        let texts = list.iter().filter_map(Value::as_str).map(Into::into);
        match lists.iter_mut().find(|(other, _)| *other == rank) {
            Some((_, joined)) => joined.extend(texts),
            None => lists.push((rank, texts.collect())),
        }
    }
    lists
}

/// The lists that count for a rank.
fn binding(lists: &[(Rank, Vec<String>)], rank: Rank) -> impl Iterator<Item = &Vec<String>> {
    lists.iter().filter(move |(by, _)| *by <= rank).map(|(_, list)| list)
}

/// Whether an address fits a pattern, in which `*` stands for anything. In the part that names the host it stays there:
/// `https://*.example.com/*` does not mean `https://elsewhere.example/x.example.com/`.
fn fits(pattern: &str, address: &str) -> bool {
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
    let expression = format!("(?s)^{}{}$", globbed(&host.to_lowercase(), "[^/?#@]*"), globbed(path, ".*"));
    Regex::new(&expression).is_ok_and(|expression| expression.is_match(address).unwrap_or(false))
}

/// A pattern as a regular expression; `star` is what `*` stands for.
fn globbed(pattern: &str, star: &str) -> String {
    pattern.split('*').map(fancy_regex::escape).collect::<Vec<_>>().join(star)
}

#[cfg(test)]
mod tests;
