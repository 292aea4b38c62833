//! MCP servers: `mcp.json` of the share directory, the files of `--mcp-config-file` and the texts of `--mcp-config`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use whimbrel::wire::options::{McpServerConfig, RemoteServer, StdioServer};

use crate::command_line::UsageError;

const FILE_NAME: &str = "mcp.json";

/// Reads the servers, by name. If the host names no file, `mcp.json` of the share directory is read. Texts win over files,
/// and later ones over earlier ones. A call of a server without a time limit of its own may take `timeout_ms`.
pub(crate) fn read(
    files: &[PathBuf],
    texts: &[String],
    share_dir: &Path,
    timeout_ms: u32,
) -> Result<BTreeMap<String, McpServerConfig>, UsageError> {
    let default_file = share_dir.join(FILE_NAME);
    let default_files = if default_file.exists() { vec![default_file] } else { Vec::new() };
    let mut servers = BTreeMap::new();
    for path in if files.is_empty() { &default_files } else { files } {
        let origin = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            UsageError::new(format!("cannot read {origin}: {error}. Name an existing file in UTF-8."))
        })?;
        servers.extend(parse(&origin, &text, timeout_ms)?);
    }
    for text in texts {
        servers.extend(parse("--mcp-config", text, timeout_ms)?);
    }
    Ok(servers)
}

/// Parses `{"mcpServers": {..}}`. Unknown keys are ignored.
fn parse(origin: &str, text: &str, timeout_ms: u32) -> Result<BTreeMap<String, McpServerConfig>, UsageError> {
    let wrong = |cause: String| UsageError::new(format!("{origin}: {cause}."));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| wrong(format!("{error}. Write {{\"mcpServers\": {{..}}}} as JSON")))?;
    let servers = match root.get("mcpServers") {
        Some(Value::Object(servers)) => servers,
        None if root.is_empty() => return Ok(BTreeMap::new()),
        Some(_) | None => {
            return Err(wrong("mcpServers is not an object. Write {\"mcpServers\": {..}}".into()));
        }
    };
    let to_config = |(name, server): (&String, &Value)| {
        let config = server
            .as_object()
            .ok_or_else(|| "it is not an object. Give it a command or a url".to_owned())
            .and_then(|server| to_config(server, timeout_ms));
        let config = config.map_err(|cause| wrong(format!("MCP server `{name}`: {cause}")))?;
        Ok((name.clone(), config))
    };
    servers.iter().map(to_config).collect()
}

fn to_config(server: &Map<String, Value>, timeout_ms: u32) -> Result<McpServerConfig, String> {
    let timeout = Some(get(server, "timeout", "a number of milliseconds")?.unwrap_or(f64::from(timeout_ms)));
    match (server.contains_key("command"), server.contains_key("url")) {
        (true, false) => to_stdio(server, timeout),
        (false, true) => to_remote(server, timeout),
        (true, true) => Err("it has both command and url. Keep one of them".into()),
        (false, false) => Err("it has neither command nor url. Give it one of them".into()),
    }
}

fn to_stdio(server: &Map<String, Value>, timeout: Option<f64>) -> Result<McpServerConfig, String> {
    if server.get("cwd").is_some_and(|cwd| !cwd.is_null()) {
        return Err(
            "the key cwd is not supported. Start the program with `sh -c 'cd DIR && exec PROGRAM'`".into()
        );
    }
    match transport(server)?.as_deref() {
        None | Some("stdio") => {}
        Some(other) => return Err(format!("transport is `{other}`, but a command has stdio. Remove it")),
    }
    Ok(McpServerConfig::Stdio(StdioServer {
        command: get(server, "command", "a text")?.unwrap_or_default(),
        args: get(server, "args", "a list of texts")?.unwrap_or_default(),
        env: get(server, "env", "an object of texts")?.unwrap_or_default(),
        timeout,
        ..StdioServer::default()
    }))
}

