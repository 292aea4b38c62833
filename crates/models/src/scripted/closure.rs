//! A model that a function plays: for tests, and for programs that bring a model of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;

use super::{PlaybackStep, ScriptedReply, play_steps};
use crate::anthropic::body;
use crate::error::ModelError;
use crate::model::{ReplyItem, Model};
use crate::request::Request;

/// A model that a function plays, so that a test or a program of your own needs no file: the function gets each request
/// and its number, from 0, and gives the reply.
///
/// ```
/// use std::sync::Arc;
/// use whimbrel_models::providers::Providers;
/// use whimbrel_models::scripted::{Played, Reply};
///
/// let providers = Providers::offline();
/// providers.add_model("echo", Arc::new(Played::new(|request, number| {
///     Ok(Reply::text(format!("{number}: {} messages", request.history.messages().len())))
/// })));
/// assert!(providers.resolve("echo").is_ok());
/// ```
pub struct ClosureModel<F> {
    respond: F,
    request_count: AtomicUsize,
}

impl<F: Fn(&Request, usize) -> Result<ScriptedReply, ModelError> + Send + Sync> ClosureModel<F> {
    /// A model that this function plays.
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
