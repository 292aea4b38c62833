//! Requests to people: stored before it is shown, answered once, closed with the turn.

use serde_json::{Value as Json, json};
use whimbrel::CancelReason;
use whimbrel::wire::permission::PermissionMode;

use super::actor::Actor;
use super::answer::{self, Answer, Decision, RequestKind};
use super::{Asked, Question};
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::message::{MessagePriority, StoredBody};
use crate::store::access::{Person, audit_step};
use crate::store::requests::{self, RequestRow};
use crate::store::sessions::SessionState;

/// A request that waits for a person.
pub(super) struct OpenRequest {
    question: Question,
}

impl Actor {
    /// Stores a request, then shows its card.
    pub(super) async fn handle_asked(&mut self, asked: Asked) {
        // The message with the call was sent before.
        self.take_waiting_frames().await;
        let Asked { id, question } = asked;
        if let Question::Tool { request, .. } = &question
            && request.withdrawal().reason().is_some()
        {
            return;
        }
        let trusted = self.host.store.is_trusted(&self.row.folder).await.unwrap_or_default();
        let (kind, tool, mut body, scopes, identity) = match &question {
            Question::Tool { request, .. } => {
                let body = serde_json::to_value(&***request).unwrap_or_default();
                let scopes = answer::scopes_json(&answer::wider_answers(request, trusted));
                let identity = json!([request.tool_name, request.input]);
                (RequestKind::of_tool(&request.tool_name), request.tool_name.clone(), body, scopes, identity)
            }
            Question::Form { request, .. } => {
                let body = serde_json::to_value(&**request).unwrap_or_default();
                let identity = json!([request.mcp_server_name, request.message]);
                (RequestKind::Elicitation, request.mcp_server_name.clone(), body, json!([]), identity)
            }
        };
        let subtype = if kind == RequestKind::Elicitation { "elicitation" } else { "can_use_tool" };
        body["subtype"] = subtype.into();
        let digest = clock::digest(&identity.to_string());
        let row = RequestRow {
            id: id.clone(),
            session: self.row.id.clone(),
            turn: self.turn.as_ref().map(|turn| turn.id.clone()),
            kind: kind.as_str().into(),
            tool,
            body: body.to_string(),
            scopes: scopes.to_string(),
            digest: digest.clone(),
            state: "open".into(),
            answer: None,
            person: None,
            person_name: None,
            by_request: None,
            opened_at: clock::now_ms(),
            closed_at: None,
            title: self.row.title.clone(),
            folder: self.row.folder.clone(),
        };
        self.log.add_step(row.insert());
        // The same call of a turn that goes on takes the place of the old card.
        let is_known = |open: &OpenRequest| open.digest() == digest;
        if !self.requests.values().any(is_known) {
            self.log.add_step(requests::replace(&self.row.id, &digest, &id));
        }
        self.log.add(&json!({"type": "control_request", "request_id": id, "request": body}), None);
        self.changed_requests.push(id.clone());
        self.requests.insert(id, OpenRequest { question });
        self.update_state();
        self.flush_facts().await;
        self.finish_rest_waiters();
    }

    /// The engine no longer waits for an answer.
    pub(super) async fn handle_withdrawn(&mut self, id: &str, reason: &CancelReason) {
        if self.requests.remove(id).is_none() {
            return;
        }
        self.take_waiting_frames().await;
        self.log.add_step(requests::close(id, "withdrawn", None, None));
        let cancel = json!({"type": "control_cancel_request", "request_id": id, "reason": reason});
        self.log.add(&cancel, None);
        self.changed_requests.push(id.to_owned());
        self.update_state();
        self.flush_facts().await;
        if self.turn.is_none() {
            self.give_next().await;
        }
    }

    /// Closes all requests because the engine's session has ended.
    pub(super) fn lose_requests(&mut self) {
        let lost: Vec<String> = self.requests.drain().map(|(id, _)| id).collect();
        for id in lost {
            self.log.add_step(requests::close(&id, "lost", None, None));
            self.log.add(&json!({"type": "control_cancel_request", "request_id": id}), None);
            self.changed_requests.push(id);
        }
    }

