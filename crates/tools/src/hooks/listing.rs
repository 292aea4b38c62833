//! Lists hooks for the host.

use whimbrel_wire::control::HookInfo;

use super::failure_policy::FailurePolicy;
use super::handler::{HookAction, display_url};
use super::hook_set::{HookSet, RegisteredHook};
use super::origin::HookSource;

impl HookSet {
    /// The hooks in the order of their registration.
    pub fn list(&self) -> Vec<HookInfo> {
        self.registered().iter().map(describe_hook).collect()
    }
}

fn describe_hook(hook: &RegisteredHook) -> HookInfo {
    let RegisteredHook { event, filter_texts, has_run, handler, origin, .. } = hook;
    let plugin_name = match &origin.source {
        HookSource::Plugin { name } => Some(name.clone()),
        HookSource::Settings(_) | HookSource::Host | HookSource::FrontMatter => None,
    };
    let info = HookInfo {
        event: event.to_string(),
        matcher: filter_texts.matcher.clone(),
        source: origin.source.name().into(),
        plugin_name,
        origin: origin.text.clone(),
        timeout: handler.timeout.as_secs_f64(),
        condition: filter_texts.condition.clone(),
        on_failure: (handler.failure == FailurePolicy::Block).then(|| "block".into()),
        once: has_run.is_some().then_some(true),
        ..HookInfo::default()
    };
    match &handler.action {
        HookAction::Callback(id) => {
            HookInfo { kind: "callback".into(), callback_id: Some(id.to_string()), ..info }
        }
        HookAction::Command(command) => {
            HookInfo { kind: "command".into(), command: Some(command.to_string()), ..info }
        }
        HookAction::BackgroundCommand(command) => HookInfo {
            kind: "command".into(),
            command: Some(command.to_string()),
            background: Some(true),
            ..info
        },
        HookAction::Http(hook) => {
            HookInfo { kind: "http".into(), url: Some(display_url(&hook.url).to_owned()), ..info }
        }
        HookAction::Unavailable(reason) => {
            HookInfo { kind: "unavailable".into(), error: Some(reason.to_string()), ..info }
        }
    }
}
