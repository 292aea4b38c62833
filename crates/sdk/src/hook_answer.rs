//! Answers of hooks, typed by event, and the constructors of typed hooks.

use std::fmt;
use std::marker::PhantomData;

use serde_json::{Map, Value};
use whimbrel_wire::hook::{
    ContextOutput, CwdChanged, ElicitationHook, ElicitationOutput, ElicitationResult, FileChanged,
    HookDecision, HookEvent, HookEventInput, HookOutput, HookPermissionDecision, HookSpecific,
    MessageDisplay, MessageDisplayOutput, NotificationHook, PermissionDeniedHook, PermissionDeniedOutput,
    PermissionRequest, PermissionRequestOutput, PostCompact, PostToolBatch, PostToolUse, PostToolUseFailure,
    PostToolUseOutput, PreCompact, PreToolUse, PreToolUseOutput, SessionEnd, SessionStart,
    SessionStartOutput, Stop, StopFailure, SubagentStart, SubagentStop, SyncOutput, TaskCompleted,
    TaskCreated, TeammateIdle, UserPromptSubmit, UserPromptSubmitOutput, WatchOutput, WorktreeCreate,
    WorktreeCreateOutput, WorktreeRemove,
};
use whimbrel_wire::permission::PermissionResult;

use crate::hook::{Hook, HookContext};

/// An event for which [`Hook`] has a typed constructor.
pub trait TypedHookEvent: Sized + Send + 'static {
    /// The output fields that only this event has.
    type Output: Into<SpecificOutput<Self>>;
}

/// Output fields of one event, as the wire has them.
pub struct SpecificOutput<E> {
    specific: HookSpecific,
    event: PhantomData<fn() -> E>,
}

/// Output fields of an event that has none of its own. It has no value.
#[derive(Debug, Clone, Copy)]
pub enum NoOutput {}

/// What a hook answers to an event of this type. Only what the event knows can be said.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Hook, HookAnswer, Scripted};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir();
/// # let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "curl https://example.com"}}]);
/// # let script = Scripted::replies(json!([call, "Then not."]))?;
/// let offline = Hook::pre_tool_use(|call, _| async move {
///     match call.tool_input["command"].as_str() {
///         Some(command) if command.contains("curl") => HookAnswer::deny("We work offline here."),
///         _ => HookAnswer::none(),
///     }
/// });
/// let agent = Agent::new().cwd(dir).hook(offline.matching("Bash"));
/// # let agent = agent.persist_session(false).script(script);
/// let answer = whimbrel::query("Fetch example.com.", &agent).await?;
/// assert_eq!(answer.denials().len(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "an answer that is not returned has no effect"]
pub struct HookAnswer<E> {
    output: SyncOutput,
    event: PhantomData<fn() -> E>,
}

impl<E: TypedHookEvent> HookAnswer<E> {
    /// An answer without any effect.
    pub fn none() -> Self {
        Self { output: SyncOutput::default(), event: PhantomData }
    }

    /// Blocks what the event announces; at the end of a turn, makes the agent continue. The model reads the reason.
    pub fn block(reason: impl Into<String>) -> Self {
        let mut answer = Self::none();
        (answer.output.decision, answer.output.reason) = (Some(HookDecision::Block), Some(reason.into()));
        answer
    }

    /// Ends the turn. The user reads the reason.
    pub fn stop(reason: impl Into<String>) -> Self {
        let mut answer = Self::none();
        (answer.output.should_continue, answer.output.stop_reason) = (Some(false), Some(reason.into()));
        answer
    }

    /// The output fields of this event.
    pub fn output(fields: E::Output) -> Self {
        let mut answer = Self::none();
        answer.output.specific = Some(fields.into().specific);
        answer
    }

    /// Also shows a text to the user.
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.output.system_message = Some(text.into());
        self
    }
}

impl<E> From<HookAnswer<E>> for HookOutput {
    fn from(answer: HookAnswer<E>) -> Self {
        Self::Sync(answer.output)
    }
}

impl<E> fmt::Debug for HookAnswer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.output.fmt(f)
    }
}

impl<E> From<NoOutput> for SpecificOutput<E> {
    fn from(none: NoOutput) -> Self {
        match none {}
    }
}

impl<E> fmt::Debug for SpecificOutput<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.specific.fmt(f)
    }
}

