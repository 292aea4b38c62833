//! Sessions of other programs, such as the terminal: they are found by their transcripts and listed with ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use whimbrel::store::{SessionLock, SessionSummary};

use crate::host::Host;
use crate::message::title_of;
use crate::session_actor::Command;
use crate::session_actor::registry::ActorRegistry;
use crate::store::StoreError;
use crate::store::sessions::{SessionRow, SessionState};

/// Where the host keeps how far it has read.
const SEEN_KEY: &str = "transcripts_seen_ms";

/// Interval at which a list that is watched asks for changes.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

/// New sessions that one write adds.
const CHUNK: usize = 500;

/// New sessions of which it is asked who holds them, and that watchers are told of: as many as a list shows at once.
const MAX_SHOWN: usize = 200;

/// Asks for changes while a client watches the list of sessions. Never ends.
pub(crate) async fn follow(host: Arc<Host>, actors: Arc<ActorRegistry>) {
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if host.hub.list_watchers() > 0 {
            refresh(&host, &actors).await;
        }
    }
}

/// Adds sessions below the roots that have changed since the last call, and asks who holds those that were in use.
pub(crate) async fn refresh(host: &Arc<Host>, actors: &Arc<ActorRegistry>) {
    if let Err(text) = try_refresh(host, actors).await {
        crate::log::report(&format!("stored sessions cannot be listed: {text}"));
    }
}

async fn try_refresh(host: &Arc<Host>, actors: &Arc<ActorRegistry>) -> Result<(), String> {
    let text = |error: StoreError| error.to_string();
    let mut last_seen = host.transcripts_seen.lock().await;
    let since = match *last_seen {
        Some(seen) => seen,
        None => host.store.meta(SEEN_KEY, "0".into()).await.map_err(text)?.parse().unwrap_or(0),
    };
    let changed = host.transcripts.changed_since(since).await.map_err(|error| error.to_string())?;
    let newest = changed.iter().map(|summary| summary.last_modified).max().unwrap_or(since);
    let known = host.store.transcript_index().await.map_err(text)?;
    let mut added = Vec::new();
    for summary in changed {
        let is_ours = summary.cwd.as_deref().is_some_and(|folder| host.is_below_roots(Path::new(folder)));
        match known.get(&summary.session_id) {
            Some(session) if summary.last_modified > since => {
                read_again(host, actors, session).await?;
            }
            Some(_) => {}
            None if is_ours => added.push(to_row(summary)),
            None => {}
        }
    }
    added.sort_by(|a, b| (b.touched_at, &b.id).cmp(&(a.touched_at, &a.id)));
    for row in added.iter_mut().take(MAX_SHOWN) {
        if let Ok(SessionLock::Held(_)) = host.transcripts.lock(&row.engine_session).await {
            row.state = SessionState::Elsewhere;
        }
    }
    for rows in added.chunks(CHUNK) {
        let steps = rows.iter().map(|row| row.insert(None, None)).collect::<Vec<_>>();
        host.store.write(steps.into()).await.map_err(text)?;
    }
    added.iter().take(MAX_SHOWN).for_each(|row| host.hub.session_changed(&row.to_json()));
    for session in host.store.sessions_elsewhere().await.map_err(text)? {
        read_again(host, actors, &session).await?;
    }
    if newest > since || last_seen.is_none() {
        host.store.set_meta(SEEN_KEY, &newest.to_string()).await.map_err(text)?;
    }
    *last_seen = Some(newest);
    Ok(())
}

/// Lets a session compare itself with its transcript.
async fn read_again(host: &Arc<Host>, actors: &Arc<ActorRegistry>, session: &str) -> Result<(), String> {
    match actors.get(host, session).await {
        Ok(actor) => {
            actor.call(|reply| Command::Read { reply }).await.map(drop).map_err(|error| error.message)
        }
        Err(error) => Err(error.message),
    }
}

/// The row of a session that another program has made.
fn to_row(summary: SessionSummary) -> SessionRow {
    let folder = summary.cwd.unwrap_or_default();
    let changed_at = i64::try_from(summary.last_modified).unwrap_or(i64::MAX);
    let mut row = SessionRow::new(folder, title_of(&summary.summary), "terminal");
    row.id.clone_from(&summary.session_id);
    row.engine_session = summary.session_id;
    row.touched_at = changed_at;
    row.made_at = summary.created_at.and_then(|at| i64::try_from(at).ok()).unwrap_or(changed_at);
    row
}
