//! Another model for a session, on request: hooks may object before, and hear of it after. One switch is made after the
//! other.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision, PostModelSwitch, PreModelSwitch};

use crate::clock;
use crate::context::usage::Gauge;
use crate::hooks::{Folded, Lookout, Ruling, Scene, joined};
use crate::knobs::KnobsWriter;
use crate::one_by_one::Place;

/// How long a provider remembers a conversation, and what that is called.
const REMEMBERED: (Duration, &str) = (Duration::from_secs(5 * 60), "5m");

/// Who wants another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The host.
    Host,
    /// The person, by `/model`.
    Person,
    /// Settings that the host lays over all others. Hooks are not asked about settings.
    Settings,
}

/// A model that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// Who wants it.
    pub(crate) asker: Asker,
    /// Its full name.
    pub(crate) to: String,
    /// What it was called by whoever wants it.
    pub(crate) requested: Option<String>,
}

/// A switch that is wanted and has to wait, for those before it or for hooks.
pub struct ModelSwitch {
    pub(crate) wish: Wish,
    /// Its place among the switches of the session. How things stand is looked at when its turn has come.
    pub(crate) place: Place,
    pub(crate) knobs: KnobsWriter,
    pub(crate) lookout: Lookout,
    pub(crate) gauge: Gauge,
    /// What a million tokens cost that the new model has to remember, if that is known.
    pub(crate) price: Option<f64>,
}

impl ModelSwitch {
    /// The model from now on.
    pub(crate) fn to(&self) -> &str {
        &self.wish.to
    }

    /// Makes the switch when its turn has come, unless a hook objects: the error says why.
    pub(crate) async fn make(mut self, cancel: &CancellationToken) -> Result<(), String> {
        let came = cancel.run_until_cancelled(self.place.comes_first()).await;
        let from = self.knobs.borrow().model.clone();
        if came.is_none() {
            return Err(stays(&from, INTERRUPTED));
        }
        if from == self.wish.to || !is_heard(&self.lookout, self.wish.asker) {
            use_model(&self.knobs, &self.wish.to);
            return Ok(());
        }
        let before = self.before(from);
        let told = |scene: &Scene| scene.of(before.clone());
        let said = self.lookout.raise(HookEvent::PreModelSwitch, told, cancel).await;
        if let Some(why) = objection(&said) {
            return Err(stays(&before.from_model, &why));
        }
        use_model(&self.knobs, &before.to_model);
        let told = |scene: &Scene| scene.of(after(before.clone()));
        let said = self.lookout.raise(HookEvent::PostModelSwitch, told, cancel).await;
        self.lookout.keep_for_later(HookEvent::PostModelSwitch, said.contexts);
        Ok(())
    }

    /// What hooks are told.
    fn before(&self, from_model: String) -> PreModelSwitch {
        let context_tokens = self.gauge.counted().unwrap_or_default();
        PreModelSwitch {
            from_model,
            to_model: self.wish.to.clone(),
            requested_model: self.wish.requested.clone(),
            source: match self.wish.asker {
                Asker::Host | Asker::Settings => "sdk".to_owned(),
                Asker::Person => "command".to_owned(),
            },
            context_tokens,
            prompt_cache_warm: self.gauge.heard().is_some_and(|at| clock::monotonic() - at < REMEMBERED.0),
            cache_ttl: REMEMBERED.1.to_owned(),
            // Prices are for a million.
            estimated_cache_write_usd: self.price.unwrap_or_default() * context_tokens as f64 / 1e6,
            pricing: if self.price.is_some() { "catalog" } else { "default" }.to_owned(),
        }
    }
}

/// Whether hooks hear of what somebody wants.
pub(crate) fn is_heard(lookout: &Lookout, asker: Asker) -> bool {
    let events = [HookEvent::PreModelSwitch, HookEvent::PostModelSwitch];
    asker != Asker::Settings && events.iter().any(|event| lookout.listens(*event))
}

/// Has another model answer from now on.
pub(crate) fn use_model(knobs: &KnobsWriter, model: &str) {
    knobs.send_modify(|knobs| model.clone_into(&mut knobs.model));
}

fn stays(model: &str, why: &str) -> String {
    format!("The model stays {model}: {why}")
}

const INTERRUPTED: &str = "it was interrupted before the hooks had agreed.";

/// Why the switch is not made, if hooks say so. Nobody is asked: whoever wants the switch has been asked already.
fn objection(said: &Folded) -> Option<String> {
    if said.interrupted {
        return Some(INTERRUPTED.into());
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
