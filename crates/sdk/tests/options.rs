//! Setters of an agent, and options that are rejected when a session is opened.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use serde_json::json;
use whimbrel::wire::options::{SettingSource, SystemPrompt};
use whimbrel::{Agent, Environment, Error, OpenError, Scripted, Session, Subagent, ToolServer, query};

fn script(reply: &str) -> Arc<Scripted> {
    Arc::new(Scripted::replies(json!([reply])).unwrap())
}

fn agent() -> Agent {
    Agent::new().cwd(std::env::temp_dir()).persist_session(false)
}

#[tokio::test]
async fn options_that_cannot_work_are_rejected_at_open() {
    let odd = OsStr::from_bytes(b"/t\xff");
    let rows = [
        ("cwd", agent().cwd(odd)),
        ("cwd", agent().cwd("/nowhere/at/all")),
        ("max_turns", agent().max_turns(0)),
        ("max_budget_usd", agent().max_budget_usd(f64::NAN)),
        ("max_budget_usd", agent().with(|options| options.max_budget_usd = Some(-1.0))),
    ];
    for (option, agent) in rows {
        let error = Session::open(&agent.script(script("x"))).await.unwrap_err();
        let named = match &error {
            OpenError::InvalidOption { option, .. } => option.as_str(),
            OpenError::NoSuchDirectory(_) => "cwd",
            _ => "",
        };
        assert_eq!(named, option, "{error}");
    }
    let mended = agent().cwd(odd).cwd(std::env::temp_dir()).script(script("hello"));
    assert_eq!(query("hi", &mended).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn unknown_names_are_rejected_at_open() {
    let with = |subagent: Subagent| agent().subagent("scout", subagent);
    let scout = || Subagent::new("when", "prompt");
    let server = || ToolServer::new("notes");
    let rows = [
        ("tools", agent().tools(["Raed"]), Some("tools")),
        ("tools of a subagent", with(scout().tools(["Read", "Raed"])), Some("subagent")),
        ("tools that a subagent may not use", with(scout().disallowed_tools(["Bahs"])), Some("subagent")),
        ("server of a subagent", with(scout().mcp_servers(["nots"])).tool_server(server()), Some("subagent")),
        (
            "known names",
            with(scout().tools(["Read", "Task", "Agent(scout)", "mcp__notes", "*"]).mcp_servers(["notes"]))
                .tool_server(server()),
            None,
        ),
        (
            "a server that a settings file may have",
            with(scout().mcp_servers(["nots"])).setting_sources([SettingSource::User]),
            None,
        ),
    ];
    for (name, agent, expected) in rows {
        let opened = Session::open(&agent.script(script("x"))).await;
        let named = match &opened {
            Err(OpenError::InvalidOption { option, .. }) => Some(option.as_str()),
            Err(error) => panic!("{name}: {error}"),
            Ok(_) => None,
        };
        assert_eq!(named, expected, "{name}");
    }
}

#[tokio::test]
async fn keys_for_an_engine_that_was_given_are_rejected() {
    let engine = || Environment::default().engine();
    let rows = [
        ("api_key", agent().engine(engine()).api_key("k")),
        ("api_key", agent().api_key("k").engine(engine())),
        ("base_url", agent().base_url("http://127.0.0.1:9").engine(engine())),
    ];
    for (setter, agent) in rows {
        let error = Session::open(&agent).await.unwrap_err();
        assert!(
            matches!(&error, OpenError::InvalidOption { option, .. } if option == setter),
            "{setter}: {error}"
        );
    }
    let scripted = agent().api_key("k").engine(engine()).script(script("hello"));
    assert_eq!(query("hi", &scripted).await.unwrap().text(), "hello", "a script needs no key");
}

#[test]
fn runtime_without_timers_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let opened = runtime.block_on(Session::open(&agent().script(script("x"))));
    let Err(OpenError::Engine(error)) = opened else { panic!("{opened:?}") };
    assert!(matches!(*error, Error::NoTimer), "{error}");
}

#[tokio::test]
async fn script_wins_whatever_comes_after_it() {
    let engine = Environment::from_iter([("HOME", "/nowhere")]).engine();
    let rows = [
        ("model", agent().script(script("scripted")).model("opus")),
        ("engine", agent().script(script("scripted")).engine(engine.clone())),
        ("environment", agent().script(script("scripted")).environment(Environment::default())),
        ("another on the same engine", agent().engine(engine).script(script("scripted")).model("opus")),
    ];
    for (name, agent) in rows {
        assert_eq!(query("hi", &agent).await.unwrap().text(), "scripted", "{name}");
    }
}

#[test]
fn rules_and_prompts_add_up() {
    let agent = Agent::new().allowed_tools(["Read"]).allow_tool("Glob").deny_tool("Bash").deny_tool("Edit");
    assert_eq!(agent.options().allowed_tools, ["Read", "Glob"]);
    assert_eq!(agent.options().disallowed_tools, ["Bash", "Edit"]);
    let prompt = |agent: Agent| agent.options().system_prompt.clone().unwrap();
    let text = |text: &str| SystemPrompt::Text(text.into());
    assert_eq!(prompt(Agent::new().system_prompt("A").append_system_prompt("B")), text("A\n\nB"));
    assert_eq!(prompt(Agent::new().append_system_prompt("B").system_prompt("A")), text("A"));
    let appended = prompt(Agent::new().append_system_prompt("A").append_system_prompt("B"));
    assert!(matches!(&appended, SystemPrompt::Preset { append: Some(text), .. } if text == "A\n\nB"));
}
