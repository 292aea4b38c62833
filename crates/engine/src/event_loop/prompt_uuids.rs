//! Uuids of prompts: each prompt gets one that is unique in the transcript.

use whimbrel_os::ids;
use whimbrel_wire::message::User;

use super::Session;
use crate::agent::Agent;

impl Session {
    /// Gives each prompt a unique uuid: an empty or duplicate one would corrupt the transcript. The host is warned
    /// once.
    pub(super) fn assign_prompt_uuids(&mut self, prompts: Vec<&mut User>, agent: &mut Agent) {
        for user in prompts {
            let is_usable = |id: &String| !id.trim().is_empty() && agent.conversation.claim_uuid(id);
            let host_uuid = user.uuid.take();
            let had_uuid = host_uuid.is_some();
            user.uuid = host_uuid.filter(is_usable);
            if user.uuid.is_some() {
                continue;
            }
            user.uuid = Some(ids::new_uuid());
            if had_uuid && !std::mem::replace(&mut self.progress.warned_about_uuid, true) {
                let text = "A message has an empty or duplicate uuid. It was assigned a new one, as will be later ones.";
                let notice = self.setup.host.warning.take().into_iter().chain([text.to_owned()]);
                self.setup.host.warning = Some(notice.collect::<Vec<_>>().join("\n"));
            }
        }
    }
}
