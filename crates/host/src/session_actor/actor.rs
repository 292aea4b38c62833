//! The task of a session: it handles commands and frames, one after the other.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use whimbrel::{Controls, Error, Frame, Frames, PermissionMode};

use super::engine_session::EngineSession;
use super::event_log::EventLog;
use super::live::LiveBuffer;
use super::open_requests::OpenRequest;
use super::{Command, Reply, Subscribed};
use crate::error::{ApiError, ApiResult};
use crate::host::Host;
use crate::store::access::Person;
use crate::store::messages::MessageRow;
use crate::store::sessions::{Lease, SessionRow, SessionState};

/// Interval of the check for idle sessions, expired modes and sessions of other programs.
const TICK: Duration = Duration::from_secs(5);

/// Interval at which a failed write is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A turn that runs.
#[derive(Debug, Clone)]
pub(super) struct RunningTurn {
    pub(super) id: String,
    /// The message that began it.
    pub(super) message: Option<String>,
}

/// The owner of a session.
pub(crate) struct Actor {
    pub(super) host: Arc<Host>,
    pub(super) row: SessionRow,
    /// The session without what is not stored yet and may not happen.
    pub(super) settled: SessionRow,
    pub(super) lease: Lease,
    pub(super) log: EventLog,
    pub(super) live: LiveBuffer,
    pub(super) engine: Option<EngineSession>,
    /// Messages that wait, in order.
    pub(super) queue: VecDeque<MessageRow>,
    /// Messages that the engine has, but has not recorded yet.
    pub(super) sent_ahead: HashSet<String>,
    pub(super) turn: Option<RunningTurn>,
    pub(super) requests: HashMap<String, OpenRequest>,
    /// Requests whose changes are told to watchers with the next write.
    pub(super) changed_requests: Vec<String>,
    /// Who has just set a mode, until the engine confirms it.
    pub(super) mode_by: Option<(PermissionMode, Person)>,
    /// Uuids of the transcript that are events.
    pub(super) known_uuids: HashSet<u128>,
    /// Time and size of the transcript when it was compared last.
    pub(super) transcript_stamp: Option<(u64, Option<u64>)>,
    /// The turn was stopped in an orderly way and has not gone on yet.
    pub(super) is_suspended: bool,
    /// When the message was given that the model has not been asked about yet.
    pub(super) given_at: Option<std::time::Instant>,
    pub(super) commands: mpsc::WeakSender<Command>,
    receiver: mpsc::Receiver<Command>,
    pub(super) waiting_for_rest: Vec<Reply<()>>,
    last_used: Instant,
    pub(super) is_over: bool,
}

impl Actor {
    pub(super) async fn start(
        host: Arc<Host>,
        row: SessionRow,
        commands: mpsc::WeakSender<Command>,
        receiver: mpsc::Receiver<Command>,
        head: watch::Sender<i64>,
    ) -> ApiResult<Self> {
        let lasts_ms = i64::try_from(host.limits.lease_s.saturating_mul(1000)).unwrap_or(i64::MAX / 2);
        let lease = Lease::take(&host.store, &row.id, &host.node, lasts_ms).await?;
        let lease = lease.ok_or_else(|| {
            ApiError::session_elsewhere("another node of this host has the session: try again in a moment")
        })?;
        let queue = host.store.queued_messages(&row.id).await?.into();
        let known_uuids = host.store.event_uuids(&row.id).await?;
        host.metrics.sessions_open.fetch_add(1, Ordering::Relaxed);
        let log = EventLog::new(row.id.clone(), row.head, head);
        let mut actor = Self {
            host,
            settled: row.clone(),
            row,
            lease,
            log,
            live: LiveBuffer::default(),
            engine: None,
            queue,
            sent_ahead: HashSet::new(),
            turn: None,
            requests: HashMap::new(),
            changed_requests: Vec::new(),
            mode_by: None,
            known_uuids,
            transcript_stamp: None,
            is_suspended: false,
            given_at: None,
            commands,
            receiver,
            waiting_for_rest: Vec::new(),
            last_used: Instant::now(),
            is_over: false,
        };
        actor.recover().await?;
        Ok(actor)
    }

