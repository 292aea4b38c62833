//! Signing in and out, devices and keys, people.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Api;
use super::forms::{JsonBody, Me, PathParts, json_response, ok};
use crate::access::{self, COOKIE_MAX_AGE_S, Credential};
use crate::error::{ApiError, ApiResult};
use crate::store::Step;
use crate::store::access::audit_step;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    code: String,
    #[serde(default)]
    name: String,
}

pub(crate) async fn login(State(api): State<Api>, JsonBody(login): JsonBody<Login>) -> ApiResult<Response> {
    let (secret, person) = access::login(&api.host.store, &api.logins, &login.code, &login.name).await?;
    let audit = json!({"device": login.name});
    api.host.store.write_one(audit_step(Some(&person.id), "login", &audit)).await?;
    let cookie = set_cookie(&api, &secret, COOKIE_MAX_AGE_S);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

fn set_cookie(api: &Api, secret: &str, max_age: u64) -> String {
    let name = api.site.cookie_name();
    let secure = if api.site.is_secure { "; Secure" } else { "" };
    format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={max_age}{secure}")
}

pub(crate) async fn logout(State(api): State<Api>, Me(me): Me) -> ApiResult<Response> {
    if me.credential == Credential::Cookie {
        api.host.store.delete_token(&me.token).await?;
        api.host.hub.revoked(&me.token);
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, set_cookie(&api, "", 0))]).into_response())
}

/// Who is signed in. Not an error without: the page asks at its start.
pub(crate) async fn me(State(api): State<Api>, headers: HeaderMap) -> ApiResult<Response> {
    let signed_in = access::authenticate(&api.host.store, &headers, api.site.cookie_name()).await?;
    let Some(signed_in) = signed_in else { return Ok(ok(&json!({"person": null}))) };
    let roots: Json = api.host.roots.iter().map(|root| root.display().to_string()).collect();
    Ok(ok(&json!({
        "person": signed_in.person.to_json(), "roots": roots, "version": env!("CARGO_PKG_VERSION"), "api": 1,
        "features": [],
    })))
}

pub(crate) async fn list(State(api): State<Api>, Me(me): Me) -> ApiResult<Response> {
    let tokens = api.host.store.tokens().await?;
    let tokens: Json = tokens.iter().map(|token| token.to_json(&me.token)).collect();
    Ok(ok(&json!({"tokens": tokens, "next": null})))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTokenBody {
    kind: NewTokenKind,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NewTokenKind {
    Key,
    Code,
}

pub(crate) async fn create(
    State(api): State<Api>,
    Me(me): Me,
    JsonBody(new): JsonBody<NewTokenBody>,
) -> ApiResult<Response> {
    let store = &api.host.store;
    let body = match new.kind {
        NewTokenKind::Code => {
            let (id, secret, ends_at) =
                access::new_code(store, &me.person.id, api.host.limits.code_s).await?;
            json!({"id": id, "secret": secret, "ends_at": ends_at})
        }
        NewTokenKind::Key => {
            let name = new.name.trim();
            if name.is_empty() || name.len() > 100 {
                return Err(ApiError::bad_request("`name` must have 1 to 100 bytes: it tells keys apart"));
            }
            let (id, secret) = access::new_key(store, &me.person.id, name).await?;
            json!({"id": id, "secret": secret})
        }
    };
    let audit = json!({"token": body["id"], "name": new.name});
    store.write_one(audit_step(Some(&me.person.id), "create_token", &audit)).await?;
    Ok(json_response(StatusCode::CREATED, &body))
}

pub(crate) async fn revoke(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
) -> ApiResult<StatusCode> {
    if !api.host.store.delete_token(&id).await? {
        return Err(ApiError::not_found(format!(
            "there is no token {id} that can be revoked. The key of --token-file ends with that file"
        )));
    }
    api.host.hub.revoked(&id);
    let audit = json!({"token": id});
    api.host.store.write_one(audit_step(Some(&me.person.id), "revoke_token", &audit)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonChange {
    name: String,
}

pub(crate) async fn rename_person(
    State(api): State<Api>,
    PathParts(id): PathParts<String>,
    JsonBody(change): JsonBody<PersonChange>,
) -> ApiResult<Response> {
    let name = change.name.trim();
    if name.is_empty() || name.len() > 100 {
        return Err(ApiError::bad_request("`name` must have 1 to 100 bytes"));
    }
    let step = Step::new(
        "UPDATE people SET name = $2 WHERE id = $1 RETURNING id, name, role",
        vec![(&id).into(), name.into()],
    );
    let rows = api.host.store.write_one(step).await?;
    let row = rows.first().ok_or_else(|| ApiError::not_found(format!("there is no person {id}")))?;
    Ok(ok(&json!({"id": row.text(0)?, "name": row.text(1)?, "role": row.text(2)?})))
}
