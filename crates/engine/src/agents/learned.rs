//! What an agent has read before it hears of its errand: the skills that its kind names.

use super::{Agents, Definition};
use crate::agent::Agent;
use crate::files;

impl Agents {
    /// Shows an agent the skills of its kind. What cannot be had is told to the host; the agent begins without it.
    pub(super) async fn load_skills(&self, agent: &mut Agent, definition: &Definition) {
        for name in &definition.skills {
            let (skills, wanted) = (self.home.skills.clone(), name.clone());
            let body =
                files::aside(move || skills.body(&wanted).map_err(|missing| missing.to_string())).await;
            match body.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(body) => {
                    agent.conversation.brief(&format!("The skill {name}, for your errand:\n\n{body}"));
                }
                Err(why) => {
                    let told =
                        format!("The agent {} begins without the skill {name}: {why}", definition.name);
                    self.home.outbox.warn(told).await;
                }
            }
        }
    }
}
