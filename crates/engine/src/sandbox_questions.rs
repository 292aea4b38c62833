//! Asks the host whether confined commands may reach a host that is on no list.

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_sandbox::proxy::{Approval, HostApproval};
use whimbrel_transport::host_requests::WithdrawalReason;
use whimbrel_wire::control::CanUseTool;
use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionResult, PermissionUpdate, RuleValue,
};

use crate::permission_checker::{PermissionChecker, PermissionRequester};

/// Name in requests: there is no such tool.
const TOOL_NAME: &str = "SandboxNetworkAccess";

/// Answers the questions of the proxy.
pub(crate) struct SandboxQuestions {
    checker: PermissionChecker,
    /// Fires when the session ends.
    stop: CancellationToken,
}

impl SandboxQuestions {
    pub(crate) fn new(checker: PermissionChecker, stop: CancellationToken) -> Self {
        Self { checker, stop }
    }

    async fn ask(&self, host: &str, port: u16) -> Approval {
        let request = build_request(host, port);
        let waiting = match self.checker.requester {
            PermissionRequester::Host(_) => Some(self.checker.state_notifier.requires_action().await),
            PermissionRequester::Tool(..) | PermissionRequester::Unavailable => None,
        };
        let answer = self.checker.requester.send(request, WithdrawalReason::default(), &self.stop).await;
        if let Some(waiting) = waiting {
            waiting.finish().await;
        }
        match answer {
            Ok(PermissionResult::Allow { updated_permissions, invalid_updates, .. }) => {
                self.checker.apply_updates(updated_permissions.unwrap_or_default(), &invalid_updates).await;
                Approval::Allow
            }
            Ok(PermissionResult::Deny { .. }) | Err(_) => Approval::Refuse,
        }
    }
}

#[async_trait]
impl HostApproval for SandboxQuestions {
    async fn approve(&self, host: &str, port: u16) -> Approval {
        match self.checker.permissions.mode() {
            // Not remembered: the mode may change.
            PermissionMode::BypassPermissions => Approval::AllowOnce,
            PermissionMode::DontAsk => Approval::Refuse,
            _ => self.ask(host, port).await,
        }
    }
}

fn build_request(host: &str, port: u16) -> CanUseTool {
    let rule = RuleValue { tool_name: "WebFetch".into(), rule_content: Some(format!("domain:{host}")) };
    let input = json!({"host": host, "port": port});
    CanUseTool {
        tool_name: TOOL_NAME.into(),
        input: input.as_object().cloned().unwrap_or_default(),
        tool_use_id: ids::new_uuid(),
        description: Some(format!("A command in the sandbox wants to connect to {host}:{port}.")),
        display_name: Some(TOOL_NAME.into()),
        permission_suggestions: Some(vec![PermissionUpdate::AddRules {
            rules: vec![rule],
            behavior: PermissionBehavior::Allow,
            destination: Destination::Session,
        }]),
        ..CanUseTool::default()
    }
}
