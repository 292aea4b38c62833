//! Publishes the session state (running, requires action, idle) to the host. The state follows from the [`Activity`];
//! each change is sent once, and the start of each turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::system::{SessionState, SessionStateChanged};

use crate::session_lifetime::{Activity, HostInput};

/// Sends `session_state_changed` frames if the host subscribed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateNotifier {
    frame_sender: FrameSender,
    subscription: StateSubscription,
    /// Requests that the host has not answered.
    pending_count: Arc<AtomicUsize>,
    /// Current activity and last published state. Locked while a frame is sent, so that changes arrive in order.
    published: Arc<Mutex<PublishedState>>,
}

/// Whether the host has subscribed to state frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSubscription {
    Off,
    /// For the SDK itself, which hides the frames from its caller.
    Sdk,
    /// For the caller of the SDK.
    Caller,
}

#[derive(Debug)]
struct PublishedState {
    activity: Activity,
    last: Option<SessionState>,
}

impl StateNotifier {
    /// Creates a notifier. The initial idle state is not sent.
    pub fn new(frame_sender: FrameSender, subscription: StateSubscription) -> Self {
        let activity = Activity {
            input: HostInput::Open,
            turn_running: false,
            input_pending: false,
            pending_requests: 0,
            running_agents: 0,
            running_commands: 0,
        };
        let published = PublishedState { activity, last: Some(SessionState::Idle) };
        Self {
            frame_sender,
            subscription,
            pending_count: Arc::default(),
            published: Arc::new(Mutex::new(published)),
        }
    }

    /// Publishes the state that follows from this activity.
    pub async fn publish(&self, activity: Activity) {
        self.update(|published| published.activity = activity).await;
    }

    /// Publishes the start of a turn, even if the state is unchanged: the host learns that its prompt was accepted.
    pub async fn publish_turn_start(&self, activity: Activity) {
        self.update(|published| {
            published.activity = Activity { turn_running: true, ..activity };
            published.last = None;
        })
        .await;
    }

    pub fn pending_requests(&self) -> usize {
        self.pending_count.load(Ordering::Relaxed)
    }

    /// Counts a pending request to the host until [`ActionRequired::finish`] is called or the guard is dropped.
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
        let mut published = self.published.lock().await;
        change(&mut published);
        published.activity.pending_requests = self.pending_requests();
        let state = published.activity.session_state();
        if published.last.as_ref() != Some(&state) {
            published.last = Some(state.clone());
            self.frame_sender.notify(SessionStateChanged { state, sdk_host_only }).await;
        }
    }
}

/// Guard of a pending request to the host. An interrupted turn just drops it.
#[derive(Debug)]
pub struct ActionRequired(StateNotifier);

impl ActionRequired {
    /// Ends the wait and publishes the state.
    pub async fn finish(self) {
        let notifier = self.0.clone();
        drop(self);
        notifier.update(|_| {}).await;
    }
}

impl Drop for ActionRequired {
    fn drop(&mut self) {
        self.0.pending_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// The state shown to the host.
    fn session_state(&self) -> SessionState {
        if self.pending_requests > 0 {
            SessionState::RequiresAction
        } else if self.turn_running || self.input_pending || self.running_agents > 0 {
            SessionState::Running
        } else {
            SessionState::Idle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Activity = Activity {
        input: HostInput::Finished,
        turn_running: false,
        input_pending: false,
        pending_requests: 0,
        running_agents: 0,
        running_commands: 0,
    };

    #[test]
    fn state_shown_to_host() {
        use SessionState::{Idle, RequiresAction, Running};
        let table = [
            ("no activity", IDLE, Idle),
            ("open input, no activity", Activity { input: HostInput::Open, ..IDLE }, Idle),
            ("a turn runs", Activity { turn_running: true, ..IDLE }, Running),
            ("a prompt waits", Activity { input_pending: true, ..IDLE }, Running),
            ("an agent runs in the background", Activity { running_agents: 1, ..IDLE }, Running),
            ("a command runs in the background", Activity { running_commands: 1, ..IDLE }, Idle),
            (
                "the turn waits for the host",
                Activity { turn_running: true, pending_requests: 1, ..IDLE },
                RequiresAction,
            ),
            (
                "an agent waits for the host",
                Activity { running_agents: 2, pending_requests: 1, ..IDLE },
                RequiresAction,
            ),
        ];
        for (name, activity, expected) in table {
            assert_eq!(activity.session_state(), expected, "{name}");
        }
    }
}
