//! Callbacks of the host, as async closures.

use std::sync::Arc;

use futures::future::BoxFuture;
use whimbrel_wire::control::{CanUseTool, Elicitation, ElicitationReply};
use whimbrel_wire::permission::PermissionResult;

use crate::hook::HookList;
use crate::tools::ToolServers;

/// A permission request: the tool, its input, and the rules that the engine suggests.
pub type PermissionAsked = CanUseTool;

/// The answer to a permission request.
pub type ToolPermission = PermissionResult;

/// Callbacks that answer requests of the engine.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) can_use_tool:
        Option<Arc<dyn Fn(PermissionAsked) -> BoxFuture<'static, ToolPermission> + Send + Sync>>,
    pub(crate) elicitation:
        Option<Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync>>,
    pub(crate) hooks: HookList,
    pub(crate) tool_servers: ToolServers,
}

impl Callbacks {
    pub(crate) fn set_can_use_tool<F, A>(&mut self, callback: F)
    where
        F: Fn(PermissionAsked) -> A + Send + Sync + 'static,
        A: Future<Output = ToolPermission> + Send + 'static,
    {
        self.can_use_tool = Some(Arc::new(move |request| Box::pin(callback(request))));
    }

    pub(crate) fn set_elicitation<F, A>(&mut self, callback: F)
    where
        F: Fn(Elicitation) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |request| Box::pin(callback(request))));
    }
}

/// Adds the input to an allow that has none, because some engines reject it otherwise.
pub(crate) fn with_input(
    mut answer: ToolPermission,
    input: serde_json::Map<String, serde_json::Value>,
) -> ToolPermission {
    if let ToolPermission::Allow { updated_input: updated @ None, .. } = &mut answer {
        *updated = Some(input);
    }
    answer
}
