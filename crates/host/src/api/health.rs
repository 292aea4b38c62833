//! Health and metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Api;
use super::forms::{Me, json_response, ok};
use crate::access::Credential;
use crate::error::{ApiError, ApiResult};
use crate::store::turns::UsageKey;

pub(crate) async fn healthz() -> Response {
    ok(&json!({"status": "ok"}))
}

pub(crate) async fn readyz(State(api): State<Api>) -> Response {
    if api.host.is_draining() {
        return json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "draining"}));
    }
    match api.host.store.read("SELECT 1", Vec::new()).await {
        Ok(_) => ok(&json!({"status": "ready"})),
        Err(_) => json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "store_unavailable"})),
    }
}

pub(crate) async fn metrics(State(api): State<Api>, Me(me): Me) -> ApiResult<Response> {
    if me.credential != Credential::Bearer {
        return Err(ApiError::not_signed_in("metrics are read with a key: `whimbrel serve key NAME`"));
    }
    let lines = super::usage::sum_usage(&api, None, None, UsageKey::Model).await?;
    let costs: Vec<_> = lines.into_iter().map(|line| (line.key, line.cost_usd)).collect();
    let open = api.host.store.count_open_requests().await?;
    let text = api.host.metrics.render(api.host.store.commit_times(), open, &costs);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
