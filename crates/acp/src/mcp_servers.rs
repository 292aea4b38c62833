//! MCP servers of the editor as servers of the engine. Pure.

use std::collections::BTreeMap;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{HttpHeader, McpServer};
use whimbrel::wire::options::{McpServerConfig, RemoteServer, StdioServer};

use crate::errors::invalid_params;

/// Converts the servers, by name.
pub(crate) fn to_configs(servers: &[McpServer]) -> Result<BTreeMap<String, McpServerConfig>, Error> {
    servers.iter().map(to_config).collect()
}

fn to_config(server: &McpServer) -> Result<(String, McpServerConfig), Error> {
    let remote = |url: &str, headers: &[HttpHeader]| RemoteServer {
        url: url.to_owned(),
        headers: headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
        ..RemoteServer::default()
    };
    Ok(match server {
        McpServer::Http(server) => {
            (server.name.clone(), McpServerConfig::Http(remote(&server.url, &server.headers)))
        }
        McpServer::Sse(server) => {
            (server.name.clone(), McpServerConfig::Sse(remote(&server.url, &server.headers)))
        }
        McpServer::Stdio(server) => {
            let config = StdioServer {
                command: server.command.display().to_string(),
                args: server.args.clone(),
                env: server
                    .env
                    .iter()
                    .map(|variable| (variable.name.clone(), variable.value.clone()))
                    .collect(),
                ..StdioServer::default()
            };
            (server.name.clone(), McpServerConfig::Stdio(config))
        }
        _ => {
            return Err(invalid_params("the type of an MCP server is not supported: use stdio, http or sse"));
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_of_all_types_are_converted() {
        let servers: Vec<McpServer> = serde_json::from_value(json!([
            {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "N", "value": "v"}]},
            {"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "v"}]},
            {"type": "sse", "name": "c", "url": "https://c", "headers": []},
        ]))
        .unwrap();
        let expected = json!({
            "a": {"type": "stdio", "command": "/bin/a", "args": ["x"], "env": {"N": "v"}},
            "b": {"type": "http", "url": "https://b", "headers": {"H": "v"}},
            "c": {"type": "sse", "url": "https://c"},
        });
        assert_eq!(json!(to_configs(&servers).unwrap()), expected);
    }
}
