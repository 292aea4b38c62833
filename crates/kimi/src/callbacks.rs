//! Callbacks of the engine: each posts an event to the task of the session and waits for its answer.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use whimbrel::wire::hook::{HookInput, HookOutput};
use whimbrel::{
    Agent, Hook, PermissionRequest, PermissionResult, ToolContext, ToolOutput, ToolServer, tool_with_schema,
};

use crate::external_tools::ExternalTool;
use crate::hooks::Subscriptions;
use crate::tool_names::HOST_SERVER;

/// What the model is told if the session ends while the client is asked.
const SESSION_ENDED: &str = "The session has ended.";

/// Time beyond the longest timeout of a subscription after which the engine stops waiting by itself.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(10);

/// A request of the engine.
pub(crate) enum Callback {
    /// A call needs permission.
    Permission(Box<PermissionRequest>, oneshot::Sender<PermissionResult>),
    /// A hook runs.
    Hook(Box<HookInput>, oneshot::Sender<HookOutput>),
    /// A tool of the host is called.
    Tool(ToolCall, oneshot::Sender<ToolOutput>),
}

/// A call of a tool of the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) is_subagent: bool,
}

pub(crate) type CallbackSender = mpsc::UnboundedSender<Callback>;

/// Adds the callbacks to an agent.
pub(crate) fn add_callbacks(
    agent: Agent,
    subscriptions: &Subscriptions,
    tools: &[ExternalTool],
    sender: &CallbackSender,
) -> Agent {
    let permissions = sender.clone();
    let mut agent = agent.can_use_tool(move |request| {
        let answer = post(&permissions, |answer| Callback::Permission(Box::new(request), answer));
        async move { answer.await.unwrap_or_else(|_| PermissionResult::deny(SESSION_ENDED)) }
    });
    let limit = subscriptions.longest_timeout() + TIMEOUT_MARGIN;
    for event in subscriptions.engine_events() {
        let hooks = sender.clone();
        let hook = Hook::on(event, move |input| {
            let answer = post(&hooks, |answer| Callback::Hook(Box::new(input), answer));
            async move { answer.await.unwrap_or_default() }
        });
        agent = agent.hook(hook.timeout(limit));
    }
    if tools.is_empty() {
        return agent;
    }
    let server = tools.iter().fold(ToolServer::new(HOST_SERVER), |server, tool| {
        let (calls, name, checked) = (sender.clone(), tool.name.clone(), tool.clone());
        let call = move |arguments: Map<String, Value>, context: ToolContext| {
            let error = checked.check(&arguments).err();
            let id = context.tool_use_id().unwrap_or_default().to_owned();
            let call =
                ToolCall { id, name: name.clone(), arguments, is_subagent: context.agent_id().is_some() };
            let calls = calls.clone();
            async move {
                match error {
                    Some(error) => ToolOutput::failed(error),
                    None => post(&calls, |answer| Callback::Tool(call, answer))
                        .await
                        .unwrap_or_else(|_| ToolOutput::failed(SESSION_ENDED)),
                }
            }
        };
        server.tool(tool_with_schema(&tool.name, &tool.description, &tool.parameters, call).always_loaded())
    });
    agent.tool_server(server).allow_tool(format!("mcp__{HOST_SERVER}"))
}

/// Posts a request and returns the receiver of its answer, which fails if the session has ended.
fn post<T>(
    sender: &CallbackSender,
    callback: impl FnOnce(oneshot::Sender<T>) -> Callback,
) -> oneshot::Receiver<T> {
    let (answer, receiver) = oneshot::channel();
    // A session that has ended drops the request, and with it the sender of the answer.
    let _ = sender.send(callback(answer));
    receiver
}
