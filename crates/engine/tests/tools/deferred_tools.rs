//! Deferred tools: listed by name, loaded by ToolSearch, kept across compaction and resume.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, ModelRequest, Reply, SessionDirs};
use whimbrel_wire::options::{Options, ToolSet};

fn search_call(query: &str) -> Reply {
    Reply::tool("ToolSearch", json!({"query": query}))
}

fn offers_tool(request: &ModelRequest, tool: &str) -> bool {
    request.tool_names().contains(&tool)
}

#[tokio::test]
async fn loaded_tool_survives_compaction_and_resume() {
    let dirs = SessionDirs::new().unwrap();
    let script =
        vec![search_call("select:NotebookEdit"), Reply::text("1"), Reply::text("Summary."), Reply::text("2")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    host.run("Load it.").await.unwrap();
    host.run("/compact").await.unwrap();
    let session = host.run("Go on.").await.unwrap().session_id;
    let requests = host.model_requests();
    assert_eq!(
        requests.iter().map(|request| offers_tool(request, "NotebookEdit")).collect::<Vec<_>>(),
        [false, true, true, true]
    );
    assert_eq!(
        requests[1].tool_names()[..requests[0].tool_names().len()],
        requests[0].tool_names(),
        "earlier tools keep their position"
    );
    assert_eq!(requests[1].tool_names().last(), Some(&"NotebookEdit"));
    for index in [0, 3] {
        assert_eq!(
            requests[index].messages()[0].to_string().matches("More tools are available on demand").count(),
            1
        );
    }
    host.finish().await.unwrap();
    let resumed = Options { resume: Some(session), ..Options::default() };
    let mut host = dirs.host(vec![Reply::text("3")], resumed).start().await.unwrap();
    host.run("And now?").await.unwrap();
    assert!(
        offers_tool(&host.model_requests()[0], "NotebookEdit"),
        "{:?}",
        host.model_requests()[0].tool_names()
    );
}

#[tokio::test]
async fn loaded_tool_survives_resume() {
    let dirs = SessionDirs::new().unwrap();
    let script = vec![search_call("jupyter"), Reply::text("1")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    let session = host.run("Load it.").await.unwrap().session_id;
    host.finish().await.unwrap();
    let resumed = Options { resume: Some(session), ..Options::default() };
    let mut host = dirs.host(vec![Reply::text("2")], resumed).start().await.unwrap();
    host.run("And now?").await.unwrap();
    let request = &host.model_requests()[0];
    assert!(offers_tool(request, "NotebookEdit"), "{:?}", request.tool_names());
    assert_eq!(request.body["messages"].to_string().matches("More tools are available on demand").count(), 1);
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
    let requests = host.model_requests();
    let files = host.dirs().files().unwrap();
    assert!(String::from_utf8_lossy(&files["n.ipynb"]).contains("print(1)"));
    assert!(!offers_tool(&requests[2], "NotebookEdit"), "a valid call does not load the tool");
    assert!(requests[3].contains_text("NotebookEdit was called before it was loaded"));
    assert!(offers_tool(&requests[3], "NotebookEdit"));
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
    let requests = host.model_requests();
    assert!(offers_tool(&requests[0], "NotebookEdit") && !offers_tool(&requests[0], "ToolSearch"));
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
    let tools = host.init_frame().unwrap()["tools"].as_array().unwrap();
    assert!(tools.contains(&"NotebookEdit".into()), "the host sees deferred tools");
    let request = &host.model_requests()[0];
    let size = request.body.to_string().len();
    println!("{size} bytes, of which {} are tools", request.body["tools"].to_string().len());
    assert!(size <= 14 * 1024, "{size}");
}
