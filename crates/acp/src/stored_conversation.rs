//! What a stored session shows: its messages, and those of its subagents.

use std::collections::{HashMap, HashSet, VecDeque};

use agent_client_protocol::Error;
use whimbrel::Sessions;
use whimbrel::store::Message;

use crate::errors::from_sessions_error;

/// The messages of a session.
#[derive(Debug, Default)]
pub(crate) struct StoredConversation {
    pub(crate) messages: Vec<Message>,
    /// Messages of subagents, by the call that started them.
    pub(crate) subagents: HashMap<String, Vec<Message>>,
}

impl StoredConversation {
    /// Reads a session; one that is not stored has no messages, as before its first prompt.
    pub(crate) async fn read(stored: &Sessions, session: &str) -> Result<Self, Error> {
        if stored.find(session).await.map_err(|error| from_sessions_error(&error))?.is_none() {
            return Ok(Self::default());
        }
        let messages = stored.messages(session).await.map_err(|error| from_sessions_error(&error))?;
        let mut conversation = Self { messages, subagents: HashMap::new() };
        let mut read_agents = HashSet::new();
        let mut started: VecDeque<(String, String)> = started_agents(&conversation.messages).collect();
        while let Some((call, agent)) = started.pop_front() {
            // An agent that was continued has one transcript for all its calls.
            if !read_agents.insert(agent.clone()) {
                continue;
            }
            let messages = stored.subagent_messages(session, &agent).await;
            // What a subagent did is left out if it cannot be read.
            let messages = messages.unwrap_or_default();
            started.extend(started_agents(&messages));
            conversation.subagents.insert(call, messages);
        }
        Ok(conversation)
    }
}

/// The calls that started agents, and the ids of these agents.
fn started_agents(messages: &[Message]) -> impl Iterator<Item = (String, String)> {
    messages.iter().filter_map(|message| {
        let agent = message.tool_use_result.as_ref()?["agentId"].as_str()?;
        let call = message.message["content"][0]["tool_use_id"].as_str()?;
        Some((call.to_owned(), agent.to_owned()))
    })
}
