//! The npm package: the program as `npx whimbrel`, and its path for the official SDK as an ES and a CommonJS module.

use anyhow::Result;
use serde_json::{Map, json};

use super::archive::{Entry, TarDirectories, write_tar};
use super::compression::Compression;
use super::contents::Contents;
use super::executable::{Executable, System};
use super::{Package, REPOSITORY, SUMMARY, VERSION};

const ES_MODULE: &str = include_str!("../../../packaging/npm/index.mjs");
const COMMON_JS: &str = include_str!("../../../packaging/npm/index.cjs");
const TYPES: &str = include_str!("../../../packaging/npm/index.d.ts");
const README: &str = include_str!("../../../packaging/npm/README.md");

pub(super) fn build(
    contents: &Contents,
    executable: &Executable,
    compression: Compression,
) -> Result<Package> {
    let entries = [
        Entry::plain("package.json", render_manifest(executable)?),
        Entry::executable("bin/whimbrel", contents.program.as_slice()),
        Entry::plain("index.mjs", ES_MODULE),
        Entry::plain("index.cjs", COMMON_JS),
        // The types of a module have its ending.
        Entry::plain("index.d.mts", TYPES),
        Entry::plain("index.d.cts", TYPES),
        Entry::plain("README.md", README),
    ];
    let entries: Vec<Entry> =
        entries.into_iter().chain(contents.license_entries()).map(|entry| entry.below("package")).collect();
    let (system, architecture) = executable.node_names();
    let archive = write_tar(&entries, TarDirectories::Implied)?;
    Ok(Package {
        file_name: format!("whimbrel-{VERSION}-{system}-{architecture}.tgz"),
        content: compression.gzip(&archive)?,
    })
}

fn render_manifest(executable: &Executable) -> Result<String> {
    let (system, architecture) = executable.node_names();
    let mut manifest = json!({
        "name": "whimbrel",
        "version": VERSION,
        "description": SUMMARY,
        "keywords": ["agent", "llm", "claude"],
        "license": "MIT OR Apache-2.0",
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "os": [system],
        "cpu": [architecture],
        "bin": { "whimbrel": "bin/whimbrel" },
        "main": "./index.cjs",
        "types": "./index.d.cts",
        "exports": {
            ".": {
                "import": { "types": "./index.d.mts", "default": "./index.mjs" },
                "require": { "types": "./index.d.cts", "default": "./index.cjs" },
            },
            "./package.json": "./package.json",
        },
        // A program inside an archive cannot be started.
        "preferUnplugged": true,
    });
    let libc = match executable.system {
        System::Linux { .. } => Map::from_iter([("libc".to_owned(), json!(["glibc"]))]),
        System::MacOs { .. } => Map::new(),
    };
    if let Some(fields) = manifest.as_object_mut() {
        fields.extend(libc);
    }
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}
