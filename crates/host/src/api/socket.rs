//! The WebSocket of the page: subscriptions to sessions, lists that are watched, and what can be done over HTTP as well.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as SocketMessage, Utf8Bytes, WebSocket, close_code};
use axum::response::Response;
use futures::stream::SplitSink;
use futures::{FutureExt, SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tokio::sync::{broadcast, mpsc};

use super::Api;
use super::forms::{Me, Upgrade};
use super::requests::give_answer;
use super::sessions::cut_page;
use crate::access::SignedIn;
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::hub::{Counted, Notice};
use crate::message::Message;
use crate::session_actor::Command;
use crate::session_actor::outlet::{Outlet, QueuedMessages, SocketQueue, socket_queue};
use crate::store::access::Person;
use crate::store::requests::RequestRow;
use crate::store::sessions::{SessionFilter, SessionRow};

pub(crate) const PROTOCOL: &str = "whimbrel.1";

/// Size of a message of a client.
const MAX_MESSAGE: usize = 1024 * 1024;

/// Sessions that a socket may subscribe to at a time.
const MAX_SUBSCRIPTIONS: usize = 50;

/// Sessions in the answer to `watch`.
const MAX_LISTED: i64 = 200;

/// Events that are read from the store at once.
const PAGE: i64 = 200;

/// A socket that takes nothing for this time is closed.
const SEND_TIMEOUT: Duration = Duration::from_secs(40);

/// Pings in a row that a client may leave unanswered.
const MAX_UNANSWERED_PINGS: u32 = 2;

pub(crate) const SIGNED_OUT: u16 = 4401;
const NO_PONG: u16 = 4408;
pub(crate) const TOO_SLOW: u16 = 4409;

pub(crate) async fn open(State(api): State<Api>, Me(me): Me, Upgrade(upgrade): Upgrade) -> Response {
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    let sockets = api.host.sockets.clone();
    upgrade.on_upgrade(move |socket| sockets.track_future(serve(api, me, socket)))
}

async fn serve(api: Api, me: SignedIn, socket: WebSocket) {
    api.host.metrics.sockets.fetch_add(1, Ordering::Relaxed);
    let (sink, mut stream) = socket.split();
    let (queue, queued) = socket_queue();
    let (signals, received_signals) = mpsc::channel(2);
    let host = Arc::clone(&api.host);
    let writer = tokio::spawn(write_socket(sink, queued, received_signals));
    let hello = json!({
        "op": "hello", "api": 1, "boot": host.boot, "person": me.person.to_json(), "beat_s": host.limits.beat_s,
    });
    queue.push(hello.to_string());
    let notices = host.hub.watch();
    let mut connection = Connection {
        api,
        me,
        queue,
        notices,
        watches: Watches::default(),
        visible: None,
        outlets: HashMap::new(),
        sessions: HashMap::new(),
    };
    let mut unanswered_pings = 0;
    let mut beat = tokio::time::interval(Duration::from_secs(host.limits.beat_s.max(1)));
    beat.reset();
    let stop = host.stopped.clone();
    let code = loop {
        tokio::select! {
            message = stream.next().inspect(|_| unanswered_pings = 0) => match message {
                Some(Ok(SocketMessage::Text(text))) => match connection.handle(&text).await {
                    Ok(()) => {}
                    Err(code) => break Some(code),
                },
                Some(Ok(SocketMessage::Binary(_))) => break Some(close_code::INVALID),
                Some(Ok(SocketMessage::Close(_))) | None => break None,
                Some(Ok(_)) => {}
                Some(Err(error)) => break is_too_large(&error).then_some(close_code::SIZE),
            },
            notice = connection.notices.recv() => if let Some(code) = connection.handle_notice(notice).await {
                break Some(code);
            },
            _ = beat.tick() => {
                if unanswered_pings >= MAX_UNANSWERED_PINGS {
                    break Some(NO_PONG);
                }
                unanswered_pings += 1;
                // A writer that is busy sends the ping of the last beat.
                let _ = signals.try_send(Signal::Ping);
                connection.queue.push(format!(r#"{{"op":"beat","at":{}}}"#, clock::now_ms()));
            }
            () = stop.cancelled() => break Some(close_code::AWAY),
            () = signals.closed() => break None,
        }
    };
    connection.outlets.values().for_each(|outlet| outlet.close());
    // A writer that has ended has closed the socket.
    let _ = signals.send(Signal::Close(code.unwrap_or(close_code::NORMAL))).await;
    drop(connection);
    // It ends with the queue, or by its own timeout.
    let _ = writer.await;
    host.metrics.sockets.fetch_sub(1, Ordering::Relaxed);
}

fn is_too_large(error: &axum::Error) -> bool {
    error.to_string().contains("too long") || error.to_string().contains("too large")
}

/// What the writer of a socket does besides writing messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Ping,
    /// Writes what is queued, then closes with this code.
    Close(u16),
}

/// Writes what is queued; all that waits goes out together.
async fn write_socket(
    mut sink: SplitSink<WebSocket, SocketMessage>,
    mut queued: QueuedMessages,
    mut signals: mpsc::Receiver<Signal>,
) {
    const MAX_TOGETHER: usize = 256;
    let code = loop {
        let (first, signal) = tokio::select! {
            message = queued.next() => (message, None),
            signal = signals.recv() => (None, Some(signal.unwrap_or(Signal::Close(close_code::NORMAL)))),
        };
        let write = async {
            match (first, signal) {
                (Some(first), _) => sink.feed(SocketMessage::Text(first)).await?,
                (None, Some(Signal::Ping)) => sink.feed(SocketMessage::Ping(bytes::Bytes::new())).await?,
                (None, _) => {}
            }
            let mut count = 1;
            while (count < MAX_TOGETHER || matches!(signal, Some(Signal::Close(_))))
                && let Some(message) = queued.next_waiting()
            {
                sink.feed(SocketMessage::Text(message)).await?;
                count += 1;
            }
            sink.flush().await
        };
        match (tokio::time::timeout(SEND_TIMEOUT, write).await, signal) {
            (Ok(Ok(())), Some(Signal::Close(code))) => break code,
            (Ok(Ok(())), _) => {}
            (Ok(Err(_)), _) => return,
            (Err(_), _) => break TOO_SLOW,
        }
    };
    let frame = CloseFrame { code, reason: Utf8Bytes::default() };
    let close = sink.send(SocketMessage::Close(Some(frame)));
    // A peer that is gone needs no goodbye.
    let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
}

#[derive(Debug, Default)]
struct Watches {
    sessions: Option<Counted>,
    requests: bool,
}

/// A socket of a person.
struct Connection {
    api: Api,
    me: SignedIn,
    queue: SocketQueue,
    notices: broadcast::Receiver<Notice>,
    watches: Watches,
    /// The page of this socket is looked at.
    visible: Option<Counted>,
    outlets: HashMap<String, Arc<Outlet>>,
    /// The tasks that do what is wanted of sessions: in order in each session, without waiting for another.
    sessions: HashMap<String, mpsc::UnboundedSender<SessionTask>>,
}

/// What a client wants of a session.
struct SessionTask {
    id: Json,
    what: SessionOperation,
}

enum SessionOperation {
    Subscribe { outlet: Arc<Outlet>, after: i64 },
    Send(Message),
    TakeBack { uuid: String },
}

/// A message of a client: an operation, its id, and its fields.
#[derive(Debug, Deserialize)]
struct Operation {
    op: String,
    id: Option<Json>,
    #[serde(flatten)]
    fields: Map<String, Json>,
}

impl Operation {
    fn text(&self, name: &str) -> ApiResult<String> {
        let text = self.fields.get(name).and_then(Json::as_str).map(str::to_owned);
        text.ok_or_else(|| ApiError::bad_request(format!("`{name}` is missing")))
    }

    /// The fields without one, as a body.
    fn body_without<T: serde::de::DeserializeOwned>(&self, name: &str) -> ApiResult<T> {
        let mut fields = self.fields.clone();
        fields.remove(name);
        super::forms::parse_json(Json::Object(fields).to_string().as_bytes())
    }
}

impl Connection {
    /// Handles a message of the client. The error is a close code.
    async fn handle(&mut self, text: &str) -> Result<(), u16> {
        let Ok(operation) = serde_json::from_str::<Operation>(text) else { return Err(close_code::INVALID) };
        if operation.op == "visible" {
            let is_visible = operation.fields.get("on").and_then(Json::as_bool).unwrap_or_default();
            self.visible = is_visible.then(|| self.api.host.hub.look());
            if let Some(id) = operation.id {
                self.reply(&id, Ok(json!({"visible": self.api.host.hub.visible()})));
            }
            return Ok(());
        }
        let Some(id) = operation.id.clone() else { return Err(close_code::INVALID) };
        match operation.op.as_str() {
            "subscribe" | "send" | "take_back" => {
                if let Err(error) = self.start_in_session(&id, &operation) {
                    self.reply(&id, Err(error));
                }
            }
            // The engine may take its time: the socket goes on meanwhile.
            "control" | "answer" => {
                let (api, person, queue) = (self.api.clone(), self.me.person.clone(), self.queue.clone());
                tokio::spawn(async move {
                    let result = run_detached(&api, person, &operation).await;
                    queue.push(reply_json(&id, result));
                });
            }
            _ => {
                let result = self.run(&operation).await;
                self.reply(&id, result);
            }
        }
        Ok(())
    }

    fn reply(&self, id: &Json, result: ApiResult<Json>) {
        self.queue.push(reply_json(id, result));
    }

    async fn run(&mut self, operation: &Operation) -> ApiResult<Json> {
        match operation.op.as_str() {
            "unsubscribe" => {
                if let Some(outlet) = self.outlets.remove(&operation.text("session")?) {
                    outlet.close();
                }
                Ok(json!({}))
            }
            "watch" => self.watch(&operation.text("what")?).await,
            "unwatch" => {
                match operation.text("what")?.as_str() {
                    "sessions" => self.watches.sessions = None,
                    "requests" => self.watches.requests = false,
                    other => return Err(unknown_list(other)),
                }
                Ok(json!({}))
            }
            other => {
                Err(ApiError::bad_request(format!("there is no operation {other}: see GET /v1/openapi.json")))
            }
        }
    }

    /// Lists what is watched; changes follow.
    async fn watch(&mut self, what: &str) -> ApiResult<Json> {
        match what {
            "sessions" => {
                self.watches.sessions = Some(self.api.host.hub.watch_list());
                crate::terminal_sessions::refresh(&self.api.host, &self.api.actors).await;
                let filter = SessionFilter { limit: MAX_LISTED + 1, ..SessionFilter::default() };
                let mut rows = self.api.host.store.sessions(&filter).await?;
                let next = cut_page(&mut rows, MAX_LISTED);
                Ok(json!({"sessions": rows.iter().map(SessionRow::to_json).collect::<Json>(), "next": next}))
            }
            "requests" => {
                self.watches.requests = true;
                let rows = self.api.host.store.requests(Some("open"), None, None, 200).await?;
                Ok(json!({"requests": rows.iter().map(RequestRow::to_json).collect::<Json>()}))
            }
            other => Err(unknown_list(other)),
        }
    }

    /// Passes an operation on to the task of its session; it replies when it is done.
    fn start_in_session(&mut self, id: &Json, operation: &Operation) -> ApiResult<()> {
        let session = operation.text("session")?;
        let what = match operation.op.as_str() {
            "send" => SessionOperation::Send(operation.body_without("session")?),
            "take_back" => SessionOperation::TakeBack { uuid: operation.text("uuid")? },
            _ => self.new_subscription(&session, operation)?,
        };
        let task = SessionTask { id: id.clone(), what };
        let (api, person, queue) = (self.api.clone(), self.me.person.clone(), self.queue.clone());
        let tasks = self.sessions.entry(session).or_insert_with_key(|session| {
            let (tasks, received) = mpsc::unbounded_channel();
            tokio::spawn(work_in_session(api, person, queue, session.clone(), received));
            tasks
        });
        // The task lives as long as the socket.
        let _ = tasks.send(task);
        Ok(())
    }

    /// A subscription takes the place of an older one.
    fn new_subscription(&mut self, session: &str, operation: &Operation) -> ApiResult<SessionOperation> {
        let after = match operation.fields.get("after") {
            None => 0,
            Some(after) => after
                .as_i64()
                .filter(|after| *after >= 0)
                .ok_or_else(|| ApiError::bad_request("`after` must be the number of an event, or 0"))?,
        };
        self.outlets.retain(|_, outlet| !outlet.is_closed());
        if self.outlets.len() >= MAX_SUBSCRIPTIONS && !self.outlets.contains_key(session) {
            return Err(ApiError::slow_down(format!(
                "a socket has at most {MAX_SUBSCRIPTIONS} subscriptions: unsubscribe from one first"
            )));
        }
        let outlet = Arc::new(Outlet::new(session.to_owned(), self.queue.clone()));
        if let Some(older) = self.outlets.insert(session.to_owned(), Arc::clone(&outlet)) {
            older.close();
        }
        Ok(SessionOperation::Subscribe { outlet, after })
    }

    /// Passes a change on to the client. The result is a close code.
    async fn handle_notice(&mut self, notice: Result<Notice, broadcast::error::RecvError>) -> Option<u16> {
        match notice {
            Ok(Notice::Session(message)) if self.watches.sessions.is_some() => self.queue.push(message),
            Ok(Notice::Request(message)) if self.watches.requests => self.queue.push(message),
            Ok(Notice::Revoked(token)) if token == self.me.token => return Some(SIGNED_OUT),
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {
                if is_revoked(&self.api, &self.me).await {
                    return Some(SIGNED_OUT);
                }
                self.send_lists().await;
            }
            Err(broadcast::error::RecvError::Closed) => return Some(close_code::AWAY),
        }
        None
    }

    /// Sends watched lists again, because changes were missed.
    async fn send_lists(&mut self) {
        self.api.host.metrics.socket_resyncs.fetch_add(1, Ordering::Relaxed);
        for (what, op, is_watched) in [
            ("sessions", "session", self.watches.sessions.is_some()),
            ("requests", "request", self.watches.requests),
        ] {
            if is_watched
                && let Ok(list) = self.watch(what).await
                && let Some(entries) = list[what].as_array()
            {
                let mut message = json!({"op": op});
                for entry in entries {
                    message[op] = entry.clone();
                    self.queue.push(message.to_string());
                }
            }
        }
    }
}

/// Whether the token of a socket is no longer valid. Asked when notices were missed.
pub(crate) async fn is_revoked(api: &Api, me: &SignedIn) -> bool {
    // While the store fails, no client is signed out.
    matches!(api.host.store.has_token(&me.token).await, Ok(false))
}

/// Does what a client wants of a session, in order.
async fn work_in_session(
    api: Api,
    person: Person,
    queue: SocketQueue,
    session: String,
    mut tasks: mpsc::UnboundedReceiver<SessionTask>,
) {
    while let Some(SessionTask { id, what }) = tasks.recv().await {
        let result = match what {
            SessionOperation::Subscribe { outlet, after } => {
                match subscribe(&api, &queue, &session, &outlet, after, &id).await {
                    Ok(()) => continue,
                    Err(error) => {
                        outlet.close();
                        Err(error)
                    }
                }
            }
            SessionOperation::Send(message) => {
                let sent =
                    call(&api, &session, |reply| Command::Send { message, person: person.clone(), reply });
                sent.await.map(|sent| super::sessions::sent_json(&sent))
            }
            SessionOperation::TakeBack { uuid } => {
                let taken =
                    call(&api, &session, |reply| Command::TakeBack { uuid, person: person.clone(), reply });
                taken.await.map(|()| json!({}))
            }
        };
        queue.push(reply_json(&id, result));
    }
}

async fn call<T>(
    api: &Api,
    session: &str,
    command: impl FnOnce(crate::session_actor::Reply<T>) -> Command,
) -> ApiResult<T> {
    api.actors.get(&api.host, session).await?.call(command).await
}

/// Replies to a subscription, then sends the events after a number and what is under way.
async fn subscribe(
    api: &Api,
    queue: &SocketQueue,
    session: &str,
    outlet: &Arc<Outlet>,
    after: i64,
    id: &Json,
) -> ApiResult<()> {
    let for_actor = Arc::clone(outlet);
    let subscribed = call(api, session, |reply| Command::Subscribe { outlet: for_actor, reply }).await?;
    let head = subscribed.session.head;
    let result = json!({"session": subscribed.session.to_json(), "head": head, "open": subscribed.open});
    queue.push(reply_json(id, Ok(result)));
    let (store, queue) = (api.host.store.clone(), queue.clone());
    let (session, outlet) = (session.to_owned(), Arc::clone(outlet));
    tokio::spawn(async move {
        let mut last = after;
        while last < head && !outlet.is_closed() {
            queue.wait_for_room().await;
            let Ok(events) = store.events(&session, Some(last), Some(head + 1), PAGE).await else {
                outlet.end(last);
                return;
            };
            let Some(newest) = events.last() else { break };
            last = newest.seq;
            events.iter().for_each(|event| queue.push(event.to_json(&session, Some("event"))));
        }
        for frame in subscribed.live {
            queue.push(json!({"op": "live", "session": session, "frame": frame}).to_string());
        }
        outlet.go_live();
    });
    Ok(())
}

fn unknown_list(what: &str) -> ApiError {
    ApiError::bad_request(format!("`what` must be sessions or requests, not {what}"))
}

fn reply_json(id: &Json, result: ApiResult<Json>) -> String {
    match result {
        Ok(result) => json!({"op": "reply", "id": id, "ok": true, "result": result}).to_string(),
        Err(error) => json!({"op": "reply", "id": id, "ok": false, "error": error.to_json()}).to_string(),
    }
}

async fn run_detached(api: &Api, person: Person, operation: &Operation) -> ApiResult<Json> {
    if operation.op == "answer" {
        let request = operation.text("request")?;
        return give_answer(api, &request, operation.body_without("request")?, person).await;
    }
    let request = operation.fields.get("request").cloned().unwrap_or_default();
    let actor = api.actors.get(&api.host, &operation.text("session")?).await?;
    actor.call(|reply| Command::Control { request, person, reply }).await
}
