//! Lists the hooks of the session for the host.

use std::collections::BTreeMap;

use whimbrel_config::settings::managed_policy;
use whimbrel_tools::hooks::event_catalog::{describe_event, is_raised};
use whimbrel_tools::hooks::matcher_field;
use whimbrel_wire::control::{ControlResponse, HookEventCount, HookEventInfo, HookInfo, HooksListing};
use whimbrel_wire::hook::HookEvent;

use crate::event_loop::Session;

/// Lists the hooks of settings, plugins and the host. Those of agent definitions and skills belong to their agents.
pub(super) fn list_hooks(session: &Session, id: String) -> ControlResponse {
    let hooks = session.setup.hooks.set.list();
    let settings = session.setup.permissions.state.settings();
    let listing = HooksListing {
        events: count_by_event(&hooks),
        hooks,
        event_catalog: HookEvent::ALL.iter().map(|event| describe(*event)).collect(),
        policy: Some(managed_policy::describe_hook_policy(settings.layers())),
    };
    ControlResponse::success(id, &listing)
}

fn count_by_event(hooks: &[HookInfo]) -> Vec<HookEventCount> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    hooks.iter().for_each(|hook| *counts.entry(&hook.event).or_default() += 1);
    let counts = counts.into_iter();
    counts.map(|(event, hook_count)| HookEventCount { event: event.to_owned(), hook_count }).collect()
}

fn describe(event: HookEvent) -> HookEventInfo {
    HookEventInfo {
        name: event.to_string(),
        description: describe_event(event).into(),
        matcher_field: matcher_field(event).map(str::to_owned),
        supported: is_raised(event),
    }
}
