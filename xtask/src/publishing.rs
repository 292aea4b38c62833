//! Checks that every crate can be published: fields of the manifest, dependencies, the files of the package, and a build
//! of the packed files.

mod packed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::command;

/// Largest number of files in a package. More means that tests or data are published by mistake.
const MAX_FILES: usize = 300;

/// Files that every crate has as a copy of that of the workspace: not every checkout keeps symbolic links.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<CrateManifest>,
    workspace_root: PathBuf,
}

/// The fields of a manifest that matter for publishing.
#[derive(Deserialize, Clone, Default)]
struct CrateManifest {
    name: String,
    manifest_path: PathBuf,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    readme: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    /// An empty list means that the crate is not published.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize, Clone, Default)]
struct Dependency {
    name: String,
    /// `*` for a dependency by path only.
    req: String,
    /// None, `dev` or `build`.
    kind: Option<String>,
}

impl CrateManifest {
    fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }
}

/// Fails if a crate cannot be published.
pub(crate) fn check() -> Result<()> {
    let words = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"];
    let metadata: Metadata = serde_json::from_str(&command::stdout(&words)?)
        .context("cannot parse the output of cargo metadata")?;
    let mut problems = find_problems(&metadata.packages);
    for package in metadata.packages.iter().filter(|package| package.is_published()) {
        let list = ["cargo", "package", "--list", "--allow-dirty", "--locked", "--package", &package.name];
        let files: Vec<String> = command::stdout(&list)?.lines().map(str::to_owned).collect();
        problems.extend(
            find_file_problems(&files)
                .into_iter()
                .chain(find_license_problems(&metadata.workspace_root, &package.manifest_path))
                .map(|problem| format!("{}: {problem}", package.name)),
        );
    }
    if !problems.is_empty() {
        bail!("some crates cannot be published:\n{}", problems.join("\n"));
    }
    let published = metadata.packages.iter().filter(|package| package.is_published());
    packed::check(&published.map(|package| package.name.as_str()).collect::<Vec<_>>())
}

/// Finds missing fields, and dependencies that are not published.
fn find_problems(packages: &[CrateManifest]) -> Vec<String> {
    let published: BTreeMap<&str, bool> =
        packages.iter().map(|package| (package.name.as_str(), package.is_published())).collect();
    let mut problems = Vec::new();
    for package in packages.iter().filter(|package| package.is_published()) {
        let fields = [
            ("description", package.description.is_some()),
            ("license", package.license.is_some()),
            ("repository", package.repository.is_some()),
            ("readme", package.readme.is_some()),
            ("keywords", (1..=5).contains(&package.keywords.len())),
            ("categories", (1..=5).contains(&package.categories.len())),
        ];
        let missing = fields.iter().filter(|(_, is_there)| !is_there);
        problems
            .extend(missing.map(|(field, _)| format!("{}: {field} is missing or too long", package.name)));
        for dependency in &package.dependencies {
            let is_stripped = dependency.kind.as_deref() == Some("dev") && dependency.req == "*";
            match published.get(dependency.name.as_str()) {
                Some(false) if !is_stripped => problems.push(format!(
                    "{}: it depends on {}, which is not published; publish it, or name it by path among the \
                     dev-dependencies",
                    package.name, dependency.name
                )),
                Some(true) if dependency.req == "*" && !is_stripped => {
                    problems
                        .push(format!("{}: the dependency {} has no version", package.name, dependency.name));
                }
                _ => {}
            }
        }
    }
    problems.extend(find_cycle(packages).map(|names| {
        format!(
            "{}: they depend on each other; name one by path among the dev-dependencies",
            names.join(", ")
        )
    }));
    problems
}

/// Finds crates that can be published only after each other. Dependencies by path only do not count.
fn find_cycle(packages: &[CrateManifest]) -> Option<Vec<&str>> {
    let mut waiting: Vec<&CrateManifest> = packages.iter().filter(|package| package.is_published()).collect();
    loop {
        let before = waiting.len();
        let names: Vec<&str> = waiting.iter().map(|package| package.name.as_str()).collect();
        let waits =
            |dependency: &Dependency| dependency.req != "*" && names.contains(&dependency.name.as_str());
        waiting.retain(|package| package.dependencies.iter().any(waits));
        if waiting.is_empty() {
            return None;
        }
        if waiting.len() == before {
            return Some(names);
        }
    }
}

/// Finds files that are missing in a package, or do not belong there.
fn find_file_problems(files: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for required in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        if !files.iter().any(|file| file == required) {
            problems.push(format!("{required} is not in the package"));
        }
    }
    for file in files.iter().filter(|file| file.starts_with("tests/") || file.starts_with("benches/")) {
        problems.push(format!("{file} is in the package; leave it out with `include`"));
    }
    if files.len() > MAX_FILES {
        problems.push(format!("the package has {} files, more than {MAX_FILES}", files.len()));
    }
    problems
}

