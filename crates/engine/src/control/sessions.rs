//! What a host asks about the session itself: its title, its cost, its queue, and what its model has read.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use whimbrel_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageReply, ControlResponse, RenameSession, SeedReadState, SessionCost,
};

use crate::agent::Agent;
use crate::commands::cost;
use crate::cost::{Ledger, Spend};
use crate::files::{self, Kind};
use crate::serve::Session;
use crate::session::bulletin;
use crate::session::journal::Journal;
use crate::workspace::{Seen, Workspace};

/// What can be asked about an agent while a turn owns it.
#[derive(Debug)]
pub(crate) struct Books {
    journal: Journal,
    ledger: Ledger,
}

impl Books {
    /// Those of an agent.
    pub(crate) fn of(agent: &Agent) -> Self {
        Self { journal: agent.conversation.journal().clone(), ledger: agent.ledger.clone() }
    }
}

/// Gives the session a title.
pub(super) async fn rename(session: &mut Session, id: String, asked: &RenameSession) -> ControlResponse {
    let ours = session.outbox.session();
    if asked.session_id.as_deref().is_some_and(|other| other != ours) {
        let text = format!(
            "Only this session can be renamed here, which is {ours}. Rename others with `whimbrel sessions rename`."
        );
        return ControlResponse::error(id, text);
    }
    if asked.title.trim().is_empty() {
        return ControlResponse::error(id, "A title needs at least one letter.");
    }
    let Some(Books { journal, .. }) = &session.books else {
        session.setup.title = Some(asked.title.clone());
        return ControlResponse::ok(id);
    };
    journal.call_it(&asked.title);
    let written = journal.write_title();
    bulletin::publish(journal, &session.outbox).await;
    match written {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, format!("The title cannot be written now: {error}.")),
    }
}

/// Says what the session has cost, in words.
pub(super) fn cost(session: &Session, id: String) -> ControlResponse {
    let spend = session.books.as_ref().map_or_else(Spend::default, |books| books.ledger.read());
    ControlResponse::success(id, &SessionCost { text: cost::text(&spend) })
}

/// Takes back a message that waits. One that a turn has begun with, or that never came, is not.
pub(super) fn cancel(session: &mut Session, id: String, asked: &CancelAsyncMessage) -> ControlResponse {
    let cancelled = session.queue.drop_prompt(&asked.message_uuid);
    ControlResponse::success(id, &CancelAsyncMessageReply { cancelled })
}

/// Lets a file count as read by the model, as it was at that time. If it was changed since, it has to be read again before
/// it is changed.
pub(super) async fn seed(workspace: Arc<Workspace>, id: String, asked: SeedReadState) -> ControlResponse {
    let path = files::tidy(&workspace.resolve(&asked.path));
    let then = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(asked.mtime.max(0.0) as u64));
    let looked = files::aside(move || {
        let Kind::File(stamp) = files::kind(&path)? else {
            return Err(std::io::Error::other("there is no such file"));
        };
        // Hosts count in milliseconds, disks in finer steps.
        let is_same = then.is_some_and(|then| {
            stamp.modified.duration_since(then).is_ok_and(|more| more < Duration::from_millis(1))
        });
        if is_same {
            let real = files::real_path(&path).unwrap_or_else(|| path.clone());
            workspace.note_seen(&path, Seen { real, modified: stamp.modified, size: stamp.size, text: None });
        } else {
            workspace.forget(&path);
        }
        Ok(())
    });
    match looked.await.and_then(|looked| looked) {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, format!("{} cannot be looked at: {error}.", asked.path)),
    }
}
