//! Restrictions of an administrator on marketplaces: `strictKnownMarketplaces` lists the only sources that are allowed,
//! `blockedMarketplaces` lists sources that are not. Pure. What cannot be understood restricts.

use fancy_regex::Regex;
use serde_json::Value;

use crate::plugins::marketplace_source::{MarketplaceLocation, MarketplaceSource};
use crate::settings::{LayerSource, Settings};

/// Settings keys of an administrator.
const ALLOWED_KEY: &str = "strictKnownMarketplaces";
const BLOCKED_KEY: &str = "blockedMarketplaces";

/// Which sources of marketplaces an administrator permits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MarketplacePolicy {
    /// None if all are allowed.
    allowed: Option<Vec<Value>>,
    blocked: Vec<Value>,
}

impl MarketplacePolicy {
    pub fn from_settings(settings: &Settings) -> Self {
        let mut policy = Self::default();
        for layer in settings.layers().iter().filter(|layer| layer.origin.source == LayerSource::Managed) {
            if let Some(entries) = layer.values.get(ALLOWED_KEY) {
                policy
                    .allowed
                    .get_or_insert_default()
                    .extend(entries.as_array().into_iter().flatten().cloned());
            }
            match layer.values.get(BLOCKED_KEY) {
                None => {}
                Some(Value::Array(entries)) => policy.blocked.extend(entries.iter().cloned()),
                Some(other) => policy.blocked.push(other.clone()),
            }
        }
        policy
    }

    /// Returns whether there is no restriction.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks a source. The error names the setting.
    pub fn check(&self, source: &MarketplaceSource) -> Result<(), String> {
        let shown = source.describe();
        if self.blocked.iter().any(|entry| matches_entry(entry, source, Unknown::Matches)) {
            return Err(format!(
                "the marketplace source {shown} is blocked by an administrator ({BLOCKED_KEY})"
            ));
        }
        let is_listed =
            |entries: &Vec<Value>| entries.iter().any(|entry| matches_entry(entry, source, Unknown::Differs));
        if self.allowed.as_ref().is_some_and(|entries| !is_listed(entries)) {
            return Err(format!(
                "the marketplace source {shown} is not allowed by an administrator ({ALLOWED_KEY})"
            ));
        }
        Ok(())
    }
}

/// How an entry counts that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Matches,
    Differs,
}

fn matches_entry(entry: &Value, source: &MarketplaceSource, unknown: Unknown) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let matches_pattern = |pattern: Option<&str>, subject: Option<String>| {
        let Some(subject) = subject else { return false };
        let matched = pattern.and_then(|pattern| Regex::new(pattern).ok()?.is_match(&subject).ok());
        matched.unwrap_or(unknown == Unknown::Matches)
    };
    match text("source") {
        Some("hostPattern") => matches_pattern(text("hostPattern"), host(source)),
        Some("pathPattern") => matches_pattern(text("pathPattern"), local_path(source)),
        Some("github") if text("repo").is_some_and(|repo| repo.ends_with("/*")) => {
            let owner = format!("github.com/{}", text("repo").unwrap_or_default().trim_end_matches('*'));
            repository(source).is_some_and(|repository| repository.starts_with(&owner.to_ascii_lowercase()))
        }
        // Plugins that do not come from a marketplace.
        Some("skills-dir") => false,
        Some("npm" | "settings") => false,
        _ => match MarketplaceSource::parse(entry, std::path::Path::new("/")) {
            Ok(listed) => is_same_source(&listed, source, unknown),
            Err(_) => unknown == Unknown::Matches,
        },
    }
}

/// For the allow list everything must be equal; for the block list, an entry without a branch means all of them.
fn is_same_source(listed: &MarketplaceSource, source: &MarketplaceSource, unknown: Unknown) -> bool {
    match (listed.location(), source.location()) {
        (
            MarketplaceLocation::Git { repository: one, file },
            MarketplaceLocation::Git { repository: other, file: other_file },
        ) => {
            let is_any_reference = unknown == Unknown::Matches && one.revision.reference.is_none();
            repository(listed) == repository(source)
                && (is_any_reference
                    || one.revision.reference == other.revision.reference && file == other_file)
        }
        _ => listed.is_same_location(source),
    }
}

