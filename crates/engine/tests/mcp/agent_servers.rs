//! MCP servers of agent definitions: named servers of the session, and servers of their own.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::options::{AgentDefinition, McpServerConfig, Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::fixture::{info_texts, last_init_frame, server_states, shell_server, word_call};

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
    kinds: &[(&str, AgentDefinition)],
    servers: &[(&str, McpServerConfig)],
) -> HostBuilder {
    let options = Options {
        permission_mode: Some(PermissionMode::BypassPermissions),
        agents: kinds.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect(),
        mcp_servers: servers.iter().map(|(name, server)| ((*name).to_owned(), server.clone())).collect(),
        ..Options::default()
    };
    Host::with_script(script).options(options).env("IS_SANDBOX", "1")
}

fn call_agent(kind: &str, prompt: &str) -> Reply {
    Reply::tool("Agent", json!({"description": "d", "prompt": prompt, "subagent_type": kind}))
}

fn mcp_tool_names(asked: &ModelRequest) -> Vec<String> {
    asked
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
    let script = Script::from_fn(|asked| match (asked.system_prompt().as_str(), asked.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", text) if text.contains("Seen.") => word_call("mcp__mine__echo", "still there"),
        ("OWNER", _) => call_agent("plain", "Look."),
        ("PLAIN", _) => Reply::text("Seen."),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => call_agent("owner", "Own it."),
    });
    let mut host = host(script, &[("owner", owner), ("plain", plain)], &[]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let asked = host.model_requests();
    let of = |prompt: &str| asked.iter().filter(|asked| asked.system_prompt() == prompt).collect::<Vec<_>>();
    let (owner, plain) = (of("OWNER"), of("PLAIN"));
    assert!(mcp_tool_names(owner[0]).contains(&"mcp__mine__echo".to_owned()), "{:?}", owner[0].tool_names());
    assert_eq!(mcp_tool_names(plain[0]), Vec::<String>::new());
    assert!(owner[2].last_text().contains("said: still there"), "{}", owner[2].last_text());
}

#[tokio::test]
async fn own_server_shadows_the_session_server() {
    let own = agent_definition("OWNER", None, &json!([{"sh": shell_server()}]));
    let script = Script::from_fn(|asked| match (asked.system_prompt().as_str(), asked.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", _) => word_call("mcp__sh__echo", "curlew"),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => call_agent("own", "Own it."),
    });
    let mut host = host(script, &[("own", own)], &[("sh", shell_server())]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let asked = host.model_requests();
    let mut names = mcp_tool_names(&asked[1]);
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), all), (mcp_tool_names(&asked[0]).len(), names.len()), "{names:?}");
    assert!(asked[2].last_text().contains("said: curlew"));
}

#[tokio::test]
async fn unknown_server_of_a_definition_warns() {
    let named = agent_definition("p", None, &json!(["nosuch", "sh"]));
    let said = "begins without the MCP server nosuch: the session has none of that name";
    let script = [call_agent("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let kinds = [("named", named)];
    let mut below = host(script, &kinds, &[("sh", shell_server())]).start().await.unwrap();
    below.run("Go.").await.unwrap();
    let warnings = info_texts(&below).join("\n");
    assert!(warnings.contains(said) && !warnings.contains("server sh"), "{warnings}");

    let itself = host([Reply::text("Done.")], &kinds, &[("sh", shell_server())]);
    let mut itself = itself.configure(|options| options.agent = Some("named".into())).start().await.unwrap();
    itself.run("Go.").await.unwrap();
    let heard = itself.received().iter().map(|heard| heard.json.to_string()).collect::<String>();
    assert!(heard.contains(said), "{heard}");
}

#[tokio::test]
async fn definition_names_servers_before_name_normalization() {
    let script = [call_agent("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let named = agent_definition("p", None, &json!(["my.db"]));
    let both = [("my.db", shell_server()), ("my_db", shell_server())];
    let mut below = host(script, &[("named", named)], &both).start().await.unwrap();
    below.run("Go.").await.unwrap();
    let asked = below.model_requests();
    assert!(mcp_tool_names(&asked[0]).contains(&"mcp__my_db__echo".to_owned()));
    let names = mcp_tool_names(&asked[1]);
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("mcp__my_db_2__")), "{names:?}");

    let own = agent_definition("p", Some(&["Read"]), &json!([{"my.db": shell_server()}]));
    let itself = host([Reply::text("Done.")], &[("own", own)], &[]);
    let mut itself = itself.configure(|options| options.agent = Some("own".into())).start().await.unwrap();
    itself.run("Go.").await.unwrap();
    let tools = mcp_tool_names(&itself.model_requests()[0]);
    assert!(tools.contains(&"mcp__my_db__echo".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn strict_config_ignores_servers_of_definition_files() {
    let head = json!({"mine": shell_server()});
    let file = format!("---\nname: filed\ndescription: d\nmcpServers: [{head}]\n---\nFILED");
    let hosts = agent_definition("HOSTS", None, &json!([{"mine": shell_server()}]));
    for strict in [false, true] {
        let script = [call_agent("filed", "Look.")
            .and_tool("Agent", json!({"description": "d", "prompt": "Look.", "subagent_type": "hosts"}))];
        let script = Script::from_fn(move |asked| match asked.last_text() {
            text if text.contains("Look.") => Reply::text("Seen."),
            text if text.contains("Seen.") => Reply::text("Done."),
            _ => script[0].clone(),
        });
        let host = host(script, &[("hosts", hosts.clone())], &[]).configure(|options| {
            options.strict_mcp_config = strict;
            options.setting_sources = Some(vec![SettingSource::Project]);
        });
        let mut host = host.file(".claude/agents/filed.md", file.clone()).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let has = |prompt: &str| {
            let asked = host.model_requests();
            let asked = asked.iter().find(|asked| asked.system_prompt() == prompt).unwrap();
            !mcp_tool_names(asked).is_empty()
        };
        assert_eq!((has("FILED"), has("HOSTS")), (!strict, true), "strict: {strict}");
        let heard = host.received().iter().map(|heard| heard.json.to_string()).collect::<String>();
        assert_eq!(heard.contains("The agent filed: its own MCP servers are not started"), strict, "{heard}");
        assert_eq!(server_states(&last_init_frame(&host)), [], "they are no servers of the session");
    }
}
