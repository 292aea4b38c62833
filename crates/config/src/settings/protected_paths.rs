//! Paths of the session's own configuration, which tools may not change without permission.

use std::path::{Path, PathBuf};

use whimbrel_os::files;

use crate::settings::Settings;
use crate::settings::sources::host_settings_file;
use crate::settings::trust::local_settings::RECORD_FILE;

/// Files and directories of the engine in the configuration directory.
const ENGINE_FILES: [&str; 14] = [
    "settings.json",
    "settings.local.json",
    RECORD_FILE,
    ".claude.json",
    ".credentials.json",
    "CLAUDE.md",
    "agents",
    "commands",
    "file-history",
    "hooks",
    "output-styles",
    "plugins",
    "projects",
    "skills",
];

impl Settings {
    /// The configuration directory with transcripts and trust records, the plugin directory, the administrator's files
    /// and the host's settings file, both as named and resolved. If the session works within the configuration directory, only the
    /// engine's own files there. Accesses the disk.
    pub fn protected_paths(&self) -> Vec<PathBuf> {
        let request = &self.request;
        let mut paths: Vec<PathBuf> = request.managed_files.clone();
        paths.extend(request.plugin_dir.clone());
        paths.extend(request.flag.as_deref().and_then(|given| host_settings_file(given, &request.cwd)));
        if let Some(config) = &request.config_dir {
            if real_path(&request.cwd).starts_with(real_path(config)) {
                paths.extend(ENGINE_FILES.iter().map(|name| config.join(name)));
            } else {
                paths.push(config.clone());
            }
        }
        let real_paths = paths.iter().map(|path| real_path(path)).collect::<Vec<_>>();
        paths.extend(real_paths);
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

fn real_path(path: &Path) -> PathBuf {
    whimbrel_os::links::resolve_links(&files::normalize_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingsRequest;

    #[test]
    fn configuration_paths_are_found_named_and_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("conf/desk")).unwrap();
        std::os::unix::fs::symlink("conf", root.join("link")).unwrap();
        let paths = |cwd: &str| {
            let request = SettingsRequest {
                config_dir: Some(root.join("link")),
                cwd: root.join(cwd),
                flag: Some("given.json".into()),
                plugin_dir: Some(root.join("plugins")),
                ..SettingsRequest::default()
            };
            Settings::load(request).map(|settings| settings.protected_paths())
        };
        std::fs::write(root.join("given.json"), "{}").unwrap();
        let protected = paths("").unwrap();
        for expected in ["conf", "link", "given.json", "plugins"] {
            assert!(protected.contains(&root.join(expected)), "{expected}: {protected:?}");
        }
        std::fs::write(root.join("conf/desk/given.json"), "{}").unwrap();
        let inside = paths("conf/desk").unwrap();
        assert!(
            inside.contains(&root.join("conf/settings.json")) && inside.contains(&root.join("conf/projects"))
        );
        assert!(!inside.contains(&root.join("conf")), "{inside:?}");
        assert_eq!(Settings::empty().protected_paths(), Vec::<PathBuf>::new());
    }
}
