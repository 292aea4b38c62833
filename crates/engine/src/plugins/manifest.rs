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
    pub commands: ManifestPaths,
    /// Further kinds of subagent.
    pub agents: ManifestPaths,
    /// Further skills.
    pub skills: ManifestPaths,
    /// Further output styles.
    pub output_styles: ManifestPaths,
    /// Further hooks: as they would stand in a file, or files of them.
    pub hooks: ManifestParts,
    /// Further MCP servers: as they would stand in a file, or files of them.
    pub mcp_servers: ManifestParts,
}

/// Paths, one or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path or a list of paths")]
pub enum ManifestPaths {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Default for ManifestPaths {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl ManifestPaths {
    /// Each of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

/// Parts of a plugin that stand in the manifest or in files that it names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path, an object or a list of these")]
pub enum ManifestParts {
    /// One.
    One(ManifestPart),
    /// Several.
    Several(Vec<ManifestPart>),
}

impl Default for ManifestParts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl ManifestParts {
    /// Each of them.
    pub fn as_slice(&self) -> &[ManifestPart] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }
}

/// One part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ManifestPart {
    /// In a file, relative to the plugin.
    File(String),
    /// As it would stand in one.
    Written(serde_json::Map<String, Value>),
}

impl Manifest {
    /// Reads a manifest. The error says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        if !value.is_object() {
            return Err("it is not an object".into());
        }
        let manifest: Self = serde_path_to_error::deserialize(&value)
            .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
        validate_name(&manifest.name)?;
        Ok(manifest)
    }
}

/// A name goes before those of a plugin's commands, with a colon, and into the names of its tools.
pub fn validate_name(name: &str) -> Result<(), String> {
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
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.as_deref()), ("tools", Some("1.2.3")));
        assert_eq!(manifest.commands.as_slice(), ["./more"]);
        assert_eq!(manifest.skills.as_slice(), ["./a", "./b"]);
        assert!(matches!(manifest.hooks.as_slice(), [ManifestPart::Written(_)]));
        assert!(matches!(manifest.mcp_servers.as_slice(), [ManifestPart::File(_), ManifestPart::Written(_)]));
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
            let error = Manifest::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
