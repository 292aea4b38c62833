//! Sessions: list, create, read, change, and what is done with one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Api;
use super::forms::{
    JsonBody, Me, Parameters, PathParts, check_limit, json_response, ok, parse_cursor, to_cursor,
};
use crate::access::{self, Credential};
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::message::{Message, check_key};
use crate::session_actor::answer::parse_mode;
use crate::session_actor::{Command, Rewind, SentMessage};
use crate::store::StoreError;
use crate::store::access::{Person, audit_step};
use crate::store::sessions::{SessionFilter, SessionRow, SessionSearch, SessionState};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    words: Option<String>,
    folder: Option<String>,
    state: Option<String>,
    archived: Option<bool>,
    origin: Option<String>,
    limit: Option<i64>,
    cursor: Option<String>,
}

/// Hits of a search that a session shows.
const MAX_HITS: usize = 3;

pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(parameters): Parameters<ListParameters>,
) -> ApiResult<Response> {
    let limit = check_limit(parameters.limit)?;
    if parameters.state.as_deref().is_some_and(|state| SessionState::parse(state).is_none()) {
        return Err(ApiError::bad_request(
            "`state` must be resting, running, waiting, interrupted, failed or elsewhere",
        ));
    }
    crate::terminal_sessions::refresh(&api.host, &api.actors).await;
    let words = parameters.words.filter(|words| !words.trim().is_empty());
    let found = match &words {
        Some(words) => api.host.transcripts.search(words, MAX_HITS).await?,
        None => Vec::new(),
    };
    let filter = SessionFilter {
        search: words.as_deref().map(|words| {
            SessionSearch::new(words, found.iter().map(|result| result.session.clone()).collect())
        }),
        folder: parameters.folder,
        state: parameters.state,
        origin: parameters.origin,
        archived: parameters.archived.unwrap_or_default(),
        before: parse_cursor(parameters.cursor.as_deref())?,
        limit: limit + 1,
    };
    let mut rows = api.host.store.sessions(&filter).await?;
    let next = cut_page(&mut rows, limit);
    let mut sessions = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut session = row.to_json();
        if filter.search.is_some() {
            let hits = found.iter().find(|result| result.session == row.engine_session);
            let mut shown = Vec::new();
            for hit in hits.iter().flat_map(|result| &result.hits) {
                let seq = api.host.store.seq_of(&row.id, &hit.uuid).await?;
                shown.push(match seq {
                    Some(seq) => json!({"seq": seq, "text": hit.text}),
                    None => json!({"text": hit.text}),
                });
            }
            session["hits"] = shown.into();
        }
        sessions.push(session);
    }
    Ok(ok(&json!({"sessions": sessions, "next": next})))
}

/// Cuts a list to a page; returns where the next one begins.
pub(crate) fn cut_page(rows: &mut Vec<SessionRow>, limit: i64) -> Json {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if rows.len() <= limit {
        return Json::Null;
    }
    rows.truncate(limit);
    rows.last().map(|row| to_cursor(row.touched_at, &row.id)).unwrap_or_default()
}

#[derive(Debug, Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    folder: String,
    key: String,
    title: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    message: Option<Message>,
}

pub(crate) async fn create(
    State(api): State<Api>,
    Me(me): Me,
    JsonBody(new): JsonBody<NewSession>,
) -> ApiResult<Response> {
    check_key(&new.key)?;
    let digest = clock::digest(&serde_json::to_string(&new).unwrap_or_default());
    if let Some(known) = find_created(&api, &new.key, &digest).await? {
        return repeat_creation(&api, known, new.message, me.person).await;
    }
    api.host.check_not_draining()?;
    let folder = api.host.resolve_folder(&new.folder).await?;
    let mode = new.mode.as_deref().map(parse_mode).transpose()?;
    let bypasses = mode == Some(whimbrel::PermissionMode::BypassPermissions);
    if bypasses {
        access::check_may_bypass(&me.person)?;
    }
    if let Some(message) = &new.message {
        message.check()?;
    }
    let title = new.title.clone().or_else(|| new.message.as_ref().map(Message::title)).unwrap_or_default();
    let origin = if me.credential == Credential::Cookie { "web" } else { "api" };
    let mut row = SessionRow::new(folder.display().to_string(), title, origin);
    row.model = new.model;
    row.mode = mode.filter(|_| !bypasses).map(|mode| mode.to_string());
    let audit = json!({"session": row.id, "folder": row.folder});
    let steps = vec![
        row.insert(Some(&new.key), Some(&digest)).required(),
        audit_step(Some(&me.person.id), "create", &audit),
    ];
    match api.host.store.write(steps.into()).await {
        Ok(_) => {}
        // The same request came a moment ago.
        Err(StoreError::Refused(_)) => {
            let known = find_created(&api, &new.key, &digest).await?;
            let known = known.ok_or(StoreError::Shape("a session is missing"))?;
            return repeat_creation(&api, known, new.message, me.person).await;
        }
        Err(error) => return Err(error.into()),
    }
    let actor = api.actors.get(&api.host, &row.id).await?;
    if bypasses {
        let request = json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"});
        actor.call(|reply| Command::Control { request, person: me.person.clone(), reply }).await?;
    }
    if let Some(message) = new.message {
        actor.call(|reply| Command::Send { message, person: me.person, reply }).await?;
    }
    // Read after the message was given: the session runs.
    let row = actor.call(|reply| Command::Read { reply }).await?;
    api.host.hub.session_changed(&row.to_json());
    Ok(json_response(StatusCode::CREATED, &row.to_json()))
}

