//! The engine's session is opened when it is needed and closed when the session rests.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use whimbrel::wire::control::{ElicitationAction, ElicitationReply, GetUsage, RegisterRepoRoot};
use whimbrel::wire::options::SettingSource;
use whimbrel::wire::permission::{PermissionMode, PermissionResult};
use whimbrel::{Agent, Controls, Error, Frames, OpenError, Session};

use super::actor::Actor;
use super::{Asked, Command, Question};
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::message::StoredBody;
use crate::store::sessions::SessionState;

/// An open session of the engine.
pub(super) struct EngineSession {
    pub(super) controls: Controls,
    pub(super) frames: Frames,
    /// What the session has cost before the running turn.
    pub(super) cost_before: f64,
    /// The same by model, with tokens.
    pub(super) usage_before: BTreeMap<String, whimbrel::wire::message::ModelUsage>,
    /// Background tasks that run.
    pub(super) tasks: HashSet<String>,
    /// The agent may read the files of this session's messages.
    pub(super) reads_attachments: bool,
}

impl EngineSession {
    pub(super) fn has_background_work(&self) -> bool {
        !self.tasks.is_empty()
    }
}

impl Actor {
    /// Opens the engine's session, unless it is open.
    pub(super) async fn open_engine(&mut self) -> ApiResult<()> {
        if self.engine.is_some() {
            return Ok(());
        }
        self.reconcile().await;
        let is_stored = self.host.transcripts.find(&self.row.engine_session).await.ok().flatten().is_some();
        if !is_stored && self.has_conversation().await? {
            self.begin_anew().await?;
        }
        let reads_attachments = crate::uploads::attachments_dir(&self.host.data, &self.row.id).is_dir();
        let agent = self.build_agent(is_stored).await?;
        let session = match Session::open(&agent).await {
            Ok(session) => session,
            Err(OpenError::SessionBusy { holder, .. }) => {
                self.set_state(SessionState::Elsewhere);
                self.flush().await?;
                return Err(ApiError::session_elsewhere(format!(
                    "the session is {holder}: end it there, then it can be used here"
                )));
            }
            Err(error) => return Err(ApiError::bad_input(format!("the session cannot be opened: {error}"))),
        };
        let (controls, frames) = session.split();
        let mut engine = EngineSession {
            controls,
            frames,
            cost_before: 0.0,
            usage_before: BTreeMap::new(),
            tasks: HashSet::new(),
            reads_attachments,
        };
        if is_stored && let Ok(report) = engine.controls.call(GetUsage { skip_behaviors: Some(true) }).await {
            engine.cost_before = report.session.total_cost_usd;
            let parse = |(model, usage)| Some((model, serde_json::from_value(usage).ok()?));
            engine.usage_before = report.session.model_usage.into_iter().filter_map(parse).collect();
        }
        let _ = engine.controls.subscribe_tool_output(true).await;
        self.engine = Some(engine);
        self.mark_used();
        Ok(())
    }

