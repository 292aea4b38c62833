//! Our side of a connection: what a server may want of us, and what it tells by itself.
#![expect(deprecated, reason = "servers of today still ask for roots and samples")]

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
    ElicitRequestParams, ElicitResult, ElicitationAction as TheirAction, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use whimbrel_models::http::Url;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::surroundings::{Elicit, News, Progress, Tell};
use super::transport::Fate;

/// What a server says when a question was answered elsewhere.
const ANSWERED: &str = "notifications/elicitation/complete";

/// Answers a server.
pub(super) struct Desk {
    pub(super) server: Arc<str>,
    pub(super) roots: Vec<PathBuf>,
    pub(super) elicit: Option<Elicit>,
    pub(super) tell: Option<Tell>,
    pub(super) board: Arc<Board>,
    pub(super) fate: Fate,
}

/// What a server has told, for whoever waits for it.
#[derive(Debug, Default)]
pub(super) struct Board {
    calls: Mutex<HashMap<ProgressToken, UnderWay>>,
    /// Questions for which the person was sent elsewhere, and of whose end nothing was heard.
    elsewhere: Mutex<HashSet<String>>,
    /// How many questions of the server wait for an answer.
    pub(super) questions: watch::Sender<usize>,
    /// How many calls are under way.
    under_way: watch::Sender<usize>,
    /// Counts how often what the server offers has changed.
    pub(super) offers: watch::Sender<u64>,
}

/// A call under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) tool: String,
    pub(super) tool_use_id: String,
    /// When it began.
    pub(super) since: Instant,
    /// Beats with every sign of progress.
    pub(super) pulse: watch::Sender<()>,
}

impl Board {
    /// Watches the progress of a call until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken, call: UnderWay) -> Watch {
        self.calls().insert(token.clone(), call);
        self.under_way.send_modify(|count| *count += 1);
        Watch { board: Arc::clone(self), token }
    }

    /// Waits until the calls of this moment and all that began meanwhile are over; for ever if there is none.
    async fn calls_over(&self) {
        let mut calls = self.under_way.subscribe();
        if *calls.borrow_and_update() == 0 || calls.wait_for(|count| *count == 0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn elsewhere(&self) -> MutexGuard<'_, HashSet<String>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, UnderWay>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody watches a call.
pub(super) struct Watch {
    board: Arc<Board>,
    token: ProgressToken,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.calls().remove(&self.token);
        self.board.under_way.send_modify(|count| *count -= 1);
    }
}

/// A question is open as long as this lives.
struct Open<'a>(&'a watch::Sender<usize>);

impl<'a> Open<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl ClientHandler for Desk {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let both = || {
            let form = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            form.with_url(UrlElicitationCapability::default())
        };
        capabilities.elicitation = self.elicit.as_ref().map(|_| both());
        let us = Implementation::new("whimbrel", env!("CARGO_PKG_VERSION"));
        // Newer versions of the protocol begin in a way that servers of today do not know.
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(not_offered("This client does not offer sampling: it asks no model on behalf of a server."))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let root = |folder: &PathBuf| Url::from_file_path(folder).ok().map(|url| Root::new(url.as_str()));
        Ok(ListRootsResult::new(self.roots.iter().filter_map(root).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(elicit) = &self.elicit else {
            return Err(not_offered("This client does not offer elicitation: there is nobody to ask."));
        };
        let question = question(&self.server, request)?;
        // The server may be done before the person has told us.
        self.board.elsewhere().extend(question.elicitation_id.clone());
        let _open = Open::new(&self.board.questions);
        let withdrawn = async {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = self.fate.lost() => {}
                // Nobody waits any more for what the server wanted to know it for.
                () = self.board.calls_over() => {}
            }
        };
        let answer = tokio::select! {
            answer = elicit(question) => answer,
            () = withdrawn => ElicitationReply { action: ElicitationAction::Cancel, content: None },
        };
        Ok(result(answer))
    }

    async fn on_progress(&self, news: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let told = {
            let calls = self.board.calls();
            // It may be about a call that has ended.
            let Some(call) = calls.get(&news.progress_token) else { return };
            call.pulse.send_replace(());
            Progress {
                server: self.server.to_string(),
                tool: call.tool.clone(),
                tool_use_id: call.tool_use_id.clone(),
                elapsed: call.since.elapsed(),
                progress: news.progress,
                total: news.total,
                message: news.message,
            }
        };
        if let Some(tell) = &self.tell {
            tell(News::Progress(told));
        }
    }

    async fn on_custom_notification(&self, news: CustomNotification, _: NotificationContext<RoleClient>) {
        let id = match (news.method.as_str(), &news.params) {
            (ANSWERED, Some(params)) => params.get("elicitationId").and_then(Value::as_str),
            _ => None,
        };
        if let (Some(id), Some(tell)) = (id, &self.tell)
            && self.board.elsewhere().remove(id)
        {
            tell(News::Answered { server: self.server.to_string(), id: id.to_owned() });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.board.offers.send_modify(|count| *count += 1);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.board.offers.send_modify(|count| *count += 1);
    }
}

fn not_offered(text: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

/// A server's question as the host gets it.
fn question(server: &str, request: ElicitRequestParams) -> Result<Elicitation, ErrorData> {
    let server = server.to_owned();
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => Ok(Elicitation {
            mcp_server_name: server,
            message,
            mode: Some("form".into()),
            requested_schema: serde_json::to_value(requested_schema).ok(),
            ..Elicitation::default()
        }),
        ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => Ok(Elicitation {
            mcp_server_name: server,
            message,
            mode: Some("url".into()),
            url: Some(url),
            elicitation_id: Some(elicitation_id),
            ..Elicitation::default()
        }),
        _ => Err(ErrorData::invalid_params("This client does not know this mode of elicitation.", None)),
    }
}

fn result(answer: ElicitationReply) -> ElicitResult {
    let action = match answer.action {
        ElicitationAction::Accept => TheirAction::Accept,
        ElicitationAction::Decline => TheirAction::Decline,
        ElicitationAction::Cancel => TheirAction::Cancel,
    };
    let result = ElicitResult::new(action);
    match answer.content {
        Some(content) => result.with_content(Value::Object(content)),
        None => result,
    }
}
