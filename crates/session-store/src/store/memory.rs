//! Session store in memory, for tests and for hosts that store nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use whimbrel_os::clock;
use whimbrel_wire::RawJson;

use crate::store::{
    ListedSession, SessionStore, StoreError, StoreKey, StoredSummary, SummarizedSession, check_last_entry,
    uuid_of,
};

/// Stores transcripts in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    transcripts: Mutex<BTreeMap<StoreKey, StoredTranscript>>,
}

#[derive(Debug, Default)]
struct StoredTranscript {
    lines: Vec<RawJson>,
    uuids: HashSet<String>,
    /// Uuid of the last line that has one.
    last_uuid: Option<String>,
    modified_ms: u64,
    summary: StoredSummary,
}

impl StoredTranscript {
    fn append(&mut self, entries: &[RawJson]) {
        for entry in entries {
            let uuid = uuid_of(entry);
            if uuid.as_ref().is_none_or(|uuid| self.uuids.insert(uuid.clone())) {
                self.summary.add_lines([entry]);
                self.lines.push(entry.clone());
                self.last_uuid = uuid.or(self.last_uuid.take());
            }
        }
        let now = clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.modified_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    }
}

impl MemoryStore {
    fn transcripts(&self) -> MutexGuard<'_, BTreeMap<StoreKey, StoredTranscript>> {
        self.transcripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn summarized_sessions(&self, project: &str) -> Vec<SummarizedSession> {
        let transcripts = self.transcripts();
        let of_project =
            transcripts.iter().filter(|(key, _)| key.project == project && key.subpath.is_none());
        let mut found: Vec<SummarizedSession> = of_project
            .map(|(key, transcript)| SummarizedSession {
                listed: ListedSession { session: key.session.clone(), modified_ms: transcript.modified_ms },
                summary: transcript.summary.clone(),
            })
            .collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.listed.modified_ms));
        found
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        if !entries.is_empty() {
            self.transcripts().entry(key.clone()).or_default().append(entries);
        }
        Ok(())
    }

    async fn append_after(
        &self,
        key: &StoreKey,
        last: Option<&str>,
        entries: &[RawJson],
    ) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut transcripts = self.transcripts();
        let stored = transcripts.get(key);
        let last_stored = stored.and_then(|transcript| transcript.last_uuid.as_deref());
        let is_stored = |uuid: &str| {
            Ok::<_, StoreError>(stored.is_some_and(|transcript| transcript.uuids.contains(uuid)))
        };
        check_last_entry(entries, last, last_stored, is_stored)?;
        transcripts.entry(key.clone()).or_default().append(entries);
        Ok(())
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        Ok(self.transcripts().get(key).map(|transcript| transcript.lines.clone()))
    }

    async fn list(&self, project: &str) -> Result<Vec<ListedSession>, StoreError> {
        Ok(self.summarized_sessions(project).into_iter().map(|session| session.listed).collect())
    }

    async fn summaries(&self, project: &str) -> Result<Vec<SummarizedSession>, StoreError> {
        Ok(self.summarized_sessions(project))
    }

    async fn summary(&self, project: &str, session: &str) -> Result<Option<StoredSummary>, StoreError> {
        let transcripts = self.transcripts();
        Ok(transcripts.get(&StoreKey::session(project, session)).map(|transcript| transcript.summary.clone()))
    }

    async fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        let is_deleted = |transcripts: &StoreKey| match &key.subpath {
            Some(_) => transcripts == key,
            None => (&transcripts.project, &transcripts.session) == (&key.project, &key.session),
        };
        self.transcripts().retain(|transcripts, _| !is_deleted(transcripts));
        Ok(())
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError> {
        let transcripts = self.transcripts();
        let below = transcripts.keys().filter(|key| key.project == project && key.session == session);
        Ok(below.filter_map(|key| key.subpath.clone()).collect())
    }
}
