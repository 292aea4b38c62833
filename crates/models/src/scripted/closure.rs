//! A model implemented by a closure: for tests, and for programs that supply their own model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;

use super::{PlaybackStep, ScriptedReply, play_steps};
use crate::anthropic::body;
use crate::error::ModelError;
use crate::model::{Model, ReplyItem};
use crate::request::Request;

/// A model implemented by a closure, which receives each request with its number, starting at 0, and returns the reply.
///
/// ```
/// use std::sync::Arc;
/// use whimbrel_models::providers::Providers;
/// use whimbrel_models::scripted::{ClosureModel, ScriptedReply};
///
/// let providers = Providers::offline();
/// providers.add_model("echo", Arc::new(ClosureModel::new(|request, number| {
///     Ok(ScriptedReply::text(format!("{number}: {} messages", request.history.messages().len())))
/// })));
/// assert!(providers.resolve("echo").is_ok());
/// ```
pub struct ClosureModel<F> {
    respond: F,
    request_count: AtomicUsize,
}

impl<F: Fn(&Request, usize) -> Result<ScriptedReply, ModelError> + Send + Sync> ClosureModel<F> {
    pub fn new(respond: F) -> Self {
        Self { respond, request_count: AtomicUsize::new(0) }
    }
}

impl<F: Fn(&Request, usize) -> Result<ScriptedReply, ModelError> + Send + Sync> Model for ClosureModel<F> {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        let number = self.request_count.fetch_add(1, Ordering::Relaxed);
        play_steps(match (self.respond)(&request, number) {
            Ok(reply) => {
                let asked = body::to_value(&request).to_string();
                reply.playback_steps(number, &request, &asked, Duration::ZERO)
            }
            Err(fault) => vec![PlaybackStep::Emit(Err(fault))],
        })
    }
}
