//! Folders below the roots, their trust, and uploads.

use std::path::{Path, PathBuf};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Api;
use super::forms::{JsonBody, Me, Parameters, json_response, ok, read_body};
use crate::error::{ApiError, ApiResult};
use crate::folder_settings::FolderSettings;
use crate::session_actor::Command;
use crate::store::access::audit_step;
use crate::uploads::{self, MAX_UPLOAD};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FolderParameters {
    under: Option<String>,
    limit: Option<i64>,
    cursor: Option<String>,
}

pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(parameters): Parameters<FolderParameters>,
) -> ApiResult<Response> {
    let limit = usize::try_from(super::forms::check_limit(parameters.limit)?).unwrap_or(usize::MAX);
    let mut paths = match &parameters.under {
        None => api.host.roots.clone(),
        Some(under) => {
            let folder = api.host.resolve_folder(under).await?;
            let read = tokio::task::spawn_blocking(move || subfolders(&folder)).await;
            read.ok().and_then(Result::ok).unwrap_or_default()
        }
    };
    paths.sort();
    if let Some(cursor) = &parameters.cursor {
        paths.retain(|path| path.as_path() > Path::new(cursor));
    }
    let has_more = paths.len() > limit;
    paths.truncate(limit);
    let mut folders = Vec::with_capacity(paths.len());
    for path in &paths {
        folders.push(folder_json(&api, path).await?);
    }
    let next = if has_more { paths.last().map(|path| path.display().to_string()) } else { None };
    Ok(ok(&json!({"folders": folders, "next": next})))
}

async fn folder_json(api: &Api, path: &Path) -> ApiResult<Json> {
    let text = path.display().to_string();
    let name = path.file_name().map_or_else(|| text.clone(), |name| name.to_string_lossy().into_owned());
    let trusted = api.host.store.is_trusted(&text).await?;
    Ok(json!({"path": text, "name": name, "trusted": trusted}))
}

/// Folders in a folder, without hidden ones and without links.
fn subfolders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustParameters {
    folder: String,
}

/// Whether a folder is trusted, and what its own settings have that counts only then.
pub(crate) async fn read_trust(
    State(api): State<Api>,
    Parameters(TrustParameters { folder }): Parameters<TrustParameters>,
) -> ApiResult<Response> {
    let folder = api.host.resolve_folder(&folder).await?;
    let text = folder.display().to_string();
    let trusted = api.host.store.is_trusted(&text).await?;
    let read = tokio::task::spawn_blocking(move || FolderSettings::read(&folder)).await;
    let adds = read.unwrap_or_default();
    Ok(ok(&json!({"folder": text, "trusted": trusted, "adds": adds})))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trust {
    folder: String,
    trusted: bool,
}

pub(crate) async fn trust(
    State(api): State<Api>,
    Me(me): Me,
    JsonBody(trust): JsonBody<Trust>,
) -> ApiResult<Response> {
    let folder = api.host.resolve_folder(&trust.folder).await?;
    let text = folder.display().to_string();
    api.host.store.set_trust(&text, trust.trusted).await?;
    let audit = json!({"folder": text, "trusted": trust.trusted});
    api.host.store.write_one(audit_step(Some(&me.person.id), "trust", &audit)).await?;
    for actor in api.actors.all() {
        actor.post(Command::SettingsChanged { folder: Some(text.clone()) }).await;
    }
    Ok(ok(&folder_json(&api, &folder).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadParameters {
    name: String,
}

pub(crate) async fn upload(
    State(api): State<Api>,
    Parameters(parameters): Parameters<UploadParameters>,
    request: Request,
) -> ApiResult<Response> {
    let content = read_body(request.into_body(), MAX_UPLOAD).await?;
    if content.is_empty() {
        return Err(ApiError::bad_request("the upload is empty: send the bytes of the file as the body"));
    }
    let row = uploads::store_upload(&api.host, &parameters.name, &content).await?;
    let body = json!({"id": row.id, "name": row.name, "type": row.media_type, "size": row.size});
    Ok(json_response(StatusCode::CREATED, &body))
}
