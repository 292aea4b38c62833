//! What a host asks about the session itself: its title, its cost, its queue, and what its model has read.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use whimbrel_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageReply, ControlResponse, RenameSession, SeedReadState,
    SeedReadStateReply, SessionCost, SessionUsage, UsageReport,
};

use crate::agent::Agent;
use crate::clock;
use crate::commands::cost;
use crate::cost::{CostLedger, Spend};
use crate::files::{self, FileKind};
use crate::event_loop::Session;
use crate::session::writer::TranscriptWriter;
use crate::session::{notices, session_files};
use crate::setup::Setup;
use crate::setup::resume::SessionOrigin;
use crate::workspace::{SeenFile, Workspace};

/// What can be asked about an agent while a turn owns it.
#[derive(Debug)]
pub(crate) struct AgentHandles {
    transcript_writer: TranscriptWriter,
    ledger: CostLedger,
}

impl AgentHandles {
    /// Those of an agent.
    pub(crate) fn for_agent(agent: &Agent) -> Self {
        Self { transcript_writer: agent.conversation.transcript_writer().clone(), ledger: agent.ledger.clone() }
    }
}

/// Gives the session a title.
pub(super) async fn rename_session(session: &mut Session, id: String, asked: &RenameSession) -> ControlResponse {
    let ours = session.frame_sender.session_id();
    if asked.session_id.as_deref().is_some_and(|other| other != ours) {
        let text = format!(
            "Only this session can be renamed here, which is {ours}. Rename others with `whimbrel sessions rename`."
        );
        return ControlResponse::error(id, text);
    }
    let title = match session_files::validate_title(&asked.title) {
        Ok(title) => title,
        Err(error) => return ControlResponse::error(id, error.to_string()),
    };
    let written = match &session.agent_handles {
        Some(AgentHandles { transcript_writer: journal, .. }) => {
            let written = journal.rename(&title).await;
            notices::publish_notices(journal, &session.frame_sender).await;
            written
        }
        None => rename_before_turns(&mut session.setup, title).await,
    };
    match written {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, format!("The title cannot be written now: {error}.")),
    }
}

/// Gives a title to a session that has had no turn yet. What is new begins to be kept with its first turn, and so does its
/// title; what goes on has a transcript already.
async fn rename_before_turns(setup: &mut Setup, title: String) -> io::Result<()> {
    let written = match (&mut setup.resumed, &setup.persistence.store_writer) {
        (Some(past), Some(courier)) => {
            let journal = TranscriptWriter::for_store(&setup.session, None, courier, setup.persistence.durability);
            journal.rename(&title).await?;
            past.loaded.facts.title = Some(title.clone());
            true
        }
        (Some(past), None) if setup.origin != SessionOrigin::New => past.rename(&title, &setup.session)?,
        _ => false,
    };
    setup.title = (!written).then_some(title);
    Ok(())
}

/// Says what the session has cost, in words.
pub(super) fn session_cost(session: &Session, id: String) -> ControlResponse {
    let spend = session.agent_handles.as_ref().map_or_else(Spend::default, |books| books.ledger.snapshot());
    ControlResponse::success(id, &SessionCost { text: cost::render(&spend) })
}

/// Says what the session has cost, in figures. There is no subscription whose limits could be told.
pub(super) fn session_usage(session: &Session, id: String) -> ControlResponse {
    let spend = session.agent_handles.as_ref().map_or_else(Spend::default, |books| books.ledger.snapshot());
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let lines = session.setup.workspace.changed_lines();
    let model_usage = spend.models.iter().map(|(model, usage)| (model.clone(), json!(usage)));
    let usage = SessionUsage {
        total_cost_usd: spend.total_usd(),
        total_api_duration_ms: millis(spend.api_time),
        total_duration_ms: millis(clock::monotonic() - session.started_at),
        total_lines_added: lines.added,
        total_lines_removed: lines.removed,
        model_usage: model_usage.collect(),
    };
    ControlResponse::success(id, &UsageReport { session: usage, ..UsageReport::default() })
}

/// Takes back a message that waits. One that a turn has begun with, or that never came, is not.
pub(super) fn cancel_message(session: &mut Session, id: String, asked: &CancelAsyncMessage) -> ControlResponse {
    let cancelled = session.input_queue.drop_prompt(&asked.message_uuid);
    ControlResponse::success(id, &CancelAsyncMessageReply { cancelled })
}

/// Lets a file count as read by the model, as it was at that time. If it was changed since, it has to be read again before
/// it is changed; the answer says so.
pub(super) async fn seed_read_state(workspace: Arc<Workspace>, id: String, asked: SeedReadState) -> ControlResponse {
    let path = files::normalize_path(&workspace.resolve(&asked.path));
    // Hosts count in milliseconds, rounded in any way, disks in finer steps.
    let next = Duration::try_from_secs_f64((asked.mtime.max(0.0).floor() + 1.0) / 1_000.0).ok();
    let next = next.and_then(|next| SystemTime::UNIX_EPOCH.checked_add(next));
    let looked = files::run_blocking(move || {
        let FileKind::File(stamp) = files::file_kind(&path)? else {
            return Err(io::Error::other("there is no such file"));
        };
        let seeded = next.is_some_and(|next| stamp.modified < next);
        if seeded {
            let real = files::real_path(&path).unwrap_or_else(|| path.clone());
            workspace.record_seen(&path, SeenFile { real_path: real, modified: stamp.modified, size: stamp.size, text: None });
        } else {
            workspace.forget_seen(&path);
        }
        Ok(seeded)
    });
    match looked.await.and_then(|looked| looked) {
        Ok(seeded) => ControlResponse::success(id, &SeedReadStateReply { seeded }),
        Err(error) => ControlResponse::error(id, format!("{} cannot be looked at: {error}.", asked.path)),
    }
}
