//! Servers and kinds of agents: those that a kind names, and those of its own.

use serde_json::{Value, json};
use whimbrel_testkit::{Asked, Host, HostBuilder, Reply, Script};
use whimbrel_wire::options::{AgentDefinition, McpServerConfig, Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::rig::{call, entry, init, servers, told};

fn kind(prompt: &str, tools: Option<&[&str]>, servers: &Value) -> AgentDefinition {
    AgentDefinition {
        description: "d".into(),
        prompt: prompt.into(),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        mcp_servers: servers.as_array().cloned(),
        ..AgentDefinition::default()
    }
}

/// A host with these kinds and servers that allows everything.
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
    Host::with(script).options(options).env("IS_SANDBOX", "1")
}

fn send(kind: &str, prompt: &str) -> Reply {
    Reply::tool("Agent", json!({"description": "d", "prompt": prompt, "subagent_type": kind}))
}

fn of_servers(asked: &Asked) -> Vec<String> {
    asked.tools().iter().filter(|tool| tool.starts_with("mcp__")).map(|tool| (*tool).to_owned()).collect()
}

#[tokio::test]
async fn a_kinds_own_servers_are_not_those_of_whom_it_sends_and_outlive_them() {
    let owner = kind("OWNER", Some(&["Agent(plain)"]), &json!([{"mine": entry()}]));
    let plain = kind("PLAIN", None, &json!([]));
    let script = Script::by(|asked| match (asked.system().as_str(), asked.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", text) if text.contains("Seen.") => call("mcp__mine__echo", "still there"),
        ("OWNER", _) => send("plain", "Look."),
        ("PLAIN", _) => Reply::text("Seen."),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => send("owner", "Own it."),
    });
    let mut host = host(script, &[("owner", owner), ("plain", plain)], &[]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let asked = host.asked();
    let of = |prompt: &str| asked.iter().filter(|asked| asked.system() == prompt).collect::<Vec<_>>();
    let (owner, plain) = (of("OWNER"), of("PLAIN"));
    assert!(of_servers(owner[0]).contains(&"mcp__mine__echo".to_owned()), "{:?}", owner[0].tools());
    assert_eq!(of_servers(plain[0]), Vec::<String>::new());
    assert!(owner[2].last_text().contains("said: still there"), "{}", owner[2].last_text());
}

#[tokio::test]
async fn of_two_servers_with_one_name_the_kinds_own_counts_and_no_tool_is_there_twice() {
    let own = kind("OWNER", None, &json!([{"sh": entry()}]));
    let script = Script::by(|asked| match (asked.system().as_str(), asked.last_text()) {
        ("OWNER", text) if text.contains("said: ") => Reply::text("Heard."),
        ("OWNER", _) => call("mcp__sh__echo", "curlew"),
        (_, text) if text.contains("Heard.") => Reply::text("Done."),
        _ => send("own", "Own it."),
    });
    let mut host = host(script, &[("own", own)], &[("sh", entry())]).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let asked = host.asked();
    let mut names = of_servers(&asked[1]);
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), all), (of_servers(&asked[0]).len(), names.len()), "{names:?}");
    assert!(asked[2].last_text().contains("said: curlew"));
}

#[tokio::test]
async fn a_kind_that_names_a_server_which_there_is_not_is_told_of() {
    let named = kind("p", None, &json!(["nosuch", "sh"]));
    let said = "begins without the MCP server nosuch: the session has none of that name";
    let script = [send("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let kinds = [("named", named)];
    let mut below = host(script, &kinds, &[("sh", entry())]).start().await.unwrap();
    below.run("Go.").await.unwrap();
    let warnings = told(&below).join("\n");
    assert!(warnings.contains(said) && !warnings.contains("server sh"), "{warnings}");

    let itself = host([Reply::text("Done.")], &kinds, &[("sh", entry())]);
    let mut itself = itself.change(|options| options.agent = Some("named".into())).start().await.unwrap();
    itself.run("Go.").await.unwrap();
    let heard = itself.heard().iter().map(|heard| heard.json.to_string()).collect::<String>();
    assert!(heard.contains(said), "{heard}");
}

#[tokio::test]
async fn a_server_is_meant_by_its_own_name_though_its_tools_have_another() {
    let script = [send("named", "Look."), Reply::text("Seen."), Reply::text("Done.")];
    let named = kind("p", None, &json!(["my.db"]));
    let both = [("my.db", entry()), ("my_db", entry())];
    let mut below = host(script, &[("named", named)], &both).start().await.unwrap();
    below.run("Go.").await.unwrap();
    let asked = below.asked();
    assert!(of_servers(&asked[0]).contains(&"mcp__my_db__echo".to_owned()));
    let names = of_servers(&asked[1]);
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("mcp__my_db_2__")), "{names:?}");

    let own = kind("p", Some(&["Read"]), &json!([{"my.db": entry()}]));
    let itself = host([Reply::text("Done.")], &[("own", own)], &[]);
    let mut itself = itself.change(|options| options.agent = Some("own".into())).start().await.unwrap();
    itself.run("Go.").await.unwrap();
    let tools = of_servers(&itself.asked()[0]);
    assert!(tools.contains(&"mcp__my_db__echo".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn a_strict_host_has_the_own_servers_of_its_own_kinds_and_of_no_files() {
    let head = json!({"mine": entry()});
    let file = format!("---\nname: filed\ndescription: d\nmcpServers: [{head}]\n---\nFILED");
    let hosts = kind("HOSTS", None, &json!([{"mine": entry()}]));
    for strict in [false, true] {
        let script = [send("filed", "Look.")
            .and_tool("Agent", json!({"description": "d", "prompt": "Look.", "subagent_type": "hosts"}))];
        let script = Script::by(move |asked| match asked.last_text() {
            text if text.contains("Look.") => Reply::text("Seen."),
            text if text.contains("Seen.") => Reply::text("Done."),
            _ => script[0].clone(),
        });
        let host = host(script, &[("hosts", hosts.clone())], &[]).change(|options| {
            options.strict_mcp_config = strict;
            options.setting_sources = Some(vec![SettingSource::Project]);
        });
        let mut host = host.file(".claude/agents/filed.md", file.clone()).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let has = |prompt: &str| {
            let asked = host.asked();
            let asked = asked.iter().find(|asked| asked.system() == prompt).unwrap();
            !of_servers(asked).is_empty()
        };
        assert_eq!((has("FILED"), has("HOSTS")), (!strict, true), "strict: {strict}");
        let heard = host.heard().iter().map(|heard| heard.json.to_string()).collect::<String>();
        assert_eq!(heard.contains("The agent filed: its own MCP servers are not started"), strict, "{heard}");
        assert_eq!(servers(&init(&host)), [], "they are no servers of the session");
    }
}
