//! Environment of the served calls: a session without model, conversation and user.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_os::files;
use whimbrel_policy::CheckedCall;
use whimbrel_session_store::{Mirror, TranscriptWriter};
use whimbrel_tools::api::{DeferredTools, ToolContext};
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::internal_events::{EventReceiver, event_channel};
use whimbrel_tools::permission::SearchFilter;
use whimbrel_tools::small_model::SmallModel;
use whimbrel_tools::task_list::TodoList;
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::Frame;

use super::convert;
use crate::engine::Engine;
use crate::event_loop;
use crate::key_helper::KeyHelper;
use crate::permission_checker::{PermissionChecker, PermissionRequester};
use crate::setup::{SessionRequest, Setup, SetupError};
use crate::state_notifier::{StateNotifier, StateSubscription};
use crate::tool_scheduler::ToolEnv;

/// Capacity of the channel of discarded frames.
const FRAME_CHANNEL_CAPACITY: usize = 64;

/// Session without a host, in which a client's calls run.
pub(super) struct HeadlessSession {
    pub(super) env: ToolEnv,
    /// Warnings about the settings, for the user.
    pub(super) warning: Option<String>,
    tasks: TaskRegistry,
    /// Discards frames and events, so that their channels do not fill up.
    _drain: AbortOnDropHandle<()>,
}

impl HeadlessSession {
    /// Builds the session from options and settings. Reads the disk.
    pub(super) fn open(
        engine: &Engine,
        mut request: SessionRequest,
        stop: &CancellationToken,
    ) -> Result<Self, SetupError> {
        // There is no conversation to persist.
        request.options.persist_session = Some(false);
        let setup = Setup::resolve(engine, request)?;
        let (frames, frame_receiver) = mpsc::channel(FRAME_CHANNEL_CAPACITY);
        let (events, event_receiver) = event_channel();
        let drain_task = AbortOnDropHandle::new(tokio::spawn(drain(frame_receiver, event_receiver)));
        let frame_sender = FrameSender::new(setup.session.id.as_str().into(), frames, stop.child_token());
        let (requests, tasks) = (HostRequests::new(frame_sender.clone()), TaskRegistry::new(events));
        let dispatcher = event_loop::build_hooks(&setup, &requests, &tasks, &frame_sender);
        let checker = PermissionChecker {
            permissions: setup.permissions.state.clone(),
            requester: PermissionRequester::Unavailable,
            request_timeout: None,
            state_notifier: StateNotifier::new(frame_sender.clone(), StateSubscription::Off),
            hooks: dispatcher.clone(),
            frames: frame_sender,
        };
        let tool_set = Arc::new(setup.tools.tool_set.restricted_to(Some(&convert::tool_names()), &[]));
        let small_model = SmallModel::new(
            engine.models().clone().with_key_source(KeyHelper::from_setup(&setup, &tasks)),
            CostLedger::with_budget(setup.agents.limits.max_budget_usd),
            setup.models.small_model.clone(),
            setup.agents.limits.retry_policy(),
            setup.session.id.as_str().into(),
        )
        .with_timing(setup.agents.limits.timing);
        let call = ToolContext {
            id: String::new(),
            checked: CheckedCall::default(),
            original_input: None,
            workspace: Arc::clone(&setup.session.workspace),
            tasks: tasks.clone(),
            tool_set: Arc::clone(&tool_set),
            deferred_tools: DeferredTools::default(),
            read_filter: SearchFilter::default(),
            task_list: setup.tools.task_list.clone(),
            todos: TodoList::default(),
            small_model,
            agents: None,
            mode: checker.mode_switch(),
            hooks: dispatcher,
            transcript: TranscriptWriter::new(&setup.session.id, None, Mirror::Off),
            cancel: stop.child_token(),
        };
        Ok(Self {
            env: ToolEnv { tool_set, checker, context: call },
            warning: setup.host.warning,
            tasks,
            _drain: drain_task,
        })
    }

    /// Working directory.
    pub(super) fn root(&self) -> String {
        self.env.context.workspace.root().display().to_string()
    }

    /// Ends all started processes and removes spilled output.
    pub(super) async fn close(self) {
        self.tasks.shutdown().await;
        // Leftovers stay in the temporary directory.
        let _ = files::remove_dir(self.env.context.workspace.output_dir());
    }
}

/// Receives frames and events and discards them.
async fn drain(mut frames: mpsc::Receiver<Frame>, mut events: EventReceiver) {
    let frames = async { while frames.recv().await.is_some() {} };
    let events = async { while events.recv().await.is_some() {} };
    tokio::join!(frames, events);
}