fn to_remote(server: &Map<String, Value>, timeout: Option<f64>) -> Result<McpServerConfig, String> {
    let url: String = get(server, "url", "a text")?.unwrap_or_default();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!("url is `{url}`. Begin it with http:// or https://"));
    }
    let mut headers: BTreeMap<String, String> =
        get(server, "headers", "an object of texts")?.unwrap_or_default();
    let has_authorization = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    match get::<String>(server, "auth", "oauth or a token")?.as_deref() {
        // A remote server that asks for a login gets one without being told so: `whimbrel mcp login`.
        None | Some("oauth") => {}
        Some(_) if has_authorization => {}
        Some(token) => {
            headers.insert("Authorization".into(), format!("Bearer {token}"));
        }
    }
    let remote = RemoteServer { headers, timeout, ..RemoteServer::default() };
    match transport(server)?.as_deref() {
        None if has_sse_path(&url) => Ok(McpServerConfig::Sse(RemoteServer { url, ..remote })),
        Some("sse") => Ok(McpServerConfig::Sse(RemoteServer { url, ..remote })),
        None | Some("http" | "streamable-http") => Ok(McpServerConfig::Http(RemoteServer { url, ..remote })),
        Some(other) => Err(format!("transport is `{other}`. Use http or sse")),
    }
}

/// Returns the transport, which is also written as `type`.
fn transport(server: &Map<String, Value>) -> Result<Option<String>, String> {
    let transport = get(server, "transport", "http or sse")?;
    if transport.is_some() { Ok(transport) } else { get(server, "type", "http or sse") }
}

/// Returns whether the path names server-sent events, which decides if the entry does not.
fn has_sse_path(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.ends_with("/sse") || path.contains("/sse/")
}