/// The session that was made by the same request; an error if the key was used for another one.
async fn find_created(api: &Api, key: &str, digest: &str) -> ApiResult<Option<SessionRow>> {
    match api.host.store.session_by_key(key).await? {
        Some((_, known)) if known.as_deref() != Some(digest) => {
            Err(ApiError::key_reused(format!("the key {key:?} was used for another request")))
        }
        found => Ok(found.map(|(row, _)| row)),
    }
}

/// Answers a request that has made a session before. Its message may be missing yet.
async fn repeat_creation(
    api: &Api,
    known: SessionRow,
    message: Option<Message>,
    person: Person,
) -> ApiResult<Response> {
    if let Some(message) = message {
        let actor = api.actors.get(&api.host, &known.id).await?;
        actor.call(|reply| Command::Send { message, person, reply }).await?;
    }
    Ok(ok(&read_row(api, &known.id).await?.to_json()))
}

async fn read_row(api: &Api, id: &str) -> ApiResult<SessionRow> {
    api.host.store.session(id).await?.ok_or_else(|| ApiError::no_session(id))
}

pub(crate) async fn read(State(api): State<Api>, PathParts(id): PathParts<String>) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    let row = actor.call(|reply| Command::Read { reply }).await?;
    Ok(ok(&row.to_json()))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionChange {
    title: Option<String>,
    archived: Option<bool>,
}

pub(crate) async fn change(
    State(api): State<Api>,
    PathParts(id): PathParts<String>,
    JsonBody(change): JsonBody<SessionChange>,
) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    let SessionChange { title, archived } = change;
    let row = actor.call(|reply| Command::Change { title, archived, reply }).await?;
    Ok(ok(&row.to_json()))
}

pub(crate) async fn remove(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
) -> ApiResult<StatusCode> {
    let actor = api.actors.get(&api.host, &id).await?;
    actor.call(|reply| Command::Delete { person: me.person, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A message as its sender sees it.
pub(crate) fn sent_json(sent: &SentMessage) -> Json {
    json!({"uuid": sent.uuid, "seq": sent.seq, "state": sent.state, "replayed": sent.replayed})
}

pub(crate) async fn send(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(message): JsonBody<Message>,
) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    let sent = actor.call(|reply| Command::Send { message, person: me.person, reply }).await?;
    let status = if sent.replayed { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(json_response(status, &sent_json(&sent)))
}

pub(crate) async fn take_back(
    State(api): State<Api>,
    Me(me): Me,
    PathParts((id, uuid)): PathParts<(String, String)>,
) -> ApiResult<StatusCode> {
    let actor = api.actors.get(&api.host, &id).await?;
    actor.call(|reply| Command::TakeBack { uuid, person: me.person, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn control(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(request): JsonBody<Json>,
) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    let reply = actor.call(|reply| Command::Control { request, person: me.person, reply }).await?;
    Ok(ok(&reply))
}

pub(crate) async fn go_on(State(api): State<Api>, PathParts(id): PathParts<String>) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    actor.call(|reply| Command::Continue { reply }).await?;
    Ok((StatusCode::ACCEPTED, [("content-type", "application/json")], "{}").into_response())
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    at: Option<String>,
    title: Option<String>,
    key: String,
}

pub(crate) async fn fork(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(fork): JsonBody<Fork>,
) -> ApiResult<Response> {
    check_key(&fork.key)?;
    let was_known = api.host.store.session_by_key(&fork.key).await?.is_some();
    let actor = api.actors.get(&api.host, &id).await?;
    let Fork { at, title, key } = fork;
    let row = actor.call(|reply| Command::Fork { at, title, key, person: me.person, reply }).await?;
    let forked = api.actors.get(&api.host, &row.id).await?;
    let row = forked.call(|reply| Command::Read { reply }).await?;
    api.host.hub.session_changed(&row.to_json());
    let status = if was_known { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json_response(status, &row.to_json()))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindBody {
    to: String,
    files: bool,
    conversation: bool,
    #[serde(default)]
    dry_run: bool,
}

pub(crate) async fn rewind(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(body): JsonBody<RewindBody>,
) -> ApiResult<Response> {
    let actor = api.actors.get(&api.host, &id).await?;
    let RewindBody { to, files, conversation, dry_run } = body;
    let rewind = Rewind { to, files, conversation, dry_run };
    let result = actor.call(|reply| Command::Rewind { rewind, person: me.person, reply }).await?;
    Ok(ok(&result))
}
