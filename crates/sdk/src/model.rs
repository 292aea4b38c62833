//! Models: providers as values, models of your own, layers around them, recordings, and scripted models for tests.
//!
//! By default an engine takes keys and endpoints from the environment ([`Environment`](crate::Environment)). An
//! [`EngineBuilder`](crate::EngineBuilder) takes them as values:
//!
//! ```
//! use whimbrel::model::Provider;
//! use whimbrel::{Agent, Engine};
//!
//! # fn key_of(_: &str) -> String { "k".into() }
//! let engine = Engine::builder()
//!     .provider(Provider::anthropic(key_of("anthropic")).header("x-team", "42"))
//!     .provider(Provider::chat("ollama", "http://localhost:11434/v1"))
//!     .build();
//! let agent = Agent::new().engine(engine).model("ollama:llama3");
//! ```
//!
//! A [`Model`] of your own has a name, and a layer is a model around another one:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! use futures::stream::BoxStream;
//! use whimbrel::model::{ClosureModel, Model, ModelError, ReplyItem, Request, ScriptedReply};
//! use whimbrel::{Agent, Engine, query};
//!
//! /// Counts the calls.
//! struct Counted {
//!     model: Arc<dyn Model>,
//!     calls: Arc<AtomicUsize>,
//! }
//!
//! impl Model for Counted {
//!     fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
//!         self.calls.fetch_add(1, Ordering::Relaxed);
//!         self.model.stream_reply(request)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let calls = Arc::new(AtomicUsize::new(0));
//! let counter = Arc::clone(&calls);
//! let engine = Engine::builder()
//!     .model("echo", ClosureModel::new(|_, _| Ok(ScriptedReply::text("Hello."))))
//!     .layer(move |model| Arc::new(Counted { model, calls: Arc::clone(&counter) }))
//!     .build();
//! let agent = Agent::new().engine(engine).model("echo");
//! # let agent = agent.persist_session(false);
//! assert_eq!(query("Hi.", &agent).await?.text(), "Hello.");
//! assert_eq!(calls.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`EngineBuilder::record_to`](crate::EngineBuilder::record_to) writes the replies of a run to a file, and
//! [`replay_from`](crate::EngineBuilder::replay_from) plays them again without a model.

pub use whimbrel_models::error::{ModelError, ModelErrorKind};
pub use whimbrel_models::event::{BlockDelta, ReplyEvent};
pub use whimbrel_models::history::{History, HistorySnapshot};
pub use whimbrel_models::model::{Model, RawEvents, ReplyItem};
pub use whimbrel_models::providers::{ApiDialect, ModelLayer, Provider};
pub use whimbrel_models::request::{OptionalPart, Request, RequestPrefix, ToolSpec};
pub use whimbrel_models::scripted::{ClosureModel, Script, Scripted, ScriptedFault, ScriptedReply};
pub use whimbrel_models::usage::ReportedUsage;
