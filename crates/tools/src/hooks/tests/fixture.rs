//! Session with hooks, and a host that answers callbacks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::Mode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::LayerSource;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlResponse, HookCallback, OnFailure, Request};
use whimbrel_wire::hook::HookBase;
use whimbrel_wire::system::SystemEvent;

use super::super::{
    CommandHook, HookCall, HookDeps, HookExecutor, HookInputBuilder, HookOrigin, HookSet, HookSource,
    MergedOutput, ProgressPolicy, ToolCallRef,
};
use crate::tasks::TaskRegistry;
use crate::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;

/// Origin of a hook in the user's settings, with this text.
pub(super) fn settings_origin(text: &str) -> HookOrigin {
    HookOrigin::new(HookSource::Settings(LayerSource::User), text)
}

/// Result, error or silence of a host.
pub(super) type HostReply = Option<Result<Value, String>>;

pub(super) struct TestHooks {
    pub(super) executor: HookExecutor,
    pub(super) deps: HookDeps,
    /// Frames sent to the host.
    pub(super) frames: mpsc::UnboundedReceiver<Frame>,
    _folder: TempDir,
    pub(super) cancel: CancellationToken,
}

impl TestHooks {
    /// Callbacks of a host that answers by `reply`.
    pub(super) fn with_host(
        hooks: &Value,
        reply: impl FnMut(&HookCallback) -> HostReply + Send + 'static,
    ) -> Self {
        let initialize = serde_json::from_value(json!({ "hooks": hooks })).unwrap();
        Self::new(HookSet::from_initialize(&initialize).unwrap(), ProgressPolicy::StartupOnly, reply)
    }

    /// Command hooks: event, matcher, hook.
    pub(super) fn with_commands(rows: &[(&str, Option<&str>, CommandHook)]) -> Self {
        Self::with_progress(ProgressPolicy::StartupOnly, rows)
    }

    /// Like [`with_commands`](Self::with_commands), with a progress policy.
    pub(super) fn with_progress(
        progress: ProgressPolicy,
        rows: &[(&str, Option<&str>, CommandHook)],
    ) -> Self {
        let mut set = HookSet::default();
        for (event, matcher, hook) in rows {
            set.add_commands(event, *matcher, vec![hook.clone()], &settings_origin("the user's settings"))
                .unwrap();
        }
        Self::new(set, progress, |_| None)
    }

    pub(super) fn with_set(set: HookSet) -> Self {
        Self::new(set, ProgressPolicy::StartupOnly, |_| None)
    }

    fn new(
        set: HookSet,
        progress: ProgressPolicy,
        mut reply: impl FnMut(&HookCallback) -> HostReply + Send + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (sender, mut receiver) = mpsc::channel(16);
        let sender = FrameSender::new("session".into(), sender, CancellationToken::new());
        let requests = HostRequests::new(sender.clone());
        let (output, frames) = mpsc::unbounded_channel();
        let responder = requests.clone();
        tokio::spawn(async move {
            while let Some(frame) = receiver.recv().await {
                if let Frame::ControlRequest(request) = &frame
                    && let Request::HookCallback(callback) = &request.request
                {
                    match reply(callback) {
                        Some(Ok(value)) => {
                            responder.handle_response(
                                ControlResponse::success(&request.request_id, &value).response,
                            );
                        }
                        Some(Err(error)) => {
                            responder
                                .handle_response(ControlResponse::error(&request.request_id, error).response);
                        }
                        None => {}
                    }
                }
                let _ = output.send(frame);
            }
        });
        let environment = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("OTEL_SECRET".to_owned(), "x".to_owned()),
        ]);
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let workspace = Workspace::new(root.clone(), root.join("spill"), environment);
        let deps = HookDeps {
            requests,
            frames: sender,
            tasks: TaskRegistry::new(mpsc::unbounded_channel().0),
            workspace: Arc::new(workspace),
            progress,
        };
        let executor = HookExecutor::new(set, deps.clone());
        Self { executor, deps, frames, _folder: dir, cancel: CancellationToken::new() }
    }

    /// Runs the hooks of an event, with a timeout.
    pub(super) async fn run(&self, hook_call: HookCall) -> MergedOutput {
        let run = self.executor.run(hook_call, &self.cancel);
        tokio::time::timeout(Duration::from_secs(60), run).await.unwrap()
    }

    /// Runs the PreToolUse hooks of a Bash call.
    pub(super) async fn run_bash_hooks(&self) -> MergedOutput {
        self.run(pre_tool_use("Bash", &json!({"command": "ls"}))).await
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.deps.workspace.root().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Creates a FIFO that blocks a command until [`release_fifo`](Self::release_fifo).
    pub(super) fn create_fifo(&self, name: &str) {
        nix::unistd::mkfifo(&self.path(name), Mode::S_IRWXU).unwrap();
    }

    pub(super) async fn release_fifo(&self, name: &str) {
        let path = self.path(name);
        tokio::task::spawn_blocking(move || std::fs::write(path, "go\n").unwrap()).await.unwrap();
    }

    /// Waits for the next progress frame.
    pub(super) async fn next_progress_frame(&mut self) -> Value {
        loop {
            let frame =
                tokio::time::timeout(Duration::from_secs(60), self.frames.recv()).await.unwrap().unwrap();
            if let Frame::System(system) = &frame
                && matches!(
                    system.event,
                    SystemEvent::HookStarted(_) | SystemEvent::HookProgress(_) | SystemEvent::HookResponse(_)
                )
            {
                return serde_json::to_value(&frame).unwrap();
            }
        }
    }
}

/// Input for PreToolUse.
pub(super) fn pre_tool_use(tool: &str, input: &Value) -> HookCall {
    input_builder().pre_tool_use(ToolCallRef { name: tool, input, id: "toolu_1", server: None })
}

pub(super) fn input_builder() -> HookInputBuilder {
    HookInputBuilder(HookBase { session_id: "session".into(), ..HookBase::default() })
}

pub(super) fn command(command: &str) -> CommandHook {
    CommandHook { command: command.into(), ..CommandHook::default() }
}

/// Command with `onFailure: "block"`.
pub(super) fn blocking_command(text: &str) -> CommandHook {
    CommandHook { on_failure: Some(OnFailure::Block), ..command(text) }
}

pub(super) fn background_command(text: &str) -> CommandHook {
    CommandHook { background: true, ..command(text) }
}

pub(super) fn with_timeout(seconds: f64, hook: CommandHook) -> CommandHook {
    CommandHook { timeout: Some(seconds), ..hook }
}
