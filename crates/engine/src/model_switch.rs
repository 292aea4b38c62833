//! Switching the session's model on request. Hooks may deny the switch before and are notified after. Switches are
//! serialized.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::catalog::Catalog;
use whimbrel_os::clock;
use whimbrel_tools::hooks::{HookDispatcher, HookInputBuilder, MergedDecision, MergedOutput, join_reasons};
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision, PostModelSwitch, PreModelSwitch};

use crate::context::usage::ContextMeter;
use crate::fifo_lock::{FifoLock, FifoSlot};
use crate::runtime_settings::RuntimeSettingsWriter;

/// Lifetime of a provider's prompt cache, and its name on the wire.
const PROMPT_CACHE_TTL: (Duration, &str) = (Duration::from_secs(5 * 60), "5m");

/// Source of a switch request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwitchRequester {
    Host,
    /// The user, with `/model`.
    User,
    /// Settings given by the host. They run no hooks.
    Settings,
}

/// A requested model.
#[derive(Debug, Clone)]
pub(crate) struct SwitchRequest {
    pub(crate) requester: SwitchRequester,
    /// The model's full name.
    pub(crate) model: String,
    /// The name as it was requested.
    pub(crate) requested_name: Option<String>,
}

/// A switch that waits for earlier switches or for hooks.
pub struct ModelSwitch {
    request: SwitchRequest,
    /// Its position among the session's switches. State is read once the slot is acquired.
    queue_slot: FifoSlot,
    runtime_settings: RuntimeSettingsWriter,
    hooks: HookDispatcher,
    context_meter: ContextMeter,
    /// Price of a million cache-write tokens of the new model, if known.
    cache_write_price: Option<f64>,
}

/// Switches the model at once if no hook is registered and no switch is pending; otherwise returns the pending switch.
pub(crate) fn request_model_switch(
    request: SwitchRequest,
    pending: &mut FifoLock,
    runtime_settings: &RuntimeSettingsWriter,
    hooks: &HookDispatcher,
    context_meter: &ContextMeter,
    catalog: &Catalog,
) -> Option<ModelSwitch> {
    if pending.is_free() && !has_switch_hooks(hooks, request.requester) {
        set_model(runtime_settings, &request.model);
        return None;
    }
    Some(ModelSwitch {
        queue_slot: pending.enqueue(),
        runtime_settings: runtime_settings.clone(),
        hooks: hooks.clone(),
        context_meter: context_meter.clone(),
        cache_write_price: catalog.lookup(&request.model).map(|model| model.prices.cache_write_5m),
        request,
    })
}

impl ModelSwitch {
    /// The model after the switch.
    pub(crate) fn model(&self) -> &str {
        &self.request.model
    }

    /// Switches the model once earlier switches are done, unless a hook denies it; the error is the reason.
    pub(crate) async fn apply(mut self, cancel: &CancellationToken) -> Result<(), String> {
        let acquired = cancel.run_until_cancelled(self.queue_slot.acquire()).await;
        let from = self.runtime_settings.borrow().model.clone();
        if acquired.is_none() {
            return Err(rejection_text(&from, INTERRUPTED_REASON));
        }
        if from == self.request.model || !has_switch_hooks(&self.hooks, self.request.requester) {
            set_model(&self.runtime_settings, &self.request.model);
            return Ok(());
        }
        let before = self.pre_switch_input(from);
        let build_input = |input: &HookInputBuilder| input.build(before.clone());
        let output = self.hooks.dispatch(HookEvent::PreModelSwitch, build_input, cancel).await;
        if let Some(reason) = find_hook_denial(&output) {
            return Err(rejection_text(&before.from_model, &reason));
        }
        set_model(&self.runtime_settings, &before.to_model);
        let build_input = |input: &HookInputBuilder| input.build(post_switch_input(before.clone()));
        let output = self.hooks.dispatch(HookEvent::PostModelSwitch, build_input, cancel).await;
        self.hooks.defer_contexts(HookEvent::PostModelSwitch, output.contexts);
        Ok(())
    }

    /// Input of the `PreModelSwitch` hooks.
    fn pre_switch_input(&self, from_model: String) -> PreModelSwitch {
        let context_tokens = self.context_meter.counted_tokens().unwrap_or_default();
        PreModelSwitch {
            from_model,
            to_model: self.request.model.clone(),
            requested_model: self.request.requested_name.clone(),
            source: match self.request.requester {
                SwitchRequester::Host | SwitchRequester::Settings => "sdk".to_owned(),
                SwitchRequester::User => "command".to_owned(),
            },
            context_tokens,
            prompt_cache_warm: self
                .context_meter
                .last_reply_at()
                .is_some_and(|at| clock::monotonic() - at < PROMPT_CACHE_TTL.0),
            cache_ttl: PROMPT_CACHE_TTL.1.to_owned(),
            // Prices are per million tokens.
            estimated_cache_write_usd: self.cache_write_price.unwrap_or_default() * context_tokens as f64
                / 1e6,
            pricing: if self.cache_write_price.is_some() { "catalog" } else { "default" }.to_owned(),
        }
    }
}

/// Returns whether hooks run for a switch by this requester.
fn has_switch_hooks(hooks: &HookDispatcher, requester: SwitchRequester) -> bool {
    let events = [HookEvent::PreModelSwitch, HookEvent::PostModelSwitch];
    requester != SwitchRequester::Settings && events.iter().any(|event| hooks.has_hooks(*event))
}

/// Sets the model of the session.
fn set_model(runtime_settings: &RuntimeSettingsWriter, model: &str) {
    runtime_settings.send_modify(|runtime_settings| model.clone_into(&mut runtime_settings.model));
}

fn rejection_text(model: &str, reason: &str) -> String {
    format!("The model is still {model}: {reason}")
}

const INTERRUPTED_REASON: &str = "the change was interrupted before the hooks finished.";

/// The reason why hooks deny the switch, if they do. `ask` counts as deny: the requester has already decided.
fn find_hook_denial(output: &MergedOutput) -> Option<String> {
    if output.interrupted {
        return Some(INTERRUPTED_REASON.into());
    }
    let MergedDecision { decision, reasons } = output.decision.as_ref()?;
    let reason = match join_reasons(reasons) {
        text if text.is_empty() => "it gave no reason.".to_owned(),
        text => text,
    };
    match decision {
        HookPermissionDecision::Allow => None,
        HookPermissionDecision::Ask | HookPermissionDecision::Defer | HookPermissionDecision::Deny => {
            Some(format!("a PreModelSwitch hook denied the change: {reason}"))
        }
    }
}

fn post_switch_input(before: PreModelSwitch) -> PostModelSwitch {
    PostModelSwitch {
        from_model: before.from_model,
        to_model: before.to_model,
        requested_model: before.requested_model,
        source: before.source,
        context_tokens: before.context_tokens,
        prompt_cache_warm: before.prompt_cache_warm,
        cache_ttl: before.cache_ttl,
        estimated_cache_write_usd: before.estimated_cache_write_usd,
        pricing: before.pricing,
    }
}