/// Lists the typed events: constructor, event, output fields.
macro_rules! typed_hooks {
    ($($(#[$doc:meta])+ $name:ident($event:ident $(as $input:ident)?) $(-> $output:ident)?;)*) => {
        impl Hook {
            $($(#[$doc])+
            pub fn $name<F, A>(callback: F) -> Self
            where
                F: Fn(input!($event $($input)?), HookContext) -> A + Send + Sync + 'static,
                A: Future<Output = HookAnswer<input!($event $($input)?)>> + Send + 'static,
            {
                let callback = std::sync::Arc::new(callback);
                Self::with_context(HookEvent::$event, move |input, context| {
                    let called = match input.event {
                        HookEventInput::$event(event) => Some(callback(event, context)),
                        _ => None,
                    };
                    async move {
                        match called {
                            Some(called) => called.await.into(),
                            None => HookOutput::default(),
                        }
                    }
                })
            })*
        }

        $(impl TypedHookEvent for input!($event $($input)?) {
            type Output = output!($($output)?);
        }

        specific!($event, input!($event $($input)?) $(, $output)?);)*
    };
}

/// The type of an event's input, whose name may differ from the event.
macro_rules! input {
    ($event:ident) => {
        $event
    };
    ($event:ident $input:ident) => {
        $input
    };
}

macro_rules! output {
    () => {
        NoOutput
    };
    ($output:ident) => {
        $output
    };
}

macro_rules! specific {
    ($event:ident, $input:ty) => {};
    ($event:ident, $input:ty, $output:ident) => {
        impl From<$output> for SpecificOutput<$input> {
            fn from(fields: $output) -> Self {
                Self { specific: HookSpecific::$event(fields), event: PhantomData }
            }
        }
    };
}

typed_hooks! {
    /// Before a tool runs: it can be allowed, denied, or get another input.
    pre_tool_use(PreToolUse) -> PreToolUseOutput;
    /// After a tool has run: its output can be replaced, or explained.
    post_tool_use(PostToolUse) -> PostToolUseOutput;
    /// After a tool has failed.
    post_tool_use_failure(PostToolUseFailure) -> ContextOutput;
    /// After all calls of one reply.
    post_tool_batch(PostToolBatch) -> ContextOutput;
    /// Before the host is asked for permission: the hook can answer.
    permission_request(PermissionRequest) -> PermissionRequestOutput;
    /// After a call was denied.
    permission_denied(PermissionDenied as PermissionDeniedHook) -> PermissionDeniedOutput;
    /// When the user should look at the session.
    notification(Notification as NotificationHook) -> ContextOutput;
    /// Before a prompt begins a turn: it can be blocked, or explained.
    user_prompt_submit(UserPromptSubmit) -> UserPromptSubmitOutput;
    /// When a session begins: it can be given context and a title.
    session_start(SessionStart) -> SessionStartOutput;
    /// When a session ends.
    session_end(SessionEnd);
    /// When the model is done: [`HookAnswer::block`] makes it continue.
    stop(Stop) -> ContextOutput;
    /// When a turn has failed.
    stop_failure(StopFailure);
    /// When a subagent begins.
    subagent_start(SubagentStart) -> ContextOutput;
    /// When a subagent is done: [`HookAnswer::block`] makes it continue.
    subagent_stop(SubagentStop) -> ContextOutput;
    /// Before the conversation is compacted.
    pre_compact(PreCompact);
    /// After the conversation was compacted.
    post_compact(PostCompact);
    /// When a teammate has nothing to do: [`HookAnswer::block`] makes it continue.
    teammate_idle(TeammateIdle);
    /// When a task was added to the task list.
    task_created(TaskCreated);
    /// When a task of the task list was done.
    task_completed(TaskCompleted);
    /// When an MCP server asks the user something: the hook can answer.
    elicitation(Elicitation as ElicitationHook) -> ElicitationOutput;
    /// When the user has answered an MCP server.
    elicitation_result(ElicitationResult) -> ElicitationOutput;
    /// When the working directory has changed.
    cwd_changed(CwdChanged) -> WatchOutput;
    /// When a watched file has changed.
    file_changed(FileChanged) -> WatchOutput;
    /// Before text of the model is shown: it can be replaced.
    message_display(MessageDisplay) -> MessageDisplayOutput;
    /// When a worktree is needed: the hook can make it.
    worktree_create(WorktreeCreate) -> WorktreeCreateOutput;
    /// When a worktree is no longer needed.
    worktree_remove(WorktreeRemove);
}

impl HookAnswer<PreToolUse> {
    /// Allows the call without asking. Deny rules still hold.
    pub fn allow() -> Self {
        Self::with_decision(HookPermissionDecision::Allow, None)
    }

    /// Denies the call. The model reads the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::with_decision(HookPermissionDecision::Deny, Some(reason.into()))
    }

    /// Requires permission for the call, whatever the rules say.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::with_decision(HookPermissionDecision::Ask, Some(reason.into()))
    }

    /// Makes the call with this input instead of the model's.
    pub fn with_input(input: Map<String, Value>) -> Self {
        Self::output(PreToolUseOutput { updated_input: Some(input), ..PreToolUseOutput::default() })
    }

    fn with_decision(decision: HookPermissionDecision, reason: Option<String>) -> Self {
        Self::output(PreToolUseOutput {
            permission_decision: Some(decision),
            permission_decision_reason: reason,
            ..PreToolUseOutput::default()
        })
    }
}

impl HookAnswer<PostToolUse> {
    /// Replaces what the model reads of the result.
    pub fn replace_output(output: impl Into<Value>) -> Self {
        let updated_tool_output = Some(output.into());
        Self::output(PostToolUseOutput { updated_tool_output, ..PostToolUseOutput::default() })
    }
}

impl HookAnswer<PermissionRequest> {
    /// Answers in the user's place.
    pub fn decide(decision: PermissionResult) -> Self {
        Self::output(PermissionRequestOutput { decision })
    }
}

/// An event whose hooks can tell the model something.
pub trait ContextHookEvent: TypedHookEvent {
    /// Output fields with this context.
    fn context_output(text: String) -> Self::Output;
}

impl<E: ContextHookEvent> HookAnswer<E> {
    /// Tells the model something.
    pub fn context(text: impl Into<String>) -> Self {
        Self::output(E::context_output(text.into()))
    }
}

macro_rules! contexts {
    ($($event:ident => $output:ident,)*) => {
        $(impl ContextHookEvent for $event {
            fn context_output(text: String) -> $output {
                let mut output = $output::default();
                output.additional_context = Some(text);
                output
            }
        })*
    };
}

contexts! {
    PreToolUse => PreToolUseOutput,
    PostToolUse => PostToolUseOutput,
    UserPromptSubmit => UserPromptSubmitOutput,
    SessionStart => SessionStartOutput,
    PostToolUseFailure => ContextOutput,
    PostToolBatch => ContextOutput,
    NotificationHook => ContextOutput,
    Stop => ContextOutput,
    SubagentStart => ContextOutput,
    SubagentStop => ContextOutput,
}
