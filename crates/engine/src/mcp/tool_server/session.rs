//! What surrounds the calls of a client: a session without a model, a conversation and a person.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::Frame;

use super::convert;
use crate::task_list::TodoList;
use crate::host_requests::HostRequests;
use crate::small_model::SmallModel;
use crate::cost::CostLedger;
use crate::engine::Engine;
use crate::files;
use crate::permission_checker::{Prompter, PermissionChecker};
use crate::internal_events::{EventReceiver, event_channel};
use crate::key_helper::KeyHelper;
use crate::deferred_tools::DeferredTools;
use crate::frame_sender::FrameSender;
use crate::permission::SearchFilter;
use crate::event_loop;
use crate::session::{TranscriptWriter, Mirror};
use crate::setup::{Setup, SetupError, Start};
use crate::state_notifier::{StateNotifier, StateSubscription};
use crate::tasks::TaskRegistry;
use crate::tools::ToolContext;
use crate::tool_scheduler::ToolEnv;

/// How many notices may wait to be thrown away.
const FRAME_BUFFER: usize = 64;

/// Where calls are made.
pub(super) struct HeadlessSession {
    pub(super) env: ToolEnv,
    /// What a person should know about the settings.
    pub(super) warning: Option<String>,
    tasks: TaskRegistry,
    /// Nobody reads what a session would tell its host; it must not pile up.
    _drain: AbortOnDropHandle<()>,
}

impl HeadlessSession {
    /// A room with what the options and the settings say. Touches the disk.
    pub(super) fn open(
        engine: Engine,
        mut start: Start,
        stop: &CancellationToken,
    ) -> Result<Self, SetupError> {
        // There is no conversation that could be kept.
        start.options.persist_session = Some(false);
        let setup = Setup::resolve(&engine, start)?;
        let (frames, unheard) = mpsc::channel(FRAME_BUFFER);
        let (inbox, posts) = event_channel();
        let deaf = AbortOnDropHandle::new(tokio::spawn(drain(unheard, posts)));
        let outbox = FrameSender::new(setup.session.as_str().into(), frames, stop.child_token());
        let (ask, tasks) = (HostRequests::new(outbox.clone()), TaskRegistry::new(inbox));
        let lookout = event_loop::build_hooks(&setup, &ask, &tasks, &outbox);
        let gate = PermissionChecker {
            permissions: setup.permission_state.clone(),
            prompter: Prompter::Unavailable,
            prompt_timeout: None,
            state_notifier: StateNotifier::new(outbox.clone(), StateSubscription::Off),
            hooks: lookout.clone(),
            frames: outbox,
        };
        let toolbox = Arc::new(setup.tool_set.restricted_to(Some(&convert::tool_names()), &[]));
        let consult = SmallModel::new(
            engine.with_key_source(KeyHelper::from_setup(&setup, &tasks)),
            CostLedger::with_budget(setup.limits.max_budget_usd),
            setup.small_model.clone(),
            setup.limits.retry_policy(),
            setup.session.as_str().into(),
        )
        .with_timing(setup.limits.timing);
        let call = ToolContext {
            id: String::new(),
            checked_file: None,
            original_input: None,
            workspace: Arc::clone(&setup.workspace),
            tasks: tasks.clone(),
            tool_set: Arc::clone(&toolbox),
            deferred_tools: DeferredTools::default(),
            read_filter: SearchFilter::default(),
            task_list: setup.task_list.clone(),
            todos: TodoList::default(),
            small_model: consult,
            agents: None,
            mode: gate.mode_switch(),
            hooks: lookout,
            transcript: TranscriptWriter::new(&setup.session, None, Mirror::Off),
            cancel: stop.child_token(),
        };
        Ok(Self { env: ToolEnv { tool_set: toolbox, checker: gate, context: call }, warning: setup.warning, tasks, _drain: deaf })
    }

    /// The folder that is worked in.
    pub(super) fn root(&self) -> String {
        self.env.context.workspace.root().display().to_string()
    }

    /// Ends everything that was started, and removes what long output has left.
    pub(super) async fn close(self) {
        self.tasks.shutdown().await;
        // What cannot be removed is the temporary folder's business.
        let _ = files::remove_dir(self.env.context.workspace.output_dir());
    }
}

/// Takes what is said, and forgets it.
async fn drain(mut frames: mpsc::Receiver<Frame>, mut posts: EventReceiver) {
    let frames = async { while frames.recv().await.is_some() {} };
    let posts = async { while posts.recv().await.is_some() {} };
    tokio::join!(frames, posts);
}