    /// Closes the engine's session. What was asked of people is withdrawn by the SDK.
    pub(super) fn close_engine(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.controls.close();
        }
        self.sent_ahead.clear();
        self.live.clear();
    }

    /// Closes the engine's session and waits for its end: then the transcript is closed and no process is left.
    pub(super) async fn stop_engine(&mut self) {
        if let Some(controls) = self.controls().cloned() {
            controls.close();
            while let Some(frames) = self.frames_mut()
                && frames.next().await.is_some()
            {}
        }
        self.close_engine();
    }

    /// Whether the log has messages of a conversation.
    async fn has_conversation(&self) -> ApiResult<bool> {
        let sql = "SELECT 1 FROM events WHERE session = $1 AND kind = 'assistant' LIMIT 1";
        Ok(!self.host.store.read(sql, vec![(&self.row.id).into()]).await?.is_empty())
    }

    /// The transcript is gone: the session says so once and starts afresh.
    async fn begin_anew(&mut self) -> ApiResult<()> {
        let message = "the transcript of this session was deleted. The agent remembers nothing of it; what follows is a new conversation";
        self.add_host_event("error", json!({"code": "transcript_gone", "message": message}));
        self.row.engine_session = clock::new_uuid();
        self.flush().await
    }

    async fn build_agent(&self, is_stored: bool) -> ApiResult<Agent> {
        // The roots may be others since the session was made, and the folder may have become a link.
        let folder = self.host.resolve_folder(&self.row.folder).await?;
        let sources = if self.host.store.is_trusted(&self.row.folder).await? {
            vec![SettingSource::User, SettingSource::Project, SettingSource::Local]
        } else {
            vec![SettingSource::User]
        };
        let mode = self.row.mode.as_deref().map(super::answer::parse_mode).transpose()?;
        // A bypass has its end, and ends with the process.
        let mode =
            mode.filter(|mode| *mode != PermissionMode::BypassPermissions || self.row.bypass_until.is_some());
        let mut agent = self.host.agent.clone().cwd(folder).setting_sources(sources);
        // Who may bypass is decided by the host, see `check_may_bypass`.
        agent = agent.with(|options| options.allow_dangerously_skip_permissions = true);
        if let Some(model) = &self.row.model {
            agent = agent.model(model);
        }
        for attachments in self.attachment_dirs().await? {
            agent = agent.with(|options| options.additional_directories.push(attachments));
        }
        if let Some(mode) = mode {
            agent = agent.permission_mode(mode);
        }
        agent = if is_stored {
            agent.resume(&self.row.engine_session)
        } else {
            agent.session_id(&self.row.engine_session)
        };
        Ok(self.with_callbacks(agent.partial_messages(true)))
    }

    /// Where the files of the messages are: of this session, and of those that it was forked from.
    async fn attachment_dirs(&self) -> ApiResult<Vec<String>> {
        let mut dirs = Vec::new();
        let mut next = Some(self.row.clone());
        while let Some(row) = next {
            let dir = crate::uploads::attachments_dir(&self.host.data, &row.id);
            if dir.is_dir() {
                dirs.push(dir.display().to_string());
            }
            next = match &row.parent {
                Some(parent) => self.host.store.session(parent).await?,
                None => None,
            };
        }
        Ok(dirs)
    }

    /// Sends a message to the engine. Before, the agent may read the files that came with it.
    pub(super) async fn send_prompt(&mut self, id: &str, body: &StoredBody) -> Result<(), Error> {
        let directory = crate::uploads::attachments_dir(&self.host.data, &self.row.id);
        let Some(engine) = &mut self.engine else { return Ok(()) };
        if !engine.reads_attachments && !body.uploads.is_empty() && directory.is_dir() {
            let directory = directory.display().to_string();
            let request = RegisterRepoRoot { directory, ..RegisterRepoRoot::default() };
            // Without it the agent asks before it reads.
            engine.reads_attachments = engine.controls.call(request).await.is_ok();
        }
        engine.controls.send(body.to_prompt(id)).await
    }

    /// Adds the callbacks that pass requests to this actor.
    fn with_callbacks(&self, agent: Agent) -> Agent {
        let commands = self.commands.clone();
        let agent = agent.can_use_tool(move |request| {
            let commands = commands.clone();
            async move {
                let id = clock::new_uuid();
                watch_withdrawal(&commands, &id, &request);
                let (reply, answer) = oneshot::channel();
                let question = Question::Tool { request: Box::new(request), reply };
                post(&commands, Command::Asked(Asked { id, question })).await;
                let closed = || PermissionResult::deny("The request was closed without an answer.");
                answer.await.unwrap_or_else(|_| closed())
            }
        });
        let commands = self.commands.clone();
        agent.on_elicitation(move |request| {
            let commands = commands.clone();
            async move {
                let id = clock::new_uuid();
                let guard = WithdrawnOnDrop { commands: commands.clone(), request: Some(id.clone()) };
                let (reply, answer) = oneshot::channel();
                let question = Question::Form { request: Box::new(request), reply };
                post(&commands, Command::Asked(Asked { id, question })).await;
                let answer = answer.await;
                guard.defuse();
                answer.unwrap_or(ElicitationReply { action: ElicitationAction::Cancel, content: None })
            }
        })
    }
}

async fn post(commands: &mpsc::WeakSender<Command>, command: Command) {
    if let Some(commands) = commands.upgrade() {
        // An actor that has ended answers nothing; the request is closed with it.
        let _ = commands.send(command).await;
    }
}

/// Tells the actor if the engine withdraws a request.
fn watch_withdrawal(
    commands: &mpsc::WeakSender<Command>,
    request: &str,
    permission: &whimbrel::PermissionRequest,
) {
    let (withdrawal, commands, request) = (permission.withdrawal(), commands.clone(), request.to_owned());
    tokio::spawn(async move {
        if let Some(reason) = withdrawal.wait().await {
            post(&commands, Command::Withdrawn { request, reason }).await;
        }
    });
}

/// Tells the actor that the future of a form was dropped.
struct WithdrawnOnDrop {
    commands: mpsc::WeakSender<Command>,
    request: Option<String>,
}

impl WithdrawnOnDrop {
    fn defuse(mut self) {
        self.request = None;
    }
}

impl Drop for WithdrawnOnDrop {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let commands = self.commands.clone();
            let reason = whimbrel::CancelReason::Unspecified;
            runtime.spawn(async move { post(&commands, Command::Withdrawn { request, reason }).await });
        }
    }
}
