//! The `resume_pending_calls` request: calls of the last reply that never started, because the engine ended before, go
//! through the permission check again and run if they are allowed. Then the turn continues as usual.

use whimbrel_os::files;
use whimbrel_session_store::load::LoadedConversation;
use whimbrel_session_store::load::open_calls::{OpenCall, OpenCallState};
use whimbrel_wire::control::{ControlResponse, PendingCall, ResumePendingCallsReply};

use super::Session;
use super::rewind::TURN_RUNNING;
use super::turns::TurnWork;
use crate::turn_start::PendingCallsInput;

impl Session {
    /// Handles the request. The turn starts at once; the response comes first.
    pub(crate) async fn resume_pending_calls(&mut self, id: String) -> ControlResponse {
        if self.is_busy() {
            let text = "Calls cannot be resumed while a turn runs or a prompt waits.";
            return ControlResponse::error_with_code(id, text, TURN_RUNNING);
        }
        // Without a conversation nothing is pending.
        if self.main_agent.idle.is_none() && self.setup.session.resumed.is_none() {
            return ControlResponse::success(id, &ResumePendingCallsReply::default());
        }
        let loaded = match self.load_open_calls().await {
            Ok(loaded) => loaded,
            Err(error) => return ControlResponse::error(id, error),
        };
        let calls: Vec<PendingCall> = loaded.open_calls.iter().filter_map(to_pending_call).collect();
        if !calls.is_empty() {
            self.start_pending_calls(loaded).await;
        }
        ControlResponse::success(id, &ResumePendingCallsReply { calls })
    }

    async fn load_open_calls(&mut self) -> Result<LoadedConversation, String> {
        let transcript = self.read_transcript().await?;
        let loaded = files::run_blocking(move || transcript.load_with_open_calls()).await;
        loaded.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    async fn start_pending_calls(&mut self, loaded: LoadedConversation) {
        self.complete_setup();
        if self.setup_error.is_some() {
            return;
        }
        let mut agent = self.take_main_agent().await;
        self.attach_main_agent(&mut agent);
        self.publish_turn_start().await;
        let session_start = self.session_start();
        let (init, warning) = (self.build_init(), self.setup.host.warning.take());
        let input = PendingCallsInput { session_start, init, warning, loaded };
        self.start_work(agent, TurnWork::PendingCalls(Box::new(input)), None);
    }
}

fn to_pending_call(call: &OpenCall) -> Option<PendingCall> {
    let OpenCall { id, tool, input, state } = call.clone();
    (state == OpenCallState::Unstarted).then_some(PendingCall { tool_use_id: id, tool_name: tool, input })
}
