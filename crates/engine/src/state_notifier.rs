//! The state that a host sees: running, waiting for the host, or idle. What it is follows from how the run stands
//! ([`Moment`]); here it is shown, each change once, and the beginning of each turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use whimbrel_wire::system::{SessionState, SessionStateChanged};

use crate::activity::{HostInput, Activity};
use crate::frame_sender::FrameSender;

/// Tells the host about the state, if it asked to know. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateNotifier {
    frame_sender: FrameSender,
    subscription: StateSubscription,
    /// Questions that the host has not answered.
    pending_count: Arc<AtomicUsize>,
    /// How the run stands, and what the host was shown last. Held while it is shown: changes are told in their order.
    published: Arc<Mutex<PublishedState>>,
}

/// Whether the host wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSubscription {
    /// No.
    Off,
    /// Yes, the SDK for itself: it hides the frames from its caller.
    Sdk,
    /// Yes, the caller.
    Caller,
}

#[derive(Debug)]
struct PublishedState {
    activity: Activity,
    last: Option<SessionState>,
}

impl StateNotifier {
    /// A sign that speaks through `outbox`. Nothing runs yet, and that need not be said.
    pub fn new(frame_sender: FrameSender, subscription: StateSubscription) -> Self {
        let moment =
            Activity { input: HostInput::Open, turn_running: false, input_pending: false, pending_requests: 0, running_agents: 0, running_commands: 0 };
        let shown = PublishedState { activity: moment, last: Some(SessionState::Idle) };
        Self { frame_sender, subscription, pending_count: Arc::default(), published: Arc::new(Mutex::new(shown)) }
    }

    /// The run stands like this now.
    pub async fn publish(&self, moment: Activity) {
        self.update(|shown| shown.activity = moment).await;
    }

    /// A turn begins. That is said each time: a host that has sent a prompt learns that it was taken up.
    pub async fn publish_turn_start(&self, moment: Activity) {
        self.update(|shown| {
            shown.activity = Activity { turn_running: true, ..moment };
            shown.last = None;
        })
        .await;
    }

    /// How many questions the host has not answered.
    pub fn pending_requests(&self) -> usize {
        self.pending_count.load(Ordering::Relaxed)
    }

    /// The session waits for the host until [`Waiting::over`] is called.
    pub async fn requires_action(&self) -> ActionRequired {
        self.pending_count.fetch_add(1, Ordering::Relaxed);
        let waiting = ActionRequired(self.clone());
        self.update(|_| {}).await;
        waiting
    }

    async fn update(&self, change: impl FnOnce(&mut PublishedState)) {
        let sdk_host_only = match self.subscription {
            StateSubscription::Off => return,
            StateSubscription::Sdk => Some(true),
            StateSubscription::Caller => None,
        };
        let mut shown = self.published.lock().await;
        change(&mut shown);
        shown.activity.pending_requests = self.pending_requests();
        let state = shown.activity.session_state();
        if shown.last.as_ref() != Some(&state) {
            shown.last = Some(state.clone());
            self.frame_sender.notify(SessionStateChanged { state, sdk_host_only }).await;
        }
    }
}

/// The session waits for the host. An interrupted turn just drops it.
#[derive(Debug)]
pub struct ActionRequired(StateNotifier);

impl ActionRequired {
    /// The host has answered.
    pub async fn finish(self) {
        let sign = self.0.clone();
        drop(self);
        sign.update(|_| {}).await;
    }
}

impl Drop for ActionRequired {
    fn drop(&mut self) {
        self.0.pending_count.fetch_sub(1, Ordering::Relaxed);
    }
}
