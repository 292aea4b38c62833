//! MCP servers of agent definitions: named servers of the session, and servers of their own.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::options::{AgentDefinition, McpServerConfig, Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::fixture::{server_states, shell_server, stdio_server, wait_until_processes_gone, word_call};

fn agent_definition(prompt: &str, tools: Option<&[&str]>, servers: &Value) -> AgentDefinition {
    AgentDefinition {
        description: "d".into(),
        prompt: prompt.into(),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        mcp_servers: servers.as_array().cloned(),
        ..AgentDefinition::default()
    }
}

/// A host with these definitions and servers, in bypass mode.
fn host(
    script: impl Into<Script>,
    definitions: &[(&str, AgentDefinition)],
    servers: &[(&str, McpServerConfig)],
) -> HostBuilder {
    let options = Options {
        permission_mode: Some(PermissionMode::BypassPermissions),
        agents: definitions
            .iter()
            .map(|(name, definition)| ((*name).to_owned(), definition.clone()))
            .collect(),
        mcp_servers: servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect(),
        ..Options::default()
    };
    Host::with_script(script).options(options).env("IS_SANDBOX", "1")
}

fn call_agent(agent_type: &str, prompt: &str) -> Reply {
    Reply::tool("Agent", json!({"description": "d", "prompt": prompt, "subagent_type": agent_type}))
}

fn mcp_tool_names(request: &ModelRequest) -> Vec<String> {
    request
        .tool_names()
        .iter()
        .filter(|tool| tool.starts_with("mcp__"))
        .map(|tool| (*tool).to_owned())
        .collect()
}

#[tokio::test]
async fn own_servers_are_not_inherited_and_outlive_children() {
    let owner = agent_definition("OWNER", Some(&["Agent(plain)"]), &json!([{"mine": shell_server()}]));
    let plain = agent_definition("PLAIN", None, &json!([]));
    let script = Script::from_fn(|request| match (request.system_prompt().as_str(), request.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", text) if text.contains("Seen.") => word_call("mcp__mine__echo", "still there"),
        ("OWNER", _) => call_agent("plain", "Look."),
        ("PLAIN", _) => Reply::text("Seen."),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => call_agent("owner", "Own it."),
    });
    let mut host = host(script, &[("owner", owner), ("plain", plain)], &[]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    let requests_with = |prompt: &str| {
        requests.iter().filter(|request| request.system_prompt() == prompt).collect::<Vec<_>>()
    };
    let (owner, plain) = (requests_with("OWNER"), requests_with("PLAIN"));
    assert!(mcp_tool_names(owner[0]).contains(&"mcp__mine__echo".to_owned()), "{:?}", owner[0].tool_names());
    assert_eq!(mcp_tool_names(plain[0]), Vec::<String>::new());
    assert!(owner[2].last_text().contains("said: still there"), "{}", owner[2].last_text());
}

#[tokio::test]
async fn own_server_shadows_the_session_server() {
    let definition = agent_definition("OWNER", None, &json!([{"sh": shell_server()}]));
    let script = Script::from_fn(|request| match (request.system_prompt().as_str(), request.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", _) => word_call("mcp__sh__echo", "curlew"),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => call_agent("own", "Own it."),
    });
    let mut host = host(script, &[("own", definition)], &[("sh", shell_server())]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    let mut names = mcp_tool_names(&requests[1]);
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), all), (mcp_tool_names(&requests[0]).len(), names.len()), "{names:?}");
    assert!(requests[2].last_text().contains("said: curlew"));
}

