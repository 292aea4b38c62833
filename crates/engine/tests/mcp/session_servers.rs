//! MCP servers of a session: tools, prompts, resources and control requests.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::control::{
    GetContextUsage, Initialize, McpCall, McpReadResource, McpReconnect, McpSetServers, McpStatus, McpToggle,
};
use whimbrel_wire::options::{McpServerConfig, Options, PluginConfig};

use crate::fixture::{
    host, options, server_states, shell_server, stdio_server, wait_until_processes_gone, word_call,
};

#[tokio::test]
async fn first_turn_has_server_tools_and_instructions() {
    let script = [word_call("mcp__sh__echo", "hey"), Reply::text("Done."), Reply::text("Again.")];
    let mut host = host(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let init = host.init_frame().unwrap();
    assert_eq!(server_states(init), [("sh".into(), "connected".into())]);
    let tools: Vec<_> = init["tools"].as_array().unwrap().iter().filter_map(|tool| tool.as_str()).collect();
    assert!(tools.contains(&"mcp__sh__echo") && tools.contains(&"ListMcpResourcesTool"), "{tools:?}");
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("mcp__sh__hello")));
    host.run("Again.").await.unwrap();
    let requests = host.model_requests();
    assert!(
        requests[0].tool_names().contains(&"mcp__sh__echo")
            && requests[0].contains_text("SHELL-INSTRUCTIONS")
    );
    assert!(requests[1].contains_text("said: hey"));
    for (one, other) in requests.iter().zip(&requests[1..]) {
        assert_eq!(one.body["tools"], other.body["tools"], "the cached prefix is unchanged");
        assert_eq!(one.body["system"], other.body["system"]);
    }
    let texts = json!(requests[2].messages()).to_string();
    assert_eq!(texts.matches("SHELL-INSTRUCTIONS").count(), 1, "the server is started once");
    let dir = host.dirs().workspace().to_path_buf();
    host.finish().await.unwrap();
    wait_until_processes_gone(&dir).await;
}

