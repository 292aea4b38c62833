//! Fetches the tools, prompts and resources of a server, page by page and within limits. An invalid item does not
//! affect the others.

#[cfg(test)]
mod tests;

use std::time::Duration;

use rmcp::model::{
    ClientRequest, CustomResult, ListPromptsRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, Prompt, Resource, ServerResult, Tool, ToolAnnotations,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations, McpToolInfo};

use super::connection::{Connection, RequestOrigin};
use super::error::McpError;
use super::in_process::InProcessTool;
use super::limits::{self, RequestTimeouts};
use super::schema::{SanitizedSchema, sanitize};

/// Everything that a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ServerFeatures {
    pub(super) info: McpServerInfo,
    /// Instructions for the model.
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<ListedTool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) has_resources: bool,
    /// Notes on omitted items, with reasons.
    pub(super) notes: Vec<String>,
}

/// Tool as listed by a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Name at the server.
    pub name: String,
    pub description: String,
    pub schema: RawJson,
    /// Read-only according to its annotations.
    pub read_only: bool,
    /// Requires an answer of the user (`anthropic/requiresUserInteraction`).
    pub interactive: bool,
    /// `anthropic/alwaysLoad`: true shows the tool to the model from the start.
    pub always_load: Option<bool>,
    pub annotations: Option<McpToolAnnotations>,
}

impl ListedTool {
    /// Converts a tool of a server in this process.
    pub(super) fn from_in_process(tool: &InProcessTool) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: tool.schema.clone(),
            read_only: tool.annotations.read_only == Some(true),
            interactive: false,
            always_load: tool.always_load,
            annotations: Some(tool.annotations.clone()),
        }
    }

    /// Tool info for the host.
    pub(super) fn info(&self) -> McpToolInfo {
        let description = Some(self.description.clone()).filter(|text| !text.is_empty());
        McpToolInfo { name: self.name.clone(), description, annotations: self.annotations.clone() }
    }
}

/// Fetches everything that the server offers.
pub(super) async fn fetch_features(
    connection: &Connection,
    limit: Duration,
) -> Result<ServerFeatures, McpError> {
    let (info, capabilities) = (&connection.info, &connection.info.capabilities);
    let server_info = info.server_info.as_ref();
    let mut features = ServerFeatures {
        info: server_info
            .map(|server_info| McpServerInfo {
                name: server_info.name.clone(),
                version: server_info.version.clone(),
            })
            .unwrap_or_default(),
        instructions: info.instructions.as_deref().map(|text| truncate(text, limits::MAX_INSTRUCTIONS_BYTES)),
        has_resources: capabilities.resources.is_some(),
        ..ServerFeatures::default()
    };
    if capabilities.tools.is_some() {
        let listed = list_all(
            connection,
            limit,
            |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
            parse_tools_page,
        )
        .await?;
        features.notes.extend(listed.notes("tools"));
        features.add_tools(listed.items);
    }
    if capabilities.prompts.is_some() {
        let request = |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
        // Prompts are optional: tools stay usable without them.
        match list_all(connection, limit, request, parse_prompts_page).await {
            Ok(listed) => {
                features.notes.extend(listed.notes("prompts"));
                features.prompts = listed.items;
            }
            Err(error) => features.notes.push(format!("its prompts could not be listed: {error}")),
        }
    }
    Ok(features)
}

pub(super) async fn list_resources(
    connection: &Connection,
    limit: Duration,
) -> Result<Vec<Resource>, McpError> {
    let request = |page| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
    Ok(list_all(connection, limit, request, |result| match result {
        ServerResult::ListResourcesResult(list) => Some(Page::new(list.resources, list.next_cursor)),
        other => parse_page_leniently(other, "resources"),
    })
    .await?
    .items)
}

fn parse_tools_page(result: ServerResult) -> Option<Page<Tool>> {
    match result {
        ServerResult::ListToolsResult(list) => Some(Page::new(list.tools, list.next_cursor)),
        other => parse_page_leniently(other, "tools"),
    }
}

fn parse_prompts_page(result: ServerResult) -> Option<Page<Prompt>> {
    match result {
        ServerResult::ListPromptsResult(list) => Some(Page::new(list.prompts, list.next_cursor)),
        other => parse_page_leniently(other, "prompts"),
    }
}

impl ServerFeatures {
    fn add_tools(&mut self, tools: Vec<Tool>) {
        for tool in tools {
            match to_listed_tool(tool) {
                Ok((tool, note)) => {
                    self.tools.push(tool);
                    self.notes.extend(note);
                }
                Err(note) => self.notes.push(note),
            }
        }
    }
}

