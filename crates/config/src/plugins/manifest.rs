//! Plugin manifest, `.claude-plugin/plugin.json`.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Manifest {
    pub name: String,
    pub version: Option<String>,
    /// Additional commands: directories or files, relative to the plugin.
    pub commands: ManifestPaths,
    /// Additional agent definitions.
    pub agents: ManifestPaths,
    pub skills: ManifestPaths,
    pub output_styles: ManifestPaths,
    /// Additional hooks, inline or as files.
    pub hooks: ManifestParts,
    /// Additional MCP servers, inline or as files.
    pub mcp_servers: ManifestParts,
}

/// One path or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path or a list of paths")]
pub(crate) enum ManifestPaths {
    One(String),
    Several(Vec<String>),
}

impl Default for ManifestPaths {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl ManifestPaths {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

/// Parts of a plugin, inline in the manifest or in files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be a path, an object or a list of these")]
pub(crate) enum ManifestParts {
    One(ManifestPart),
    Several(Vec<ManifestPart>),
}

impl Default for ManifestParts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl ManifestParts {
    pub(crate) fn as_slice(&self) -> &[ManifestPart] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ManifestPart {
    /// File, relative to the plugin.
    File(String),
    /// Inline, in the form of the file.
    Written(serde_json::Map<String, Value>),
}

impl Manifest {
    /// Parses a manifest. The error names the field.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        if !value.is_object() {
            return Err("it is not an object".into());
        }
        let manifest: Self = serde_path_to_error::deserialize(&value)
            .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
        validate_name(&manifest.name)?;
        Ok(manifest)
    }
}

/// Validates a plugin name, which prefixes command names and becomes part of tool names.
pub(crate) fn validate_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name {
        "" => Err("`name` is missing. Give the plugin a name such as \"my-plugin\"".into()),
        name if name.chars().all(fits) => Ok(()),
        name => Err(format!("`name`: {name:?} may only contain letters, digits, `-`, `_` and `.`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_lists_its_parts() {
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
    fn manifest_errors_name_the_field() {
        let rows = [
            ("{nope", "not valid JSON"),
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
