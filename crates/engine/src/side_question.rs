//! Questions beside the conversation: the model answers from the conversation so far, without tools. The conversation does
//! not change, and a running turn goes on meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_models::history::HistorySnapshot;
use whimbrel_models::model_call::{CallTimeouts, ModelCall};
use whimbrel_models::providers::ApiDialect;
use whimbrel_models::retry::RetryPolicy;
use whimbrel_models::{History, ModelError, ModelErrorKind, Request, RequestPrefix};
use whimbrel_tools::cost::{CostLedger, MeteredCall};
use whimbrel_tools::model_access::ModelAccess;
use whimbrel_tools::small_model::read_reply_text;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::{Block, Role};

const MAX_ANSWER_TOKENS: u64 = 8_192;

/// Name of the share of the cost.
const COST_SHARE: &str = "side questions";

/// Precedes the question.
const QUESTION_PROMPT: &str = "<system-reminder>\nThe user asks a question beside the conversation. Answer it now, in one short reply, from what you \
already know. You cannot call tools, and the reply must not announce or promise any action: work that is under way \
continues by itself, and this exchange is not kept. If the conversation does not hold the answer, say so.\n</system-reminder>";

/// Result of a tool call that has none yet.
const UNFINISHED_CALL: &str = "This call has not finished yet.";

/// The conversation as the model sees it, readable while a turn owns it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ConversationView(Arc<Mutex<Option<RecordedConversation>>>);

#[derive(Debug, Clone)]
pub struct RecordedConversation {
    /// Full name of the model.
    pub model: String,
    /// System prompt and tools.
    pub prefix: Arc<RequestPrefix>,
    pub history: HistorySnapshot,
}

impl ConversationView {
    pub fn record(&self, conversation: RecordedConversation) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(conversation);
    }

    fn read(&self) -> Option<RecordedConversation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Asks the questions. Cheap to clone; the cost is recorded in the session's ledger.
#[derive(Clone)]
pub(crate) struct SideQuestionAsker {
    pub(crate) view: ConversationView,
    pub(crate) models: ModelAccess,
    pub(crate) ledger: CostLedger,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) timing: CallTimeouts,
    pub(crate) betas: Vec<String>,
    pub(crate) session_id: Arc<str>,
}

impl SideQuestionAsker {
    /// Asks one question and returns the answer.
    pub(crate) async fn ask(&self, question: &str) -> Result<String, ModelError> {
        let conversation = self.view.read().ok_or_else(empty_conversation)?;
        let RecordedConversation { model, prefix, history } = conversation;
        let (provider, name) = self.models.resolve(&model)?;
        let dialect = self.models.providers().dialect(&model);
        let mut history = build_history(&history, question, dialect).ok_or_else(empty_conversation)?;
        let request = Request {
            max_tokens: MAX_ANSWER_TOKENS.min(self.models.catalog().max_output_tokens(&model)),
            betas: self.betas.clone(),
            session_id: self.session_id.to_string(),
            ..Request::new(name, prefix, history.snapshot())
        };
        let call = ModelCall::new(provider, request, self.retry_policy, self.timing);
        let ledger = self.ledger.for_agent(COST_SHARE);
        read_reply_text(MeteredCall::start(call, self.models.clone(), ledger, model).await?, None).await
    }
}

fn empty_conversation() -> ModelError {
    ModelError::new(
        ModelErrorKind::Protocol,
        "There is no conversation to ask about yet: send a prompt first.",
    )
}

/// The conversation with the question at its end; `None` if the conversation is empty.
fn build_history(
    conversation: &HistorySnapshot,
    question: &str,
    dialect: Option<ApiDialect>,
) -> Option<History> {
    let messages = conversation.messages();
    let last = messages.last()?;
    let mut history = History::new();
    for message in &messages {
        message.content.iter().for_each(|block| history.push(message.role, block));
    }
    if last.role == Role::Assistant {
        last.content
            .iter()
            .filter_map(unfinished_result)
            .for_each(|result| history.push(Role::User, &result));
    }
    if history.tool_loop_has_thinking() == Some(true) && dialect != Some(ApiDialect::Chat) {
        // The answer is requested without thinking. Chat Completions still requires the reasoning before a call.
        history.drop_thinking();
    }
    history.push(Role::User, &Block::text(format!("{QUESTION_PROMPT}\n\n{question}")));
    Some(history)
}

/// Providers require a result for every call.
fn unfinished_result(block: &Block) -> Option<Block> {
    let Block::ToolUse { id, .. } = block else { return None };
    let content = Some(ResultContent::Text(UNFINISHED_CALL.into()));
    Some(Block::ToolResult { tool_use_id: id.clone(), content, is_error: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question_after(messages: &[(Role, Block)]) -> Option<serde_json::Value> {
        let mut history = History::new();
        messages.iter().for_each(|(role, block)| history.push(*role, block));
        let asked = build_history(&history.snapshot(), "Why?", Some(ApiDialect::Messages))?;
        let messages = asked.messages();
        Some(json!(messages.iter().map(|message| (message.role, &message.content)).collect::<Vec<_>>()))
    }

    fn call() -> Block {
        Block::ToolUse { id: "t1".into(), name: "Bash".into(), input: json!({}) }
    }

    #[test]
    fn question_follows_the_conversation() {
        assert_eq!(question_after(&[]), None);
        let question = json!({"type": "text", "text": format!("{QUESTION_PROMPT}\n\nWhy?")});
        let prompt = (Role::User, Block::text("Go."));
        assert_eq!(
            question_after(std::slice::from_ref(&prompt)),
            Some(json!([["user", [{"type": "text", "text": "Go."}, question]]]))
        );
        let asked = question_after(&[prompt, (Role::Assistant, call())]).unwrap();
        let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": UNFINISHED_CALL});
        assert_eq!(asked[2], json!(["user", [result, question]]));
    }

    #[test]
    fn thinking_of_an_open_tool_loop_is_left_out() {
        let thinking = Block::Thinking { thinking: "Hm.".into(), signature: "s".into() };
        let messages =
            [(Role::User, Block::text("Go.")), (Role::Assistant, thinking), (Role::Assistant, call())];
        assert!(!question_after(&messages).unwrap().to_string().contains("Hm."));
    }
}