/// Converts a tool within the limits, with a note on what was changed; or the reason why it is unusable.
fn to_listed_tool(tool: Tool) -> Result<(ListedTool, Option<String>), String> {
    let name = tool.name.into_owned();
    if name.trim().is_empty() {
        return Err("a tool without a name is left out.".into());
    }
    let mut description =
        truncate(tool.description.as_deref().unwrap_or_default(), limits::MAX_DESCRIPTION_BYTES);
    let (schema, note) = match sanitize(&tool.input_schema) {
        SanitizedSchema::Accepted(schema) => (schema, None),
        SanitizedSchema::Replaced(schema) => {
            description += "\n(Its input schema is not available.)";
            (
                schema,
                Some(format!(
                    "the input schema of {name} is too large, too deep or not valid, and is not sent to the model."
                )),
            )
        }
        SanitizedSchema::Unusable(field) => {
            return Err(format!("{name} is left out: models cannot set its field {field:?}."));
        }
    };
    let flag = |key: &str| tool.meta.as_ref().and_then(|meta| meta.get(key)).and_then(Value::as_bool);
    let interactive = flag("anthropic/requiresUserInteraction").unwrap_or(false);
    let always_load = flag("anthropic/alwaysLoad");
    let annotations = tool.annotations.as_ref().map(to_annotations);
    let read_only = annotations.as_ref().and_then(|hints| hints.read_only).unwrap_or(false);
    Ok((ListedTool { name, description, schema, read_only, interactive, always_load, annotations }, note))
}

fn to_annotations(hints: &ToolAnnotations) -> McpToolAnnotations {
    McpToolAnnotations {
        read_only: hints.read_only_hint,
        destructive: hints.destructive_hint,
        open_world: hints.open_world_hint,
    }
}

struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
    /// Number of items that could not be parsed.
    unreadable: usize,
}

impl<T> Page<T> {
    fn new(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next, unreadable: 0 }
    }
}

struct WholeList<T> {
    items: Vec<T>,
    unreadable: usize,
    truncated: bool,
}

impl<T> WholeList<T> {
    fn notes(&self, what: &str) -> impl Iterator<Item = String> + use<T> {
        let truncation = self
            .truncated
            .then(|| format!("it has more than {} {what}; the rest is left out.", limits::MAX_LISTED_ITEMS));
        let invalid = (self.unreadable > 0)
            .then(|| format!("{} of its {what} are not valid and are left out.", self.unreadable));
        truncation.into_iter().chain(invalid)
    }
}

/// Fetches pages until the last one or a limit.
async fn list_all<T>(
    connection: &Connection,
    limit: Duration,
    request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    parse: impl Fn(ServerResult) -> Option<Page<T>>,
) -> Result<WholeList<T>, McpError> {
    let never = CancellationToken::new();
    let caller = RequestOrigin { tool: "", tool_use_id: "", cancel: &never, details: None };
    let mut list = WholeList { items: Vec::new(), unreadable: 0, truncated: false };
    let mut cursor: Option<String> = None;
    for _ in 0..limits::MAX_LIST_PAGES {
        let mut page = PaginatedRequestParams::default();
        page.cursor.clone_from(&cursor);
        let result = connection.request(request(page), RequestTimeouts::from_total(limit), caller).await?;
        let page = parse(result).ok_or_else(|| McpError::InvalidResponse("not a list response.".into()))?;
        list.unreadable += page.unreadable;
        list.items.extend(page.items);
        list.truncated = list.items.len() > limits::MAX_LISTED_ITEMS;
        list.items.truncate(limits::MAX_LISTED_ITEMS);
        // A server that repeats a cursor would otherwise loop forever.
        if list.truncated || page.next.is_none() || page.next == cursor {
            return Ok(list);
        }
        cursor = page.next;
    }
    list.truncated = true;
    Ok(list)
}

/// Parses a page whose typed form failed, item by item.
fn parse_page_leniently<T: DeserializeOwned>(result: ServerResult, key: &str) -> Option<Page<T>> {
    let ServerResult::CustomResult(CustomResult(mut value)) = result else { return None };
    let Value::Array(items) = value.get_mut(key)?.take() else { return None };
    let count = items.len();
    let items: Vec<T> = items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
    let next = value.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Some(Page { unreadable: count - items.len(), items, next })
}

/// Truncates a text at a character boundary.
fn truncate(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0);
    format!("{}… (truncated)", &text[..end])
}