/// Host and path of a repository, without what does not distinguish repositories.
fn repository(source: &MarketplaceSource) -> Option<String> {
    let MarketplaceLocation::Git { repository, .. } = source.location() else { return None };
    let url = repository.url.as_str();
    let address = match url.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        None => url.replacen(':', "/", 1),
    };
    let (host, path) = address.split_once('/')?;
    let host = host.rsplit('@').next()?.split(':').next()?.to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    // Paths on GitHub do not distinguish case.
    let path = if host == "github.com" { path.to_ascii_lowercase() } else { path.to_owned() };
    Some(format!("{host}/{path}"))
}

fn host(source: &MarketplaceSource) -> Option<String> {
    match source.location() {
        MarketplaceLocation::Git { .. } => repository(source)?.split('/').next().map(str::to_owned),
        MarketplaceLocation::Url(url) => {
            let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
            Some(authority.rsplit('@').next()?.split(':').next()?.to_ascii_lowercase())
        }
        MarketplaceLocation::Directory(_) | MarketplaceLocation::File(_) => None,
    }
}

fn local_path(source: &MarketplaceSource) -> Option<String> {
    match source.location() {
        MarketplaceLocation::Directory(path) | MarketplaceLocation::File(path) => {
            Some(path.display().to_string())
        }
        MarketplaceLocation::Git { .. } | MarketplaceLocation::Url(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::settings::SettingsRequest;

    fn check(managed: &Value, source: &Value) -> bool {
        let request = SettingsRequest { managed: managed.as_object().cloned(), ..SettingsRequest::default() };
        let policy = MarketplacePolicy::from_settings(&Settings::load(request).unwrap());
        policy.check(&MarketplaceSource::parse(source, Path::new("/")).unwrap()).is_ok()
    }

    #[test]
    fn sources_are_matched_with_the_lists() {
        let hub = || json!({"source": "github", "repo": "acme/tools"});
        let hub_at = || json!({"source": "github", "repo": "acme/tools", "ref": "v1"});
        let same = || json!({"source": "git", "url": "git@github.com:Acme/tools.git"});
        let dir = || json!({"source": "directory", "path": "/srv/shop"});
        let url = || json!({"source": "url", "url": "https://x.test/m.json"});
        let (allow, block) = (ALLOWED_KEY, BLOCKED_KEY);
        for (name, key, entries, source, expected) in [
            ("nothing is restricted", "other", json!([]), hub(), true),
            ("empty list", allow, json!([]), hub(), false),
            ("same source", allow, json!([hub()]), hub(), true),
            ("same repository", allow, json!([hub()]), same(), true),
            ("other branch", allow, json!([hub()]), hub_at(), false),
            ("owner", allow, json!([{"source": "github", "repo": "acme/*"}]), hub(), true),
            ("other owner", allow, json!([{"source": "github", "repo": "ac/*"}]), hub(), false),
            ("host", allow, json!([{"source": "hostPattern", "hostPattern": "^x\\.test$"}]), url(), true),
            (
                "other host",
                allow,
                json!([{"source": "hostPattern", "hostPattern": "^x\\.test$"}]),
                hub(),
                false,
            ),
            ("path", allow, json!([{"source": "pathPattern", "pathPattern": "^/srv/"}]), dir(), true),
            (
                "broken pattern allows nothing",
                allow,
                json!([{"source": "pathPattern", "pathPattern": "("}]),
                dir(),
                false,
            ),
            ("not a list allows nothing", allow, json!(true), hub(), false),
            ("blocked", block, json!([hub()]), hub(), false),
            ("blocked at every branch", block, json!([hub()]), hub_at(), false),
            ("blocked by another spelling", block, json!([hub()]), same(), false),
            ("not blocked", block, json!([hub()]), dir(), true),
            ("unknown entry blocks", block, json!([{"source": "moon"}]), dir(), false),
            (
                "broken pattern blocks",
                block,
                json!([{"source": "pathPattern", "pathPattern": "("}]),
                dir(),
                false,
            ),
            ("not a list blocks", block, json!("all"), dir(), false),
        ] {
            assert_eq!(check(&json!({key: entries}), &source), expected, "{name}");
        }
    }
}
