//! The hooks of a session: callbacks from `initialize`, commands and HTTP endpoints from settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
use super::origin::{HookOrigin, HookSource};
use crate::workspace::Workspace;

const HOST_ORIGIN: &str = "the host (initialize)";

/// Matcher and condition as written.
#[derive(Debug, Clone, Default)]
pub(super) struct FilterTexts {
    pub(super) matcher: Option<String>,
    pub(super) condition: Option<String>,
}

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
pub(super) struct RegisteredHook {
    pub(super) event: HookEvent,
    matcher: Matcher,
    condition: Option<HookCondition>,
    pub(super) filter_texts: FilterTexts,
    /// For hooks that run only once: set when it has run. Clones of the hook share it.
    pub(super) has_run: Option<Arc<AtomicBool>>,
    pub(super) handler: HookHandler,
    pub(super) origin: Arc<HookOrigin>,
}

/// Event and matcher that hooks share.
struct HookEntry {
    event: HookEvent,
    matcher: Matcher,
    /// Matcher as written; `None` if it matches everything.
    matcher_text: Option<String>,
}

impl HookEntry {
    /// Configured timeout, or the default of the event.
    fn parse_timeout(&self, seconds: Option<f64>) -> Duration {
        parse_timeout(self.event, seconds).unwrap_or_else(|| event_table::row(self.event).default_timeout)
    }
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

    /// Adds commands that share a matcher.
    pub fn add_commands(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        hooks: Vec<CommandHook>,
        origin: &HookOrigin,
    ) -> Result<(), HookError> {
        let Some(entry) = self.parse_entry(event, matcher, &origin.text)? else { return Ok(()) };
        for hook in hooks {
            let CommandHook { command, timeout, background, on_failure, condition, once, environment } = hook;
            let command = command.into();
            let action = if background {
                HookAction::BackgroundCommand(command)
            } else {
                HookAction::Command(command)
            };
            let handler = HookHandler {
                action,
                timeout: entry.parse_timeout(timeout),
                failure: parse_on_failure(entry.event, on_failure.as_ref(), &origin.text)?,
                environment: Arc::new(environment),
            };
            let hook = self.filter(&entry, condition.as_deref(), once, handler, origin)?;
            self.push(hook);
        }
        Ok(())
    }

    pub fn add_http(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        hook: &HttpHookConfig,
        origin: &HookOrigin,
    ) -> Result<(), HookError> {
        let Some(entry) = self.parse_entry(event, matcher, &origin.text)? else { return Ok(()) };
        if let Some(reason) = http::validation_error(hook) {
            return Err(HookError::BadAddress { event: entry.event, origin: origin.text.clone(), reason });
        }
        let handler = HookHandler {
            timeout: entry.parse_timeout(hook.timeout),
            failure: parse_on_failure(entry.event, hook.on_failure.as_ref(), &origin.text)?,
            action: HookAction::Http(Arc::new(hook.clone())),
            environment: Arc::default(),
        };
        let hook = self.filter(&entry, hook.condition.as_deref(), hook.once, handler, origin)?;
        self.push(hook);
        Ok(())
    }

    /// Adds a hook with `onFailure: "block"` that cannot run: it always fails and blocks.
    pub fn add_unavailable(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        reason: &str,
        origin: &HookOrigin,
    ) -> Result<(), HookError> {
        let Some(entry) = self.parse_entry(event, matcher, &origin.text)? else { return Ok(()) };
        let handler = HookHandler {
            action: HookAction::Unavailable(format!("{}: {reason}", origin.text).into()),
            timeout: MAX_TIMEOUT,
            failure: FailurePolicy::Block,
            environment: Arc::default(),
        };
        let hook = self.filter(&entry, None, false, handler, origin)?;
        self.push(hook);
        Ok(())
    }

    /// Adds the filters to a handler: the matcher of its entry, its condition, and whether it runs only once.
    fn filter(
        &mut self,
        entry: &HookEntry,
        condition: Option<&str>,
        once: bool,
        handler: HookHandler,
        origin: &HookOrigin,
    ) -> Result<RegisteredHook, HookError> {
        Ok(RegisteredHook {
            event: entry.event,
            matcher: entry.matcher.clone(),
            condition: self.parse_condition(entry.event, condition, &origin.text)?,
            filter_texts: FilterTexts {
                matcher: entry.matcher_text.clone(),
                condition: condition.map(str::to_owned),
            },
            has_run: once.then(Arc::default),
            handler,
            origin: Arc::new(origin.clone()),
        })
    }

    pub(super) fn registered(&self) -> &[RegisteredHook] {
        &self.hooks
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
        let Some(entry) = self.parse_entry(event, group.matcher.as_deref(), HOST_ORIGIN)? else {
            return Ok(());
        };
        let event = entry.event;
        let failure = parse_on_failure(event, group.on_failure.as_ref(), HOST_ORIGIN)?;
        for field in group.unknown.keys() {
            self.warnings.push(format!(
                "Ignored the unknown field `{field}` of a {event} hook from {HOST_ORIGIN}. Check the spelling."
            ));
        }
        let origin = HookOrigin::new(HookSource::Host, HOST_ORIGIN);
        for id in &group.hook_callback_ids {
            let handler = HookHandler {
                action: HookAction::Callback(id.as_str().into()),
                timeout: parse_timeout(event, group.timeout).unwrap_or(CALLBACK_TIMEOUT),
                failure,
                environment: Arc::default(),
            };
            let hook = self.filter(&entry, None, false, handler, &origin)?;
            self.push(hook);
        }
        Ok(())
    }

    /// Parses event and matcher. An unknown event only gives a warning, so that newer hosts work.
    fn parse_entry(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        origin: &str,
    ) -> Result<Option<HookEntry>, HookError> {
        let Ok(event) = event.parse::<HookEvent>() else {
            self.warnings.push(format!(
                "Unknown hook event `{event}`: its hooks from {origin} never run. Check the spelling."
            ));
            return Ok(None);
        };
        let matcher_text = matcher.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let matcher = Matcher::parse(event, matcher).map_err(|reason| HookError::BadMatcher {
            event,
            origin: origin.into(),
            matcher: matcher.unwrap_or_default().into(),
            reason,
        })?;
        Ok(Some(HookEntry { event, matcher: with_renamed_tools(event, matcher), matcher_text }))
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
