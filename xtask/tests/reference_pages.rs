//! The reference pages are complete: every environment variable of the source and every frame of the schema is documented.

#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Beginnings of the names of variables that Whimbrel itself reads.
const OWN_PREFIXES: [&str; 9] =
    ["WHIMBREL_", "CLAUDE_", "ANTHROPIC_", "OPENAI_", "MCP_", "MAX_", "DISABLE_", "ENABLE_", "SSL_"];

/// The source files that list variables without reading them.
const LIST_FILES: [&str; 3] = ["project_env.rs", "key_variables.rs", "unsupported_variables.rs"];

/// A variable of the test suite only.
const TEST_VARIABLE: &str = "WHIMBREL_BLESS";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Source files of the product, without tests.
fn source_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_skipped =
            ["tests", "tests.rs", "benches", "examples", "testkit", "policy"].contains(&name.as_str());
        if is_skipped || name == "build.rs" && dir.join("Cargo.toml").exists() {
            continue;
        }
        if path.is_dir() {
            source_files(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

/// Names of our variables that stand between two quotes.
fn variables(text: &str, quote: char) -> BTreeSet<String> {
    let is_part = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_';
    let names = text.match_indices(quote).filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let name: String = rest.chars().take_while(is_part).collect();
        rest[name.len()..].starts_with(quote).then_some(name)
    });
    let is_own = |name: &String| {
        OWN_PREFIXES.iter().any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()))
    };
    names.filter(is_own).collect()
}

#[test]
fn environment_page_lists_the_variables_of_the_source() {
    let mut files = Vec::new();
    source_files(&root().join("crates"), &mut files);
    let (mut read, mut listed) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let is_list = LIST_FILES.iter().any(|list| file.ends_with(list));
        let names = if is_list { &mut listed } else { &mut read };
        names.extend(variables(code, '"'));
    }
    let mut in_page = variables(&page("environment.md"), '`');
    in_page.remove(TEST_VARIABLE);
    let missing: Vec<_> = read.difference(&in_page).collect();
    let unknown: Vec<_> =
        in_page.iter().filter(|name| !read.contains(*name) && !listed.contains(*name)).collect();
    assert!(read.len() > 40, "{read:?}");
    assert!(missing.is_empty(), "not in docs/environment.md: {missing:?}");
    assert!(unknown.is_empty(), "not in the source: {unknown:?}");
}

/// Collects the constant values of a property, anywhere in a schema.
fn constants(schema: &Value, property: &str, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(value) = fields.get("properties").and_then(|all| all.get(property)) {
                found.extend(value.get("const").and_then(Value::as_str).map(str::to_owned));
            }
            fields.values().for_each(|value| constants(value, property, found));
        }
        Value::Array(values) => values.iter().for_each(|value| constants(value, property, found)),
        _ => {}
    }
}

#[test]
fn wire_page_names_the_frames_and_requests_of_the_schema() {
    let text = fs::read_to_string(root().join("schema/wire.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let mut names = BTreeSet::new();
    schema["anyOf"].as_array().unwrap().iter().for_each(|frame| {
        names.extend(frame["properties"]["type"]["const"].as_str().map(str::to_owned));
    });
    constants(&schema["$defs"], "subtype", &mut names);
    assert!(names.len() > 80, "{names:?}");
    let page = page("wire-protocol.md");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("\"{name}\"")))
        .collect();
    assert!(missing.is_empty(), "not in docs/wire-protocol.md: {missing:?}");
}
