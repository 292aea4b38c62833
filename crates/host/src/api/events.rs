//! Events of a session, by number.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value as Json;

use super::Api;
use super::forms::{Parameters, PathParts, check_limit};
use crate::error::{ApiError, ApiResult};
use crate::session_actor::Command;
use crate::store::requests::RequestRow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventParameters {
    after: Option<i64>,
    before: Option<i64>,
    limit: Option<i64>,
    wait: Option<f64>,
}

/// Time that an answer may be held, in seconds.
const MAX_WAIT_S: f64 = 30.0;

pub(crate) async fn list(
    State(api): State<Api>,
    PathParts(id): PathParts<String>,
    Parameters(parameters): Parameters<EventParameters>,
) -> ApiResult<Response> {
    let EventParameters { after, before, limit, wait } = parameters;
    let limit = check_limit(limit)?;
    let wait = wait.unwrap_or_default();
    if !(0.0..=MAX_WAIT_S).contains(&wait) {
        return Err(ApiError::bad_request(format!("`wait` must be 0 to {MAX_WAIT_S} seconds")));
    }
    let actor = api.actors.get(&api.host, &id).await?;
    actor.call(|reply| Command::Read { reply }).await?;
    if wait > 0.0 && before.is_none() {
        let mut head = actor.head.clone();
        let is_there = head.wait_for(|head| *head > after.unwrap_or(0));
        // Without an event in time the answer is empty.
        let _ = tokio::time::timeout(Duration::from_secs_f64(wait), is_there).await;
    }
    let head = *actor.head.borrow();
    let events = api.host.store.events(&id, after, before, limit).await?;
    let open = api.host.store.requests(Some("open"), Some(&id), None, 200).await?;
    let events = events.iter().map(|event| event.to_json(&id, None)).collect::<Vec<_>>().join(",");
    let open: Json = open.iter().map(RequestRow::to_json).collect();
    let body = format!(r#"{{"events":[{events}],"head":{head},"open":{open}}}"#);
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

pub(crate) async fn whole(
    State(api): State<Api>,
    PathParts((id, seq)): PathParts<(String, i64)>,
) -> ApiResult<Response> {
    let missing = || ApiError::not_found(format!("session {id} has no event {seq}"));
    let events =
        api.host.store.events(&id, Some(seq.saturating_sub(1)), Some(seq.saturating_add(1)), 1).await?;
    let event = events.first().ok_or_else(missing)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], event.to_whole_json(&id)).into_response())
}