/// Finds license files of a crate that are no copies of those of the workspace.
fn find_license_problems(workspace: &Path, manifest: &Path) -> Vec<String> {
    let is_copy = |name: &&str| {
        let path = manifest.with_file_name(name);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        is_file
            && matches!((fs::read(workspace.join(name)), fs::read(&path)), (Ok(own), Ok(copy)) if own == copy)
    };
    LICENSES
        .iter()
        .filter(|name| !is_copy(name))
        .map(|name| format!("{name} is not a copy of the file of the workspace; copy it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(name: &str) -> CrateManifest {
        let text = || Some("text".to_owned());
        CrateManifest {
            name: name.into(),
            description: text(),
            license: text(),
            repository: text(),
            readme: text(),
            keywords: vec!["agent".into()],
            categories: vec!["development-tools".into()],
            ..CrateManifest::default()
        }
    }

    #[test]
    fn every_problem_of_a_manifest_is_named() {
        let depends = |name: &str, req: &str, kind: Option<&str>| Dependency {
            name: name.into(),
            req: req.into(),
            kind: kind.map(str::to_owned),
        };
        let internal = CrateManifest { publish: Some(Vec::new()), ..complete("internal") };
        let other = complete("other");
        let with = |dependency| CrateManifest { dependencies: vec![dependency], ..complete("a") };
        let rows = [
            (complete("a"), ""),
            (CrateManifest { readme: None, ..complete("a") }, "a: readme is missing"),
            (
                CrateManifest { keywords: vec![String::new(); 6], ..complete("a") },
                "a: keywords is missing or too long",
            ),
            (
                with(depends("internal", "^0.1", Some("dev"))),
                "a: it depends on internal, which is not published",
            ),
            (with(depends("internal", "*", Some("dev"))), ""),
            (with(depends("internal", "*", None)), "a: it depends on internal"),
            (with(depends("other", "^0.1", None)), ""),
            (with(depends("other", "*", None)), "a: the dependency other has no version"),
            (with(depends("serde", "^1", None)), ""),
        ];
        for (manifest, expected) in rows {
            let problems = find_problems(&[manifest, internal.clone(), other.clone()]).join("\n");
            assert!(
                problems.starts_with(expected) && problems.is_empty() == expected.is_empty(),
                "{problems}"
            );
        }
    }

    #[test]
    fn cycle_of_versions_is_named() {
        let depends = |name: &str, on: &str, req: &str| CrateManifest {
            dependencies: vec![Dependency { name: on.into(), req: req.into(), kind: Some("dev".into()) }],
            ..complete(name)
        };
        let by_path = [depends("a", "b", "^0.1"), depends("b", "a", "*"), depends("c", "a", "^0.1")];
        assert_eq!(find_cycle(&by_path), None);
        let by_version = [depends("a", "b", "^0.1"), depends("b", "a", "^0.1"), complete("c")];
        assert_eq!(find_cycle(&by_version), Some(vec!["a", "b"]));
    }

    #[test]
    fn files_that_do_not_belong_there_are_named() {
        let files =
            ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "src/lib.rs", "tests/a.rs"].map(String::from);
        assert_eq!(
            find_file_problems(&files),
            ["README.md is not in the package", "tests/a.rs is in the package; leave it out with `include`"]
        );
    }

    #[test]
    fn license_must_be_a_copy_of_the_workspace_file() {
        let workspace = tempfile::tempdir().unwrap();
        let manifest = workspace.path().join("crates/a/Cargo.toml");
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        for name in LICENSES {
            fs::write(workspace.path().join(name), format!("text of {name}")).unwrap();
            fs::write(manifest.with_file_name(name), format!("text of {name}")).unwrap();
        }
        let problems = || find_license_problems(workspace.path(), &manifest);
        assert_eq!(problems(), Vec::<String>::new());
        fs::write(manifest.with_file_name("LICENSE-MIT"), "../../LICENSE-MIT").unwrap();
        let expected = ["LICENSE-MIT is not a copy of the file of the workspace; copy it"];
        assert_eq!(problems(), expected);
        fs::remove_file(manifest.with_file_name("LICENSE-MIT")).unwrap();
        std::os::unix::fs::symlink("../../LICENSE-MIT", manifest.with_file_name("LICENSE-MIT")).unwrap();
        assert_eq!(problems(), expected);
    }

    #[test]
    fn every_crate_has_the_licenses() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let crates = fs::read_dir(workspace.join("crates")).unwrap();
        let problems: Vec<String> = crates
            .flat_map(|entry| find_license_problems(workspace, &entry.unwrap().path().join("Cargo.toml")))
            .collect();
        assert_eq!(problems, Vec::<String>::new());
    }
}
