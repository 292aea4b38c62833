//! `.claude-plugin/plugin.json`: what a plugin says about itself.

use serde::Deserialize;
use serde_json::Value;

/// A manifest.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    /// The name.
    pub name: String,
    /// The version.
    pub version: Option<String>,
    /// Further commands: folders or files, relative to the plugin.
    pub commands: Paths,
    /// Further kinds of subagent.
    pub agents: Paths,
    /// Further skills.
    pub skills: Paths,
    /// Further output styles.
    pub output_styles: Paths,
    /// Further hooks: as they would stand in a file, or files of them.
    pub hooks: Parts,
    /// Further MCP servers: as they would stand in a file, or files of them.
    pub mcp_servers: Parts,
}

/// Paths, one or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path or a list of paths")]
pub enum Paths {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Default for Paths {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Paths {
    /// Each of them.
    pub fn each(&self) -> &[String] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

/// Parts of a plugin that stand in the manifest or in files that it names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path, an object or a list of these")]
pub enum Parts {
    /// One.
    One(Part),
    /// Several.
    Several(Vec<Part>),
}

impl Default for Parts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Parts {
    /// Each of them.
    pub fn each(&self) -> &[Part] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }
}

/// One part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// In a file, relative to the plugin.
    File(String),
    /// As it would stand in one.
    Written(serde_json::Map<String, Value>),
}

impl Manifest {
    /// Reads a manifest. The error says what is wrong and where.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        if !value.is_object() {
            return Err("it is not an object".into());
        }
        let manifest: Self = serde_path_to_error::deserialize(&value)
            .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
        check_name(&manifest.name)?;
        Ok(manifest)
    }
}

/// A name goes before those of a plugin's commands, with a colon, and into the names of its tools.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name {
        "" => Err("`name` is missing. Give the plugin a name such as \"my-plugin\"".into()),
        name if name.chars().all(fits) => Ok(()),
        name => Err(format!("`name`: {name:?} may only have letters, digits, `-`, `_` and `.`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_where_things_are() {
        let text = r#"{"name": "tools", "version": "1.2.3", "author": {"name": "Ann"}, "commands": "./more",
            "skills": ["./a", "./b"], "hooks": {"hooks": {}}, "mcpServers": ["./x.json", {"y": {}}]}"#;
        let manifest = Manifest::read(text).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.as_deref()), ("tools", Some("1.2.3")));
        assert_eq!(manifest.commands.each(), ["./more"]);
        assert_eq!(manifest.skills.each(), ["./a", "./b"]);
        assert!(matches!(manifest.hooks.each(), [Part::Written(_)]));
        assert!(matches!(manifest.mcp_servers.each(), [Part::File(_), Part::Written(_)]));
    }

    #[test]
    fn what_is_wrong_with_a_manifest_is_named() {
        let rows = [
            ("{nope", "no JSON"),
            ("[]", "not an object"),
            ("{}", "`name` is missing"),
            (r#"{"name": "a b"}"#, "letters"),
            (r#"{"name": "a:b"}"#, "letters"),
            (r#"{"name": "a", "commands": 5}"#, "`commands`: must be a path"),
            (r#"{"name": "a", "hooks": 5}"#, "`hooks`: must be a path, an object"),
        ];
        for (text, expected) in rows {
            let error = Manifest::read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
