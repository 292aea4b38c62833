//! A socket for pages that know only Nexia's names: wire frames as they are, and permission requests as small messages.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as SocketMessage, Utf8Bytes, WebSocket, close_code};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tokio::sync::broadcast::error::RecvError;

use super::Api;
use super::forms::{Me, Parameters, Upgrade};
use super::requests::give_answer;
use super::socket::{SIGNED_OUT, TOO_SLOW, is_revoked};
use crate::access::SignedIn;
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::hub::Notice;
use crate::message::Message;
use crate::session_actor::answer::{Answer, Decision, Scope};
use crate::session_actor::outlet::{Outlet, socket_queue};
use crate::session_actor::registry::ActorHandle;
use crate::session_actor::{Command, Subscribed};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexiaParameters {
    session: String,
}

/// A message of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum PageMessage {
    PermissionResponse {
        permission_id: String,
        approved: bool,
        #[serde(default)]
        always: bool,
        updated_input: Option<Map<String, Json>>,
        message: Option<String>,
    },
    Message {
        text: String,
        key: Option<String>,
    },
    Interrupt {},
}

pub(crate) async fn open(
    State(api): State<Api>,
    Me(me): Me,
    Parameters(parameters): Parameters<NexiaParameters>,
    Upgrade(upgrade): Upgrade,
) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &parameters.session).await?;
    let session = parameters.session;
    let sockets = api.host.sockets.clone();
    let serve = move |socket| sockets.track_future(serve(api, me, actor, session, socket));
    Ok(upgrade.max_message_size(1024 * 1024).on_upgrade(serve))
}

async fn serve(api: Api, me: SignedIn, actor: ActorHandle, session: String, mut socket: WebSocket) {
    let (queue, mut queued) = socket_queue();
    let outlet = Arc::new(Outlet::new(session, queue.clone()));
    let for_actor = Arc::clone(&outlet);
    let subscribed = actor.call(|reply| Command::Subscribe { outlet: for_actor, reply }).await;
    let Ok(Subscribed { open, live, .. }) = subscribed else { return };
    outlet.go_live();
    let mut cards = Cards::default();
    let first = open.iter().filter_map(|request| cards.opened(request["id"].as_str()?, &request["request"]));
    let mut messages: Vec<String> = first.collect();
    messages.extend(live.iter().map(Json::to_string));
    let stop = api.host.stopped.clone();
    let mut notices = api.host.hub.watch();
    let code = loop {
        for message in messages.drain(..) {
            if socket.send(SocketMessage::Text(message.into())).await.is_err() {
                outlet.close();
                return;
            }
        }
        tokio::select! {
            message = queued.next() => match message {
                Some(message) => messages.extend(cards.translate(&message)),
                None => break None,
            },
            message = socket.recv() => match message {
                Some(Ok(SocketMessage::Text(text))) => {
                    if let Err(error) = handle(&api, &me, &actor, &mut cards, &text).await {
                        messages.push(json!({"type": "error", "message": error.message}).to_string());
                    }
                }
                Some(Ok(SocketMessage::Close(_)) | Err(_)) | None => break None,
                Some(Ok(_)) => {}
            },
            notice = notices.recv() => match notice {
                Ok(Notice::Revoked(token)) if token == me.token => break Some(SIGNED_OUT),
                Err(RecvError::Lagged(_)) if is_revoked(&api, &me).await => break Some(SIGNED_OUT),
                _ => {}
            },
            () = stop.cancelled() => break Some(close_code::AWAY),
        }
        if outlet.is_closed() {
            // Too slow: the page connects again, and gets what is open.
            break Some(TOO_SLOW);
        }
    };
    if let Some(code) = code {
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        // A peer that is gone needs no goodbye.
        let _ = socket.send(SocketMessage::Close(Some(frame))).await;
    }
    outlet.close();
}

