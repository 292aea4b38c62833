//! The state that a host sees: running, waiting for the host, or idle. What it is follows from how the run stands
//! ([`Moment`]); here it is shown, each change once, and the beginning of each turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use whimbrel_wire::system::{SessionState, SessionStateChanged};

use crate::life::{Input, Moment};
use crate::outbox::Outbox;

/// Tells the host about the state, if it asked to know. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateSign {
    outbox: Outbox,
    wanted: Wanted,
    /// Questions that the host has not answered.
    waiting: Arc<AtomicUsize>,
    /// How the run stands, and what the host was shown last. Held while it is shown: changes are told in their order.
    shown: Arc<Mutex<Shown>>,
}

/// Whether the host wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// No.
    Never,
    /// Yes, the SDK for itself: it hides the frames from its caller.
    BySdk,
    /// Yes, the caller.
    ByCaller,
}

#[derive(Debug)]
struct Shown {
    moment: Moment,
    last: Option<SessionState>,
}

impl StateSign {
    /// A sign that speaks through `outbox`. Nothing runs yet, and that need not be said.
    pub fn new(outbox: Outbox, wanted: Wanted) -> Self {
        let moment =
            Moment { input: Input::Open, turn: false, due: false, questions: 0, agents: 0, commands: 0 };
        let shown = Shown { moment, last: Some(SessionState::Idle) };
        Self { outbox, wanted, waiting: Arc::default(), shown: Arc::new(Mutex::new(shown)) }
    }

    /// The run stands like this now.
    pub async fn show(&self, moment: Moment) {
        self.change(|shown| shown.moment = moment).await;
    }

    /// A turn begins. That is said each time: a host that has sent a prompt learns that it was taken up.
    pub async fn show_turn(&self, moment: Moment) {
        self.change(|shown| {
            shown.moment = Moment { turn: true, ..moment };
            shown.last = None;
        })
        .await;
    }

    /// How many questions the host has not answered.
    pub fn questions(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The session waits for the host until [`Waiting::over`] is called.
    pub async fn requires_action(&self) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(self.clone());
        self.change(|_| {}).await;
        waiting
    }

    async fn change(&self, change: impl FnOnce(&mut Shown)) {
        let sdk_host_only = match self.wanted {
            Wanted::Never => return,
            Wanted::BySdk => Some(true),
            Wanted::ByCaller => None,
        };
        let mut shown = self.shown.lock().await;
        change(&mut shown);
        shown.moment.questions = self.questions();
        let state = shown.moment.state();
        if shown.last.as_ref() != Some(&state) {
            shown.last = Some(state.clone());
            self.outbox.notify(SessionStateChanged { state, sdk_host_only }).await;
        }
    }
}

/// The session waits for the host. An interrupted turn just drops it.
#[derive(Debug)]
pub struct Waiting(StateSign);

impl Waiting {
    /// The host has answered.
    pub async fn over(self) {
        let sign = self.0.clone();
        drop(self);
        sign.change(|_| {}).await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
