//! The libraries in the program with their licenses, from `cargo metadata` and the license files of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command;

/// The crate of the program.
const PROGRAM_CRATE: &str = "whimbrel-cli";

/// Beginnings of the names of license files, in capitals.
const LICENSE_FILE_NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<CrateInfo>,
    resolve: Resolve,
}

/// A crate.
#[derive(Deserialize, Clone)]
struct CrateInfo {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    manifest_path: String,
    /// None for a crate of this workspace.
    source: Option<String>,
    targets: Vec<CrateTarget>,
}

#[derive(Deserialize, Clone)]
struct CrateTarget {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// None for a dependency of the program itself, else `build` or `dev`.
    kind: Option<String>,
}

/// Renders the list of libraries for a target, and the texts of their licenses.
pub(super) fn render(target: &str) -> Result<String> {
    let words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target];
    let metadata: Metadata = serde_json::from_str(&command::stdout(&words)?)
        .context("cannot parse the output of cargo metadata")?;
    let libraries = linked_libraries(&metadata)?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for library in &libraries {
        for text in read_license_files(library)? {
            texts.entry(text).or_default().push(format!("{} {}", library.name, library.version));
        }
    }
    Ok(render_page(&libraries, &texts))
}

/// The crates from outside that are linked into the program, by name.
fn linked_libraries(metadata: &Metadata) -> Result<Vec<CrateInfo>> {
    let packages: BTreeMap<&str, &CrateInfo> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let program = metadata.packages.iter().find(|package| package.name == PROGRAM_CRATE);
    let program = program.with_context(|| format!("cargo metadata does not list {PROGRAM_CRATE}"))?;
    let (mut linked, mut queue) = (BTreeSet::new(), vec![program.id.as_str()]);
    while let Some(id) = queue.pop() {
        let package = packages.get(id).with_context(|| format!("cargo metadata does not describe {id}"))?;
        // A macro runs in the compiler.
        if package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
            || !linked.insert(id)
        {
            continue;
        }
        let dependencies = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
        let is_linked =
            |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
        queue.extend(dependencies.iter().filter(is_linked).map(|dependency| dependency.pkg.as_str()));
    }
    let mut libraries: Vec<CrateInfo> = linked
        .into_iter()
        .map(|id| packages[id].clone())
        .filter(|package| package.source.is_some())
        .collect();
    libraries.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(libraries)
}

/// Reads the license files in the directory of a crate.
fn read_license_files(library: &CrateInfo) -> Result<Vec<String>> {
    let dir = Path::new(&library.manifest_path).parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        if path.is_file() && LICENSE_FILE_NAMES.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    files.sort();
    let read = |path| -> Result<String> {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {path:?}"))?;
        Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned())
    };
    files.into_iter().map(read).collect()
}

fn render_page(libraries: &[CrateInfo], texts: &BTreeMap<String, Vec<String>>) -> String {
    let mut page =
        String::from("The program contains these libraries. The texts of their licenses follow.\n\n");
    for CrateInfo { name, version, license, repository, .. } in libraries {
        let license = license.as_deref().unwrap_or("see the text below");
        page +=
            format!("{name} {version}: {license} {}", repository.as_deref().unwrap_or_default()).trim_end();
        page += "\n";
    }
    let mut sections: Vec<(&Vec<String>, &String)> =
        texts.iter().map(|(text, names)| (names, text)).collect();
    sections.sort();
    for (names, text) in sections {
        page += &format!("\n{}\n{}\n\n{text}\n", "-".repeat(79), names.join(", "));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_crates_from_outside_are_listed() {
        let package = |name: &str, source: Option<&str>, kind: &str| {
            serde_json::json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT", "repository": null,
                "manifest_path": "/none/Cargo.toml", "source": source, "targets": [{"kind": [kind]}],
            })
        };
        let dependency =
            |name: &str, kind: Option<&str>| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let outside = Some("registry");
        let metadata = serde_json::json!({
            "packages": [
                package(PROGRAM_CRATE, None, "bin"),
                package("own", None, "lib"),
                package("zlib", outside, "lib"),
                package("alib", outside, "lib"),
                package("macros", outside, "proc-macro"),
                package("builder", outside, "lib"),
                package("tester", outside, "lib"),
                package("unused", outside, "lib"),
            ],
            "resolve": {"nodes": [
                {"id": PROGRAM_CRATE, "deps": [
                    dependency("own", None), dependency("builder", Some("build")), dependency("tester", Some("dev")),
                ]},
                {"id": "own", "deps": [dependency("zlib", None), dependency("macros", None)]},
                {"id": "zlib", "deps": [dependency("alib", None), dependency("own", None)]},
            ]},
        });
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let libraries = linked_libraries(&metadata).unwrap();
        assert_eq!(
            libraries.iter().map(|library| library.name.as_str()).collect::<Vec<_>>(),
            ["alib", "zlib"]
        );
        let texts =
            BTreeMap::from([("Text".to_owned(), vec!["alib 1.0.0".to_owned(), "zlib 1.0.0".to_owned()])]);
        let page = render_page(&libraries, &texts);
        assert!(page.contains("\nalib 1.0.0: MIT\nzlib 1.0.0: MIT\n"), "{page}");
        assert!(page.ends_with("-\nalib 1.0.0, zlib 1.0.0\n\nText\n"), "{page}");
    }
}
