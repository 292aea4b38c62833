//! One-off requests to a model outside any conversation, such as summaries of web pages.

use std::sync::Arc;

use serde_json::Value;
use whimbrel_models::assemble::ReplyAssembler;
use whimbrel_models::model_call::{CallStep, CallTimeouts, ModelCall};
use whimbrel_models::providers::ApiDialect;
use whimbrel_models::retry::RetryPolicy;
use whimbrel_models::{History, ModelError, ModelErrorKind, Request, RequestPrefix};
use whimbrel_wire::{Block, Role, StopReason};

use crate::cost::{CostLedger, MeteredCall};
use crate::model_access::{self, ModelAccess};
use whimbrel_transport::frame_sender::FrameSender;

const MAX_REPLY_TOKENS: u64 = 8_192;

/// Calls the small model. Cheap to clone; the cost is recorded in the session's ledger.
#[derive(Clone)]
pub struct SmallModel {
    models: ModelAccess,
    ledger: CostLedger,
    model: String,
    policy: RetryPolicy,
    timing: CallTimeouts,
    session_id: Arc<str>,
}

impl SmallModel {
    pub fn new(
        models: ModelAccess,
        ledger: CostLedger,
        model: String,
        policy: RetryPolicy,
        session_id: Arc<str>,
    ) -> Self {
        Self { models, ledger, model, policy, timing: CallTimeouts::default(), session_id }
    }

    /// Sets the provider timeouts.
    #[must_use]
    pub fn with_timing(self, timing: CallTimeouts) -> Self {
        Self { timing, ..self }
    }

    /// The same model on another ledger.
    pub fn with_ledger(&self, ledger: CostLedger) -> Self {
        Self { ledger, ..self.clone() }
    }

    /// A model that cannot be called, for tests of tools that never call it.
    #[cfg(any(test, feature = "test-support"))]
    pub fn unavailable() -> Self {
        use whimbrel_models::providers::Providers;
        let models = ModelAccess::new(Providers::offline());
        Self::new(
            models,
            CostLedger::default(),
            "unavailable".into(),
            RetryPolicy::default(),
            "session".into(),
        )
    }

    /// Asks one question with the given system prompt.
    pub async fn ask(&self, system: &str, question: &str) -> Result<String, ModelError> {
        let prefix = RequestPrefix::new(vec![system.to_owned()], Vec::new());
        read_reply_text(self.start_call(prefix, question).await?, None).await
    }

    /// Returns whether the model's provider can search the web.
    pub fn can_search(&self) -> bool {
        self.models.providers().dialect(&self.model) == Some(ApiDialect::Messages)
    }

    /// Asks one question for which the provider may use a server-side tool; returns all blocks of the reply.
    pub async fn search(&self, system: &str, question: &str, tool: Value) -> Result<Vec<Block>, ModelError> {
        let prefix = RequestPrefix::with_server_tools(vec![system.to_owned()], vec![tool]);
        let (blocks, _) = read_reply(self.start_call(prefix, question).await?, None).await?;
        Ok(blocks)
    }

    async fn start_call(&self, prefix: RequestPrefix, question: &str) -> Result<MeteredCall, ModelError> {
        let (provider, name) = self.models.resolve(&self.model)?;
        let mut history = History::new();
        history.push(Role::User, &Block::text(question));
        let request = Request {
            max_tokens: MAX_REPLY_TOKENS.min(self.models.catalog().max_output_tokens(&self.model)),
            session_id: self.session_id.to_string(),
            ..Request::new(name, Arc::new(prefix), history.snapshot())
        };
        let call = ModelCall::new(provider, request, self.policy, self.timing);
        MeteredCall::start(call, self.models.clone(), self.ledger.clone(), self.model.clone()).await
    }
}

/// The text of one complete reply. An empty or unfinished reply is an error. Retries are reported to the host if one
/// is given.
pub async fn read_reply_text(call: MeteredCall, host: Option<&FrameSender>) -> Result<String, ModelError> {
    let (blocks, stop_reason) = read_reply(call, host).await?;
    let texts = blocks.into_iter().filter_map(|block| match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    });
    let text_of_reply: String = texts.collect();
    let unfinished = match stop_reason {
        Some(StopReason::MaxTokens) => Some("The model's answer hit the output limit."),
        Some(StopReason::Refusal) => Some("The model declined to answer."),
        _ => None,
    };
    if let Some(reason) = unfinished {
        return Err(ModelError::new(ModelErrorKind::Protocol, reason));
    }
    if text_of_reply.trim().is_empty() {
        return Err(ModelError::new(ModelErrorKind::Protocol, "The model's answer is empty."));
    }
    Ok(text_of_reply)
}

/// The blocks of one complete reply, and its stop reason.
async fn read_reply(
    mut call: MeteredCall,
    host: Option<&FrameSender>,
) -> Result<(Vec<Block>, Option<StopReason>), ModelError> {
    let mut assembler = ReplyAssembler::default();
    let mut blocks = Vec::new();
    while let Some(step) = call.next().await {
        match step? {
            CallStep::Item(delta) => {
                blocks.extend(assembler.push_event(&delta.event)?.map(|finished| finished.block));
            }
            CallStep::Retry(retry) => {
                if let Some(host) = host {
                    host.notify(model_access::retry_notice(&retry)).await;
                }
                assembler = ReplyAssembler::default();
                blocks.clear();
            }
            CallStep::Truncated(error) => return Err(error),
        }
    }
    Ok((blocks, assembler.stop_reason))
}
