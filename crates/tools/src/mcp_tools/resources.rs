//! Tools with which the model lists and reads MCP resources.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_os::files;
use whimbrel_wire::control::McpResourceContents;

use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use whimbrel_mcp::content::{OutputLimits, fit_text, save_bytes};
use whimbrel_mcp::{ServerRegistry, WeakServerRegistry};

pub(super) struct ListMcpResources(pub(super) WeakServerRegistry);

pub(super) struct ReadMcpResource(pub(super) WeakServerRegistry);

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ListResourcesInput {
    /// List only the resources of this server.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ReadResourceInput {
    /// Server name.
    server: String,
    /// Resource URI.
    uri: String,
}

impl Tool for ListMcpResources {
    type Input = ListResourcesInput;

    const NAME: &'static str = "ListMcpResourcesTool";
    const ALIASES: &'static [&'static str] = &["ListMcpResources"];
    const DESCRIPTION: &'static str = "Lists the resources of MCP servers, each with its server and URI.";

    fn effects(_: &ListResourcesInput) -> Effects {
        Effects::Network
    }

    async fn run(&self, input: ListResourcesInput, call: ToolContext) -> ToolResult {
        let registry = upgrade_registry(&self.0)?;
        let listing = registry.list_resources(input.server.as_deref());
        let listed = call.cancel.run_until_cancelled(listing).await.ok_or_else(interrupted)?;
        let (resources, errors) = listed.map_err(ToolError::Rejected)?;
        let mut text = match resources.as_slice() {
            [] => "No resources found. Servers may still have tools.".to_owned(),
            resources => Value::from(resources.to_vec()).to_string(),
        };
        errors.iter().for_each(|error| text += &format!("\n{error}"));
        let text = fit_text(text, &output_limits(&call, &registry)).await;
        Ok(ToolOutput::text(text, resources.into()))
    }

    fn examples() -> Vec<Example> {
        Vec::new()
    }
}

impl Tool for ReadMcpResource {
    type Input = ReadResourceInput;

    const NAME: &'static str = "ReadMcpResourceTool";
    const ALIASES: &'static [&'static str] = &["ReadMcpResource"];
    const DESCRIPTION: &'static str = "Reads a resource of an MCP server. Binary content is saved to a file.";

    fn effects(_: &ReadResourceInput) -> Effects {
        Effects::Network
    }

    async fn run(&self, input: ReadResourceInput, call: ToolContext) -> ToolResult {
        let registry = upgrade_registry(&self.0)?;
        let reading = registry.read_resource(&input.server, &input.uri);
        let read = call.cancel.run_until_cancelled(reading).await.ok_or_else(interrupted)?;
        let contents = read.map_err(ToolError::Failed)?.contents;
        let limits = output_limits(&call, &registry);
        let output_dir = limits.output_dir.clone();
        let meta = files::run_blocking(move || {
            contents.into_iter().map(|part| render_part(part, &output_dir)).collect::<Vec<_>>()
        });
        let meta = meta
            .await
            .map_err(|error| ToolError::Failed(format!("The resource cannot be read: {error}.")))?;
        let meta = json!({"contents": meta});
        Ok(ToolOutput::text(fit_text(meta.to_string(), &limits).await, meta))
    }

    fn examples() -> Vec<Example> {
        Vec::new()
    }
}

fn upgrade_registry(weak: &WeakServerRegistry) -> Result<ServerRegistry, ToolError> {
    let stopped = || ToolError::Failed("The MCP servers of this session have been stopped.".into());
    weak.upgrade().ok_or_else(stopped)
}

fn interrupted() -> ToolError {
    ToolError::Failed("The call was interrupted.".into())
}

fn output_limits(call: &ToolContext, registry: &ServerRegistry) -> OutputLimits {
    OutputLimits {
        output_dir: call.workspace.output_dir().to_path_buf(),
        max_text_bytes: registry.max_output_bytes(),
    }
}

/// Renders a part of a resource for the model. Binary contents are saved to a file.
fn render_part(part: McpResourceContents, output_dir: &Path) -> Value {
    let McpResourceContents { uri, mime_type, text, blob, .. } = part;
    let mut entry = json!({"uri": uri});
    if let Some(kind) = &mime_type {
        entry["mimeType"] = kind.as_str().into();
    }
    if let Some(text) = text {
        entry["text"] = text.into();
    }
    if let Some(blob) = blob {
        let bytes = BASE64_STANDARD.decode(blob.trim()).map_err(|error| format!("not valid base64: {error}"));
        let kind = mime_type.as_deref().unwrap_or_default();
        match bytes.and_then(|bytes| save_bytes(output_dir, &bytes, kind)) {
            Ok((path, _)) => entry["blobSavedTo"] = path.display().to_string().into(),
            Err(error) => entry["text"] = format!("[unreadable binary content: {error}]").into(),
        }
    }
    entry
}
