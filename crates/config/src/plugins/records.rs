//! The plugin directory of the user: records of known marketplaces and installed plugins, in the format of the
//! official engine, so that both programs can share them. Reads the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use whimbrel_os::files;

use crate::plugins::plugin_id::{PluginId, version_dir_name};
use crate::settings::config_dir;
use crate::settings::sources::env_path;

/// Format of the record of installed plugins.
pub const INSTALLED_VERSION: u64 = 2;

/// Maximum size of a record file.
const MAX_RECORD_BYTES: u64 = 2 * 1024 * 1024;

/// Variable with another plugin directory.
const DIR_VARIABLE: &str = "CLAUDE_CODE_PLUGIN_CACHE_DIR";

/// The plugin directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDir(PathBuf);

/// A marketplace that was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownMarketplace {
    /// Source object.
    pub source: Value,
    /// Directory with its files; for the source types `file` and `directory` the path of the user.
    pub install_location: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// Fields of other programs.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Scope of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallScope {
    /// For the user, in this project.
    Local,
    /// For everyone who works on the project.
    Project,
    /// For the user, in every project.
    User,
    /// By an administrator.
    Managed,
}

impl InstallScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
        }
    }

    /// Returns whether an installation of this scope belongs to one project.
    pub fn is_of_project(self) -> bool {
        matches!(self, Self::Local | Self::Project)
    }
}

/// One installation of a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallRecord {
    pub scope: InstallScope,
    /// The project of a local or project installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_path: Option<PathBuf>,
    pub install_path: PathBuf,
    #[serde(default)]
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_sha: Option<String>,
    /// Fields of other programs.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl InstallRecord {
    /// Returns whether the installation applies in a project.
    pub fn applies_in(&self, project: &Path) -> bool {
        !self.scope.is_of_project()
            || self.project_path.as_deref().is_none_or(|path| is_same_dir(path, project))
    }

    /// Returns whether this is the installation of a scope in a project.
    pub fn is_at(&self, scope: InstallScope, project: &Path) -> bool {
        self.scope == scope && self.applies_in(project)
    }
}

fn is_same_dir(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| files::real_path(path).unwrap_or_else(|| files::normalize_path(path));
    one == other || real(one) == real(other)
}

/// Records of installed plugins by id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InstalledPlugins(pub BTreeMap<String, Vec<InstallRecord>>);

impl InstalledPlugins {
    pub fn records(&self, id: &PluginId) -> &[InstallRecord] {
        self.0.get(&id.to_string()).map_or(&[], Vec::as_slice)
    }

    /// The record that applies in a project: the one with the narrowest scope.
    pub fn find(&self, id: &PluginId, project: &Path) -> Option<&InstallRecord> {
        self.records(id).iter().filter(|record| record.applies_in(project)).min_by_key(|record| record.scope)
    }
}

#[derive(Deserialize)]
struct InstalledFile {
    version: Option<u64>,
    #[serde(default)]
    plugins: Map<String, Value>,
}

