//! The hooks of a session: callbacks from `initialize`, commands and HTTP endpoints from settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use whimbrel_config::settings::hooks::HttpHookConfig;
use whimbrel_wire::control::{HookMatcher, Initialize, OnFailure};
use whimbrel_wire::hook::{HookEvent, HookInput};
use whimbrel_wire::tool_names::RENAMED_TOOLS;

use super::condition::HookCondition;
use super::event_table;
use super::event_table::{CALLBACK_TIMEOUT, MAX_TIMEOUT, parse_timeout};
use super::failure_policy::FailurePolicy;
use super::handler::{HookAction, HookHandler};
use super::http;
use super::matcher::{Matcher, match_target};
use crate::workspace::Workspace;

const HOST_ORIGIN: &str = "the host (initialize)";

/// Command hook as configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandHook {
    pub command: String,
    /// Timeout in seconds. Without a positive number the event's default applies.
    pub timeout: Option<f64>,
    /// Runs in the background (`async`).
    pub background: bool,
    /// Effect of a failure; by default the event goes on.
    pub on_failure: Option<OnFailure>,
    /// Permission rule that the call must match (`if`).
    pub condition: Option<String>,
    pub once: bool,
    /// Environment variables added to those of the session.
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default)]
pub struct HookSet {
    hooks: Vec<RegisteredHook>,
    /// One bit per event that has a hook.
    events: u64,
    warnings: Vec<String>,
}

/// Hook with its event and filters.
#[derive(Debug, Clone)]
struct RegisteredHook {
    event: HookEvent,
    matcher: Matcher,
    condition: Option<HookCondition>,
    /// For hooks that run only once: set when it has run. Clones of the hook share it.
    has_run: Option<Arc<AtomicBool>>,
    handler: HookHandler,
}

impl HookSet {
    /// Reads the callbacks of a host.
    pub fn from_initialize(initialize: &Initialize) -> Result<Self, HookError> {
        let mut set = Self::default();
        for (event, groups) in initialize.hooks.iter().flatten() {
            for group in groups {
                set.add_callbacks(event, group)?;
            }
        }
        Ok(set)
    }

    /// Adds commands that share a matcher. `origin` names their source in errors, e.g. `the user's settings`.
    pub fn add_commands(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        hooks: Vec<CommandHook>,
        origin: &str,
    ) -> Result<(), HookError> {
        let Some((event, matcher)) = self.parse_entry(event, matcher, origin)? else { return Ok(()) };
        for hook in hooks {
            let CommandHook { command, timeout, background, on_failure, condition, once, environment } = hook;
            let condition = self.parse_condition(event, condition.as_deref(), origin)?;
            let has_run = once.then(Arc::default);
            let command = command.into();
            let action = if background {
                HookAction::BackgroundCommand(command)
            } else {
                HookAction::Command(command)
            };
            let limit =
                parse_timeout(event, timeout).unwrap_or_else(|| event_table::row(event).default_timeout);
            let failure = parse_on_failure(event, on_failure.as_ref(), origin)?;
            let handler = HookHandler { action, timeout: limit, failure, environment: Arc::new(environment) };
            self.push(RegisteredHook { event, matcher: matcher.clone(), condition, has_run, handler });
        }
        Ok(())
    }

    pub fn add_http(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        hook: &HttpHookConfig,
        origin: &str,
    ) -> Result<(), HookError> {
        let Some((event, matcher)) = self.parse_entry(event, matcher, origin)? else { return Ok(()) };
        if let Some(reason) = http::validation_error(hook) {
            return Err(HookError::BadAddress { event, origin: origin.into(), reason });
        }
        let handler = HookHandler {
            timeout: parse_timeout(event, hook.timeout)
                .unwrap_or_else(|| event_table::row(event).default_timeout),
            failure: parse_on_failure(event, hook.on_failure.as_ref(), origin)?,
            action: HookAction::Http(Arc::new(hook.clone())),
            environment: Arc::default(),
        };
        let condition = self.parse_condition(event, hook.condition.as_deref(), origin)?;
        let has_run = hook.once.then(Arc::default);
        self.push(RegisteredHook { event, matcher, condition, has_run, handler });
        Ok(())
    }