#[tokio::test]
async fn unknown_server_of_a_definition_warns() {
    let definition = agent_definition("p", None, &json!(["nosuch", "sh"]));
    let warning = "starts without the MCP server nosuch: the session has no server of that name";
    let script = [call_agent("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let definitions = [("named", definition)];
    let mut session = host(script, &definitions, &[("sh", shell_server())]).start().await.unwrap();
    session.run("Go.").await.unwrap();
    let warnings = session.info_texts().join("\n");
    assert!(warnings.contains(warning) && !warnings.contains("server sh"), "{warnings}");

    let main_session = host([Reply::text("Done.")], &definitions, &[("sh", shell_server())]);
    let mut main_session =
        main_session.configure(|options| options.agent = Some("named".into())).start().await.unwrap();
    main_session.run("Go.").await.unwrap();
    let text = main_session.received().iter().map(|received| received.json.to_string()).collect::<String>();
    assert!(text.contains(warning), "{text}");
}

#[tokio::test]
async fn definition_names_servers_before_name_normalization() {
    let script = [call_agent("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let definition = agent_definition("p", None, &json!(["my.db"]));
    let servers = [("my.db", shell_server()), ("my_db", shell_server())];
    let mut session = host(script, &[("named", definition)], &servers).start().await.unwrap();
    session.run("Go.").await.unwrap();
    let requests = session.model_requests();
    assert!(mcp_tool_names(&requests[0]).contains(&"mcp__my_db__echo".to_owned()));
    let names = mcp_tool_names(&requests[1]);
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("mcp__my_db_2__")), "{names:?}");

    let own_definition = agent_definition("p", Some(&["Read"]), &json!([{"my.db": shell_server()}]));
    let main_session = host([Reply::text("Done.")], &[("own", own_definition)], &[]);
    let mut main_session =
        main_session.configure(|options| options.agent = Some("own".into())).start().await.unwrap();
    main_session.run("Go.").await.unwrap();
    let tools = mcp_tool_names(&main_session.model_requests()[0]);
    assert!(tools.contains(&"mcp__my_db__echo".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn strict_config_ignores_servers_of_definition_files() {
    let own_servers = json!({"mine": shell_server()});
    let file = format!("---\nname: filed\ndescription: d\nmcpServers: [{own_servers}]\n---\nFILED");
    let host_definition = agent_definition("HOSTS", None, &json!([{"mine": shell_server()}]));
    for strict in [false, true] {
        let script = [call_agent("filed", "Look.")
            .and_tool("Agent", json!({"description": "d", "prompt": "Look.", "subagent_type": "hosts"}))];
        let script = Script::from_fn(move |request| match request.last_text() {
            text if text.contains("Look.") => Reply::text("Seen."),
            text if text.contains("Seen.") => Reply::text("Done."),
            _ => script[0].clone(),
        });
        let host = host(script, &[("hosts", host_definition.clone())], &[]).configure(|options| {
            options.strict_mcp_config = strict;
            options.setting_sources = Some(vec![SettingSource::Project]);
        });
        let mut host = host.file(".claude/agents/filed.md", file.clone()).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let has_mcp_tools = |prompt: &str| {
            let requests = host.model_requests();
            let requests = requests.iter().find(|request| request.system_prompt() == prompt).unwrap();
            !mcp_tool_names(requests).is_empty()
        };
        assert_eq!((has_mcp_tools("FILED"), has_mcp_tools("HOSTS")), (!strict, true), "strict: {strict}");
        let frames = host.received().iter().map(|received| received.json.to_string()).collect::<String>();
        assert_eq!(
            frames.contains("The agent filed: its own MCP servers are not started"),
            strict,
            "{frames}"
        );
        assert_eq!(server_states(host.init_frame().unwrap()), [], "the session does not get these servers");
    }
}

#[tokio::test]
async fn own_servers_of_an_agent_stop_with_it() {
    let own_servers = json!({"mine": shell_server(), "lost": stdio_server(&["/nowhere/at/all"])});
    let definition = AgentDefinition {
        description: "d".into(),
        prompt: "p".into(),
        tools: Some(vec!["Read".into()]),
        mcp_servers: Some(vec![own_servers]),
        ..Default::default()
    };
    let agent_call = |overrides: Value| {
        let mut input = json!({"description": "look", "prompt": "Look.", "subagent_type": "own"});
        input.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
        Reply::tool("Agent", input)
    };
    let script = Script::from_fn(move |request| {
        let text = request.last_text();
        if text.contains("said: ") || text.contains("No such tool") {
            Reply::text("Heard.")
        } else if text.contains("Look.") || text.contains("Call it.") {
            word_call("mcp__mine__echo", "own")
        } else if let Some(id) = text.split("agentId: ").nth(1).filter(|_| text.contains("Heard.")) {
            let id: String = id.chars().take_while(char::is_ascii_alphanumeric).collect();
            match request.messages().len() {
                3 => agent_call(json!({"resume": id})),
                _ => Reply::text("Done."),
            }
        } else {
            agent_call(json!({}))
        }
    });
    let mode = Some(PermissionMode::BypassPermissions);
    let agents = [("own".to_owned(), definition)].into();
    let options = Options { agents, permission_mode: mode, ..Options::default() };
    let mut host = Host::with_script(script).options(options).env("IS_SANDBOX", "1").start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let dir = host.dirs().workspace().to_path_buf();
    wait_until_processes_gone(&dir).await;
    let pids = std::fs::read_to_string(dir.join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 2, "a resumed agent starts them again");
    let requests = host.model_requests();
    let agent_requests: Vec<_> = requests.iter().filter(|request| request.system_prompt() == "p").collect();
    assert!(
        agent_requests[0].tool_names().contains(&"mcp__mine__echo")
            && agent_requests[0].contains_text("SHELL-INSTRUCTIONS")
    );
    assert_eq!(agent_requests.iter().filter(|request| request.last_text().contains("said: own")).count(), 2);
    assert!(
        !requests[0].tool_names().iter().any(|tool| tool.starts_with("mcp__")),
        "{:?}",
        requests[0].tool_names()
    );
    let warnings = host.info_texts().join("\n");
    assert!(warnings.contains("The agent own starts without its MCP server lost: "), "{warnings}");
    assert_eq!(host.run("Call it.").await.unwrap().result.as_deref(), Some("Heard."));
    assert!(
        host.model_requests().last().unwrap().contains_text("No such tool"),
        "the session has no such server"
    );
}

#[tokio::test]
async fn main_agent_gets_the_servers_of_its_definition() {
    let definition = AgentDefinition {
        description: "d".into(),
        prompt: "p".into(),
        tools: Some(vec!["Read".into()]),
        mcp_servers: Some(vec![json!({"mine": shell_server()})]),
        ..Default::default()
    };
    let agents = [("own".to_owned(), definition)].into();
    let options = Options { agents, agent: Some("own".into()), ..Options::default() };
    let mut host = Host::with_script([Reply::text("Done.")]).options(options).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(server_states(host.init_frame().unwrap()), [("mine".into(), "connected".into())]);
    let requests = host.model_requests();
    assert!(requests[0].tool_names().contains(&"mcp__mine__echo"), "{:?}", requests[0].tool_names());
    assert!(requests[0].tool_names().contains(&"Read") && !requests[0].tool_names().contains(&"Bash"));
}
