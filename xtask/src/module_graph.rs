//! The module graph: which top-level modules of a crate use which others, and whether they form a cycle.
//!
//! The graph is read from the source text: paths that begin with `crate::`, or with as many `super::` as lead to the
//! crate root. Test code does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::workspace_root;
use crate::source_text::{remove_comments_and_strings, remove_test_items};

/// For each top-level module, the top-level modules it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Fails if the top-level modules of a crate form a cycle.
pub(crate) fn check() -> Result<()> {
    let mut problems = Vec::new();
    for dir in crate_dirs()? {
        let source = workspace_root().join(&dir).join("src");
        for modules in find_cycles(&read_graph(&source)?) {
            let modules = modules.join(", ");
            problems.push(format!(
                "{dir}: these modules depend on each other: {modules}. Move what they share to a module below them."
            ));
        }
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// The directories of all crates, relative to the workspace.
fn crate_dirs() -> Result<Vec<String>> {
    let mut dirs = vec!["xtask".to_owned()];
    for entry in fs::read_dir(workspace_root().join("crates"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            dirs.push(format!("crates/{}", entry.file_name().to_string_lossy()));
        }
    }
    dirs.sort();
    Ok(dirs)
}

/// Reads the graph of one crate.
fn read_graph(source: &Path) -> Result<Graph> {
    let root_file = ["lib.rs", "main.rs"].iter().map(|name| source.join(name)).find(|path| path.exists());
    let root_file =
        root_file.with_context(|| format!("{} has neither lib.rs nor main.rs", source.display()))?;
    let root_text = read_code(&root_file)?;
    let modules = declared_modules(&root_text);
    let reexports = reexported_names(&root_text, &modules);
    let mut graph: Graph = modules.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    for module in &modules {
        for file in module_files(source, module)? {
            let depth = module_depth(source, &file);
            for name in names_at_root(&read_code(&file)?, depth) {
                let target = reexports.get(&name).unwrap_or(&name);
                if target != module && modules.contains(target) {
                    graph.entry(module.clone()).or_default().insert(target.clone());
                }
            }
        }
    }
    Ok(graph)
}

fn read_code(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(remove_test_items(&remove_comments_and_strings(&text)))
}

/// The modules that a crate root declares.
fn declared_modules(root_text: &str) -> BTreeSet<String> {
    let lines = root_text.lines().map(str::trim);
    let names = lines.filter_map(|line| {
        let (visibility, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| name.to_owned())
    });
    names.collect()
}

/// Names that the crate root re-exports from its modules, with the module each comes from.
fn reexported_names(root_text: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in root_text.split(';') {
        let Some((_, path)) = statement.trim().rsplit_once("use ") else { continue };
        let Some((module, rest)) = path.split_once("::") else { continue };
        if !modules.contains(module) {
            continue;
        }
        for name in rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

/// The source files of a top-level module, without those that hold tests: `tests` and `*_tests`.
fn module_files(source: &Path, module: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let file = source.join(format!("{module}.rs"));
    if file.exists() {
        files.push(file);
    }
    let mut dirs = vec![source.join(module)];
    while let Some(dir) = dirs.pop().filter(|dir| dir.exists()) {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if stem == "tests" || stem.ends_with("_tests") {
                continue;
            }
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// How many `super::` lead from a file to the crate root.
fn module_depth(source: &Path, file: &Path) -> usize {
    let below = file.strip_prefix(source).unwrap_or(file).with_extension("");
    let parts = below.components().count();
    if below.ends_with("mod") { parts - 1 } else { parts }
}

/// The first names after `crate::`, or after enough `super::` to reach the crate root.
fn names_at_root(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let prefixes = ["crate::".to_owned(), "super::".repeat(depth)];
    for prefix in &prefixes {
        for (at, _) in code.match_indices(prefix.as_str()) {
            let before = &code[..at];
            let is_path_start = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_path_start {
                collect_first_names(&code[at + prefix.len()..], &mut names);
            }
        }
    }
    names
}

/// Collects the name at the start of a path, or each first name of a group in braces.
fn collect_first_names(rest: &str, names: &mut BTreeSet<String>) {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else {
        names.insert(word(rest));
        return;
    };
    let (mut depth, mut at_start) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if c.is_whitespace() => {}
            _ if at_start && depth == 0 => {
                names.insert(word(&group[at..]));
                at_start = false;
            }
            _ => {}
        }
    }
}

/// The strongly connected components of more than one module (Tarjan's algorithm).
fn find_cycles(graph: &Graph) -> Vec<Vec<String>> {
    let mut search =
        Search { graph, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), cycles: Vec::new() };
    for module in graph.keys() {
        if !search.index.contains_key(module.as_str()) {
            search.visit(module);
        }
    }
    search.cycles
}

struct Search<'a> {
    graph: &'a Graph,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    cycles: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, module: &'a str) {
        let number = self.index.len();
        self.index.insert(module, number);
        self.low.insert(module, number);
        self.stack.push(module);
        for next in &self.graph[module] {
            let reached = if !self.index.contains_key(next.as_str()) {
                self.visit(next);
                self.low[next.as_str()]
            } else if self.stack.contains(&next.as_str()) {
                self.index[next.as_str()]
            } else {
                continue;
            };
            let low = self.low[module].min(reached);
            self.low.insert(module, low);
        }
        if self.low[module] == number {
            let start = self.stack.iter().position(|name| *name == module).unwrap_or_default();
            let component = self.stack.split_off(start);
            if component.len() > 1 {
                let mut cycle: Vec<String> = component.into_iter().map(str::to_owned).collect();
                cycle.sort();
                self.cycles.push(cycle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(rows: &[(&str, &[&str])]) -> Graph {
        rows.iter()
            .map(|(name, uses)| ((*name).to_owned(), uses.iter().map(|to| (*to).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn chain_has_no_cycle() {
        assert_eq!(
            find_cycles(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])),
            Vec::<Vec<String>>::new()
        );
    }

    #[test]
    fn cycle_names_its_modules() {
        let found = find_cycles(&graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]));
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn names_are_found_in_paths_and_groups() {
        let code = "use crate::{one, two::{three, four}};\n\
                    fn f() { crate::five::g(); super::six(); other_crate::seven(); }";
        let expected = ["five", "one", "six", "two"].map(str::to_owned);
        assert_eq!(names_at_root(code, 1), BTreeSet::from(expected));
    }
}
