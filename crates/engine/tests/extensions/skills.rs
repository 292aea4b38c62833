//! Skills, plugins and output styles of a session.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, TestDirs};
use whimbrel_wire::control::{Initialize, Interrupt, ReloadOutputStyles, ReloadPlugins, ReloadSkills};
use whimbrel_wire::options::{Options, PluginConfig, SettingSource};
use whimbrel_wire::permission::PermissionResult;

fn project_options() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

const GREET_SKILL: &str = "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS.";

/// A skill with an allow rule and an embedded shell command.
const SKILL_WITH_ALLOW: &str =
    "---\ndescription: Does things\nallowed-tools: Bash(touch *)\n---\nIt says !`touch made; echo hello`.";

fn call_skill(skill: &str) -> Reply {
    Reply::tool("Skill", json!({"skill": skill, "args": "Ann"}))
}

fn touch_call() -> Reply {
    Reply::tool("Bash", json!({"command": "touch again"}))
}

fn last_init_frame(host: &Host) -> Value {
    host.received().iter().rev().find(|heard| heard.json["subtype"] == "init").unwrap().json.clone()
}

#[tokio::test]
async fn skills_are_listed_and_their_text_follows_the_call() {
    let mut host = Host::with_script([call_skill("greet"), Reply::text("Hello.")])
        .options(project_options())
        .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
        .file(".claude/commands/fix.md", "Fix it.")
        .start()
        .await
        .unwrap();
    host.run("Greet Ann.").await.unwrap();
    let asked = host.model_requests();
    assert!(asked[0].tool_names().contains(&"Skill"));
    assert!(asked[0].contains_text("- fix: Fix it.\n- greet: Greets people\n"), "{:?}", asked[0].messages());
    assert!(!asked[0].system_prompt().contains("Greets people"));
    let folder = host.dirs().workspace().join(".claude/skills/greet");
    let expected = format!("Base directory for this skill: {}\n\nSay hello to Ann.", folder.display());
    assert!(asked[1].last_text().contains(&expected), "{}", asked[1].last_text());
    let told = host.received().iter().find(|heard| heard.json["isSynthetic"] == true).unwrap();
    assert_eq!(told.json["message"]["content"][0]["text"], expected);
    let result = host.received().iter().find(|heard| heard.json["tool_use_result"].is_object()).unwrap();
    assert_eq!(result.json["tool_use_result"], json!({"success": true, "commandName": "greet"}));
    let init = last_init_frame(&host);
    assert_eq!(init["skills"], json!(["greet"]));
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("greet")));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Skill")));
}

#[tokio::test]
async fn user_invokes_a_skill_as_slash_command() {
    let mut host = Host::with_script([Reply::text("Hello.")])
        .options(project_options())
        .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
        .start()
        .await
        .unwrap();
    host.run("/greet Bob").await.unwrap();
    let asked = host.model_requests();
    assert!(
        asked[0].contains_text("<command-name>/greet</command-name>")
            && asked[0].contains_text("Say hello to Bob.")
    );
    assert!(asked[0].contains_text("Base directory for this skill: "));
}

