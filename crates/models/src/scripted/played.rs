//! A model that a function plays: for tests, and for programs that bring a model of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;

use super::{Act, Reply, perform};
use crate::anthropic::body;
use crate::fault::Fault;
use crate::model::{Delta, Model};
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
pub struct Played<F> {
    play: F,
    asked: AtomicUsize,
}

impl<F: Fn(&Request, usize) -> Result<Reply, Fault> + Send + Sync> Played<F> {
    /// A model that this function plays.
    pub fn new(play: F) -> Self {
        Self { play, asked: AtomicUsize::new(0) }
    }
}

impl<F: Fn(&Request, usize) -> Result<Reply, Fault> + Send + Sync> Model for Played<F> {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        perform(match (self.play)(&request, number) {
            Ok(reply) => {
                let asked = body::value(&request).to_string();
                reply.acts(number, &request, &asked, Duration::ZERO)
            }
            Err(fault) => vec![Act::Give(Err(fault))],
        })
    }
}
