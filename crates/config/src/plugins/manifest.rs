//! Plugin manifest, `.claude-plugin/plugin.json`.

use serde::Deserialize;
use serde_json::{Map, Value};

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
    /// Hooks of the entry in the marketplace. They replace those of the manifest for the same events.
    #[serde(skip)]
    pub entry_hooks: Option<Map<String, Value>>,
}

/// Fields of an entry in a marketplace that can add to a manifest.
const COMPONENT_FIELDS: [&str; 5] = ["commands", "agents", "skills", "hooks", "outputStyles"];

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

    fn append(&mut self, more: &Self) {
        *self = Self::Several(self.as_slice().iter().chain(more.as_slice()).cloned().collect());
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
    Written(Map<String, Value>),
}

impl Manifest {
    /// Parses a manifest. The error names the field.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        let Value::Object(fields) = value else { return Err("it is not an object".into()) };
        Self::from_fields(&fields)
    }

    /// Converts the fields of a manifest, or of an entry in a marketplace. The error names the field.
    pub(crate) fn from_fields(fields: &Map<String, Value>) -> Result<Self, String> {
        let manifest: Self = serde_path_to_error::deserialize(&Value::Object(fields.clone()))
            .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
        validate_name(&manifest.name)?;
        Ok(manifest)
    }

    /// Adds the components of the plugin's entry in its marketplace.
    ///
    /// 1. The entry lists no components: the manifest stays as it is.
    /// 2. `strict` is false in the entry: both list components, which is an error.
    /// 3. Paths are appended; hooks replace those of the manifest for the same events.
    pub(crate) fn with_entry(mut self, entry: &Map<String, Value>) -> Result<Self, String> {
        if !COMPONENT_FIELDS.iter().any(|field| entry.contains_key(*field)) {
            return Ok(self);
        }
        if entry.get("strict") == Some(&Value::Bool(false)) {
            return Err(
                "the manifest and the entry in the marketplace both describe the plugin, but the entry has \
                 `strict: false`. Its owner must remove the components from one of them"
                    .into(),
            );
        }
        let more = Self::from_fields(entry)?;
        self.commands.append(&more.commands);
        self.agents.append(&more.agents);
        self.skills.append(&more.skills);
        self.output_styles.append(&more.output_styles);
        self.entry_hooks = match more.hooks.as_slice() {
            [] => None,
            [ManifestPart::Written(hooks)] => Some(hooks.clone()),
            _ => return Err("`hooks` of the entry in the marketplace must be an object".into()),
        };
        Ok(self)
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
    fn an_entry_adds_to_the_manifest_unless_it_is_not_strict() {
        let manifest =
            Manifest::parse(r#"{"name": "tools", "commands": "./a.md", "hooks": "./h.json"}"#).unwrap();
        let fields = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let plain = fields(r#"{"name": "entry", "source": "./x", "strict": false, "mcpServers": {"a": {}}}"#);
        assert_eq!(manifest.clone().with_entry(&plain), Ok(manifest.clone()));
        let adding =
            fields(r#"{"name": "entry", "commands": ["./b.md"], "skills": "./s", "hooks": {"Stop": []}}"#);
        let merged = manifest.clone().with_entry(&adding).unwrap();
        assert_eq!(
            (merged.name.as_str(), merged.commands.as_slice()),
            ("tools", &["./a.md", "./b.md"].map(String::from)[..])
        );
        assert_eq!((merged.skills.as_slice(), &merged.hooks), (&["./s".to_owned()][..], &manifest.hooks));
        assert!(merged.entry_hooks.unwrap().contains_key("Stop"));
        for (text, cause) in [
            (r#"{"name": "entry", "strict": false, "skills": "./s"}"#, "strict"),
            (r#"{"name": "entry", "hooks": "./h.json"}"#, "must be an object"),
        ] {
            let error = manifest.clone().with_entry(&fields(text)).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
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
