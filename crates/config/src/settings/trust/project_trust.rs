//! Whether a project is trusted.

use std::collections::BTreeMap;
use std::path::Path;

use whimbrel_wire::options::SettingSource;

use super::{Trust, trusted_dirs};

/// Trust in the project: full if the host named the project source or the user trusts the directory, limited on a
/// disposable machine, else untrusted. Reads a file.
pub fn project_trust(
    named_sources: &[SettingSource],
    env: &BTreeMap<String, String>,
    project: &Path,
    is_disposable: bool,
) -> Trust {
    let is_named = named_sources.contains(&SettingSource::Project);
    if is_named || trusted_dirs::is_trusted_dir(env, project) {
        Trust::Full
    } else if is_disposable {
        Trust::Limited
    } else {
        Trust::Untrusted
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn trust_depends_on_host_user_and_machine() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (trusted, other) = (root.join("trusted"), root.join("other"));
        fs::create_dir(&trusted).unwrap();
        fs::create_dir(&other).unwrap();
        let projects = json!({"projects": {trusted.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        fs::write(root.join(".claude.json"), projects.to_string()).unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), root.to_str().unwrap().to_owned())]);
        let rows: [(&[SettingSource], &Path, bool, Trust); 6] = [
            (&[], &other, false, Trust::Untrusted),
            (&[SettingSource::User, SettingSource::Local], &other, false, Trust::Untrusted),
            (&[], &other, true, Trust::Limited),
            (&[SettingSource::Project], &other, false, Trust::Full),
            (&[], &trusted, false, Trust::Full),
            (&[], &trusted, true, Trust::Full),
        ];
        for (named_sources, project, is_disposable, expected) in rows {
            let got = project_trust(named_sources, &env, project, is_disposable);
            assert_eq!(got, expected, "{named_sources:?} {} {is_disposable}", project.display());
        }
    }
}
