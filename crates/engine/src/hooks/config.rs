//! Which hooks a session has: those of the host, by `initialize`, and commands, by settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whimbrel_wire::control::{HookMatcher, Initialize, OnFailure};
use whimbrel_wire::hook::{HookEvent, HookInput};

use super::catalog;
use super::condition::HookCondition;
use super::error::HookError;
use super::handler::{HookAction, FailurePolicy, HookHandler};
use super::http::HttpHook;
use super::matcher::{Matcher, match_target};
use crate::tools;
use crate::workspace::Workspace;

/// How long a hook of the host may take that does not say so itself.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);
/// No hook may take longer, whatever it says; at the end of a session people wait for the program to end.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_SESSION_END_TIMEOUT: Duration = Duration::from_secs(60);

/// Where hooks of the host come from, in words.
const HOST_ORIGIN: &str = "the host (initialize)";

/// A command as a hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandHook {
    /// What the shell is told.
    pub command: String,
    /// How long it may take, in seconds. Without it, or if it is no positive number: as long as is usual for the event.
    pub timeout: Option<f64>,
    /// Whether nobody waits for it (`async`).
    pub background: bool,
    /// What its failure means; without it, the event goes on.
    pub on_failure: Option<OnFailure>,
    /// A permission rule that the call must match (`if`).
    pub condition: Option<String>,
    /// Whether it runs only once in a session.
    pub once: bool,
    /// Variables that it has besides those of the session.
    pub environment: BTreeMap<String, String>,
}

/// The hooks of a session.
#[derive(Debug, Clone, Default)]
pub struct HookSet {
    hooks: Vec<RegisteredHook>,
    /// One bit for each event that has a hook.
    events: u64,
    warnings: Vec<String>,
}

/// A hook, and what it is for.
#[derive(Debug, Clone)]
struct RegisteredHook {
    event: HookEvent,
    matcher: Matcher,
    /// What a call must match besides.
    condition: Option<HookCondition>,
    /// Set when it has run, if it runs only once. Copies of the hook are the same hook.
    has_run: Option<Arc<AtomicBool>>,
    handler: HookHandler,
}

impl HookSet {
    /// The hooks that a host brings along.
    pub fn from_initialize(initialize: &Initialize) -> Result<Self, HookError> {
        let mut set = Self::default();
        for (event, groups) in initialize.hooks.iter().flatten() {
            for group in groups {
                set.add_callbacks(event, group)?;
            }
        }
        Ok(set)
    }

