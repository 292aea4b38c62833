//! Setters of an agent, and options that are rejected when a session is opened.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use serde_json::json;
use whimbrel::wire::options::SystemPrompt;
use whimbrel::{Agent, Environment, Error, OpenError, Scripted, Session, query};

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
