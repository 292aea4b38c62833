//! Deferred tools: listed by name, loaded by ToolSearch, kept across compaction and resume.

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply};
use whimbrel_wire::options::{Options, ToolSet};

/// Directories that outlive a host.
struct SessionDirs(TempDir);

impl SessionDirs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn host(&self, script: Vec<Reply>, options: Options) -> HostBuilder {
        let cwd = self.0.path().join("work");
        std::fs::create_dir_all(&cwd).unwrap();
        let options = Options { cwd: Some(cwd.display().to_string()), ..options };
        Host::with_script(script)
            .options(options)
            .env("CLAUDE_CONFIG_DIR", self.0.path().join("config").display().to_string())
    }
}

fn search_call(query: &str) -> Reply {
    Reply::tool("ToolSearch", json!({"query": query}))
}

fn offers_tool(asked: &ModelRequest, tool: &str) -> bool {
    asked.tool_names().contains(&tool)
}

#[tokio::test]
async fn loaded_tool_survives_compaction_and_resume() {
    let home = SessionDirs::new();
    let script =
        vec![search_call("select:NotebookEdit"), Reply::text("1"), Reply::text("Summary."), Reply::text("2")];
    let mut host = home.host(script, Options::default()).start().await.unwrap();
    host.run("Load it.").await.unwrap();
    host.run("/compact").await.unwrap();
    let session = host.run("Go on.").await.unwrap().session_id;
    let asked = host.model_requests();
    assert_eq!(
        asked.iter().map(|asked| offers_tool(asked, "NotebookEdit")).collect::<Vec<_>>(),
        [false, true, true, true]
    );
    assert_eq!(
        asked[1].tool_names()[..asked[0].tool_names().len()],
        asked[0].tool_names(),
        "what was there stays in its place"
    );
    assert_eq!(asked[1].tool_names().last(), Some(&"NotebookEdit"));
    for at in [0, 3] {
        assert_eq!(asked[at].messages()[0].to_string().matches("More tools are there on demand").count(), 1);
    }
    host.finish().await.unwrap();
    let resumed = Options { resume: Some(session), ..Options::default() };
    let mut host = home.host(vec![Reply::text("3")], resumed).start().await.unwrap();
    host.run("And now?").await.unwrap();
    assert!(
        offers_tool(&host.model_requests()[0], "NotebookEdit"),
        "{:?}",
        host.model_requests()[0].tool_names()
    );
}

#[tokio::test]
async fn loaded_tool_survives_resume() {
    let home = SessionDirs::new();
    let script = vec![search_call("jupyter"), Reply::text("1")];
    let mut host = home.host(script, Options::default()).start().await.unwrap();
    let session = host.run("Load it.").await.unwrap().session_id;
    host.finish().await.unwrap();
    let resumed = Options { resume: Some(session), ..Options::default() };
    let mut host = home.host(vec![Reply::text("2")], resumed).start().await.unwrap();
    host.run("And now?").await.unwrap();
    let asked = &host.model_requests()[0];
    assert!(offers_tool(asked, "NotebookEdit"), "{:?}", asked.tool_names());
    assert_eq!(asked.body["messages"].to_string().matches("More tools are there on demand").count(), 1);
}

#[tokio::test]
async fn unloaded_tool_runs_and_is_loaded_on_invalid_input() {
    let notebook = json!({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string();
    let edit = |source: Value| {
        Reply::tool(
            "NotebookEdit",
            json!({"notebook_path": "n.ipynb", "edit_mode": "insert", "new_source": source}),
        )
    };
    let script = [
        Reply::tool("Read", json!({"file_path": "n.ipynb"})),
        edit("print(1)".into()),
        edit(7.into()),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script)
        .file("n.ipynb", notebook)
        .can_use_tool(|_| whimbrel_wire::permission::PermissionResult::allow())
        .start()
        .await
        .unwrap();
    host.run("Edit it.").await.unwrap();
    let asked = host.model_requests();
    let files = host.dirs().files().unwrap();
    assert!(String::from_utf8_lossy(&files["n.ipynb"]).contains("print(1)"));
    assert!(!offers_tool(&asked[2], "NotebookEdit"), "a call that works needs no schema");
    assert!(asked[3].contains_text("NotebookEdit was called before it was loaded"));
    assert!(offers_tool(&asked[3], "NotebookEdit"));
}

#[tokio::test]
async fn tools_are_sent_at_once_without_tool_search() {
    let listed = ["Read", "NotebookEdit"].map(str::to_owned).to_vec();
    let options = Options { tools: Some(ToolSet::List(listed)), ..Options::default() };
    let mut host = Host::with_script([Reply::text("1")]).options(options).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    assert_eq!(host.model_requests()[0].tool_names(), ["Read", "NotebookEdit"]);
    let mut host =
        Host::with_script([Reply::text("1")]).env("ENABLE_TOOL_SEARCH", "false").start().await.unwrap();
    host.run("Hi.").await.unwrap();
    let asked = host.model_requests();
    assert!(offers_tool(&asked[0], "NotebookEdit") && !offers_tool(&asked[0], "ToolSearch"));
    let mut host =
        Host::with_script([Reply::text("1")]).env("ENABLE_TOOL_SEARCH", "perhaps").start().await.unwrap();
    let result = host.next_result().await.unwrap();
    assert!(result.errors.unwrap()[0].contains("ENABLE_TOOL_SEARCH"));
}

#[tokio::test]
async fn first_request_stays_below_14_kib() {
    let mut host = Host::with_script([Reply::text("1")])
        .can_use_tool(|_| whimbrel_wire::permission::PermissionResult::allow())
        .start()
        .await
        .unwrap();
    host.run("Hi.").await.unwrap();
    let init = host.received().iter().find(|heard| heard.json["subtype"] == "init").unwrap();
    assert!(
        init.json["tools"].as_array().unwrap().contains(&"NotebookEdit".into()),
        "the host hears of all tools"
    );
    let asked = &host.model_requests()[0];
    let size = asked.body.to_string().len();
    println!("{size} bytes, of which {} are tools", asked.body["tools"].to_string().len());
    assert!(size <= 14 * 1024, "{size}");
}
