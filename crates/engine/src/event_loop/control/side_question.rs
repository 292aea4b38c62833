//! Answers a question of the user beside the conversation, also while a turn runs.

use whimbrel_wire::control::{ControlResponse, SideQuestion, SideQuestionReply};

use super::AgentHandles;
use crate::event_loop::Session;

/// Responds with the model's answer. The host may withdraw the question.
pub(super) async fn answer_question(
    session: &mut Session,
    id: String,
    request: SideQuestion,
) -> Option<ControlResponse> {
    let question = request.question.trim().to_owned();
    if question.is_empty() {
        return Some(ControlResponse::error(id, "The question is empty. Put it into the field `question`."));
    }
    session.prepare_side_question().await;
    let Some(AgentHandles { side_questions, transcript_writer, .. }) = session.main_agent.handles.clone()
    else {
        return Some(ControlResponse::error(
            id,
            "There is no conversation to ask about yet: send a prompt first.",
        ));
    };
    let withdrawn = session.withdrawable_requests.register(&id);
    let session_id = session.host.frame_sender.session_id();
    let workspace = session.setup.session.workspace.clone();
    session.mcp.respond_later(async move {
        let answer = tokio::select! {
            biased;
            () = withdrawn => return ControlResponse::error(id, "The question was withdrawn."),
            answer = side_questions.ask(&question) => answer,
        };
        let spend = side_questions.ledger.snapshot();
        transcript_writer.record_cost(&spend.to_cost_state(&session_id, workspace.changed_lines()));
        match answer {
            Ok(answer) => ControlResponse::success(id, &SideQuestionReply { response: Some(answer) }),
            Err(error) => ControlResponse::error(id, error.message),
        }
    });
    None
}
