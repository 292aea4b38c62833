//! Another model for a session, on request: hooks may object before, and hear of it after.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision, PostModelSwitch, PreModelSwitch};

use crate::clock;
use crate::context::usage::Gauge;
use crate::engine::Engine;
use crate::hooks::{Folded, Lookout, Ruling, Scene, joined};
use crate::knobs::KnobsWriter;

/// How long a provider remembers a conversation, and what that is called.
const REMEMBERED: (Duration, &str) = (Duration::from_secs(5 * 60), "5m");

/// Who wants another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The host.
    Host,
    /// The person, by `/model`.
    Person,
}

/// A switch that is wanted.
pub struct ModelSwitch {
    knobs: KnobsWriter,
    lookout: Lookout,
    before: PreModelSwitch,
}

impl ModelSwitch {
    /// The switch to a model that was asked for by this name. None if no hook needs to hear of it: then it is made at
    /// once.
    pub(crate) fn new(
        (knobs, lookout): (&KnobsWriter, &Lookout),
        (engine, gauge): (&Engine, &Gauge),
        asker: Asker,
        to: &str,
        requested: Option<&str>,
    ) -> Option<Self> {
        let from = knobs.borrow().model.clone();
        let is_heard = [HookEvent::PreModelSwitch, HookEvent::PostModelSwitch]
            .iter()
            .any(|event| lookout.listens(*event));
        if from == to || !is_heard {
            knobs.send_modify(|knobs| to.clone_into(&mut knobs.model));
            return None;
        }
        let context_tokens = gauge.counted().unwrap_or_default();
        let price = engine.catalog().lookup(to).map(|model| model.prices.cache_write_5m);
        let before = PreModelSwitch {
            from_model: from,
            to_model: to.to_owned(),
            requested_model: requested.map(str::to_owned),
            source: match asker {
                Asker::Host => "sdk".to_owned(),
                Asker::Person => "command".to_owned(),
            },
            context_tokens,
            prompt_cache_warm: gauge.heard().is_some_and(|at| clock::monotonic() - at < REMEMBERED.0),
            cache_ttl: REMEMBERED.1.to_owned(),
            // Prices are for a million.
            estimated_cache_write_usd: price.unwrap_or_default() * context_tokens as f64 / 1e6,
            pricing: if price.is_some() { "catalog" } else { "default" }.to_owned(),
        };
        Some(Self { knobs: knobs.clone(), lookout: lookout.clone(), before })
    }

    /// The model from now on.
    pub(crate) fn to(&self) -> &str {
        &self.before.to_model
    }

    /// Makes the switch, unless a hook objects: the error says why.
    pub(crate) async fn make(self, cancel: &CancellationToken) -> Result<(), String> {
        let Self { knobs, lookout, before } = self;
        let told = |scene: &Scene| scene.of(before.clone());
        let said = lookout.raise(HookEvent::PreModelSwitch, told, cancel).await;
        if let Some(why) = objection(&said) {
            return Err(format!("The model stays {}: {why}", before.from_model));
        }
        knobs.send_modify(|knobs| knobs.model.clone_from(&before.to_model));
        let told = |scene: &Scene| scene.of(after(before.clone()));
        let said = lookout.raise(HookEvent::PostModelSwitch, told, cancel).await;
        lookout.keep_for_later(HookEvent::PostModelSwitch, said.contexts);
        Ok(())
    }
}

/// Why the switch is not made, if hooks say so. Nobody is asked: whoever wants the switch has been asked already.
fn objection(said: &Folded) -> Option<String> {
    if said.interrupted {
        return Some("it was interrupted before the hooks had agreed.".into());
    }
    let Ruling { decision, reasons } = said.ruling.as_ref()?;
    let reason = match joined(reasons) {
        text if text.is_empty() => "it gave no reason.".to_owned(),
        text => text,
    };
    match decision {
        HookPermissionDecision::Allow => None,
        HookPermissionDecision::Ask | HookPermissionDecision::Defer | HookPermissionDecision::Deny => {
            Some(format!("a PreModelSwitch hook does not agree: {reason}"))
        }
    }
}

fn after(before: PreModelSwitch) -> PostModelSwitch {
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
