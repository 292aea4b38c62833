//! Ids of plugins from marketplaces (`name@marketplace`), and the names in them, which become parts of paths.

use std::fmt;

/// Limit on the length of a name.
const MAX_NAME_LENGTH: usize = 128;

/// Names after `@` for plugins that come from elsewhere than a marketplace.
const ORIGIN_NAMES: [&str; 4] = ["inline", "builtin", "skills-dir", "synced"];

/// Id of a plugin from a marketplace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginId {
    name: String,
    marketplace: String,
}

impl PluginId {
    /// Checks both names.
    pub fn new(name: &str, marketplace: &str) -> Result<Self, String> {
        check_name("plugin", name)?;
        check_name("marketplace", marketplace)?;
        if ORIGIN_NAMES.contains(&marketplace) {
            return Err(format!("{marketplace} is not a marketplace"));
        }
        Ok(Self { name: name.into(), marketplace: marketplace.into() })
    }

    /// Parses `name@marketplace`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, marketplace) =
            text.split_once('@').ok_or_else(|| format!("{text:?} is not of the form name@marketplace"))?;
        Self::new(name, marketplace)
    }

    /// Name of the entry in the marketplace.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn marketplace(&self) -> &str {
        &self.marketplace
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.marketplace)
    }
}

/// Checks a name that becomes a part of a path. `what` begins the error text.
pub fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_valid = name.len() <= MAX_NAME_LENGTH
        && name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && name.chars().all(is_allowed)
        && !name.contains("..");
    if is_valid {
        return Ok(());
    }
    Err(format!(
        "the {what} name {name:?} is not valid: use letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    ))
}

/// Turns a version into a part of a path.
pub fn version_dir_name(version: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let name: String = version.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '-']).replace("..", "-");
    match &name[..name.len().min(MAX_NAME_LENGTH)] {
        "" => "unknown".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_plugin_and_marketplace() {
        let id = PluginId::parse("go.fmt_2@my-shop").unwrap();
        assert_eq!(
            (id.name(), id.marketplace(), id.to_string()),
            ("go.fmt_2", "my-shop", "go.fmt_2@my-shop".into())
        );
        for text in [
            "plain",
            "@shop",
            "a@",
            "../a@shop",
            "a@..",
            "a@.",
            "a/b@shop",
            "a@b/c",
            "a@b@c",
            "-a@shop",
            ".a@shop",
            "a b@shop",
            "a@in\nline",
            "a@inline",
            "a@synced",
            "..@shop",
            "a..b@shop",
            "ä@shop",
        ] {
            assert!(PluginId::parse(text).is_err(), "{text}");
        }
        assert!(check_name("plugin", &"a".repeat(129)).is_err());
    }

    #[test]
    fn a_version_is_one_path_component() {
        for (version, expected) in [
            ("1.2.0", "1.2.0"),
            ("1.0.0+build", "1.0.0+build"),
            ("../../x", "x"),
            ("v1/../x", "v1---x"),
            ("a/b", "a-b"),
            ("..", "unknown"),
            ("", "unknown"),
            ("1..2", "1-2"),
        ] {
            assert_eq!(version_dir_name(version), expected, "{version}");
        }
    }
}
