//! Background agents whose reports the main agent awaits. The transcript records them, so that a resumed session can tell
//! the model which of them were lost with the earlier run.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use whimbrel_session_store::load::AwaitedAgent;
use whimbrel_session_store::writer::TranscriptWriter;

/// The agents awaited in this run. The transcript always holds the current set.
#[derive(Debug, Default)]
pub struct AwaitedAgents(Mutex<BTreeSet<AwaitedAgent>>);

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

    async fn change(&self, transcript: &TranscriptWriter, change: impl FnOnce(&mut BTreeSet<AwaitedAgent>)) {
        let changed = {
            let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let before = agents.clone();
            change(&mut agents);
            (*agents != before).then(|| agents.iter().cloned().collect::<Vec<_>>())
        };
        if let Some(agents) = changed {
            transcript.record_awaited_agents(&agents).await;
        }
    }
}

/// The notice for the model of a resumed session about agents that ended with the earlier run.
pub(super) fn lost_agents_notice(agents: &[AwaitedAgent]) -> Option<String> {
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
        awaited.0.lock().unwrap().iter().map(|agent| agent.agent_id.clone()).collect()
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
    fn notice_names_the_lost_agents() {
        assert_eq!(lost_agents_notice(&[]), None);
        let agents = ["a1", "a2"].map(|id| AwaitedAgent { agent_id: id.into(), tool_use_id: "c".into() });
        let notice = lost_agents_notice(&agents).unwrap();
        assert!(notice.contains("before they reported: a1, a2. They"), "{notice}");
    }
}