#[tokio::test]
async fn skill_tool_is_absent_without_skills() {
    let rows = [
        ("nothing to call", project_options(), "notes.txt"),
        (
            "other tools only",
            Options { tools: Some(serde_json::from_value(json!(["Bash"])).unwrap()), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "denied",
            Options { disallowed_tools: vec!["Skill".into()], ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "none chosen",
            Options { skills: Some(vec![]), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "not asked for",
            Options { setting_sources: Some(vec![]), ..Options::default() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "switched off",
            Options { extra_args: [("disable-slash-commands".to_owned(), None)].into(), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
    ];
    for (name, options, file) in rows {
        let mut host = Host::with_script([Reply::text("Hello.")])
            .options(options)
            .file(file, GREET_SKILL)
            .start()
            .await
            .unwrap();
        host.run("Hi.").await.unwrap();
        let asked = &host.model_requests()[0];
        assert!(!asked.tool_names().contains(&"Skill") && !asked.contains_text("Greets people"), "{name}");
    }
}

#[tokio::test]
async fn skill_allow_rules_last_until_the_turn_ends() {
    let script = [call_skill("mighty"), touch_call(), Reply::text("One."), touch_call(), Reply::text("Two.")];
    let mut host = Host::with_script(script)
        .options(Options { skills: Some(vec!["mighty".into()]), ..project_options() })
        .file(".claude/skills/mighty/SKILL.md", SKILL_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert!(result.permission_denials.is_empty(), "{:?}", result.permission_denials);
    assert!(
        host.model_requests()[1].last_text().contains("It says hello."),
        "{}",
        host.model_requests()[1].last_text()
    );
    assert!(host.dirs().files().unwrap().contains_key("again"));
    assert_eq!(host.run("Once more.").await.unwrap().permission_denials.len(), 1);
}

#[tokio::test]
async fn skill_with_allow_rules_needs_permission() {
    for (file, questions) in [(SKILL_WITH_ALLOW, 1), (GREET_SKILL, 0)] {
        let mut host = Host::with_script([call_skill("it"), Reply::text("Done.")])
            .options(project_options())
            .file(".claude/skills/it/SKILL.md", file)
            .can_use_tool(|_| PermissionResult::allow())
            .start()
            .await
            .unwrap();
        host.run("Do it.").await.unwrap();
        let tools: Vec<&Value> =
            host.permission_requests().into_iter().map(|asked| &asked["tool_name"]).collect();
        assert_eq!(tools, vec![&json!("Skill"); questions]);
    }
}

#[tokio::test]
async fn untrusted_skill_cannot_allow_tools() {
    let mut host = Host::with_script([call_skill("mighty"), Reply::text("Done.")])
        .file(".claude/skills/mighty/SKILL.md", SKILL_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert_eq!(result.permission_denials.len(), 1, "{:?}", result.permission_denials);
    let told = host.model_requests()[1].last_text();
    assert!(
        told.contains("The skill mighty could not be loaded. It needs `touch made; echo hello`"),
        "{told}"
    );
    assert!(!host.dirs().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn deny_rules_match_skills_under_both_tool_names() {
    let by_command = Reply::tool("SlashCommand", json!({"command": "/greet Ann"}));
    let rows = [
        ("Skill(greet)", call_skill("greet"), 1),
        ("Skill(greet)", Reply::tool("Skill", json!({"skill": "/greet Ann"})), 1),
        ("SlashCommand(/greet:*)", by_command.clone(), 1),
        ("Skill(other)", by_command, 0),
    ];
    for (rule, call, denials) in rows {
        let mut host = Host::with_script([call, Reply::text("Done.")])
            .options(Options { disallowed_tools: vec![rule.into()], ..project_options() })
            .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
            .start()
            .await
            .unwrap();
        let result = host.run("Greet Ann.").await.unwrap();
        assert_eq!(result.permission_denials.len(), denials, "{rule}");
        assert_eq!(host.model_requests()[1].contains_text("Say hello to Ann."), denials == 0, "{rule}");
    }
}

#[tokio::test]
async fn new_skill_is_available_after_reload() {
    let script = [Reply::text("One."), call_skill("greet"), Reply::text("Two.")];
    let mut host = Host::with_script(script).options(project_options()).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.dirs().write_file(".claude/skills/greet/SKILL.md", GREET_SKILL).unwrap();
    let reply = host.send_request(ReloadSkills {}).await.unwrap();
    assert_eq!(reply.skills[0]["name"], "greet");
    host.next_matching(&json!({"subtype": "commands_changed"})).await.unwrap();
    host.run("Greet Ann.").await.unwrap();
    let asked = host.model_requests();
    assert!(!asked[0].tool_names().contains(&"Skill"));
    assert!(asked[1].tool_names().contains(&"Skill") && asked[1].contains_text("- greet: Greets people"));
    assert!(asked[2].contains_text("Say hello to Ann."));
}

fn write_plugin(stage: &TestDirs) -> PluginConfig {
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
        stage.write_file(&format!("plug/{path}"), text).unwrap();
    }
    PluginConfig::local(stage.workspace().join("plug").display().to_string())
}

#[tokio::test]
async fn plugin_provides_commands_skills_hooks_and_styles() {
    let stage = TestDirs::new().unwrap();
    let config = write_plugin(&stage);
    let settings = json!({"outputStyle": "tools:Brief", "permissions": {"allow": ["Bash"]}}).to_string();
    let options = Options {
        setting_sources: Some(vec![]),
        settings: Some(settings),
        plugins: vec![config.clone(), PluginConfig::local("nowhere")],
        ..Options::default()
    };
    let script = [Reply::text("One."), call_skill("tools:greet"), touch_call(), Reply::text("Two.")];
    let mut host = Host::with_script(script).dirs(stage).options(options).start().await.unwrap();
    host.run("/tools:go north").await.unwrap();
    host.run("Go on.").await.unwrap();
    let asked = host.model_requests();
    assert!(asked[0].contains_text("Go north."));
    assert!(asked[0].system_prompt().contains("# Output style: tools:Brief\nUse few words."));
    assert!(!asked[0].system_prompt().contains("# How you work"));
    assert!(asked[2].contains_text("Say hello to Ann."));
    assert!(
        asked[3].last_text().contains(&format!("not here: {0} {0}", config.path)),
        "{}",
        asked[3].last_text()
    );
    assert!(!host.dirs().files().unwrap().contains_key("again"));
    let init = last_init_frame(&host);
    assert_eq!(init["plugins"], json!([{"name": "tools", "path": config.path, "version": "2.0.0"}]));
    assert_eq!((&init["skills"], &init["output_style"]), (&json!(["tools:greet"]), &json!("tools:Brief")));
    assert_eq!(init["plugin_errors"][0]["type"], "path-not-found");
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("tools:go")));
}

#[tokio::test]
async fn plugins_can_be_added_by_control_requests() {
    let stage = TestDirs::new().unwrap();
    let config = write_plugin(&stage);
    let plain = Options { setting_sources: Some(vec![]), ..Options::default() };
    let mut host = Host::with_script([touch_call(), Reply::text("One.")])
        .dirs(stage)
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
    assert!(host.model_requests()[1].last_text().contains("not here"), "its hooks count");

    let stage = TestDirs::new().unwrap();
    let config = write_plugin(&stage);
    let mut host = Host::with_script([Reply::text("One."), Reply::text("Two.")])
        .dirs(stage)
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
    host.next_matching(&json!({"content": "The hooks of the plugin tools do not run in this session: it was loaded after the beginning."})).await.unwrap();
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
    let options =
        Options { settings: Some(json!({"outputStyle": "Pirate"}).to_string()), ..Options::default() };
    let mut host = Host::with_script([Reply::text("Hello.")]).options(options).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    assert!(host.model_requests()[0].system_prompt().contains("# How you speak"));
    assert_eq!(last_init_frame(&host)["output_style"], "default");
    assert!(host.received().iter().any(|heard| heard.json.to_string().contains("There is no output style")));
}

#[tokio::test]
async fn interrupted_skill_call_leaves_valid_history() {
    let slow = "---\ndescription: Slow\nallowed-tools: Bash(sleep *)\n---\n!`sleep 600`";
    let mut host = Host::with_script([call_skill("slow"), Reply::text("After.")])
        .options(Options { skills: Some(vec!["slow".into()]), ..project_options() })
        .file(".claude/skills/slow/SKILL.md", slow)
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"tool_use_result": {"commandName": "slow"}})).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    assert_eq!(host.run("Still there?").await.unwrap().result.as_deref(), Some("After."));
    assert!(
        host.model_requests()[1].contains_text("The skill slow was not loaded: the turn was interrupted.")
    );
    assert_eq!(host.finish().await.unwrap().code, 0);
}
