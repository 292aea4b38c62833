//! Sessions of other programs, such as the terminal: they are found by their transcripts and listed with ours.

use std::path::Path;

use crate::host::Host;
use crate::message::title_of;
use crate::session_actor::registry::ActorRegistry;
use crate::store::Step;
use crate::store::sessions::{SessionRow, SessionState};

/// Where the host keeps how far it has read.
const SEEN_KEY: &str = "transcripts_seen_ms";

/// Adds sessions below the roots that have changed since the last call.
pub(crate) async fn refresh(host: &Host, actors: &ActorRegistry) {
    if let Err(text) = try_refresh(host, actors).await {
        crate::log::report(&format!("stored sessions cannot be listed: {text}"));
    }
}

async fn try_refresh(host: &Host, actors: &ActorRegistry) -> Result<(), String> {
    let mut last_seen = host.transcripts_seen.lock().await;
    let since = match *last_seen {
        Some(seen) => seen,
        None => {
            let stored = host.store.meta(SEEN_KEY, "0".into()).await.map_err(|error| error.to_string())?;
            stored.parse().unwrap_or(0)
        }
    };
    let changed = host.transcripts.changed_since(since).await.map_err(|error| error.to_string())?;
    let newest = changed.iter().map(|summary| summary.last_modified).max().unwrap_or(since);
    for summary in changed {
        let Some(folder) = summary.cwd.as_deref().filter(|folder| host.is_below_roots(Path::new(folder)))
        else {
            continue;
        };
        let known = host.store.session_of_transcript(&summary.session_id).await;
        let changed_at = i64::try_from(summary.last_modified).unwrap_or(i64::MAX);
        match known.map_err(|error| error.to_string())? {
            Some(known) if known.origin == "terminal" && known.touched_at < changed_at => {
                if actors.running(&known.id).is_none() {
                    let step = Step::new(
                        "UPDATE sessions SET touched_at = $2, title = $3 WHERE id = $1",
                        vec![known.id.into(), changed_at.into(), title_of(&summary.summary).into()],
                    );
                    host.store.write_one(step).await.map_err(|error| error.to_string())?;
                }
            }
            Some(_) => {}
            None => {
                let mut row = SessionRow::new(folder.to_owned(), title_of(&summary.summary), "terminal");
                row.id.clone_from(&summary.session_id);
                row.engine_session = summary.session_id;
                row.state = SessionState::Resting;
                row.touched_at = changed_at;
                row.made_at = summary.created_at.and_then(|at| i64::try_from(at).ok()).unwrap_or(changed_at);
                host.store.write_one(row.insert(None, None)).await.map_err(|error| error.to_string())?;
            }
        }
    }
    if newest > since || last_seen.is_none() {
        let stored = host.store.set_meta(SEEN_KEY, &newest.to_string()).await;
        stored.map_err(|error| error.to_string())?;
    }
    *last_seen = Some(newest);
    Ok(())
}