    /// Runs until the session is no longer used. Returns commands that came at that moment.
    pub(super) async fn run(mut self) -> Vec<Command> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.reset();
        let mut retry = tokio::time::interval(RETRY_INTERVAL);
        retry.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        if self.is_suspended {
            if let Err(error) = self.continue_turn().await {
                self.set_state(SessionState::Interrupted);
                self.flush_facts().await;
                crate::log::report(&format!("session {}: {}", self.row.id, error.message));
            }
        } else if self.row.state != SessionState::Interrupted {
            self.give_next().await;
        }
        while !self.is_over {
            tokio::select! {
                biased;
                frame = next_frame(&mut self.engine) => self.handle_frames(frame).await,
                command = self.receiver.recv() => match command {
                    Some(command) => self.handle_command(command).await,
                    None => break,
                },
                _ = tick.tick() => self.handle_tick().await,
                _ = retry.tick(), if self.log.has_kept() => self.flush_facts().await,
            }
        }
        self.stop_engine().await;
        self.receiver.close();
        self.host.metrics.sessions_open.fetch_sub(1, Ordering::Relaxed);
        let left = std::iter::from_fn(|| self.receiver.try_recv().ok());
        // Requests of the engine have ended with it.
        left.filter(|command| !matches!(command, Command::Asked(_) | Command::Withdrawn { .. })).collect()
    }

    async fn handle_command(&mut self, command: Command) {
        self.last_used = Instant::now();
        match command {
            Command::Subscribe { outlet, reply } => {
                let subscribed = self.subscribe(outlet).await;
                let _ = reply.send(subscribed);
            }
            Command::Read { reply } => {
                self.reconcile().await;
                let _ = reply.send(self.fresh_row().await);
            }
            Command::Send { message, person, reply } => {
                let sent = self.accept_message(message, &person).await;
                let _ = reply.send(sent);
                self.give_next().await;
            }
            Command::TakeBack { uuid, person, reply } => {
                let _ = reply.send(self.take_back(&uuid, &person).await);
            }
            Command::Control { request, person, reply } => self.control(request, person, reply).await,
            Command::Answer { request, answer, person, reply } => {
                let answered = self.answer(&request, &answer, &person).await;
                let is_answered = answered.is_ok();
                let _ = reply.send(answered);
                if is_answered && self.row.state != SessionState::Interrupted {
                    self.give_next().await;
                }
            }
            Command::Continue { reply } => {
                let _ = reply.send(self.continue_turn().await);
            }
            Command::Fork { at, title, key, person, reply } => {
                let _ = reply.send(self.fork(at, title, &key, &person).await);
            }
            Command::Rewind { rewind, person, reply } => {
                let _ = reply.send(self.rewind(rewind, &person).await);
            }
            Command::Change { title, archived, reply } => {
                let _ = reply.send(self.change(title, archived).await);
            }
            Command::Delete { person, reply } => {
                let _ = reply.send(self.delete(&person).await);
            }
            Command::SettingsChanged { folder } => self.handle_settings_changed(folder.as_deref()).await,
            Command::RemoveRule { rule, behavior, destination, reply } => {
                let _ = reply.send(self.remove_rule(&rule, behavior, destination).await);
            }
            Command::Asked(asked) => self.handle_asked(asked).await,
            Command::Withdrawn { request, reason } => self.handle_withdrawn(&request, &reason).await,
            Command::SettingChanged { setting, person } => self.handle_setting(setting, &person).await,
            Command::Suspend { reply } => {
                let _ = reply.send(self.suspend().await);
            }
            Command::WaitForRest { reply } => {
                // A turn that only waits for a person goes on at the next start.
                if self.turn.is_none() || !self.requests.is_empty() {
                    let _ = reply.send(Ok(()));
                } else {
                    self.waiting_for_rest.push(reply);
                }
            }
        }
    }

    async fn subscribe(&mut self, outlet: Arc<super::outlet::Outlet>) -> ApiResult<Subscribed> {
        self.reconcile().await;
        self.log.add_outlet(outlet);
        let open = self.host.store.requests(Some("open"), Some(&self.row.id), None, 200).await?;
        Ok(Subscribed {
            session: self.fresh_row().await?,
            open: open.iter().map(crate::store::requests::RequestRow::to_json).collect(),
            live: self.live.snapshot(),
        })
    }

    /// The session with what lists show, as it is stored now.
    pub(super) async fn fresh_row(&self) -> ApiResult<SessionRow> {
        let row = self.host.store.session(&self.row.id).await?;
        row.ok_or_else(|| ApiError::no_session(&self.row.id))
    }

    async fn handle_tick(&mut self) {
        self.end_expired_bypass().await;
        if self.row.state == SessionState::Elsewhere || self.log.is_watched() {
            self.reconcile().await;
        }
        if matches!(self.row.state, SessionState::Resting | SessionState::Failed) {
            self.give_next().await;
        }
        let is_resting = self.turn.is_none() && self.requests.is_empty() && self.queue.is_empty();
        let idle = Duration::from_secs(self.host.limits.idle_s);
        let has_work = self.engine.as_ref().is_some_and(EngineSession::has_background_work);
        if is_resting && !has_work && !self.log.is_watched() && self.last_used.elapsed() >= idle {
            self.is_over = true;
        }
    }

    /// Keeps the session open from now on for the idle time.
    pub(super) fn mark_used(&mut self) {
        self.last_used = Instant::now();
    }

    pub(super) fn controls(&self) -> Option<&Controls> {
        self.engine.as_ref().map(|engine| &engine.controls)
    }

    pub(super) fn frames_mut(&mut self) -> Option<&mut Frames> {
        self.engine.as_mut().map(|engine| &mut engine.frames)
    }
}

/// The next frame of the engine; never, while it is closed.
async fn next_frame(engine: &mut Option<EngineSession>) -> Option<Result<Frame, Error>> {
    match engine {
        Some(engine) => engine.frames.next().await,
        None => std::future::pending().await,
    }
}
