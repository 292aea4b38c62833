//! Session store in memory, for tests and for hosts that store nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use whimbrel_os::clock;
use whimbrel_wire::RawJson;

use crate::store::{
    ListedSession, SessionStore, StoreError, StoreKey, StoredSummary, SummarizedSession, uuid_of,
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
    modified_ms: u64,
    summary: StoredSummary,
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
        if entries.is_empty() {
            return Ok(());
        }
        let now = clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut transcripts = self.transcripts();
        let transcript = transcripts.entry(key.clone()).or_default();
        for entry in entries {
            if uuid_of(entry).is_none_or(|uuid| transcript.uuids.insert(uuid)) {
                transcript.summary.add_lines([entry]);
                transcript.lines.push(entry.clone());
            }
        }
        transcript.modified_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
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
