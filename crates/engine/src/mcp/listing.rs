//! What a server has to offer: its tools and prompts, page by page and within bounds. What is wrong with one of them
//! does not spoil the others.

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

use super::connection::{Caller, Connection, Patience};
use super::fault::Fault;
use super::limits;
use super::schema::{Fitted, fit};

/// All that a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Offer {
    /// What it calls itself.
    pub(super) info: McpServerInfo,
    /// What it wants the model to know.
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Listed>,
    pub(super) prompts: Vec<Prompt>,
    /// Whether it has resources.
    pub(super) has_resources: bool,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    /// Its name there.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: RawJson,
    /// It changes nothing, it says.
    pub(super) read_only: bool,
    /// Only a person can answer it.
    pub(super) interactive: bool,
    /// Whether the model is always shown it, if the server says anything about that.
    pub(super) always_load: Option<bool>,
    /// What it promises.
    pub(super) annotations: Option<McpToolAnnotations>,
}

impl Listed {
    /// The tool as a host sees it.
    pub(super) fn info(&self) -> McpToolInfo {
        let description = Some(self.description.clone()).filter(|text| !text.is_empty());
        McpToolInfo { name: self.name.clone(), description, annotations: self.annotations.clone() }
    }
}

/// Asks a server for all that it offers.
pub(super) async fn offer(connection: &Connection, limit: Duration) -> Result<Offer, Fault> {
    let (info, can) = (&connection.info, &connection.info.capabilities);
    let us = info.server_info.as_ref();
    let mut offer = Offer {
        info: us
            .map(|us| McpServerInfo { name: us.name.clone(), version: us.version.clone() })
            .unwrap_or_default(),
        instructions: info.instructions.as_deref().map(|text| shortened(text, limits::INSTRUCTIONS)),
        has_resources: can.resources.is_some(),
        ..Offer::default()
    };
    if can.tools.is_some() {
        let listed = all(
            connection,
            limit,
            |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
            tools,
        )
        .await?;
        offer.notes.extend(listed.notes("tools"));
        offer.take_tools(listed.items);
    }
    if can.prompts.is_some() {
        let request = |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
        // Prompts are a help; a server whose tools work is of use without them.
        match all(connection, limit, request, prompts).await {
            Ok(listed) => {
                offer.notes.extend(listed.notes("prompts"));
                offer.prompts = listed.items;
            }
            Err(fault) => offer.notes.push(format!("its prompts could not be listed: {fault}")),
        }
    }
    Ok(offer)
}

/// Asks a server for its resources.
pub(super) async fn resources(connection: &Connection, limit: Duration) -> Result<Vec<Resource>, Fault> {
    let request = |page| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
    Ok(all(connection, limit, request, |result| match result {
        ServerResult::ListResourcesResult(list) => Some(Page::of(list.resources, list.next_cursor)),
        other => lenient(other, "resources"),
    })
    .await?
    .items)
}

fn tools(result: ServerResult) -> Option<Page<Tool>> {
    match result {
        ServerResult::ListToolsResult(list) => Some(Page::of(list.tools, list.next_cursor)),
        other => lenient(other, "tools"),
    }
}

fn prompts(result: ServerResult) -> Option<Page<Prompt>> {
    match result {
        ServerResult::ListPromptsResult(list) => Some(Page::of(list.prompts, list.next_cursor)),
        other => lenient(other, "prompts"),
    }
}

impl Offer {
    fn take_tools(&mut self, tools: Vec<Tool>) {
        for tool in tools {
            match listed(tool) {
                Ok((tool, note)) => {
                    self.tools.push(tool);
                    self.notes.extend(note);
                }
                Err(note) => self.notes.push(note),
            }
        }
    }
}