impl PluginDir {
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// The plugin directory of the user; none without a home.
    pub fn from_env(env: &BTreeMap<String, String>) -> Option<Self> {
        let given = env_path(env, DIR_VARIABLE).filter(|dir| dir.is_absolute());
        given.or_else(|| config_dir(env).map(|dir| dir.join("plugins"))).map(Self)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn known_marketplaces_file(&self) -> PathBuf {
        self.0.join("known_marketplaces.json")
    }

    pub fn installed_plugins_file(&self) -> PathBuf {
        self.0.join("installed_plugins.json")
    }

    /// Directory of the files of all fetched marketplaces.
    pub fn marketplaces_dir(&self) -> PathBuf {
        self.0.join("marketplaces")
    }

    /// Directory of the files of a fetched marketplace.
    pub fn marketplace_dir(&self, name: &str) -> PathBuf {
        self.marketplaces_dir().join(name)
    }

    /// Directory of all versions of an installed plugin.
    pub fn plugin_cache_dir(&self, id: &PluginId) -> PathBuf {
        self.0.join("cache").join(id.marketplace()).join(id.name())
    }

    /// Directory of one version of an installed plugin.
    pub fn version_dir(&self, id: &PluginId, version: &str) -> PathBuf {
        self.plugin_cache_dir(id).join(version_dir_name(version))
    }

    /// Reads the known marketplaces. Unusable entries are left out.
    pub fn read_known_marketplaces(&self) -> Result<BTreeMap<String, KnownMarketplace>, String> {
        let file = self.known_marketplaces_file();
        let entries = read_object(&file)?.unwrap_or_default();
        let parse = |(name, value)| Some((name, serde_json::from_value(value).ok()?));
        Ok(entries.into_iter().filter_map(parse).collect())
    }

    /// Reads the installed plugins. Unusable records are left out.
    pub fn read_installed_plugins(&self) -> Result<InstalledPlugins, String> {
        let file = self.installed_plugins_file();
        let Some(fields) = read_object(&file)? else { return Ok(InstalledPlugins::default()) };
        let unreadable = |cause: String| unreadable_record(&file, &cause);
        let document: InstalledFile =
            serde_json::from_value(fields.into()).map_err(|error| unreadable(error.to_string()))?;
        if document.version.is_some_and(|version| version != INSTALLED_VERSION) {
            return Err(unreadable(format!("only version {INSTALLED_VERSION} of its format is supported")));
        }
        let records = |value: Value| -> Vec<InstallRecord> {
            let Value::Array(records) = value else { return Vec::new() };
            records.into_iter().filter_map(|record| serde_json::from_value(record).ok()).collect()
        };
        Ok(InstalledPlugins(document.plugins.into_iter().map(|(id, value)| (id, records(value))).collect()))
    }
}

fn unreadable_record(file: &Path, cause: &str) -> String {
    format!(
        "{} cannot be read: {cause}. Repair the file, or remove it and install the plugins again.",
        file.display()
    )
}

/// Reads a JSON object; none if the file does not exist.
fn read_object(file: &Path) -> Result<Option<Map<String, Value>>, String> {
    let unreadable = |cause: String| unreadable_record(file, &cause);
    match files::read(file, MAX_RECORD_BYTES) {
        Ok((bytes, _)) => match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Some(fields)),
            Ok(_) => Err(unreadable("it is not an object".into())),
            Err(error) => Err(unreadable(error.to_string())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_of_other_programs_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let plugins = PluginDir::new(dir.path().into());
        assert_eq!(plugins.read_installed_plugins().unwrap(), InstalledPlugins::default());
        assert!(plugins.read_known_marketplaces().unwrap().is_empty());
        let record = |scope: &str, project: Option<&str>, path: &str| {
            let mut record = json!({"scope": scope, "installPath": path, "version": "1", "installedAt": "t",
                "isLocal": true});
            if let Some(project) = project {
                record["projectPath"] = project.into();
            }
            record
        };
        let records = json!({"version": 2, "plugins": {"a@shop": [
            record("project", Some("/one"), "/p1"), record("user", None, "/p2"), {"scope": "odd"}], "b@shop": 5}});
        std::fs::write(plugins.installed_plugins_file(), records.to_string()).unwrap();
        let installed = plugins.read_installed_plugins().unwrap();
        let id = PluginId::parse("a@shop").unwrap();
        for (project, path) in [("/one", "/p1"), ("/two", "/p2")] {
            let found = installed.find(&id, Path::new(project)).unwrap();
            assert_eq!(found.install_path, Path::new(path), "{project}");
        }
        let [first, ..] = installed.records(&id) else { panic!("{installed:?}") };
        assert_eq!(serde_json::to_value(first).unwrap(), record("project", Some("/one"), "/p1"));
        assert!(installed.find(&PluginId::parse("b@shop").unwrap(), Path::new("/one")).is_none());
        std::fs::write(plugins.installed_plugins_file(), r#"{"version": 1, "plugins": {}}"#).unwrap();
        assert!(plugins.read_installed_plugins().unwrap_err().contains("version 2"));
        std::fs::write(plugins.known_marketplaces_file(), "[]").unwrap();
        assert!(plugins.read_known_marketplaces().unwrap_err().contains("not an object"));
    }

    #[test]
    fn the_directory_comes_from_the_environment() {
        let dir = |pairs: &[(&str, &str)]| {
            let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            PluginDir::from_env(&env).map(|dir| dir.0)
        };
        assert_eq!(dir(&[("HOME", "/h")]), Some("/h/.claude/plugins".into()));
        assert_eq!(dir(&[("HOME", "/h"), (DIR_VARIABLE, "/p")]), Some("/p".into()));
        assert_eq!(dir(&[("HOME", "/h"), (DIR_VARIABLE, "p")]), Some("/h/.claude/plugins".into()));
        assert_eq!(dir(&[]), None);
    }
}
