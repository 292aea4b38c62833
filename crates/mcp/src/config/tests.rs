//! Tests of server entries.

use serde_json::json;

use super::*;

fn no_variables(_: &str) -> Option<String> {
    None
}

fn summaries(servers: &ServerConfigs) -> Vec<(&str, String)> {
    let summary = |entry: &ServerEntry| match &entry.config {
        Ok(McpServerConfig::Stdio(server)) => {
            [std::slice::from_ref(&server.command), server.args.as_slice()].concat().join(" ")
        }
        Ok(McpServerConfig::Sse(server)) => format!("sse {}", server.url),
        Ok(McpServerConfig::Http(server)) => format!("http {}", server.url),
        Ok(McpServerConfig::Sdk(server)) => format!("sdk {}", server.name),
        Err(error) => format!("bad: {error}"),
    };
    servers.entries.iter().map(|(name, entry)| (name.as_str(), summary(entry))).collect()
}

#[test]
fn invalid_entries_are_reported_and_the_others_kept() {
    let mut servers = ServerConfigs::default();
    let text = json!({"mcpServers": {
        "plain": {"command": "server", "args": ["-x"]},
        "typed": {"type": "stdio", "command": "s", "args": null, "env": {"A": "b"}},
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}},
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
        "ours": {"type": "sdk", "name": "calc"},
        "no command": {"args": []},
        "empty command": {"command": " "},
        "number": {"command": 3},
        "unknown": {"type": "unknown-type"},
        "list": [],
        "nul": {"command": "a", "args": ["b\0"]},
        "variable": {"command": "a", "env": {"A=B": "c"}},
        "address": {"type": "http", "url": "not an address"},
        "file": {"type": "http", "url": "file:///etc/passwd"},
        "header": {"type": "http", "url": "http://h/", "headers": {"a b": "c"}},
        "value": {"type": "sse", "url": "http://h/", "headers": {"a": "b\nc"}},
    }});
    servers.add_json(ServerOrigin::Dynamic, "--mcp-config", &text.to_string(), &no_variables);
    assert_eq!(servers.warnings, Vec::<String>::new());
    let (invalid, valid): (Vec<_>, Vec<_>) =
        summaries(&servers).into_iter().partition(|(_, summary)| summary.starts_with("bad: "));
    assert_eq!(
        valid,
        [
            ("old", "sse http://127.0.0.1:1/sse".to_owned()),
            ("ours", "sdk calc".into()),
            ("plain", "server -x".into()),
            ("typed", "s".into()),
            ("web", "http https://example.com/mcp".into()),
        ]
    );
    let invalid: BTreeMap<_, _> = invalid.into_iter().collect();
    for (name, expected) in [
        ("no command", "command"),
        ("empty command", "Name the program"),
        ("number", "command"),
        ("unknown", "unknown-type"),
        ("list", "map"),
        ("nul", "NUL byte"),
        ("variable", "A=B"),
        ("address", "url"),
        ("file", "Use http: or https:"),
        ("header", "a b"),
        ("value", "invalid character"),
    ] {
        assert!(invalid[name].contains(expected), "{name}: {}", invalid[name]);
    }
}

#[test]
fn later_sources_win_by_name() {
    let mut servers = ServerConfigs::default();
    let config = |name: &str, command: &str| json!({"mcpServers": {name: {"command": command}}}).to_string();
    let sources = [
        (ServerOrigin::User, config("a", "user")),
        (ServerOrigin::User, config("b", "user")),
        (ServerOrigin::Dynamic, config("a", "flag")),
        (ServerOrigin::Dynamic, config("c", "flag")),
        (ServerOrigin::Dynamic, "{".to_owned()),
        (ServerOrigin::Dynamic, r#"{"servers": {}}"#.to_owned()),
    ];
    for (origin, text) in &sources {
        servers.add_json(*origin, "source", text, &no_variables);
    }
    assert_eq!(summaries(&servers), [("a", "flag".to_owned()), ("b", "user".into()), ("c", "flag".into())]);
    let expected = ["source: EOF", "source: `mcpServers` is missing"];
    assert_eq!(servers.warnings.len(), expected.len());
    for (warning, expected) in servers.warnings.iter().zip(expected) {
        assert!(warning.contains(expected), "{warning}");
    }
}

#[test]
fn variables_are_expanded_and_unset_ones_reported() {
    let variables = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
    let mut servers = ServerConfigs::default();
    let text = json!({"mcpServers": {
        "a": {"command": "${BIN:-server}", "args": ["--token=${TOKEN}", "${GONE}"], "env": {"T": "${TOKEN}"}},
        "b": {"type": "http", "url": "http://${HOST:-localhost}/${TOKEN}", "headers": {"X": "Bearer ${TOKEN}"}},
    }});
    servers.add_json(ServerOrigin::Project, ".mcp.json", &text.to_string(), &variables);
    let stdio = StdioServer {
        command: "server".into(),
        args: vec!["--token=secret".into(), "${GONE}".into()],
        env: BTreeMap::from([("T".into(), "secret".into())]),
        ..StdioServer::default()
    };
    assert_eq!(servers.entries["a"].config, Ok(McpServerConfig::Stdio(stdio)));
    let Ok(McpServerConfig::Http(remote)) = &servers.entries["b"].config else { panic!() };
    assert_eq!(
        (remote.url.as_str(), remote.headers["X"].as_str()),
        ("http://localhost/secret", "Bearer secret")
    );
    assert_eq!(
        servers.warnings,
        ["MCP server a: the variable GONE is not set. Set it, or write ${GONE:-default}."]
    );
}

#[test]
fn project_servers_need_approval() {
    let text = json!({"mcpServers": {"a": {"command": "a"}, "b": {"command": "${GONE}"}}}).to_string();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (title, approval, started) in [
        ("no decision", ProjectApproval::default(), &[][..]),
        ("all", ProjectApproval { all: true, ..ProjectApproval::default() }, &["a", "b"]),
        ("one", ProjectApproval { enabled: names(&["b"]), ..ProjectApproval::default() }, &["b"]),
        (
            "all but one",
            ProjectApproval { all: true, disabled: names(&["b"]), ..ProjectApproval::default() },
            &["a"],
        ),
        (
            "disabled wins over enabled",
            ProjectApproval { enabled: names(&["a"]), disabled: names(&["a"]), ..ProjectApproval::default() },
            &[],
        ),
    ] {
        let mut servers = ServerConfigs::default();
        servers.add_project_json(".mcp.json", &text, &approval, &no_variables);
        assert_eq!(servers.entries.keys().collect::<Vec<_>>(), started, "{title}");
        assert_eq!(servers.warnings.len(), usize::from(started.contains(&"b")), "{title}");
    }
}
