//! HTTP and WebSocket: one module per resource, one line in the list of routes. Handlers hold no rules; they ask the
//! session actors and the store.

mod events;
mod exports;
mod folders;
mod forms;
mod health;
mod nexia;
mod openapi;
mod permission_rules;
mod requests;
mod sessions;
mod socket;
mod tokens;
mod usage;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};

use self::forms::PathParts;
use crate::access::{self, LoginGuard, SignedIn};
use crate::error::ApiError;
use crate::host::Host;
use crate::origin::{RequestSource, SiteNames};
use crate::page::Page;
use crate::session_actor::registry::ActorRegistry;

/// What handlers need.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) host: Arc<Host>,
    pub(crate) actors: Arc<ActorRegistry>,
    pub(crate) site: Arc<SiteNames>,
    pub(crate) page: Arc<Page>,
    pub(crate) logins: Arc<LoginGuard>,
}

/// The routes.
pub(crate) fn router(api: Api) -> Router {
    let signed_in = Router::new()
        .route("/metrics", get(health::metrics))
        .route("/v1/openapi.json", get(openapi::document))
        .route("/v1/wire.schema.json", get(openapi::wire_schema))
        .route("/v1/logout", post(tokens::logout))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}", delete(tokens::revoke))
        .route("/v1/people/{id}", axum::routing::patch(tokens::rename_person))
        .route("/v1/sessions", get(sessions::list).post(sessions::create))
        .route("/v1/sessions/{id}", get(sessions::read).patch(sessions::change).delete(sessions::remove))
        .route("/v1/sessions/{id}/events", get(events::list))
        .route("/v1/sessions/{id}/events/{seq}", get(events::whole))
        .route("/v1/sessions/{id}/messages", post(sessions::send))
        .route("/v1/sessions/{id}/messages/{uuid}", delete(sessions::take_back))
        .route("/v1/sessions/{id}/control", post(sessions::control))
        .route("/v1/sessions/{id}/continue", post(sessions::go_on))
        .route("/v1/sessions/{id}/fork", post(sessions::fork))
        .route("/v1/sessions/{id}/rewind", post(sessions::rewind))
        .route("/v1/sessions/{id}/export", get(exports::export))
        .route("/v1/sessions/{id}/permission-rules", delete(permission_rules::remove))
        .route("/v1/requests", get(requests::list))
        .route("/v1/requests/{id}", get(requests::read))
        .route("/v1/requests/{id}/answer", post(requests::answer))
        .route("/v1/uploads", post(folders::upload))
        .route("/v1/folders", get(folders::list))
        .route("/v1/folders/trust", get(folders::read_trust).put(folders::trust))
        .route("/v1/usage", get(usage::usage))
        .route("/v1/audit", get(usage::audit))
        .route("/v1/ws", get(socket::open))
        .route("/v1/nexia", get(nexia::open))
        .route("/v1/{*rest}", axum::routing::any(unknown))
        .route_layer(middleware::from_fn_with_state(api.clone(), require_sign_in));
    let open = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/v1/me", get(tokens::me))
        .route("/v1/login", post(tokens::login))
        .route("/app/{hash}/{name}", get(page_file))
        .fallback(page_shell);
    open.merge(signed_in)
        .method_not_allowed_fallback(unknown)
        .layer(middleware::from_fn_with_state(api.clone(), check_source))
        .with_state(api)
}

async fn unknown() -> ApiError {
    ApiError::not_found("there is no such path or method. GET /v1/openapi.json lists them")
}

async fn page_shell(State(api): State<Api>, request: Request) -> Response {
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads || path.starts_with("/v1/") || path.starts_with("/app/") {
        return unknown().await.into_response();
    }
    api.page.shell(request.headers()).await
}

async fn page_file(
    State(api): State<Api>,
    PathParts((hash, name)): PathParts<(String, String)>,
    headers: HeaderMap,
) -> Response {
    api.page.file(&hash, &name, &headers).await
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("invalid"))
}

fn source_of(request: &Request) -> RequestSource<'_> {
    let headers = request.headers();
    RequestSource {
        method: request.method(),
        host: text(headers, "host"),
        origin: text(headers, "origin"),
        fetch_site: text(headers, "sec-fetch-site"),
        is_socket: headers.contains_key("sec-websocket-key"),
    }
}

/// Refuses wrong hosts and foreign origins, and adds the headers that all answers have.
async fn check_source(State(api): State<Api>, request: Request, next: Next) -> Response {
    let mut response = match api.site.check(source_of(&request)) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Refuses requests without a valid key or cookie.
async fn require_sign_in(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let signed_in = access::authenticate(&api.host.store, request.headers(), api.site.cookie_name()).await;
    let signed_in: SignedIn = match signed_in {
        Ok(Some(signed_in)) => signed_in,
        Ok(None) => {
            return ApiError::not_signed_in(
                "sign in first: open the link of `whimbrel serve login`, or send a key as `Authorization: Bearer wk_..`",
            )
            .into_response();
        }
        Err(error) => return error.into_response(),
    };
    if let Err(error) = api.site.check_credential(source_of(&request), signed_in.credential) {
        return error.into_response();
    }
    request.extensions_mut().insert(signed_in);
    next.run(request).await
}