    /// Adds a hook with `onFailure: "block"` that cannot run: it always fails and blocks.
    pub fn add_unavailable(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        reason: &str,
        origin: &str,
    ) -> Result<(), HookError> {
        let Some((event, matcher)) = self.parse_entry(event, matcher, origin)? else { return Ok(()) };
        let handler = HookHandler {
            action: HookAction::Unavailable(format!("{origin}: {reason}").into()),
            timeout: MAX_TIMEOUT,
            failure: FailurePolicy::Block,
            environment: Arc::default(),
        };
        self.push(RegisteredHook { event, matcher, condition: None, has_run: None, handler });
        Ok(())
    }

    /// Appends the hooks of another set.
    pub fn append(&mut self, other: Self) {
        self.events |= other.events;
        self.hooks.extend(other.hooks);
        self.warnings.extend(other.warnings);
    }

    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.events & event_bit(event) != 0
    }

    /// Returns true if a hook may answer an interactive tool: a PermissionRequest hook, or a PreToolUse hook that names
    /// the tool. A PreToolUse hook for all tools is no sign of that.
    pub fn can_answer_tool(&self, tool: &str) -> bool {
        let can_answer = |hook: &RegisteredHook| match hook.event {
            HookEvent::PermissionRequest => hook.matcher.matches(Some(tool)),
            HookEvent::PreToolUse => hook.matcher.is_specific_to(tool),
            _ => false,
        };
        self.hooks.iter().any(can_answer)
    }

    /// Warnings, e.g. about unknown events.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Handlers to run for an input, in registration order and without duplicates. Marks hooks that run only once as
    /// run.
    pub(super) fn handlers(&self, input: &HookInput, workspace: &Workspace) -> Vec<HookHandler> {
        let HookInput { base, event: input } = input;
        let Some(event) = input.event() else { return Vec::new() };
        // An agent may have another working directory than the session.
        let cwd = if base.cwd.is_empty() { workspace.cwd() } else { base.cwd.clone().into() };
        let target = match_target(input);
        let mut selected: Vec<HookHandler> = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.event == event) {
            if !hook.handler.accepts(input)
                || !hook.matcher.matches(target.as_deref())
                || hook
                    .condition
                    .as_ref()
                    .is_some_and(|condition| !condition.matches_event(input, &cwd, workspace))
                || hook.has_run.as_ref().is_some_and(|has_run| has_run.swap(true, Ordering::Relaxed))
            {
                continue;
            }
            match selected.iter_mut().find(|handler| handler.is_same(&hook.handler)) {
                Some(duplicate) => duplicate.merge(&hook.handler),
                None => selected.push(hook.handler.clone()),
            }
        }
        selected
    }

    fn add_callbacks(&mut self, event: &str, group: &HookMatcher) -> Result<(), HookError> {
        let entry = self.parse_entry(event, group.matcher.as_deref(), HOST_ORIGIN)?;
        let Some((event, matcher)) = entry else { return Ok(()) };
        let failure = parse_on_failure(event, group.on_failure.as_ref(), HOST_ORIGIN)?;
        for field in group.unknown.keys() {
            self.warnings.push(format!(
                "Ignored the unknown field `{field}` of a {event} hook from {HOST_ORIGIN}. Check the spelling."
            ));
        }
        for id in &group.hook_callback_ids {
            let handler = HookHandler {
                action: HookAction::Callback(id.as_str().into()),
                timeout: parse_timeout(event, group.timeout).unwrap_or(CALLBACK_TIMEOUT),
                failure,
                environment: Arc::default(),
            };
            let (condition, has_run) = (None, None);
            self.push(RegisteredHook { event, matcher: matcher.clone(), condition, has_run, handler });
        }
        Ok(())
    }

    /// Parses event and matcher. An unknown event only gives a warning, so that newer hosts work.
    fn parse_entry(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        origin: &str,
    ) -> Result<Option<(HookEvent, Matcher)>, HookError> {
        let Ok(event) = event.parse::<HookEvent>() else {
            self.warnings.push(format!(
                "Unknown hook event `{event}`: its hooks from {origin} never run. Check the spelling."
            ));
            return Ok(None);
        };
        let matcher = Matcher::parse(event, matcher).map_err(|reason| HookError::BadMatcher {
            event,
            origin: origin.into(),
            matcher: matcher.unwrap_or_default().into(),
            reason,
        })?;
        Ok(Some((event, with_renamed_tools(event, matcher))))
    }

    /// Parses a condition. Warns if the event has no tool calls, since the hook would never run.
    fn parse_condition(
        &mut self,
        event: HookEvent,
        text: Option<&str>,
        origin: &str,
    ) -> Result<Option<HookCondition>, HookError> {
        let Some(text) = text else { return Ok(None) };
        if !HookCondition::is_supported(event) {
            self.warnings.push(format!(
                "A {event} hook from {origin} has an \"if\", which applies to tool calls only, so the hook never runs."
            ));
        }
        let invalid = |reason| HookError::BadCondition { event, origin: origin.into(), reason };
        HookCondition::parse(text).map(Some).map_err(invalid)
    }

    fn push(&mut self, hook: RegisteredHook) {
        self.events |= event_bit(hook.event);
        self.hooks.push(hook);
    }
}

