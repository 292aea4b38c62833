//! Requests to people, of all sessions, and their answers.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Api;
use super::forms::{JsonBody, Me, Parameters, PathParts, check_limit, ok, parse_cursor, to_cursor};
use crate::error::{ApiError, ApiResult};
use crate::session_actor::Command;
use crate::session_actor::answer::Answer;
use crate::store::access::Person;
use crate::store::requests::RequestRow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestParameters {
    state: Option<String>,
    session: Option<String>,
    limit: Option<i64>,
    cursor: Option<String>,
}

const STATES: [&str; 6] = ["open", "allowed", "denied", "withdrawn", "lost", "replaced"];

pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(parameters): Parameters<RequestParameters>,
) -> ApiResult<Response> {
    let RequestParameters { state, session, limit, cursor } = parameters;
    let limit = check_limit(limit)?;
    if state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
        return Err(ApiError::bad_request(format!("`state` must be one of {}", STATES.join(", "))));
    }
    let after = parse_cursor(cursor.as_deref())?;
    let mut rows = api.host.store.requests(state.as_deref(), session.as_deref(), after, limit + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let next = if rows.len() > limit {
        rows.truncate(limit);
        rows.last().map(|row| to_cursor(row.opened_at, &row.id)).unwrap_or_default()
    } else {
        Json::Null
    };
    let requests: Json = rows.iter().map(RequestRow::to_json).collect();
    Ok(ok(&json!({"requests": requests, "next": next})))
}

pub(crate) async fn read(State(api): State<Api>, PathParts(id): PathParts<String>) -> ApiResult<Response> {
    Ok(ok(&find(&api, &id).await?.to_json()))
}

async fn find(api: &Api, id: &str) -> ApiResult<RequestRow> {
    let row = api.host.store.request(id).await?;
    row.ok_or_else(|| {
        ApiError::not_found(format!("there is no request {id}: list them with GET /v1/requests"))
    })
}

pub(crate) async fn answer(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(answer): JsonBody<Answer>,
) -> ApiResult<Response> {
    Ok(ok(&give_answer(&api, &id, answer, me.person).await?))
}

/// Gives an answer to the session whose request it is.
pub(crate) async fn give_answer(api: &Api, id: &str, answer: Answer, person: Person) -> ApiResult<Json> {
    let session = find(api, id).await?.session;
    let actor = api.actors.get(&api.host, &session).await?;
    let request = id.to_owned();
    actor.call(|reply| Command::Answer { request, answer, person, reply }).await
}
