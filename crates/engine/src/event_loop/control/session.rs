//! Control requests about the session itself: title, cost, queued messages, read state of files.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use whimbrel_os::clock;
use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::metadata;
use whimbrel_session_store::transcript_writer::TranscriptWriter;
use whimbrel_tools::cost::{CostLedger, Spend};
use whimbrel_tools::small_model::SmallModel;
use whimbrel_tools::workspace::{SeenFile, Workspace};
use whimbrel_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageReply, ControlResponse, PromptText, RenameSession, SeedReadState,
    SeedReadStateReply, SessionCost, SessionUsage, UsageReport,
};

use whimbrel_wire::content::{Block, Content};
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::command_runner::builtin;
use crate::event_loop::Session;
use crate::setup::Setup;
use crate::setup::session_selection::SessionOrigin;
use crate::side_question::SideQuestionAsker;
use crate::transcript_notices as notices;

/// Handles to the main agent that work while a turn owns it.
#[derive(Clone)]
pub(crate) struct AgentHandles {
    pub(super) transcript_writer: TranscriptWriter,
    ledger: CostLedger,
    pub(super) small_model: SmallModel,
    pub(super) side_questions: SideQuestionAsker,
}

impl AgentHandles {
    pub(crate) fn for_agent(agent: &Agent) -> Self {
        Self {
            transcript_writer: agent.conversation.transcript_writer().clone(),
            ledger: agent.ledger.clone(),
            small_model: agent.tool_env.context.small_model.clone(),
            side_questions: SideQuestionAsker {
                view: agent.view.clone(),
                models: agent.models.clone(),
                ledger: agent.ledger.clone(),
                retry_policy: agent.limits.retry_policy(),
                timing: agent.limits.timing,
                betas: agent.limits.betas.clone(),
                session_id: agent.frame_sender.session_id(),
            },
        }
    }

    pub(in crate::event_loop) fn transcript_writer(&self) -> &TranscriptWriter {
        &self.transcript_writer
    }
}

/// Text of a prompt for an input line.
fn prompt_text(user: &User) -> PromptText {
    let content = &user.message.content;
    let attachments = match content {
        Content::Text(_) => 0,
        Content::Blocks(blocks) => blocks.iter().filter(|block| !matches!(block, Block::Text { .. })).count(),
    };
    PromptText { text: content.joined_text(), attachments: attachments as u64, permission_mode: None }
}

/// Sets the title of the session.
pub(crate) async fn rename_session(
    session: &mut Session,
    id: String,
    request: &RenameSession,
) -> ControlResponse {
    let session_id = session.host.frame_sender.session_id();
    if request.session_id.as_deref().is_some_and(|other| *other != *session_id) {
        let text = format!(
            "Only this session ({session_id}) can be renamed here. Rename others with `whimbrel sessions rename`."
        );
        return ControlResponse::error(id, text);
    }
    let title = match metadata::validate_title(&request.title) {
        Ok(title) => title,
        Err(error) => return ControlResponse::error(id, error.to_string()),
    };
    let written = match &session.main_agent.handles {
        Some(AgentHandles { transcript_writer: writer, .. }) => {
            let written = writer.rename(&title).await;
            notices::publish_notices(writer, &session.host.frame_sender).await;
            written
        }
        None => rename_before_turns(&mut session.setup, title).await,
    };
    match written {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, format!("The title cannot be written now: {error}.")),
    }
}

/// Sets the title of a session without a turn yet. A new session stores it with its first turn; a resumed one has a
/// transcript already.
async fn rename_before_turns(setup: &mut Setup, title: String) -> io::Result<()> {
    let written = match (&mut setup.session.resumed, &setup.session.persistence.store_writer) {
        (Some(resumed), Some(store_writer)) => {
            let writer = TranscriptWriter::for_store(
                &setup.session.id,
                None,
                store_writer,
                setup.session.persistence.durability,
            );
            writer.rename(&title).await?;
            resumed.loaded.recorded.title = Some(title.clone());
            true
        }
        (Some(resumed), None) if setup.session.origin != SessionOrigin::New => {
            resumed.rename(&title, &setup.session.id)?
        }
        _ => false,
    };
    setup.session.title = (!written).then_some(title);
    Ok(())
}

/// The cost of the session as text.
pub(crate) fn session_cost(session: &Session, id: String) -> ControlResponse {
    let spend =
        session.main_agent.handles.as_ref().map_or_else(Spend::default, |handles| handles.ledger.snapshot());
    ControlResponse::success(id, &SessionCost { text: builtin::render_cost(&spend) })
}

/// The cost of the session as numbers. There are no subscription limits to report.
pub(crate) fn session_usage(session: &Session, id: String) -> ControlResponse {
    let spend =
        session.main_agent.handles.as_ref().map_or_else(Spend::default, |handles| handles.ledger.snapshot());
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let lines = session.setup.session.workspace.changed_lines();
    let model_usage = spend.models.iter().map(|(model, usage)| (model.clone(), json!(usage)));
    let usage = SessionUsage {
        total_cost_usd: spend.total_usd(),
        total_api_duration_ms: millis(spend.api_time),
        total_duration_ms: millis(clock::monotonic() - session.progress.started_at),
        total_lines_added: lines.added,
        total_lines_removed: lines.removed,
        model_usage: model_usage.collect(),
    };
    ControlResponse::success(id, &UsageReport { session: usage, ..UsageReport::default() })
}

/// Takes back a queued message; not if its turn has started or it is unknown.
pub(crate) fn cancel_message(
    session: &mut Session,
    id: String,
    request: &CancelAsyncMessage,
) -> ControlResponse {
    let taken = session.input_queue.take_prompt(&request.message_uuid);
    let reply = CancelAsyncMessageReply {
        cancelled: taken.is_some(),
        prompt: taken.as_deref().map(prompt_text),
        still_queued: session.input_queue.prompt_ids(),
    };
    ControlResponse::success(id, &reply)
}

/// Marks a file as read by the model at the given modification time. If it was changed since, it must be read again
/// before an edit; the reply says so.
pub(crate) async fn seed_read_state(
    workspace: Arc<Workspace>,
    id: String,
    request: SeedReadState,
) -> ControlResponse {
    let path = files::normalize_path(&workspace.resolve(&request.path));
    // Hosts round to milliseconds, file systems have a finer resolution.
    let next = Duration::try_from_secs_f64((request.mtime.max(0.0).floor() + 1.0) / 1_000.0).ok();
    let next = next.and_then(|next| SystemTime::UNIX_EPOCH.checked_add(next));
    let result = files::run_blocking(move || {
        let FileKind::File(stamp) = files::file_kind(&path)? else {
            return Err(io::Error::other("the file does not exist"));
        };
        let seeded = next.is_some_and(|next| stamp.modified < next);
        if seeded {
            let real_path = files::real_path(&path).unwrap_or_else(|| path.clone());
            workspace.record_seen(
                &path,
                SeenFile { real_path, modified: stamp.modified, size: stamp.size, text: None },
            );
        } else {
            workspace.forget_seen(&path);
        }
        Ok(seeded)
    });
    match result.await.and_then(|result| result) {
        Ok(seeded) => ControlResponse::success(id, &SeedReadStateReply { seeded }),
        Err(error) => ControlResponse::error(id, format!("{} cannot be accessed: {error}.", request.path)),
    }
}
