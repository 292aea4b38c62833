//! Configuration of MCP servers.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{from_fields, or_default};

/// How to reach an MCP server. Without a `type` it is a program to start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum McpServerConfig {
    /// A program to start.
    Stdio(StdioServer),
    /// At an address, answering with server-sent events.
    Sse(RemoteServer),
    /// At an address, by streamable HTTP.
    Http(RemoteServer),
    /// In the host's own process.
    Sdk(SdkServer),
}

/// An MCP server that is a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StdioServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables for it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Whether its tools are always offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_load: Option<bool>,
}

/// An MCP server at an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemoteServer {
    /// The address.
    pub url: String,
    /// HTTP headers to send.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A command that prints further headers as a JSON object; they win over `headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_helper: Option<String>,
    /// What was agreed with the authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthTerms>,
    /// What is allowed with its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Whether its tools are always offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_load: Option<bool>,
}

/// What was agreed with the authorization server of an MCP server. Without it the client registers itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OauthTerms {
    /// The name under which we are known there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The port on this machine that the browser is sent back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
    /// What is asked for, separated by blanks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<String>,
}

/// An MCP server in the host's own process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SdkServer {
    /// The name that the host knows it by.
    pub name: String,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// What is allowed with its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
}

impl<'de> Deserialize<'de> for McpServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        let server = match fields.get("type") {
            None | Some(Value::Null) => from_fields(fields).map(Self::Stdio),
            Some(Value::String(kind)) => match kind.as_str() {
                "stdio" => from_fields(fields).map(Self::Stdio),
                "sse" => from_fields(fields).map(Self::Sse),
                "http" => from_fields(fields).map(Self::Http),
                "sdk" => from_fields(fields).map(Self::Sdk),
                other => Err(format!(
                    "type: unknown type of MCP server `{other}`; expected stdio, sse, http or sdk"
                )),
            },
            Some(other) => Err(format!("type: {other} is not a type of MCP server")),
        };
        server.map_err(D::Error::custom)
    }
}
