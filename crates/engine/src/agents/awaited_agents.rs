//! Background agents whose reports the main agent awaits. The transcript records them, so that a resumed session can
//! report to the model which of them were lost with the earlier run.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whimbrel_session_store::awaited_agents::AwaitedAgent;
use whimbrel_session_store::transcript_writer::TranscriptWriter;

/// The agents awaited in this run. Each change is written to the transcript.
#[derive(Debug, Default)]
pub struct AwaitedAgents(Mutex<AwaitedState>);

#[derive(Debug, Default)]
struct AwaitedState {
    agents: BTreeSet<AwaitedAgent>,
    /// The model gets a reminder about lost agents, but the transcript still lists them.
    has_pending_reminder: bool,
}

impl AwaitedAgents {
    /// Adds an agent that a call has left in the background.
    pub(super) async fn add(&self, agent_id: &str, tool_use_id: &str, transcript: &TranscriptWriter) {
        let agent = AwaitedAgent { agent_id: agent_id.to_owned(), tool_use_id: tool_use_id.to_owned() };
        self.change(transcript, |agents| {
            agents.retain(|known| known.agent_id != agent.agent_id);
            agents.insert(agent);
        })
        .await;
    }

    /// Removes an agent whose end the model knows.
    pub async fn remove(&self, agent_id: &str, transcript: &TranscriptWriter) {
        self.change(transcript, |agents| agents.retain(|known| known.agent_id != agent_id)).await;
    }

    /// Called when the reminder about lost agents is in the conversation but not in the transcript yet.
    pub(super) fn mark_reminder_pending(&self) {
        self.lock().has_pending_reminder = true;
    }

    /// Called when the transcript has the reminder: the lost agents are no longer awaited.
    pub async fn confirm_reminder(&self, transcript: &TranscriptWriter) {
        self.change(transcript, |_| {}).await;
    }

    async fn change(&self, transcript: &TranscriptWriter, change: impl FnOnce(&mut BTreeSet<AwaitedAgent>)) {
        {
            let mut state = self.lock();
            let before = state.agents.clone();
            change(&mut state.agents);
            if !std::mem::take(&mut state.has_pending_reminder) && state.agents == before {
                return;
            }
            // Written under the lock, so that the last entry is the last state.
            transcript.record_awaited_agents(&state.agents.iter().cloned().collect::<Vec<_>>());
        }
        transcript.flush().await;
    }

    fn lock(&self) -> MutexGuard<'_, AwaitedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reminder for the model of a resumed session about agents that ended with the earlier run.
pub(super) fn lost_agents_reminder(agents: &[AwaitedAgent]) -> Option<String> {
    let names = agents.iter().map(|agent| agent.agent_id.as_str()).collect::<Vec<_>>().join(", ");
    (!agents.is_empty()).then(|| {
        format!(
            "<system-reminder>\nBackground agents stopped when the previous run ended, before they reported: {names}. They will not report any more. Continue one (Agent with `resume`), or do its work yourself.\n</system-reminder>"
        )
    })
}

#[cfg(test)]
mod tests {
    use whimbrel_session_store::Mirror;

    use super::*;

    fn ids(awaited: &AwaitedAgents) -> Vec<String> {
        awaited.lock().agents.iter().map(|agent| agent.agent_id.clone()).collect()
    }

    #[tokio::test]
    async fn an_agent_is_awaited_until_it_reports() {
        let (awaited, transcript) = (AwaitedAgents::default(), TranscriptWriter::new("s", None, Mirror::Off));
        awaited.add("a1", "call1", &transcript).await;
        awaited.add("a2", "call2", &transcript).await;
        awaited.add("a1", "call3", &transcript).await;
        assert_eq!(ids(&awaited), ["a1", "a2"], "continuing an agent counts once");
        awaited.remove("a1", &transcript).await;
        awaited.remove("a3", &transcript).await;
        assert_eq!(ids(&awaited), ["a2"]);
    }

    #[test]
    fn reminder_names_the_lost_agents() {
        assert_eq!(lost_agents_reminder(&[]), None);
        let agents = ["a1", "a2"].map(|id| AwaitedAgent { agent_id: id.into(), tool_use_id: "c".into() });
        let reminder = lost_agents_reminder(&agents).unwrap();
        assert!(reminder.contains("before they reported: a1, a2. They"), "{reminder}");
    }
}
