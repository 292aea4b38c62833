//! A session that several tasks ask, one after the other.

use std::sync::Arc;

use tokio::sync::Mutex;
use whimbrel_wire::message::User;

use crate::controls::Controls;
use crate::turns::session::Session;
use crate::turns::turn::Turn;

/// A session that several tasks share, for example the requests of one user of a web service. Their turns run in the
/// order of the calls. It is cheap to clone; the session stops when the last clone and the last turn are dropped.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, Session, SharedSession};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::new().script(Scripted::replies(json!(["one", "two"]))?);
/// let session = SharedSession::new(Session::open(&agent).await?);
/// let other = session.clone();
/// let first = tokio::spawn(async move { other.ask("a").await.await });
/// assert!(first.await?.is_ok());
/// assert_eq!(session.ask("b").await.await?.text(), "two");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SharedSession {
    session: Arc<Mutex<Session>>,
    controls: Controls,
}

impl SharedSession {
    /// Shares a session.
    pub fn new(session: Session) -> Self {
        let controls = session.controls().clone();
        Self { session: Arc::new(Mutex::new(session)), controls }
    }

    /// Waits for the turns before it, then asks. Dropping the turn interrupts it and lets the next one begin.
    pub async fn ask(&self, prompt: impl Into<User>) -> Turn<'static> {
        let prompt = prompt.into();
        Turn::with_lock(Arc::clone(&self.session).lock_owned().await, prompt)
    }

    /// Controls of the session; they work while a turn runs.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }
}
