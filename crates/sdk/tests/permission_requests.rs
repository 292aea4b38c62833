//! Permission requests in the hands of a host: why they are withdrawn, and whether an edited input is valid.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use whimbrel::wire::hook::{HookEvent, HookOutput};
use whimbrel::{
    Agent, CancelReason, CheckInputError, Error, Hook, PermissionMode, PermissionRequest, PermissionResult,
    Scripted, Session, ToolServer, tool,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
    #[expect(dead_code, reason = "only its schema matters")]
    sizes: Vec<u32>,
}

fn scripted_agent(tool: &str, input: &Value) -> Agent {
    let call = json!([{"type": "tool_use", "name": tool, "input": input}]);
    let order = tool_of_host();
    Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .tool_server(ToolServer::new("shop").tool(order))
        .script(Scripted::replies(json!([call, "done"])).unwrap())
}

fn tool_of_host() -> whimbrel::Tool {
    tool("order", "Orders", |order: Order| async move { order.item })
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap()
}

/// An agent whose permission requests nothing answers, and the requests.
fn unanswered(agent: Agent) -> (Agent, UnboundedReceiver<PermissionRequest>) {
    let (sender, requests) = unbounded_channel();
    let agent = agent.can_use_tool(move |request| {
        sender.send(request).unwrap();
        std::future::pending()
    });
    (agent, requests)
}

#[tokio::test]
async fn callback_learns_why_its_request_was_withdrawn() {
    let bash = || scripted_agent("Bash", &json!({"command": "touch never"}));
    let decided = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "no"}}});
    let decided: HookOutput = serde_json::from_value(decided).unwrap();
    let (release, released) = tokio::sync::watch::channel(false);
    let hook = Hook::on(HookEvent::PermissionRequest, move |_| {
        let (mut released, decided) = (released.clone(), decided.clone());
        async move {
            released.wait_for(|released| *released).await.unwrap();
            decided
        }
    });
    type Act = Box<dyn AsyncAct>;
    let rows: Vec<(&str, Agent, Act, CancelReason)> = vec![
        ("interrupt", bash(), Box::new(Interrupt), CancelReason::Interrupted),
        ("hook", bash().hook(hook), Box::new(Release(release)), CancelReason::AnsweredByHook),
        ("mode", bash(), Box::new(Bypass), CancelReason::RulesChanged),
        (
            "timeout",
            bash().permission_timeout(Duration::from_millis(20)),
            Box::new(Nothing),
            CancelReason::TimedOut,
        ),
        ("end", bash(), Box::new(Close), CancelReason::SessionEnded),
    ];
    for (name, agent, act, expected) in rows {
        let (agent, mut requests) = unanswered(agent);
        let session = Session::open(&agent).await.unwrap();
        session.send("go").await.unwrap();
        let withdrawal = with_timeout(requests.recv()).await.unwrap().withdrawal();
        act.act(&session).await;
        assert_eq!(with_timeout(withdrawal.wait()).await, Some(expected), "{name}");
    }
}

/// What a row does while the request is open.
trait AsyncAct {
    fn act<'a>(&'a self, session: &'a Session) -> futures::future::LocalBoxFuture<'a, ()>;
}

struct Interrupt;
struct Release(tokio::sync::watch::Sender<bool>);
struct Bypass;
struct Nothing;
struct Close;

impl AsyncAct for Interrupt {
    fn act<'a>(&'a self, session: &'a Session) -> futures::future::LocalBoxFuture<'a, ()> {
        Box::pin(async { session.interrupt().await.unwrap() })
    }
}

impl AsyncAct for Release {
    fn act<'a>(&'a self, _: &'a Session) -> futures::future::LocalBoxFuture<'a, ()> {
        self.0.send_replace(true);
        Box::pin(async {})
    }
}

impl AsyncAct for Bypass {
    fn act<'a>(&'a self, session: &'a Session) -> futures::future::LocalBoxFuture<'a, ()> {
        Box::pin(async { session.controls().set_permission_mode(PermissionMode::DontAsk).await.unwrap() })
    }
}

impl AsyncAct for Nothing {
    fn act<'a>(&'a self, _: &'a Session) -> futures::future::LocalBoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl AsyncAct for Close {
    fn act<'a>(&'a self, session: &'a Session) -> futures::future::LocalBoxFuture<'a, ()> {
        session.controls().close();
        Box::pin(async {})
    }
}

#[tokio::test]
async fn answered_request_is_not_withdrawn() {
    let (sender, mut withdrawals) = unbounded_channel();
    let agent =
        scripted_agent("Bash", &json!({"command": "true; touch /nowhere/x"})).can_use_tool(move |request| {
            sender.send(request.withdrawal()).unwrap();
            async { PermissionResult::deny("no") }
        });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    let withdrawal = withdrawals.recv().await.unwrap();
    assert_eq!(with_timeout(withdrawal.wait()).await, None);
}

#[tokio::test]
async fn edited_input_is_checked_against_the_schema() {
    let edit =
        |fields: Value| json!({"file_path": "/tmp/x", "old_string": "a", "new_string": "b", "edits": fields});
    let rows: [(&str, Value, Value, &[&str]); 6] = [
        ("Bash", json!({"command": "touch x"}), json!({"command": "touch y"}), &[]),
        ("Bash", json!({"command": "touch x"}), json!({"command": 5}), &["command"]),
        ("Bash", json!({"command": "touch x"}), json!({"timeout": "soon"}), &["timeout", "command"]),
        ("mcp__shop__order", json!({"item": "a", "sizes": []}), json!({"item": "b", "sizes": [1]}), &[]),
        (
            "mcp__shop__order",
            json!({"item": "a", "sizes": []}),
            json!({"sizes": [1, "x"]}),
            &["item", "sizes[1]"],
        ),
        ("Write", json!({"file_path": "/tmp/x", "content": "a"}), edit(json!([])), &["content"]),
    ];
    for (tool, input, edited, expected) in rows {
        let (agent, mut requests) = unanswered(scripted_agent(tool, &input));
        let session = Session::open(&agent).await.unwrap();
        session.send("go").await.unwrap();
        let request = with_timeout(requests.recv()).await.unwrap();
        let checked = with_timeout(request.check_input(edited.as_object().unwrap())).await;
        let mut fields: Vec<String> = match &checked {
            Ok(()) => Vec::new(),
            Err(error) => error.fields().iter().map(|field| field.field.clone()).collect(),
        };
        fields.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(fields, expected, "{tool} {edited}: {checked:?}");
        if let Err(error) = checked {
            assert!(fields.iter().all(|field| error.to_string().contains(&format!("`{field}`"))), "{error}");
        }
    }
}

#[tokio::test]
async fn input_cannot_be_checked_after_the_session() {
    let (agent, mut requests) = unanswered(scripted_agent("Bash", &json!({"command": "touch x"})));
    let session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let request = Arc::new(with_timeout(requests.recv()).await.unwrap());
    let withdrawal = request.withdrawal();
    drop(session);
    assert_eq!(with_timeout(withdrawal.wait()).await, Some(CancelReason::SessionEnded));
    let error = with_timeout(request.check_input(&request.input)).await.unwrap_err();
    assert!(matches!(error, CheckInputError::Unchecked(Error::SessionEnded)), "{error}");
}
