//! The marketplace file, `.claude-plugin/marketplace.json`: a name and one entry per plugin. Pure, except
//! [`Marketplace::read`].

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use whimbrel_os::files;

use crate::plugins::git_source::{GitRevision, GitSource};
use crate::plugins::manifest::Manifest;
use crate::plugins::plugin_id::check_name;

/// Path of the file in a marketplace.
pub const MARKETPLACE_PATH: &str = ".claude-plugin/marketplace.json";

/// Maximum size of the file.
pub const MAX_MARKETPLACE_BYTES: u64 = 8 * 1024 * 1024;

/// Parsed marketplace file.
#[derive(Debug, Clone, PartialEq)]
pub struct Marketplace {
    pub name: String,
    pub description: Option<String>,
    pub plugins: Vec<MarketplaceEntry>,
    /// Entries that cannot be used, with their causes.
    pub errors: Vec<String>,
}

/// A plugin that a marketplace offers.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketplaceEntry {
    pub name: String,
    pub source: PluginSource,
    pub description: Option<String>,
    pub version: Option<String>,
    /// The entry as written. It may have the fields of a manifest.
    pub fields: Map<String, Value>,
}

/// Location of a plugin's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSource {
    /// Directory in the marketplace, relative to its root.
    Directory(PathBuf),
    /// Directory in a repository; empty for its root.
    Git { repository: GitSource, subdir: PathBuf },
    /// A source type that this version cannot fetch.
    Unsupported(String),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MarketplaceMetadata {
    description: Option<String>,
    plugin_root: Option<String>,
}

#[derive(Deserialize)]
struct MarketplaceDocument {
    #[serde(default)]
    name: String,
    description: Option<String>,
    #[serde(default)]
    metadata: MarketplaceMetadata,
    plugins: Option<Vec<Value>>,
}

impl Marketplace {
    /// Reads the file of a marketplace. Reads the disk.
    pub fn read(file: &Path) -> Result<Self, String> {
        let (bytes, _) = files::read(file, MAX_MARKETPLACE_BYTES)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", file.display()))?;
        Self::parse(&text).map_err(|cause| format!("{}: {cause}", file.display()))
    }

    /// Parses the file. An invalid entry does not affect the others.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        if !value.is_object() {
            return Err("it is not an object".into());
        }
        let document: MarketplaceDocument = serde_path_to_error::deserialize(&value)
            .map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
        check_name("marketplace", &document.name)?;
        let entries = document.plugins.ok_or("`plugins` is missing: list the plugins of the marketplace")?;
        let plugin_root = match document.metadata.plugin_root.as_deref() {
            None => None,
            Some(root) => {
                Some(relative_path(root).map_err(|cause| format!("`metadata.pluginRoot`: {cause}"))?)
            }
        };
        let (mut plugins, mut errors): (Vec<MarketplaceEntry>, Vec<String>) = (Vec::new(), Vec::new());
        for (index, entry) in entries.into_iter().enumerate() {
            match MarketplaceEntry::parse(entry, plugin_root.as_deref()) {
                Ok(entry) if plugins.iter().any(|other| other.name == entry.name) => {
                    errors.push(format!("`plugins[{index}]`: {} is listed twice", entry.name));
                }
                Ok(entry) => plugins.push(entry),
                Err(cause) => errors.push(format!("`plugins[{index}]`: {cause}")),
            }
        }
        let description = document.description.or(document.metadata.description);
        Ok(Self { name: document.name, description, plugins, errors })
    }

    pub fn find(&self, name: &str) -> Option<&MarketplaceEntry> {
        self.plugins.iter().find(|entry| entry.name == name)
    }
}

impl MarketplaceEntry {
    fn parse(value: Value, plugin_root: Option<&Path>) -> Result<Self, String> {
        let Value::Object(fields) = value else { return Err("it is not an object".into()) };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").ok_or("`name` is missing")?;
        check_name("plugin", &name)?;
        let source = fields.get("source").ok_or_else(|| format!("{name}: `source` is missing"))?;
        let source =
            PluginSource::parse(source, plugin_root).map_err(|cause| format!("{name}: `source`: {cause}"))?;
        // The fields of a manifest must be valid, too.
        Manifest::from_fields(&fields).map_err(|cause| format!("{name}: {cause}"))?;
        Ok(Self { source, description: text("description"), version: text("version"), name, fields })
    }

    /// The source as written.
    pub fn written_source(&self) -> &Value {
        self.fields.get("source").unwrap_or(&Value::Null)
    }
}

impl PluginSource {
    fn parse(value: &Value, plugin_root: Option<&Path>) -> Result<Self, String> {
        match value {
            Value::String(path) => parse_relative(path, plugin_root).map(Self::Directory),
            Value::Object(fields) => Self::parse_object(fields),
            _ => Err("it is neither a path nor an object".into()),
        }
    }

    fn parse_object(fields: &Map<String, Value>) -> Result<Self, String> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let required = |key: &str| text(key).ok_or_else(|| format!("`{key}` is missing"));
        let revision =
            GitRevision { reference: text("ref").map(str::to_owned), commit: text("sha").map(str::to_owned) };
        let subdir = |key: &str| text(key).map_or(Ok(PathBuf::new()), relative_path);
        match required("source")? {
            "github" => {
                let repository = GitSource::github(required("repo")?, revision)?;
                Ok(Self::Git { repository, subdir: subdir("path")? })
            }
            "url" => Ok(Self::Git {
                repository: GitSource::new(required("url")?, revision)?,
                subdir: subdir("path")?,
            }),
            "git-subdir" => {
                let url = required("url")?;
                let repository =
                    GitSource::github(url, revision.clone()).or_else(|_| GitSource::new(url, revision))?;
                required("path")?;
                Ok(Self::Git { repository, subdir: subdir("path")? })
            }
            other => Ok(Self::Unsupported(other.to_owned())),
        }
    }
}