    /// Answers a request. The first answer counts.
    pub(super) async fn answer(&mut self, id: &str, given: &Answer, person: &Person) -> ApiResult<Json> {
        let row = self.host.store.request(id).await?.filter(|row| row.session == self.row.id);
        let row = row.ok_or_else(|| ApiError::not_found(format!("there is no request {id}")))?;
        if row.state != "open" || !self.requests.contains_key(id) {
            return already_answered(&row, given, person);
        }
        let outcome = match self.requests.get(id).map(|open| &open.question) {
            Some(Question::Tool { request, .. }) => {
                let outcome = answer::to_outcome(given, request, self.is_trusted().await?)?;
                if outcome.mode == Some(PermissionMode::BypassPermissions) {
                    crate::access::check_may_bypass(person)?;
                }
                if let Some(input) = &outcome.changed_input {
                    check_input(request, input).await?;
                }
                Some(outcome)
            }
            Some(Question::Form { .. }) => None,
            None => return already_answered(&row, given, person),
        };
        let form = match self.requests.get(id).map(|open| &open.question) {
            Some(Question::Form { request, .. }) => Some(answer::to_elicitation_reply(given, request)?),
            _ => None,
        };
        let state = if given.decision == Decision::Allow { "allowed" } else { "denied" };
        let input_changed = outcome.as_ref().is_some_and(|outcome| outcome.changed_input.is_some());
        let mut shown = json!({
            "decision": given.decision, "scope": given.scope, "input_changed": input_changed,
            "message": given.message, "interrupt": given.interrupt,
        });
        if let Some(rule) = outcome.as_ref().and_then(|outcome| outcome.rule.clone()) {
            shown["rule"] = rule.into();
        }
        if let Some(answers) = &given.answers {
            shown["answers"] = Json::Object(answers.clone());
        } else if let Some(input) = outcome.as_ref().and_then(|outcome| outcome.changed_input.clone()) {
            shown["input"] = Json::Object(input);
        }
        if let Some(mode) = &given.mode {
            shown["mode"] = mode.clone().into();
        }
        let stored = json!({"given": given, "shown": shown}).to_string();
        self.log.add_step(requests::close(id, state, Some(&stored), Some(&person.id)));
        let audit = json!({"session": self.row.id, "request": id, "tool": row.tool, "answer": shown});
        self.log.add_step(audit_step(Some(&person.id), "answer", &audit));
        let mut event = shown;
        event["request"] = id.into();
        event["by"] = person.to_by();
        self.add_host_event("answered", event);
        let open = self.requests.remove(id);
        let note = note_of(given).filter(|_| outcome.is_some());
        let note =
            note.map(|body| (self.add_message(&body, format!("note:{id}"), String::new(), person), body));
        self.update_state();
        if let Err(error) = self.flush().await {
            if let Some(open) = open {
                self.requests.insert(id.to_owned(), open);
            }
            return Err(error);
        }
        // The engine says which mode it works in then.
        let mode = outcome.as_ref().and_then(|outcome| outcome.mode);
        self.mode_by = mode.map(|mode| (mode, person.clone()));
        if let Some((row, body)) = note {
            let uuid = row.id.clone();
            self.queue.push_back(row);
            // Before the call is allowed: the model gets the note with the result.
            self.send_ahead(&uuid, &body).await;
        }
        match (open.map(|open| open.question), outcome, form) {
            // The engine may have withdrawn it at this moment: then nothing waits.
            (Some(Question::Tool { reply, .. }), Some(outcome), _) => drop(reply.send(outcome.result)),
            (Some(Question::Form { reply, .. }), _, Some(form)) => drop(reply.send(form)),
            _ => {}
        }
        Ok(self.announce_request(id).await)
    }

    async fn is_trusted(&self) -> ApiResult<bool> {
        Ok(self.host.store.is_trusted(&self.row.folder).await?)
    }

    /// Tells those who watch requests; returns the request as it is now.
    pub(super) async fn announce_request(&self, id: &str) -> Json {
        let row = self.host.store.request(id).await.ok().flatten();
        let request = row.map(|row| row.to_json()).unwrap_or_default();
        self.host.hub.request_changed(&request);
        request
    }