/// Reads a key; `None` if it is missing or null.
fn get<T: DeserializeOwned>(
    server: &Map<String, Value>,
    key: &str,
    expected: &str,
) -> Result<Option<T>, String> {
    let value = server.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|_| format!("{key} has the wrong type. It is {expected}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_one(server: &Value) -> Result<Value, String> {
        let text = json!({"mcpServers": {"s": server}}).to_string();
        let servers = parse("origin", &text, 60_000).map_err(|error| error.to_string())?;
        Ok(json!(servers["s"]))
    }

    #[test]
    fn servers_of_all_types_are_converted() {
        let (stdio, token) = (json!({"command": "c"}), json!({"Authorization": "Bearer t"}));
        let table = [
            ("program", stdio.clone(), json!({"type": "stdio", "command": "c"})),
            (
                "program with arguments",
                json!({"command": "c", "args": ["a"], "env": {"N": "v"}, "transport": "stdio", "auth": null}),
                json!({"type": "stdio", "command": "c", "args": ["a"], "env": {"N": "v"}}),
            ),
            ("address", json!({"url": "https://a/mcp"}), json!({"type": "http", "url": "https://a/mcp"})),
            (
                "address with headers",
                json!({"url": "https://a", "headers": {"H": "v"}, "transport": "streamable-http"}),
                json!({"type": "http", "url": "https://a", "headers": {"H": "v"}}),
            ),
            (
                "events",
                json!({"url": "http://a", "transport": "sse"}),
                json!({"type": "sse", "url": "http://a"}),
            ),
            (
                "events, as a type",
                json!({"url": "http://a", "type": "sse"}),
                json!({"type": "sse", "url": "http://a"}),
            ),
            (
                "events by path",
                json!({"url": "http://a/sse?k=v"}),
                json!({"type": "sse", "url": "http://a/sse?k=v"}),
            ),
            (
                "path against transport",
                json!({"url": "http://a/sse", "transport": "http"}),
                json!({"type": "http", "url": "http://a/sse"}),
            ),
            (
                "login",
                json!({"url": "http://a", "auth": "oauth"}),
                json!({"type": "http", "url": "http://a"}),
            ),
            (
                "token",
                json!({"url": "http://a", "auth": "t"}),
                json!({"type": "http", "url": "http://a", "headers": token}),
            ),
            (
                "token beside a header",
                json!({"url": "http://a", "auth": "t", "headers": {"authorization": "x"}}),
                json!({"type": "http", "url": "http://a", "headers": {"authorization": "x"}}),
            ),
        ];
        for (name, server, mut expected) in table {
            expected["timeout"] = json!(60_000.0);
            assert_eq!(parse_one(&server), Ok(expected), "{name}");
        }
        let expected = json!({"type": "stdio", "command": "c", "timeout": 5.0});
        assert_eq!(parse_one(&json!({"command": "c", "timeout": 5})), Ok(expected), "own timeout");
    }

    #[test]
    fn wrong_server_is_refused_by_name_and_key() {
        let table = [
            ("not an object", json!(1), "it is not an object"),
            ("nothing", json!({}), "neither command nor url"),
            ("both", json!({"command": "c", "url": "http://a"}), "both command and url"),
            ("command in parts", json!({"command": ["c"]}), "command has the wrong type"),
            ("arguments in a text", json!({"command": "c", "args": "a"}), "args has the wrong type"),
            ("number in the environment", json!({"command": "c", "env": {"P": 1}}), "env has the wrong type"),
            ("directory", json!({"command": "c", "cwd": "/"}), "cwd is not supported"),
            ("command over HTTP", json!({"command": "c", "transport": "http"}), "transport is `http`"),
            ("other scheme", json!({"url": "ftp://a"}), "url is `ftp://a`"),
            ("other transport", json!({"url": "http://a", "transport": "ws"}), "transport is `ws`"),
            ("list of headers", json!({"url": "http://a", "headers": []}), "headers has the wrong type"),
            ("other login", json!({"url": "http://a", "auth": {}}), "auth has the wrong type"),
            ("timeout in words", json!({"command": "c", "timeout": "1s"}), "timeout has the wrong type"),
        ];
        for (name, server, expected) in table {
            let text = parse_one(&server).unwrap_err();
            assert!(
                text.starts_with("origin: MCP server `s`: ") && text.contains(expected),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn text_must_name_servers() {
        let table = [
            ("no JSON", "{bad", "origin: key must be a string at line 1 column 2. Write"),
            ("no object", "[]", "Write {\"mcpServers\": {..}} as JSON"),
            ("servers at the root", r#"{"s": {"command": "c"}}"#, "origin: mcpServers is not an object"),
            ("list of servers", r#"{"mcpServers": []}"#, "origin: mcpServers is not an object"),
        ];
        for (name, text, expected) in table {
            let error = parse("origin", text, 1).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        assert_eq!(parse("origin", "{}", 1), Ok(BTreeMap::new()));
    }

    #[test]
    fn named_file_replaces_that_of_the_share_directory() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, servers: Value| {
            let path = dir.path().join(name);
            fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
            path
        };
        let read = |files: &[PathBuf], texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
            let servers = read(files, &texts, dir.path(), 1).map_err(|error| error.to_string())?;
            let command = |config| match config {
                McpServerConfig::Stdio(server) => server.command,
                other => panic!("{other:?}"),
            };
            Ok(servers.into_iter().map(|(name, config)| (name, command(config))).collect::<Vec<_>>())
        };
        let servers = |pairs: &[(&str, &str)]| -> Result<Vec<(String, String)>, String> {
            Ok(pairs.iter().map(|&(name, command)| (name.to_owned(), command.to_owned())).collect())
        };
        let text = r#"{"mcpServers": {"a": {"command": "text"}}}"#;
        assert_eq!(read(&[], &[]), servers(&[]));
        write("mcp.json", json!({"a": {"command": "share"}, "b": {"command": "share"}}));
        assert_eq!(read(&[], &[]), servers(&[("a", "share"), ("b", "share")]));
        assert_eq!(read(&[], &[text]), servers(&[("a", "text"), ("b", "share")]));
        let named = write("named.json", json!({"a": {"command": "named"}, "c": {"command": "named"}}));
        assert_eq!(read(&[named], &[]), servers(&[("a", "named"), ("c", "named")]));
        let missing = read(&["/no/such.json".into()], &[]).unwrap_err();
        assert!(missing.starts_with("cannot read /no/such.json: "), "{missing}");
    }
}