/// Path of a plugin in its marketplace: `.`, `./path`, or a bare name below the plugin root.
fn parse_relative(path: &str, plugin_root: Option<&Path>) -> Result<PathBuf, String> {
    match plugin_root {
        _ if path == "." || path.starts_with("./") => relative_path(path),
        Some(root) if !path.contains('/') && !path.is_empty() => Ok(root.join(relative_path(path)?)),
        _ => Err(format!("the path {path:?} must begin with ./")),
    }
}

/// Checks that a path stays below the directory where it begins.
fn relative_path(text: &str) -> Result<PathBuf, String> {
    let is_outside = Path::new(text).is_absolute() || text.split('/').any(|part| part == "..");
    if is_outside || text.contains(['\\', '\0']) {
        return Err(format!("the path {text:?} is not a path inside the directory"));
    }
    Ok(files::normalize_path(Path::new(text)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_source(value: &Value) -> Result<PluginSource, String> {
        PluginSource::parse(value, Some(Path::new("plugins")))
    }

    #[test]
    fn sources_have_several_forms() {
        let git = |url: &str, reference: Option<&str>, commit: Option<&str>, subdir: &str| {
            let revision =
                GitRevision { reference: reference.map(str::to_owned), commit: commit.map(str::to_owned) };
            let repository = GitSource { url: url.into(), revision };
            PluginSource::Git { repository, subdir: subdir.into() }
        };
        let sha = "a".repeat(40);
        let rows = [
            (json!("./plugins/fmt"), PluginSource::Directory("plugins/fmt".into())),
            (json!("."), PluginSource::Directory("".into())),
            (json!("./"), PluginSource::Directory("".into())),
            (json!("fmt"), PluginSource::Directory("plugins/fmt".into())),
            (
                json!({"source": "github", "repo": "a/b", "ref": "v1", "sha": sha}),
                git("https://github.com/a/b.git", Some("v1"), Some(&sha), ""),
            ),
            (json!({"source": "url", "url": "file:///r"}), git("file:///r", None, None, "")),
            (
                json!({"source": "git-subdir", "url": "a/b", "path": "tools/fmt"}),
                git("https://github.com/a/b.git", None, None, "tools/fmt"),
            ),
            (json!({"source": "npm", "package": "x"}), PluginSource::Unsupported("npm".into())),
        ];
        for (value, expected) in rows {
            assert_eq!(parse_source(&value), Ok(expected), "{value}");
        }
        for value in [
            json!("../x"),
            json!("./../x"),
            json!("./a/../../x"),
            json!("/etc"),
            json!("team/fmt"),
            json!(""),
            json!("./a\\b"),
            json!(5),
            json!({"repo": "a/b"}),
            json!({"source": "github", "repo": "a"}),
            json!({"source": "github", "repo": "a/b", "ref": "--x"}),
            json!({"source": "url", "url": "ext::sh -c x"}),
            json!({"source": "git-subdir", "url": "a/b"}),
            json!({"source": "git-subdir", "url": "a/b", "path": "../x"}),
        ] {
            assert!(parse_source(&value).is_err(), "{value}");
        }
        assert!(PluginSource::parse(&json!("fmt"), None).unwrap_err().contains("./"));
    }

    #[test]
    fn an_invalid_entry_does_not_affect_others() {
        let text = json!({"name": "shop", "owner": {"name": "Ann"}, "metadata": {"description": "d"}, "plugins": [
            {"name": "good", "source": "./good", "version": "1.0.0", "description": "Good.", "strict": false},
            {"name": "../bad", "source": "./bad"},
            {"name": "gone"},
            {"name": "good", "source": "./other"},
            {"name": "odd", "source": "./odd", "commands": 5},
            7,
        ]});
        let marketplace = Marketplace::parse(&text.to_string()).unwrap();
        assert_eq!((marketplace.name.as_str(), marketplace.description.as_deref()), ("shop", Some("d")));
        let [entry] = marketplace.plugins.as_slice() else { panic!("{marketplace:?}") };
        assert_eq!((entry.name.as_str(), entry.version.as_deref()), ("good", Some("1.0.0")));
        let causes = [
            "name \"../bad\"",
            "gone: `source` is missing",
            "listed twice",
            "odd: `commands`",
            "not an object",
        ];
        assert_eq!(marketplace.errors.len(), causes.len(), "{:?}", marketplace.errors);
        for (error, cause) in marketplace.errors.iter().zip(causes) {
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn errors_of_the_file_name_the_field() {
        for (text, cause) in [
            ("{", "not valid JSON"),
            ("[]", "not an object"),
            (r#"{"plugins": []}"#, "the marketplace name"),
            (r#"{"name": "a/b", "plugins": []}"#, "a/b"),
            (r#"{"name": "a"}"#, "`plugins` is missing"),
            (r#"{"name": "a", "plugins": {}}"#, "`plugins`"),
            (r#"{"name": "a", "plugins": [], "metadata": {"pluginRoot": "../x"}}"#, "`metadata.pluginRoot`"),
        ] {
            let error = Marketplace::parse(text).unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }
}
