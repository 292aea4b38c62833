//! Plugins and output styles of a session.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, TestDirs};
use whimbrel_wire::control::{Initialize, ReloadOutputStyles, ReloadPlugins};
use whimbrel_wire::options::{Options, PluginConfig};

use crate::{GREET_SKILL, call_skill};

fn write_plugin(dirs: &TestDirs) -> PluginConfig {
    let guard = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
        "command": "echo \"not here: ${CLAUDE_PLUGIN_ROOT} $CLAUDE_PLUGIN_ROOT\" >&2; exit 2"}]}]});
    let files = [
        (".claude-plugin/plugin.json", json!({"name": "tools", "version": "2.0.0"}).to_string()),
        ("commands/go.md", "Go $0.".to_owned()),
        ("skills/greet/SKILL.md", GREET_SKILL.to_owned()),
        ("output-styles/brief.md", "---\nname: Brief\n---\nUse few words.".to_owned()),
        ("hooks/hooks.json", json!({"hooks": guard}).to_string()),
    ];
    for (path, text) in files {
        dirs.write_file(&format!("plug/{path}"), text).unwrap();
    }
    PluginConfig::local(dirs.workspace().join("plug").display().to_string())
}

#[tokio::test]
async fn plugin_provides_commands_skills_hooks_and_styles() {
    let dirs = TestDirs::new().unwrap();
    let config = write_plugin(&dirs);
    let settings = json!({"outputStyle": "tools:Brief", "permissions": {"allow": ["Bash"]}}).to_string();
    let options = Options {
        setting_sources: Some(vec![]),
        settings: Some(settings),
        plugins: vec![config.clone(), PluginConfig::local("nowhere")],
        ..Options::default()
    };
    let script =
        [Reply::text("One."), call_skill("tools:greet"), Reply::bash("touch again"), Reply::text("Two.")];
    let mut host = Host::with_script(script).dirs(dirs).options(options).start().await.unwrap();
    host.run("/tools:go north").await.unwrap();
    host.run("Go on.").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[0].contains_text("Go north."));
    assert!(requests[0].system_prompt().contains("# Output style: tools:Brief\nUse few words."));
    assert!(!requests[0].system_prompt().contains("# Working method"));
    assert!(requests[2].contains_text("Say hello to Ann."));
    assert!(
        requests[3].last_text().contains(&format!("not here: {0} {0}", config.path)),
        "{}",
        requests[3].last_text()
    );
    assert!(!host.dirs().files().unwrap().contains_key("again"));
    let init = host.init_frame().unwrap();
    assert_eq!(init["plugins"], json!([{"name": "tools", "path": config.path, "version": "2.0.0"}]));
    assert_eq!((&init["skills"], &init["output_style"]), (&json!(["tools:greet"]), &json!("tools:Brief")));
    assert_eq!(init["plugin_errors"][0]["type"], "path-not-found");
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("tools:go")));
}

#[tokio::test]
async fn plugins_can_be_added_by_control_requests() {
    let dirs = TestDirs::new().unwrap();
    let config = write_plugin(&dirs);
    let plain = Options { setting_sources: Some(vec![]), ..Options::default() };
    let mut host = Host::with_script([Reply::bash("touch again"), Reply::text("One.")])
        .dirs(dirs)
        .options(plain.clone())
        .start()
        .await
        .unwrap();
    let initialize = Initialize { plugins: Some(vec![config]), ..Initialize::default() };
    let reply = host.send_request(initialize).await.unwrap();
    assert_eq!(reply.plugins_applied, Some(json!(true)));
    assert_eq!(reply.available_output_styles, ["default", "Explanatory", "Learning", "tools:Brief"]);
    assert!(reply.commands.iter().any(|command| command.name == "tools:greet"));
    host.run("Hi.").await.unwrap();
    assert!(host.model_requests()[1].last_text().contains("not here"), "its hooks run");

    let dirs = TestDirs::new().unwrap();
    let config = write_plugin(&dirs);
    let mut host = Host::with_script([Reply::text("One."), Reply::text("Two.")])
        .dirs(dirs)
        .options(plain)
        .start()
        .await
        .unwrap();
    host.run("Hi.").await.unwrap();
    let relative =
        ReloadPlugins { add_plugins: Some(vec![PluginConfig::local("plug")]), ..ReloadPlugins::default() };
    assert!(host.send_request(relative).await.unwrap_err().to_string().contains("absolute"));
    let more = ReloadPlugins { add_plugins: Some(vec![config]), ..ReloadPlugins::default() };
    let reply = host.send_request(more).await.unwrap();
    assert_eq!((reply.plugins[0]["name"].as_str(), reply.error_count), (Some("tools"), 0));
    host.next_matching(&json!({"content": "The hooks of the plugin tools do not run in this session, because it was loaded after the session started."})).await.unwrap();
    let styles = host.send_request(ReloadOutputStyles {}).await.unwrap();
    assert!(styles.available_output_styles.contains(&"tools:Brief".to_owned()));
    host.run("And now?").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("- tools:go")
            && host.model_requests()[1].contains_text("- tools:greet: Greets people")
    );
}

#[tokio::test]
async fn unknown_output_style_warns_and_uses_default() {
    let mut host =
        Host::with_script([Reply::text("Hello.")]).options(style_options("Pirate")).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    assert!(host.model_requests()[0].system_prompt().contains("# Communication"));
    assert_eq!(host.init_frame().unwrap()["output_style"], "Pirate");
    assert!(
        host.received().iter().any(|received| received.json.to_string().contains("There is no output style"))
    );
}

#[tokio::test]
async fn hosts_get_the_requested_name_of_the_output_style() {
    let script = [Reply::text("Hello.")];
    let mut host = Host::with_script(script).options(style_options("explanatory")).start().await.unwrap();
    let reply = host.send_request(Initialize::default()).await.unwrap();
    host.run("Hi.").await.unwrap();
    assert!(!host.model_requests()[0].system_prompt().contains("# Communication"));
    let init = &host.init_frame().unwrap()["output_style"];
    assert_eq!((reply.output_style.as_str(), init), ("explanatory", &json!("explanatory")));
}

fn style_options(style: &str) -> Options {
    Options { settings: Some(json!({"outputStyle": style}).to_string()), ..Options::default() }
}
