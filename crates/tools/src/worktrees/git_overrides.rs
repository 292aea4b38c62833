//! Config overrides that disable programs which an untrusted repository's settings would make git run. The user's own
//! settings stay in force, also for keys that the repository sets.

use std::collections::BTreeMap;

use whimbrel_policy::git_settings::{self, GitOverride};

/// Scopes of the user and the system. All other scopes belong to the repository.
const TRUSTED_SCOPES: [&str; 3] = ["system", "global", "command"];

/// Settings that override those of the repository for one git command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitOverrides {
    entries: Vec<(String, String)>,
    /// Whether the repository has conditional includes, so that other directories or branches may have further
    /// settings.
    depends_on_location: bool,
}

/// One setting from `git config --list --show-scope -z`.
#[derive(Clone, Copy)]
struct ConfigEntry<'a> {
    scope: &'a str,
    key: &'a str,
    value: &'a str,
}

impl GitOverrides {
    /// Computes the overrides for a listing. `None` if a key cannot be expressed.
    pub(super) fn from_listing(listing: &str) -> Option<Self> {
        let settings = parse_listing(listing);
        let mut entries = Vec::new();
        for setting in settings.iter().filter(|setting| !setting.is_trusted()) {
            let Some(replacement) = find_override(setting.key) else { continue };
            // Invalid UTF-8 was replaced when the listing was decoded.
            if setting.key.contains(char::REPLACEMENT_CHARACTER) {
                return None;
            }
            match replacement {
                GitOverride::Value(value) => {
                    let is_user_setting =
                        |other: &&ConfigEntry<'_>| other.is_trusted() && other.key == setting.key;
                    let own = settings.iter().rfind(is_user_setting).map_or(value, |own| own.value);
                    entries.push((setting.key.to_owned(), own.to_owned()));
                }
                GitOverride::Disable(name) => {
                    let section = setting.key.rsplit_once('.').map_or("", |(section, _)| section);
                    entries.push((format!("{section}.{name}"), "false".to_owned()));
                }
                GitOverride::ResetList => {
                    entries.push(("credential.helper".to_owned(), String::new()));
                    let own =
                        settings.iter().filter(|other| other.is_trusted() && is_credential_helper(other.key));
                    entries.extend(own.map(|own| (own.key.to_owned(), own.value.to_owned())));
                }
            }
        }
        let depends_on_location =
            settings.iter().any(|setting| !setting.is_trusted() && setting.key.starts_with("includeif."));
        Some(Self { entries, depends_on_location })
    }

    /// Returns whether another directory or branch may need further overrides.
    pub(super) fn depends_on_location(&self) -> bool {
        self.depends_on_location
    }

    /// Options for git, and the variables that hold the values (`--config-env` allows any character in them). Git
    /// versions without the option fail.
    pub(super) fn to_arguments(&self) -> (Vec<String>, BTreeMap<String, String>) {
        let variable = |number: usize| format!("WHIMBREL_GIT_SETTING_{number}");
        let options = self.entries.iter().enumerate();
        let options = options.map(|(number, (key, _))| format!("--config-env={key}={}", variable(number)));
        let values = self.entries.iter().enumerate();
        let values = values.map(|(number, (_, value))| (variable(number), value.clone()));
        (options.collect(), values.collect())
    }
}

impl ConfigEntry<'_> {
    fn is_trusted(&self) -> bool {
        TRUSTED_SCOPES.contains(&self.scope)
    }
}

fn parse_listing(listing: &str) -> Vec<ConfigEntry<'_>> {
    let mut parts = listing.split('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(text)) = (parts.next(), parts.next()) {
        let (key, value) = text.split_once('\n').unwrap_or((text, "true"));
        settings.push(ConfigEntry { scope, key, value });
    }
    settings
}

/// The override for a setting; `None` if it runs nothing.
fn find_override(key: &str) -> Option<GitOverride> {
    git_settings::find_override(key.split('.').next()?, key.rsplit('.').next()?)
}

/// Returns whether a setting names a credential helper.
fn is_credential_helper(key: &str) -> bool {
    key.starts_with("credential.") && key.ends_with(".helper")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides_for(settings: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let listing: String = settings.iter().map(|(scope, text)| format!("{scope}\0{text}\0")).collect();
        GitOverrides::from_listing(&listing).map(|overrides| overrides.entries)
    }

    fn owned_pairs(rows: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn only_settings_of_the_repository_are_overridden() {
        let settings = [
            ("global", "filter.lfs.process\ngit-lfs filter-process"),
            ("global", "core.sshcommand\nssh -4"),
            ("local", "core.bare\nfalse"),
            ("local", "filter.a=b.smudge\nx"),
            ("worktree", "filter.c.required"),
            ("local", "core.sshcommand\nx"),
            ("local", "filter.lfs.process\nx"),
            ("local", "hook.a.b.command\nx"),
        ];
        let expected = [
            ("filter.a=b.smudge", ""),
            ("filter.c.required", "false"),
            ("core.sshcommand", "ssh -4"),
            ("filter.lfs.process", "git-lfs filter-process"),
            ("hook.a.b.enabled", "false"),
        ];
        assert_eq!(overrides_for(&settings), owned_pairs(&expected));
        assert_eq!(overrides_for(&settings[..3]), owned_pairs(&[]));
    }

    #[test]
    fn a_list_is_reset_to_the_users_entries() {
        let settings = [
            ("global", "credential.helper\nstore"),
            ("global", "credential.https://a.b.helper\ncache"),
            ("local", "credential.https://x.helper\n!x"),
        ];
        let expected = [
            ("credential.helper", ""),
            ("credential.helper", "store"),
            ("credential.https://a.b.helper", "cache"),
        ];
        assert_eq!(overrides_for(&settings), owned_pairs(&expected));
    }

    #[test]
    fn only_conditional_includes_of_the_repository_count() {
        let varies = |scope: &str| {
            let listing = format!("{scope}\0includeif.onbranch:x.path\nmore\0");
            GitOverrides::from_listing(&listing).unwrap().depends_on_location()
        };
        assert!(varies("local") && varies("worktree") && !varies("global"));
    }

    #[test]
    fn a_key_that_cannot_be_expressed_fails() {
        assert_eq!(overrides_for(&[("local", "filter.\u{fffd}.smudge\nx")]), None);
        assert_eq!(overrides_for(&[("local", "branch.\u{fffd}.remote\nx")]), owned_pairs(&[]));
    }
}