/// A tool within bounds, and what had to be changed; or why it cannot be offered.
fn listed(tool: Tool) -> Result<(Listed, Option<String>), String> {
    let name = tool.name.into_owned();
    if name.trim().is_empty() {
        return Err("a tool without a name is left out.".into());
    }
    let mut description = shortened(tool.description.as_deref().unwrap_or_default(), limits::DESCRIPTION);
    let (schema, note) = match fit(&tool.input_schema) {
        Fitted::Whole(schema) => (schema, None),
        Fitted::Open(schema) => {
            description += "\n(Its input schema cannot be shown.)";
            (
                schema,
                Some(format!(
                    "the input schema of {name} is too large, too deep or not sound, and is not shown."
                )),
            )
        }
        Fitted::Unusable(field) => {
            return Err(format!("{name} is left out: no model can fill in its field {field:?}."));
        }
    };
    let said = |key: &str| tool.meta.as_ref().and_then(|meta| meta.get(key)).and_then(Value::as_bool);
    let interactive = said("anthropic/requiresUserInteraction").unwrap_or(false);
    let always_load = said("anthropic/alwaysLoad");
    let annotations = tool.annotations.as_ref().map(promises);
    let read_only = annotations.as_ref().and_then(|hints| hints.read_only).unwrap_or(false);
    Ok((Listed { name, description, schema, read_only, interactive, always_load, annotations }, note))
}

fn promises(hints: &ToolAnnotations) -> McpToolAnnotations {
    McpToolAnnotations {
        read_only: hints.read_only_hint,
        destructive: hints.destructive_hint,
        open_world: hints.open_world_hint,
    }
}

/// One page of a list.
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
    /// How many could not be read.
    unreadable: usize,
}

impl<T> Page<T> {
    fn of(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next, unreadable: 0 }
    }
}

/// A whole list.
struct List<T> {
    items: Vec<T>,
    unreadable: usize,
    cut: bool,
}

impl<T> List<T> {
    fn notes(&self, what: &str) -> impl Iterator<Item = String> + use<T> {
        let cut =
            self.cut.then(|| format!("it has more than {} {what}; the rest is left out.", limits::ITEMS));
        let bad = (self.unreadable > 0)
            .then(|| format!("{} of its {what} cannot be read and are left out.", self.unreadable));
        cut.into_iter().chain(bad)
    }
}

/// Turns pages until the last, or until it is enough.
async fn all<T>(
    connection: &Connection,
    limit: Duration,
    request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    read: impl Fn(ServerResult) -> Option<Page<T>>,
) -> Result<List<T>, Fault> {
    let never = CancellationToken::new();
    let caller = Caller { tool: "", tool_use_id: "", cancel: &never };
    let mut list = List { items: Vec::new(), unreadable: 0, cut: false };
    let mut cursor: Option<String> = None;
    for _ in 0..limits::PAGES {
        let mut page = PaginatedRequestParams::default();
        page.cursor.clone_from(&cursor);
        let result = connection.request(request(page), Patience::of(limit), caller).await?;
        let page = read(result).ok_or_else(|| Fault::Nonsense("this is no list.".into()))?;
        list.unreadable += page.unreadable;
        list.items.extend(page.items);
        list.cut = list.items.len() > limits::ITEMS;
        list.items.truncate(limits::ITEMS);
        // A server that names the same page again would keep us for ever.
        if list.cut || page.next.is_none() || page.next == cursor {
            return Ok(list);
        }
        cursor = page.next;
    }
    list.cut = true;
    Ok(list)
}

/// A list in which something does not fit: what does is taken.
fn lenient<T: DeserializeOwned>(result: ServerResult, key: &str) -> Option<Page<T>> {
    let ServerResult::CustomResult(CustomResult(mut value)) = result else { return None };
    let Value::Array(items) = value.get_mut(key)?.take() else { return None };
    let count = items.len();
    let items: Vec<T> = items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
    let next = value.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Some(Page { unreadable: count - items.len(), items, next })
}

/// The beginning of a text, up to a whole sign.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}… (cut)", &text[..end])
}
