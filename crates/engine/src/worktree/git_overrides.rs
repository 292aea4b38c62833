//! What a repository's own settings would have git run, and how that is switched off where nobody vouches for them.
//! The person's own settings stay as they are, also for names that the repository uses too.

use std::collections::BTreeMap;

/// The scopes that are the person's or the system's. Whatever else there is belongs to the repository.
const TRUSTED_SCOPES: [&str; 3] = ["system", "global", "command"];

/// Settings that are laid over those of the repository for one run of git.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitOverrides {
    entries: Vec<(String, String)>,
    /// Whether the repository has more settings for some folders or branches than for others.
    depends_on_location: bool,
}

/// One setting, as `git config --list --show-scope -z` tells it.
#[derive(Clone, Copy)]
struct ConfigEntry<'a> {
    scope: &'a str,
    key: &'a str,
    value: &'a str,
}

/// What takes the place of a setting that the person has not set.
enum Replacement {
    /// This value.
    Value(&'static str),
    /// It adds to a list, which begins anew.
    ResetList,
    /// Another setting of the same thing switches it off.
    Disable(&'static str),
}

impl GitOverrides {
    /// What must be laid over the settings in this listing. None if one of them cannot be named.
    pub(super) fn from_listing(listing: &str) -> Option<Self> {
        let told = parse_listing(listing);
        let mut over = Vec::new();
        for setting in told.iter().filter(|setting| !setting.is_trusted()) {
            let Some(instead) = replacement_for(setting.key) else { continue };
            // Bytes that are no text were replaced on the way here.
            if setting.key.contains(char::REPLACEMENT_CHARACTER) {
                return None;
            }
            match instead {
                Replacement::Value(value) => {
                    let same = |other: &&ConfigEntry<'_>| other.is_trusted() && other.key == setting.key;
                    let own = told.iter().rfind(same).map_or(value, |own| own.value);
                    over.push((setting.key.to_owned(), own.to_owned()));
                }
                Replacement::Disable(name) => {
                    let whose = setting.key.rsplit_once('.').map_or("", |(whose, _)| whose);
                    over.push((format!("{whose}.{name}"), "false".to_owned()));
                }
                Replacement::ResetList => {
                    over.push(("credential.helper".to_owned(), String::new()));
                    let own = told.iter().filter(|other| other.is_trusted() && is_credential_helper(other.key));
                    over.extend(own.map(|own| (own.key.to_owned(), own.value.to_owned())));
                }
            }
        }
        let varies =
            told.iter().any(|setting| !setting.is_trusted() && setting.key.starts_with("includeif."));
        Some(Self { entries: over, depends_on_location: varies })
    }

    /// Whether another folder or branch of the repository may need more than this.
    pub(super) fn depends_on_location(&self) -> bool {
        self.depends_on_location
    }

    /// The options for git, and the variables that hold the values: a name may have any character in it. A git that is too
    /// old for the option does nothing at all.
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
    let mut told = Vec::new();
    while let (Some(scope), Some(text)) = (parts.next(), parts.next()) {
        let (key, value) = text.split_once('\n').unwrap_or((text, "true"));
        told.push(ConfigEntry { scope, key, value });
    }
    told
}

/// What is put in the place of a setting by which git, or what git starts to check files out, runs a program. None for all
/// others.
fn replacement_for(key: &str) -> Option<Replacement> {
    let (section, name) = (key.split('.').next()?, key.rsplit('.').next()?);
    match (section, name) {
        ("filter", "required") => Some(Replacement::Value("false")),
        ("core", "sshcommand") => Some(Replacement::Value("ssh")),
        ("filter", "clean" | "smudge" | "process")
        | ("core", "askpass" | "gitproxy" | "alternaterefscommand")
        | ("lfs", "path" | "args" | "clean" | "smudge" | "standalonetransferagent") => {
            Some(Replacement::Value(""))
        }
        ("hook", _) => Some(Replacement::Disable("enabled")),
        _ if is_credential_helper(key) => Some(Replacement::ResetList),
        _ => None,
    }
}

/// Whether a setting names a program that knows passwords.
fn is_credential_helper(key: &str) -> bool {
    key.starts_with("credential.") && key.ends_with(".helper")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides_for(told: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let listing: String = told.iter().map(|(scope, text)| format!("{scope}\0{text}\0")).collect();
        GitOverrides::from_listing(&listing).map(|silence| silence.entries)
    }

    fn owned_pairs(rows: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn only_what_the_repository_names_is_switched_off() {
        let told = [
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
        assert_eq!(overrides_for(&told), owned_pairs(&expected));
        assert_eq!(overrides_for(&told[..3]), owned_pairs(&[]));
    }

    #[test]
    fn a_list_begins_anew_with_what_the_person_wants() {
        let told = [
            ("global", "credential.helper\nstore"),
            ("global", "credential.https://a.b.helper\ncache"),
            ("local", "credential.https://x.helper\n!x"),
        ];
        let expected = [
            ("credential.helper", ""),
            ("credential.helper", "store"),
            ("credential.https://a.b.helper", "cache"),
        ];
        assert_eq!(overrides_for(&told), owned_pairs(&expected));
    }

    #[test]
    fn only_conditions_of_the_repository_make_other_folders_differ() {
        let varies = |scope: &str| {
            let listing = format!("{scope}\0includeif.onbranch:x.path\nmore\0");
            GitOverrides::from_listing(&listing).unwrap().depends_on_location()
        };
        assert!(varies("local") && varies("worktree") && !varies("global"));
    }

    #[test]
    fn what_cannot_be_named_cannot_be_switched_off() {
        assert_eq!(overrides_for(&[("local", "filter.\u{fffd}.smudge\nx")]), None);
        assert_eq!(overrides_for(&[("local", "branch.\u{fffd}.remote\nx")]), owned_pairs(&[]));
    }
}