async fn handle(
    api: &Api,
    me: &SignedIn,
    actor: &ActorHandle,
    cards: &mut Cards,
    text: &str,
) -> ApiResult<()> {
    let message: PageMessage = serde_json::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("unknown message: {error}")))?;
    let person = me.person.clone();
    match message {
        PageMessage::Message { text, key } => {
            let message = Message {
                key: key.unwrap_or_else(clock::new_id),
                text: Some(text),
                content: None,
                uploads: Vec::new(),
                priority: None,
                context_only: false,
            };
            actor.call(|reply| Command::Send { message, person, reply }).await.map(drop)
        }
        PageMessage::Interrupt {} => {
            let request = json!({"subtype": "interrupt"});
            actor.call(|reply| Command::Control { request, person, reply }).await.map(drop)
        }
        PageMessage::PermissionResponse { permission_id, approved, always, updated_input, message } => {
            let unknown =
                || ApiError::not_found(format!("there is no open permission request {permission_id}"));
            if !cards.open.contains(&permission_id) {
                return Err(unknown());
            }
            let answer = Answer {
                decision: if approved { Decision::Allow } else { Decision::Deny },
                scope: if approved && always { Scope::Session } else { Scope::Once },
                input: updated_input,
                message,
                interrupt: false,
                answers: None,
                mode: None,
            };
            cards.answered_here.insert(permission_id.clone());
            let result = give_answer(api, &permission_id, answer, person).await;
            if result.is_err() {
                cards.answered_here.remove(&permission_id);
            }
            result.map(drop)
        }
    }
}

/// Permission requests that the page shows.
#[derive(Debug, Default)]
struct Cards {
    open: HashSet<String>,
    answered_here: HashSet<String>,
}

impl Cards {
    fn opened(&mut self, id: &str, request: &Json) -> Option<String> {
        let tool = request["tool_name"].as_str()?;
        self.open.insert(id.to_owned());
        let message = json!({"type": "permission_request", "permissionId": id, "toolName": tool, "input": request["input"]});
        Some(message.to_string())
    }

    /// The message of the page for an event or live frame.
    fn translate(&mut self, message: &str) -> Option<String> {
        let message: Json = serde_json::from_str(message).ok()?;
        let frame = &message["frame"];
        let closed = |id: &str, reason: &str| {
            json!({"type": "permission_closed", "permissionId": id, "reason": reason}).to_string()
        };
        match (frame["type"].as_str()?, frame["subtype"].as_str()) {
            ("control_request", _) => self.opened(frame["request_id"].as_str()?, &frame["request"]),
            ("control_cancel_request", _) => {
                let id = frame["request_id"].as_str()?;
                self.open.remove(id).then(|| closed(id, frame["reason"].as_str().unwrap_or("withdrawn")))
            }
            ("host", Some("answered")) => {
                let id = frame["request"].as_str()?;
                let was_open = self.open.remove(id);
                (was_open && !self.answered_here.remove(id)).then(|| closed(id, "answered elsewhere"))
            }
            ("host", _) => None,
            _ => Some(frame.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_close_with_the_turn() {
        let mut cards = Cards::default();
        let event = |frame: Json| json!({"op": "event", "frame": frame}).to_string();
        let request = json!({"type": "control_request", "request_id": "r1",
                             "request": {"tool_name": "Bash", "input": {"command": "ls"}}});
        let shown: Json = serde_json::from_str(&cards.translate(&event(request)).unwrap()).unwrap();
        assert_eq!(
            shown,
            json!({"type": "permission_request", "permissionId": "r1", "toolName": "Bash", "input": {"command": "ls"}})
        );
        let cancel =
            event(json!({"type": "control_cancel_request", "request_id": "r1", "reason": "interrupted"}));
        let closed: Json = serde_json::from_str(&cards.translate(&cancel).unwrap()).unwrap();
        assert_eq!(
            closed,
            json!({"type": "permission_closed", "permissionId": "r1", "reason": "interrupted"})
        );
        assert_eq!(cards.translate(&cancel), None);
    }
}