/// Parses `onFailure`. An unknown value is an error, because ignoring it could disable a guard.
fn parse_on_failure(
    event: HookEvent,
    on_failure: Option<&OnFailure>,
    origin: &str,
) -> Result<FailurePolicy, HookError> {
    match on_failure {
        None => Ok(FailurePolicy::Report),
        Some(OnFailure::Block) => Ok(FailurePolicy::Block),
        Some(OnFailure::Other(word)) => {
            Err(HookError::BadOnFailure { event, origin: origin.into(), word: word.clone() })
        }
    }
}

fn event_bit(event: HookEvent) -> u64 {
    1 << (event as u32)
}

/// Adds the current names of tools that are listed by an older name.
fn with_renamed_tools(event: HookEvent, matcher: Matcher) -> Matcher {
    use HookEvent as On;
    let Matcher::Names(mut names) = matcher else { return matcher };
    let is_about_tools = matches!(
        event,
        On::PreToolUse
            | On::PostToolUse
            | On::PostToolUseFailure
            | On::PermissionRequest
            | On::PermissionDenied
    );
    if !is_about_tools {
        return Matcher::Names(names);
    }
    for (older, current) in RENAMED_TOOLS {
        if names.iter().any(|name| name == older) && !names.iter().any(|name| name == current) {
            names.push((*current).to_owned());
        }
    }
    Matcher::Names(names)
}

/// Invalid hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The matcher is not a valid regular expression.
    #[error(
        "the matcher `{matcher}` of a {event} hook from {origin} is not a valid regular expression: {reason}. \
         Use names such as `Edit|Write`, a valid expression, or `*` for everything"
    )]
    BadMatcher { event: HookEvent, origin: String, matcher: String, reason: String },
    /// The `if` condition is not a valid rule.
    #[error("\"if\" of a {event} hook from {origin}: {reason}")]
    BadCondition { event: HookEvent, origin: String, reason: String },
    /// The URL or a header name is not valid.
    #[error("a {event} hook from {origin}: {reason}")]
    BadAddress { event: HookEvent, origin: String, reason: String },
    /// `onFailure` has an unknown value.
    #[error(
        "onFailure of a {event} hook from {origin} is {word:?}. The only valid value is \"block\"; omit it otherwise"
    )]
    BadOnFailure { event: HookEvent, origin: String, word: String },
}