#[tokio::test]
async fn read_only_calls_run_in_parallel_after_permission_checks() {
    let script = [
        Reply::text("x")
            .and_tool("mcp__sh__echo", json!({"word": "a"}))
            .and_tool("mcp__sh__echo", json!({"word": "b"})),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script)
        .options(options())
        .can_use_tool(|request| {
            assert_eq!(request.mcp_server.as_ref().unwrap().name.as_deref(), Some("sh"));
            whimbrel_wire::permission::PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    let order: Vec<&str> = host
        .received()
        .iter()
        .filter_map(|received| match received.json["type"].as_str()? {
            "control_request" => Some("asked"),
            "user" => Some("answered"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["asked", "asked", "answered", "answered"]);
    let denied = Options { disallowed_tools: vec!["mcp__sh".into()], ..options() };
    let mut host = Host::with_script([word_call("mcp__sh__echo", "a"), Reply::text("No.")])
        .options(denied)
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    assert!(
        !requests[0].tool_names().iter().any(|tool| tool.starts_with("mcp__")),
        "{:?}",
        requests[0].tool_names()
    );
    assert!(requests[1].contains_text("No such tool"));
}

#[tokio::test]
async fn invalid_server_is_reported_and_others_start() {
    let mut invalid =
        Options { invalid_mcp_servers: [("pigeon".into(), "no such kind".into())].into(), ..options() };
    invalid.mcp_servers.insert("lost".into(), stdio_server(&["/nowhere/at/all"]));
    let mut host = Host::with_script([Reply::text("Done."), Reply::text("Done.")])
        .options(invalid)
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    let states = server_states(host.init_frame().unwrap());
    let expected = [("lost", "failed"), ("pigeon", "failed"), ("sh", "connected")];
    assert_eq!(states, expected.map(|(name, state)| (name.to_owned(), state.to_owned())));
    host.run("Again.").await.unwrap();
    let text = host.info_texts().join("\n");
    assert!(text.contains("MCP server pigeon: no such kind") && text.contains("MCP server lost: "), "{text}");
}

#[tokio::test]
async fn unresponsive_server_times_out() {
    let mut hung = options();
    hung.mcp_servers.insert("hung".into(), stdio_server(&["sleep", "600"]));
    let script = [word_call("mcp__sh__echo", "hey"), Reply::text("Done.")];
    let mut host = Host::with_script(script).options(hung).env("MCP_TIMEOUT", "5000").start().await.unwrap();
    host.run("Go.").await.unwrap();
    let states = server_states(host.init_frame().unwrap());
    assert_eq!(states, [("hung".into(), "failed".into()), ("sh".into(), "connected".into())]);
}

#[tokio::test]
async fn subagent_shares_the_session_servers() {
    let agent_call = Reply::tool("Agent", json!({"description": "look", "prompt": "Look."}));
    let script =
        [agent_call, word_call("mcp__sh__echo", "below"), Reply::text("Looked."), Reply::text("Done.")];
    let mut host = host(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    assert!(
        requests[1].tool_names().contains(&"mcp__sh__echo")
            && requests[1].contains_text("SHELL-INSTRUCTIONS")
    );
    assert!(requests[2].contains_text("said: below"));
    let pids = std::fs::read_to_string(host.dirs().workspace().join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 1, "all agents share one server");
}

#[tokio::test]
async fn server_prompt_is_a_slash_command() {
    let script = [Reply::text("Hello."), Reply::text("What?")];
    let mut host = host(script).start().await.unwrap();
    host.run("/mcp__sh__hello Zed").await.unwrap();
    assert!(
        host.model_requests()[0].contains_text("PROMPT-HELLO Zed"),
        "{:?}",
        host.model_requests()[0].messages()
    );
    let reply = host.send_request(Initialize::default()).await.unwrap();
    let listed = reply.commands.iter().find(|command| command.name == "mcp__sh__hello").unwrap();
    assert_eq!((listed.description.as_str(), listed.argument_hint.as_str()), ("says hello (MCP)", "[who]"));
    host.run("/mcp__sh__nosuch Zed").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("/mcp__sh__nosuch Zed"),
        "an unknown command is an ordinary prompt"
    );
}

#[tokio::test]
async fn resources_are_available_to_model_and_host() {
    let script = [
        Reply::tool("ListMcpResourcesTool", json!({})),
        Reply::tool("ReadMcpResourceTool", json!({"server": "sh", "uri": "sh://one"})),
        Reply::text("Done."),
    ];
    let mut host = host(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("sh://one")
            && host.model_requests()[2].contains_text("RESOURCE-TEXT")
    );
    let read = McpReadResource { server_name: "sh".into(), uri: "sh://one".into() };
    assert_eq!(host.send_request(read).await.unwrap().contents[0].text.as_deref(), Some("RESOURCE-TEXT"));
}

#[tokio::test]
async fn host_manages_servers_by_control_requests() {
    let script = [Reply::text("1"), Reply::text("2"), Reply::text("3")];
    let mut host = host(script).start().await.unwrap();
    host.run("One.").await.unwrap();
    let status = host.send_request(McpStatus::default()).await.unwrap().mcp_servers;
    assert_eq!(status[0].scope.as_deref(), Some("dynamic"));
    assert!(status[0].tools.as_ref().unwrap().iter().any(|tool| tool.name == "echo"));
    for name in ["nowhere", "no such"] {
        let unknown = host.send_request(McpReconnect { server_name: name.into() }).await.unwrap_err();
        assert!(unknown.to_string().contains(&format!("Server not found: {name}")), "{unknown}");
    }
    host.send_request(McpToggle { server_name: "sh".into(), enabled: false }).await.unwrap();
    host.run("Two.").await.unwrap();
    assert_eq!(server_states(host.init_frame().unwrap()), [("sh".into(), "disabled".into())]);
    assert!(!host.model_requests()[1].tool_names().iter().any(|tool| tool.starts_with("mcp__")));
    host.send_request(McpReconnect { server_name: "sh".into() }).await.unwrap();
    let servers =
        [("other".to_owned(), shell_server()), ("lost".to_owned(), stdio_server(&["/nowhere/at/all"]))];
    let reply = host.send_request(McpSetServers { servers: servers.into() }).await.unwrap();
    assert_eq!((reply.added.len(), reply.errors.len()), (2, 1));
    host.run("Three.").await.unwrap();
    assert!(host.model_requests()[2].tool_names().contains(&"mcp__other__echo"));
    let arguments = json!({"word": "beside"}).as_object().cloned();
    let direct = McpCall { tool: "mcp__other__echo".into(), arguments, ..McpCall::default() };
    let answer = host.send_request(direct.clone()).await.unwrap();
    assert!(answer.as_str().contains("said: beside"), "{answer:?}");
    let checked = McpCall { check_permissions: Some(true), tool: "mcp__other__nosuch".into(), ..direct };
    assert!(host.send_request(checked).await.unwrap_err().to_string().contains("Tool not found"));
    let reply = host.send_request(McpSetServers::default()).await.unwrap();
    assert_eq!(reply.removed, ["lost", "other"]);
}

#[tokio::test]
async fn session_without_servers_reports_none() {
    let mut host = Host::with_script(Script::from([Reply::text("Hi.")])).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    assert_eq!(server_states(host.init_frame().unwrap()), []);
    assert!(host.send_request(McpStatus::default()).await.unwrap().mcp_servers.is_empty());
    assert!(host.send_request(McpToggle { server_name: "x".into(), enabled: true }).await.is_err());
    host.send_request(GetContextUsage::default()).await.unwrap();
}

#[tokio::test]
async fn always_load_controls_deferred_tools() {
    let rows = [("default", None, false), ("always", Some(true), true), ("never", Some(false), false)];
    for (name, always_load, is_loaded) in rows {
        let mut options = options();
        if let Some(McpServerConfig::Stdio(server)) = options.mcp_servers.get_mut("sh") {
            server.always_load = always_load;
        }
        let host =
            Host::with_script([Reply::text("Done.")]).options(options).env("ENABLE_TOOL_SEARCH", "true");
        let mut host = host.start().await.unwrap();
        host.run("Go.").await.unwrap();
        assert_eq!(host.model_requests()[0].tool_names().contains(&"mcp__sh__echo"), is_loaded, "{name}");
        let usage = host.send_request(GetContextUsage::default()).await.unwrap();
        let echo = usage.mcp_tools.iter().find(|tool| tool["name"] == "mcp__sh__echo").unwrap();
        assert_eq!((&echo["serverName"], &echo["isLoaded"]), (&json!("sh"), &json!(is_loaded)), "{name}");
        host.finish().await.unwrap();
    }
    // Deferred even if the tools would fit.
    let mut options = options();
    if let Some(McpServerConfig::Stdio(server)) = options.mcp_servers.get_mut("sh") {
        server.always_load = Some(false);
    }
    let mut host = Host::with_script([Reply::text("Done.")]).options(options).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(!host.model_requests()[0].tool_names().contains(&"mcp__sh__echo"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn plugin_servers_start_unless_config_is_strict() {
    let file = json!({"mcpServers": {"sh": shell_server()}}).to_string();
    let tool = "mcp__plugin_birds_sh__echo";
    let rows = [
        ("default", false, vec![("plugin:birds:sh".to_owned(), "connected".to_owned())]),
        ("strict config", true, vec![]),
    ];
    for (name, strict_mcp_config, expected) in rows {
        let plugins = vec![PluginConfig::local("birds")];
        let options =
            Options { plugins, strict_mcp_config, allowed_tools: vec![tool.into()], ..Options::default() };
        let host = Host::with_script([word_call(tool, "curlew"), Reply::text("Done.")]).options(options);
        let mut host = host.file("birds/.mcp.json", file.clone()).start().await.unwrap();
        host.run("Go.").await.unwrap();
        assert_eq!(server_states(host.init_frame().unwrap()), expected, "{name}");
        let answer = if strict_mcp_config { "No such tool" } else { "said: curlew" };
        assert!(host.model_requests()[1].contains_text(answer), "{name}");
        host.finish().await.unwrap();
    }
}