    /// Settings or the trust in them have changed: the next opening uses them, and so do open cards.
    pub(super) async fn handle_settings_changed(&mut self, folder: Option<&str>) {
        if folder.is_some_and(|folder| self.row.folder != folder) {
            return;
        }
        let trusted = self.is_trusted().await.unwrap_or_default();
        let mut changed = Vec::new();
        for (id, open) in &self.requests {
            if let Question::Tool { request, .. } = &open.question {
                let scopes = answer::scopes_json(&answer::wider_answers(request, trusted)).to_string();
                changed.push((id.clone(), scopes));
            }
        }
        for (id, scopes) in changed {
            let sql = "UPDATE requests SET scopes = $2 WHERE id = $1";
            let step = crate::store::Step::new(sql, vec![(&id).into(), scopes.into()]);
            if self.host.store.write_one(step).await.is_ok() {
                self.announce_request(&id).await;
            }
        }
        let rests = self.turn.is_none() && self.requests.is_empty();
        let has_work =
            self.engine.as_ref().is_some_and(super::engine_session::EngineSession::has_background_work);
        if rests && !has_work {
            self.close_engine();
        }
        self.announce().await;
    }

    /// Whether the state allows what needs a session at rest.
    pub(super) fn check_resting(&self) -> ApiResult<()> {
        match self.row.state {
            SessionState::Running | SessionState::Waiting => {
                Err(ApiError::running("a turn runs: wait for its end, or interrupt it"))
            }
            SessionState::Elsewhere => {
                Err(ApiError::session_elsewhere("another program has this session open: end it there first"))
            }
            SessionState::Resting | SessionState::Interrupted | SessionState::Failed => Ok(()),
        }
    }
}

impl OpenRequest {
    fn digest(&self) -> String {
        let identity = match &self.question {
            Question::Tool { request, .. } => json!([request.tool_name, request.input]),
            Question::Form { request, .. } => json!([request.mcp_server_name, request.message]),
        };
        clock::digest(&identity.to_string())
    }
}

/// The message that brings the note of an allowed call to the agent; a denial has its note in the result.
fn note_of(given: &Answer) -> Option<StoredBody> {
    let note = given.message.as_deref().map(str::trim).filter(|note| !note.is_empty())?;
    let is_allowed = given.decision == Decision::Allow;
    is_allowed.then(|| StoredBody {
        content: note.into(),
        priority: MessagePriority::Next,
        context_only: false,
        uploads: Vec::new(),
    })
}

/// The same answer of the same person again is no conflict.
fn already_answered(row: &RequestRow, given: &Answer, person: &Person) -> ApiResult<Json> {
    let stored: Json =
        row.answer.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_same = row.person.as_ref() == Some(&person.id)
        && serde_json::from_value::<Answer>(stored["given"].clone()).is_ok_and(|answer| answer == *given);
    if is_same {
        return Ok(row.to_json());
    }
    let sentence = match row.state.as_str() {
        "allowed" | "denied" => "the request has been answered",
        "replaced" => "the request was asked again: answer the newer one",
        _ => "the request is no longer open: its turn has ended",
    };
    Err(ApiError::already_answered(sentence).with_detail(json!({"request": row.to_json()})))
}

/// Checks an edited input against the schema of the tool.
async fn check_input(
    request: &whimbrel::PermissionRequest,
    input: &serde_json::Map<String, Json>,
) -> ApiResult<()> {
    use whimbrel::CheckInputError;
    match request.check_input(input).await {
        Ok(()) => Ok(()),
        Err(error @ CheckInputError::Invalid(_)) => {
            let pointer = error.fields().first().map_or_else(String::new, |field| to_pointer(&field.field));
            let message =
                format!("the input does not fit the tool: {error}. Correct it; the request stays open");
            Err(ApiError::bad_input(message).with_detail(json!({"path": pointer})))
        }
        Err(error) => Err(ApiError::bad_input(format!("{error}"))),
    }
}

/// A field such as `edits[0].path` as a JSON pointer.
fn to_pointer(field: &str) -> String {
    if field.is_empty() {
        return String::new();
    }
    let parts = field.split(['.', '[']).map(|part| part.trim_end_matches(']'));
    parts.fold(String::new(), |pointer, part| {
        format!("{pointer}/{}", part.replace('~', "~0").replace('/', "~1"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_json_pointers() {
        for (field, pointer) in
            [("", ""), ("command", "/command"), ("edits[0].old_string", "/edits/0/old_string")]
        {
            assert_eq!(to_pointer(field), pointer);
        }
    }
}
