//! Examples of tool calls: they show what a tool does, and one test runs them all.

use serde_json::Value;

/// One call of a tool in a small workspace.
#[derive(Debug, Clone)]
pub struct Example {
    /// What it shows, as a sentence.
    pub shows: &'static str,
    /// Files in the workspace: relative path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// Calls that must come first: tool name and input.
    pub before: Vec<(&'static str, Value)>,
    /// The input. Relative paths are below the workspace.
    pub input: Value,
    /// What the model reads must contain each of these.
    pub says: &'static [&'static str],
    /// Whether the call fails.
    pub fails: bool,
    /// Files as they must be afterwards.
    pub leaves: &'static [(&'static str, &'static str)],
}

impl Example {
    /// A call that works, in an empty workspace.
    pub fn new(shows: &'static str, input: Value) -> Self {
        Self { shows, files: &[], before: Vec::new(), input, says: &[], fails: false, leaves: &[] }
    }

    /// With these files in the workspace.
    #[must_use]
    pub fn files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files = files;
        self
    }

    /// With this call made before.
    #[must_use]
    pub fn after(mut self, tool: &'static str, input: Value) -> Self {
        self.before.push((tool, input));
        self
    }

    /// The model reads these words.
    #[must_use]
    pub fn says(mut self, words: &'static [&'static str]) -> Self {
        self.says = words;
        self
    }

    /// The call fails, and the model reads these words.
    #[must_use]
    pub fn fails(mut self, words: &'static [&'static str]) -> Self {
        self.fails = true;
        self.says(words)
    }

    /// The workspace then holds these files.
    #[must_use]
    pub fn leaves(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.leaves = files;
        self
    }
}

#[cfg(test)]
pub(super) use bench::Bench;

#[cfg(test)]
mod bench {
    //! A workspace in a temporary folder, and the tools in it.

    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use serde_json::Value;
    use tempfile::TempDir;

    use whimbrel_wire::content::ResultContent;

    use crate::permission::rights::{Bypass, Grants};
    use crate::permission::{Rights, Sight};

    use crate::tools::{Call, Output, all};
    use crate::workspace::Workspace;

    /// A workspace in which tools are tried.
    pub(in crate::tools) struct Bench {
        folder: TempDir,
        call: Call,
    }

    impl Bench {
        /// A workspace with these files.
        pub(in crate::tools) fn new(files: &[(&str, &str)]) -> Self {
            let folder = TempDir::new().unwrap();
            let spill = folder.path().join(".spill");
            let env: BTreeMap<String, String> = std::env::vars().collect();
            let workspace = Arc::new(Workspace::new(folder.path().to_path_buf(), spill, env));
            let bench = Self { call: Call::alone(workspace), folder };
            for (path, content) in files {
                let path = bench.path(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            bench
        }

        /// The same under rules that deny.
        pub(in crate::tools) fn denying(mut self, rules: &[&str]) -> Self {
            let deny = rules.iter().map(|rule| (*rule).to_owned()).collect();
            let grants = Grants { deny, ..Grants::default() };
            let workspace = Arc::clone(&self.call.workspace);
            let granted =
                Rights::grant(workspace, crate::settings::Settings::none(), grants, Bypass::Unavailable)
                    .unwrap();
            self.call.sight = granted.rights.sight();
            self
        }

        /// What its searches may see.
        pub(in crate::tools) fn sight(&self) -> Sight {
            self.call.sight.clone()
        }

        /// The folder.
        pub(in crate::tools) fn root(&self) -> &Path {
            self.folder.path()
        }

        /// A path in it.
        pub(in crate::tools) fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        /// The workspace.
        pub(in crate::tools) fn workspace(&self) -> &Workspace {
            &self.call.workspace
        }

        /// What surrounds a call in it.
        pub(in crate::tools) fn calling(&self) -> Call {
            self.call.clone()
        }

        /// Calls a tool by its name.
        pub(in crate::tools) async fn call(&self, tool: &str, input: Value) -> Output {
            let tool = all().into_iter().find(|known| known.name() == tool).unwrap();
            tool.run(input, self.call.clone()).await
        }

        /// What the model reads after a call, whether it worked or not.
        pub(in crate::tools) async fn says(&self, tool: &str, input: Value) -> String {
            for_model(&self.call(tool, input).await)
        }
    }

    /// What the model reads.
    pub(in crate::tools) fn for_model(output: &Output) -> String {
        match output {
            Ok(done) => match &done.content {
                ResultContent::Text(text) => text.clone(),
                ResultContent::Blocks(blocks) => serde_json::to_string(blocks).unwrap(),
            },
            Err(trouble) => trouble.for_model(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::bench::for_model;
    use super::*;
    use crate::on_demand::OnDemand;
    use crate::toolbox::Toolbox;
    use crate::tools::{TODO_WRITE, all};

    async fn run(tool: &str, example: &Example) {
        let shows = example.shows;
        let bench = Bench::new(example.files);
        for (tool, input) in &example.before {
            bench
                .call(tool, input.clone())
                .await
                .unwrap_or_else(|trouble| panic!("before {shows}: {trouble:?}"));
        }
        let output = bench.call(tool, example.input.clone()).await;
        assert_eq!(output.is_err(), example.fails, "{tool}: {shows}: {output:?}");
        let said = for_model(&output);
        for words in example.says {
            assert!(said.contains(words), "{tool}: {shows}: {words:?} is not in {said:?}");
        }
        for (path, content) in example.leaves {
            let left = fs::read_to_string(bench.path(path))
                .unwrap_or_else(|error| panic!("{tool}: {shows}: {error}"));
            assert_eq!(left, *content, "{tool}: {shows}");
        }
    }

    #[tokio::test]
    async fn every_example_of_every_tool_holds() {
        for tool in all() {
            let examples = tool.examples();
            assert!(!examples.is_empty(), "{} has no examples", tool.name());
            for example in &examples {
                run(tool.name(), example).await;
            }
        }
    }

    #[test]
    fn the_tools_take_little_of_the_models_room() {
        // A session has one kind of list, and usually that of tasks.
        let usual = Toolbox::of(all()).without(&[TODO_WRITE]);
        let shown = OnDemand::default().shown(&usual);
        let sizes: Vec<(&str, usize)> = shown
            .iter()
            .map(|spec| (spec.name.as_str(), serde_json::to_string(spec.as_ref()).unwrap().len()))
            .collect();
        println!("{sizes:?}");
        assert!(sizes.iter().map(|(_, size)| size).sum::<usize>() < 7 * 1024, "{sizes:?}");
    }
}
