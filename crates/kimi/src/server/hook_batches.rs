//! Hooks that run in the client: all that match an event run at once, and one that blocks blocks.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;
use whimbrel::Hook;
use whimbrel::wire::hook::{HookInput, HookOutput};

use super::{Background, Server};
use crate::client_requests::ClientRequest;
use crate::hooks::{HookCall, to_hook_call};
use crate::ids::new_short_id;
use crate::json_rpc::Outgoing;
use crate::translate::Event;

/// The hooks of events that have no outcome yet.
#[derive(Default)]
pub(super) struct HookBatches {
    open: HashMap<u64, Batch>,
    last_id: u64,
}

struct Batch {
    call: HookCall,
    started: Instant,
    /// Requests without an answer.
    pending: usize,
    /// Reason of the first hook that blocked.
    blocked: Option<String>,
    /// `None` if the engine does not wait.
    answer: Option<oneshot::Sender<HookOutput>>,
}

impl Server {
    /// Runs the hooks of an event.
    pub(super) async fn run_hooks(&mut self, input: &HookInput, answer: oneshot::Sender<HookOutput>) {
        let call = to_hook_call(&self.setup.session_id, input);
        let is_repeated = call.as_ref().is_some_and(|call| call.input_data["stop_hook_active"] == true);
        let Some(call) = call.filter(|_| !is_repeated) else {
            return drop(answer.send(HookOutput::default()));
        };
        let subscriptions = self.client.subscriptions.matching(&call);
        if subscriptions.is_empty() {
            let is_prompt = call.event == "UserPromptSubmit";
            drop(answer.send(HookOutput::default()));
            if is_prompt {
                self.begin_turn_events().await;
            }
            return;
        }
        let answer = match call.is_waited_for {
            true => Some(answer),
            false => {
                drop(answer.send(HookOutput::default()));
                None
            }
        };
        let triggered =
            json!({"event": call.event, "target": call.target, "hook_count": subscriptions.len()});
        self.emit(Event::new("HookTriggered", triggered)).await;
        self.hooks.last_id += 1;
        let batch = self.hooks.last_id;
        for subscription in &subscriptions {
            let id = new_short_id();
            let payload = json!({
                "id": id,
                "subscription_id": subscription.id,
                "event": call.event,
                "target": call.target,
                "input_data": call.input_data,
            });
            self.requests.insert(id.clone(), ClientRequest::Hook { batch });
            self.send(Outgoing::Request { id: id.clone(), kind: "HookRequest", payload }).await;
            let timeout = subscription.timeout;
            self.background.push(Box::pin(async move {
                tokio::time::sleep(timeout).await;
                Background::HookTimeout { request: id }
            }));
        }
        let pending = subscriptions.len();
        let batch_entry = Batch { call, started: Instant::now(), pending, blocked: None, answer };
        self.hooks.open.insert(batch, batch_entry);
    }

    /// A hook that does not answer in time allows.
    pub(super) async fn handle_hook_timeout(&mut self, request: &str) {
        if let Some(ClientRequest::Hook { batch }) = self.requests.take(request) {
            self.finish_hook(batch, None).await;
        }
    }

    /// The answer of one hook. An error allows.
    pub(super) async fn handle_hook_answer(&mut self, batch: u64, result: Result<Value, String>) {
        let blocked = result.ok().filter(|answer| answer["action"] == "block").map(|answer| {
            let reason = answer["reason"].as_str().filter(|reason| !reason.is_empty());
            reason.unwrap_or("A hook blocked this.").to_owned()
        });
        self.finish_hook(batch, blocked).await;
    }

    async fn finish_hook(&mut self, id: u64, blocked: Option<String>) {
        let Some(batch) = self.hooks.open.get_mut(&id) else { return };
        batch.pending -= 1;
        batch.blocked = batch.blocked.take().or(blocked);
        if batch.pending > 0 {
            return;
        }
        let Some(batch) = self.hooks.open.remove(&id) else { return };
        let elapsed = u64::try_from(batch.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let resolved = json!({
            "event": batch.call.event,
            "target": batch.call.target,
            "action": if batch.blocked.is_some() { "block" } else { "allow" },
            "reason": batch.blocked.as_deref().unwrap_or_default(),
            "duration_ms": elapsed,
        });
        self.emit(Event::new("HookResolved", resolved)).await;
        // A turn that was cancelled waits no longer; its hooks do not concern the next one.
        let Some(answer) = batch.answer.filter(|answer| !answer.is_closed()) else { return };
        match batch.call.event {
            "UserPromptSubmit" => {
                if let Some(turn) = &mut self.turn {
                    turn.blocked.clone_from(&batch.blocked);
                }
                self.begin_turn_events().await;
            }
            // The reason becomes a prompt, and steps count from 1 again.
            "Stop" if batch.blocked.is_some() => self.translator.restart_steps(),
            _ => {}
        }
        let output = batch.blocked.map_or_else(HookOutput::default, Hook::block);
        // The turn may have been cancelled meanwhile.
        let _ = answer.send(output);
    }
}