    /// Adds commands that share a matcher. `origin` says where they come from, e.g. `the user's settings`.
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
            let spent = once.then(Arc::default);
            let command = command.into();
            let action = if background { HookAction::BackgroundCommand(command) } else { HookAction::Command(command) };
            let limit = parse_timeout(event, timeout).unwrap_or_else(|| catalog::row(event).default_timeout);
            let failure = parse_on_failure(event, on_failure.as_ref(), origin)?;
            let handler = HookHandler { action, timeout: limit, failure, environment: Arc::new(environment) };
            self.push(RegisteredHook { event, matcher: matcher.clone(), condition, has_run: spent, handler });
        }
        Ok(())
    }

    /// Adds a web address.
    pub fn add_http(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        hook: &HttpHook,
        origin: &str,
    ) -> Result<(), HookError> {
        let Some((event, matcher)) = self.parse_entry(event, matcher, origin)? else { return Ok(()) };
        if let Some(reason) = hook.validation_error() {
            return Err(HookError::BadAddress { event, origin: origin.into(), reason });
        }
        let handler = HookHandler {
            timeout: parse_timeout(event, hook.timeout).unwrap_or_else(|| catalog::row(event).default_timeout),
            failure: parse_on_failure(event, hook.on_failure.as_ref(), origin)?,
            action: HookAction::Http(Arc::new(hook.clone())),
            environment: Arc::default(),
        };
        let condition = self.parse_condition(event, hook.condition.as_deref(), origin)?;
        let spent = hook.once.then(Arc::default);
        self.push(RegisteredHook { event, matcher, condition, has_run: spent, handler });
        Ok(())
    }

    /// Adds a hook that cannot run and without which nothing may go on: it always fails.
    pub fn add_unavailable(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        why: &str,
        origin: &str,
    ) -> Result<(), HookError> {
        let Some((event, matcher)) = self.parse_entry(event, matcher, origin)? else { return Ok(()) };
        let handler = HookHandler {
            action: HookAction::Unavailable(format!("{origin}: {why}").into()),
            timeout: MAX_TIMEOUT,
            failure: FailurePolicy::Block,
            environment: Arc::default(),
        };
        self.push(RegisteredHook { event, matcher, condition: None, has_run: None, handler });
        Ok(())
    }

    /// Adds the hooks of another set behind its own.
    pub fn append(&mut self, other: Self) {
        self.events |= other.events;
        self.hooks.extend(other.hooks);
        self.warnings.extend(other.warnings);
    }

    /// Whether there are no hooks at all.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether an event has a hook.
    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.events & event_bit(event) != 0
    }

    /// Whether a hook may answer what a tool asks of a person: one that is asked in the person's place, or one before calls
    /// that names the tool. One that looks at every call is no sign that somebody answers.
    pub fn can_answer_tool(&self, tool: &str) -> bool {
        let meant = |hook: &RegisteredHook| match hook.event {
            HookEvent::PermissionRequest => hook.matcher.matches(Some(tool)),
            HookEvent::PreToolUse => hook.matcher.is_specific_to(tool),
            _ => false,
        };
        self.hooks.iter().any(meant)
    }

    /// What was left out, in words: hooks for events that there are not.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What is to be done now on an occasion, in the order of registration and nothing twice. A hook that runs only once
    /// has had its turn with that.
    pub(super) fn handlers(&self, input: &HookInput, workspace: &Workspace) -> Vec<HookHandler> {
        let HookInput { base, event: input } = input;
        let Some(event) = input.event() else { return Vec::new() };
        // An agent may stand elsewhere than the session.
        let cwd = if base.cwd.is_empty() { workspace.cwd() } else { base.cwd.clone().into() };
        let subject = match_target(input);
        let mut chosen: Vec<HookHandler> = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.event == event) {
            if !hook.handler.accepts(input)
                || !hook.matcher.matches(subject.as_deref())
                || hook.condition.as_ref().is_some_and(|condition| !condition.matches_event(input, &cwd, workspace))
                || hook.has_run.as_ref().is_some_and(|spent| spent.swap(true, Ordering::Relaxed))
            {
                continue;
            }
            match chosen.iter_mut().find(|handler| handler.is_same(&hook.handler)) {
                Some(twin) => twin.merge(&hook.handler),
                None => chosen.push(hook.handler.clone()),
            }
        }
        chosen
    }

    fn add_callbacks(&mut self, event: &str, group: &HookMatcher) -> Result<(), HookError> {
        let found = self.parse_entry(event, group.matcher.as_deref(), HOST_ORIGIN)?;
        let Some((event, matcher)) = found else { return Ok(()) };
        let failure = parse_on_failure(event, group.on_failure.as_ref(), HOST_ORIGIN)?;
        for field in group.unknown.keys() {
            self.warnings.push(format!(
                "The field `{field}` of a {event} hook from {HOST_ORIGIN} is not known here and says nothing. Check the spelling."
            ));
        }
        for id in &group.hook_callback_ids {
            let handler = HookHandler {
                action: HookAction::Callback(id.as_str().into()),
                timeout: parse_timeout(event, group.timeout).unwrap_or(CALLBACK_TIMEOUT),
                failure,
                environment: Arc::default(),
            };
            let (condition, spent) = (None, None);
            self.push(RegisteredHook { event, matcher: matcher.clone(), condition, has_run: spent, handler });
        }
        Ok(())
    }

    /// Reads event and matcher. A hook for an event that we do not know would never be called: that is no reason to
    /// refuse a newer host, but one to say so.
    fn parse_entry(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        origin: &str,
    ) -> Result<Option<(HookEvent, Matcher)>, HookError> {
        let Ok(event) = event.parse::<HookEvent>() else {
            self.warnings.push(format!(
                "There is no hook event `{event}`; its hooks from {origin} will never run. Check the spelling."
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

    /// Reads a condition. Where there are no calls it never holds, which nobody can mean.
    fn parse_condition(
        &mut self,
        event: HookEvent,
        text: Option<&str>,
        origin: &str,
    ) -> Result<Option<HookCondition>, HookError> {
        let Some(text) = text else { return Ok(None) };
        if !HookCondition::is_supported(event) {
            self.warnings.push(format!(
                "A {event} hook from {origin} has an \"if\", which is about tool calls; {event} is not, so the hook never runs."
            ));
        }
        let bad = |reason| HookError::BadCondition { event, origin: origin.into(), reason };
        HookCondition::parse(text).map(Some).map_err(bad)
    }

    fn push(&mut self, hook: RegisteredHook) {
        self.events |= event_bit(hook.event);
        self.hooks.push(hook);
    }
}

/// What the failure of a hook means; a word that nobody knows is an error, lest a guard be lost by it.
fn parse_on_failure(event: HookEvent, on_failure: Option<&OnFailure>, origin: &str) -> Result<FailurePolicy, HookError> {
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

fn parse_timeout(event: HookEvent, given: Option<f64>) -> Option<Duration> {
    let longest = if event == HookEvent::SessionEnd { MAX_SESSION_END_TIMEOUT } else { MAX_TIMEOUT };
    let given = given.filter(|seconds| *seconds > 0.0)?;
    Some(Duration::try_from_secs_f64(given).unwrap_or(longest).min(longest))
}

/// A list of names that also fits tools which once had one of these names.
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
    for tool in tools::builtin_tools() {
        if names.iter().any(|name| tool.aliases().contains(&name.as_str())) {
            names.push(tool.name().to_owned());
        }
    }
    Matcher::Names(names)
}
