//! A temporary workspace in which tests run tools.

#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use whimbrel_policy::CheckedCall;
use whimbrel_session_store::{Mirror, TranscriptWriter};
use whimbrel_wire::content::ResultContent;

use crate::api::{AgentToolSet, AnyTool, DeferredTools, Example, ToolContext, ToolResult};
use crate::builtin::builtin_tools;
use crate::hooks::HookDispatcher;
use crate::internal_events::event_channel;
use crate::permission::state::{Bypass, InitialPermissions};
use crate::permission::{ModeSwitch, PermissionState, SearchFilter};
use crate::small_model::SmallModel;
use crate::task_list::{TaskList, TodoList};
use crate::tasks::TaskRegistry;
use crate::workspace::Workspace;

impl ToolContext {
    /// A context without model and subagents, with all tools.
    pub fn for_test(workspace: Arc<Workspace>) -> Self {
        Self {
            id: "toolu_1".into(),
            checked: CheckedCall::default(),
            original_input: None,
            mode: ModeSwitch::for_tests(&workspace),
            hooks: HookDispatcher::disabled(&workspace),
            workspace,
            tasks: TaskRegistry::new(event_channel().0),
            tool_set: Arc::new(AgentToolSet::from_tools(builtin_tools())),
            deferred_tools: DeferredTools::default(),
            task_list: TaskList::default(),
            todos: TodoList::default(),
            read_filter: SearchFilter::default(),
            small_model: SmallModel::unavailable(),
            agents: None,
            transcript: TranscriptWriter::new("session", None, Mirror::Off),
            cancel: CancellationToken::new(),
        }
    }
}

/// A temporary workspace in which tests run tools.
pub struct TestWorkspace {
    dir: TempDir,
    context: ToolContext,
}

impl TestWorkspace {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let output_dir = dir.path().join(".spill");
        let env: BTreeMap<String, String> = std::env::vars().collect();
        let workspace = Arc::new(Workspace::new(dir.path().to_path_buf(), output_dir, env));
        let fixture = Self { context: ToolContext::for_test(workspace), dir };
        for (path, content) in files {
            let path = fixture.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fixture
    }

    /// Adds deny rules.
    pub fn with_deny_rules(mut self, rules: &[&str]) -> Self {
        let deny = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let initial = InitialPermissions { deny, ..InitialPermissions::default() };
        let workspace = Arc::clone(&self.context.workspace);
        let built = PermissionState::build(
            workspace,
            whimbrel_config::settings::Settings::empty(),
            initial,
            Bypass::Unavailable,
        )
        .unwrap();
        self.context.read_filter = built.state.search_filter();
        self
    }

    pub fn read_filter(&self) -> SearchFilter {
        self.context.read_filter.clone()
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn workspace(&self) -> &Workspace {
        &self.context.workspace
    }

    pub fn context(&self) -> ToolContext {
        self.context.clone()
    }

    pub async fn run_tool(&self, tool: &str, input: Value) -> ToolResult {
        let tool = builtin_tools().into_iter().find(|known| known.name() == tool).unwrap();
        tool.run(input, self.context.clone()).await
    }

    /// Runs a tool and returns the text that the model reads, for success and failure.
    pub async fn run_to_text(&self, tool: &str, input: Value) -> String {
        render_for_model(&self.run_tool(tool, input).await)
    }
}

/// Runs the examples of all tools; each tool must have one.
pub async fn check_examples(tools: &[Arc<dyn AnyTool>]) {
    for tool in tools {
        let examples = tool.examples();
        assert!(!examples.is_empty(), "{} has no examples", tool.name());
        for example in &examples {
            check_example(tool.as_ref(), example).await;
        }
    }
}

async fn check_example(tool: &dyn AnyTool, example: &Example) {
    let (name, title) = (tool.name(), example.title);
    let fixture = TestWorkspace::new(example.files);
    for (tool, input) in &example.calls_before {
        let output = fixture.run_tool(tool, input.clone()).await;
        output.unwrap_or_else(|error| panic!("before {title}: {error:?}"));
    }
    let output = tool.run(example.input.clone(), fixture.context()).await;
    assert_eq!(output.is_err(), example.is_error, "{name}: {title}: {output:?}");
    let text = render_for_model(&output);
    for expected in example.output {
        assert!(text.contains(expected), "{name}: {title}: {expected:?} is not in {text:?}");
    }
    for (path, content) in example.files_after {
        let actual =
            fs::read_to_string(fixture.path(path)).unwrap_or_else(|error| panic!("{name}: {title}: {error}"));
        assert_eq!(actual, *content, "{name}: {title}");
    }
}

fn render_for_model(output: &ToolResult) -> String {
    match output {
        Ok(done) => match &done.content {
            ResultContent::Text(text) => text.clone(),
            ResultContent::Blocks(blocks) => serde_json::to_string(blocks).unwrap(),
        },
        Err(error) => error.render_for_model(),
    }
}
