//! Permission rules that people have given by "always allow" and want to end.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use whimbrel::wire::permission::{Destination, PermissionBehavior};

use super::Api;
use super::forms::{JsonBody, Me, PathParts};
use crate::error::{ApiError, ApiResult};
use crate::session_actor::Command;
use crate::store::access::audit_step;

/// A rule as `list_permission_rules` names it.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PermissionRule {
    /// Where the rule is kept: `session`, `localSettings`, `projectSettings` or `userSettings`.
    source: String,
    /// `allow`, `deny` or `ask`.
    behavior: String,
    /// The rule, such as `Bash(ls *)`.
    rule: String,
}

pub(crate) async fn remove(
    State(api): State<Api>,
    Me(me): Me,
    PathParts(id): PathParts<String>,
    JsonBody(rule): JsonBody<PermissionRule>,
) -> ApiResult<StatusCode> {
    let destination: Destination = match rule.source.as_str() {
        "session" | "localSettings" | "projectSettings" | "userSettings" => parse(&rule.source, "source")?,
        other => {
            return Err(ApiError::bad_request(format!(
                "`source`: rules of {other} cannot be removed here. Change them where they come from"
            )));
        }
    };
    let behavior: PermissionBehavior = parse(&rule.behavior, "behavior")?;
    let actor = api.actors.get(&api.host, &id).await?;
    let text = rule.rule.clone();
    actor.call(|reply| Command::RemoveRule { rule: text, behavior, destination, reply }).await?;
    let body = json!({"session": id, "source": rule.source, "behavior": rule.behavior, "rule": rule.rule});
    api.host.store.write_one(audit_step(Some(&me.person.id), "remove_rule", &body)).await?;
    if destination != Destination::Session {
        // Other sessions read the files again when they are opened next.
        let session = api.host.store.session(&id).await?;
        let folder = session.map(|row| row.folder).filter(|_| destination != Destination::UserSettings);
        for actor in api.actors.all() {
            actor.post(Command::SettingsChanged { folder: folder.clone() }).await;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str, field: &str) -> ApiResult<T> {
    serde_json::from_value(text.into()).map_err(|error| ApiError::bad_request(format!("`{field}`: {error}")))
}
