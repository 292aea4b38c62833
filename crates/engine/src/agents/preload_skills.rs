//! Preloads the skills that an agent definition names.

use whimbrel_os::files;

use super::{AgentSpawner, Definition};
use crate::agent::Agent;

impl AgentSpawner {
    /// Adds the skills of a definition to the conversation. Missing skills are reported to the host; the agent starts
    /// without them.
    pub(super) async fn load_skills(&self, agent: &mut Agent, definition: &Definition) {
        for name in &definition.skills {
            let (skills, wanted) = (self.context.skills.clone(), name.clone());
            let body = files::run_blocking(move || {
                skills.render_body(&wanted).map_err(|missing| missing.to_string())
            })
            .await;
            match body.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(body) => {
                    agent.conversation.push_hidden(&format!("The skill {name}, for your errand:\n\n{body}"));
                }
                Err(why) => {
                    let told =
                        format!("The agent {} begins without the skill {name}: {why}", definition.name);
                    self.context.frame_sender.warn(told).await;
                }
            }
        }
    }
}
