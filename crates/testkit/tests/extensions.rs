//! What people and plugins add to a session: skills, output styles, plugins.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, Stage};
use whimbrel_wire::control::{Initialize, Interrupt, ReloadOutputStyles, ReloadPlugins, ReloadSkills};
use whimbrel_wire::options::{Options, PluginConfig, SettingSource};
use whimbrel_wire::permission::PermissionResult;

fn project() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

const GREET: &str = "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS.";

/// A skill that allows something, and wants something run.
const MIGHTY: &str =
    "---\ndescription: Does things\nallowed-tools: Bash(touch *)\n---\nIt says !`touch made; echo hello`.";

fn load(skill: &str) -> Reply {
    Reply::tool("Skill", json!({"skill": skill, "args": "Ann"}))
}

fn touch() -> Reply {
    Reply::tool("Bash", json!({"command": "touch again"}))
}

fn init(host: &Host) -> Value {
    host.heard().iter().rev().find(|heard| heard.json["subtype"] == "init").unwrap().json.clone()
}

#[tokio::test]
async fn the_model_is_told_of_skills_and_what_one_says_follows_the_call() {
    let mut host = Host::with([load("greet"), Reply::text("Hello.")])
        .options(project())
        .file(".claude/skills/greet/SKILL.md", GREET)
        .file(".claude/commands/fix.md", "Fix it.")
        .start()
        .await
        .unwrap();
    host.run("Greet Ann.").await.unwrap();
    let asked = host.asked();
    assert!(asked[0].tools().contains(&"Skill"));
    assert!(asked[0].says("- fix: Fix it.\n- greet: Greets people\n"), "{:?}", asked[0].messages());
    assert!(!asked[0].system().contains("Greets people"));
    let folder = host.stage().workspace().join(".claude/skills/greet");
    let expected = format!("Base directory for this skill: {}\n\nSay hello to Ann.", folder.display());
    assert!(asked[1].last_text().contains(&expected), "{}", asked[1].last_text());
    let told = host.heard().iter().find(|heard| heard.json["isSynthetic"] == true).unwrap();
    assert_eq!(told.json["message"]["content"][0]["text"], expected);
    let result = host.heard().iter().find(|heard| heard.json["tool_use_result"].is_object()).unwrap();
    assert_eq!(result.json["tool_use_result"], json!({"success": true, "commandName": "greet"}));
    let init = init(&host);
    assert_eq!(init["skills"], json!(["greet"]));
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("greet")));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Skill")));
}

#[tokio::test]
async fn a_person_calls_a_skill_like_a_command() {
    let mut host = Host::with([Reply::text("Hello.")])
        .options(project())
        .file(".claude/skills/greet/SKILL.md", GREET)
        .start()
        .await
        .unwrap();
    host.run("/greet Bob").await.unwrap();
    let asked = host.asked();
    assert!(asked[0].says("<command-name>/greet</command-name>") && asked[0].says("Say hello to Bob."));
    assert!(asked[0].says("Base directory for this skill: "));
}

#[tokio::test]
async fn where_there_are_no_skills_there_is_no_tool_for_them() {
    let rows = [
        ("nothing to call", project(), "notes.txt"),
        (
            "other tools only",
            Options { tools: Some(serde_json::from_value(json!(["Bash"])).unwrap()), ..project() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "denied",
            Options { disallowed_tools: vec!["Skill".into()], ..project() },
            ".claude/skills/greet/SKILL.md",
        ),
        ("none chosen", Options { skills: Some(vec![]), ..project() }, ".claude/skills/greet/SKILL.md"),
        (
            "not asked for",
            Options { setting_sources: Some(vec![]), ..Options::default() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "switched off",
            Options { extra_args: [("disable-slash-commands".to_owned(), None)].into(), ..project() },
            ".claude/skills/greet/SKILL.md",
        ),
    ];
    for (name, options, file) in rows {
        let mut host =
            Host::with([Reply::text("Hello.")]).options(options).file(file, GREET).start().await.unwrap();
        host.run("Hi.").await.unwrap();
        let asked = &host.asked()[0];
        assert!(!asked.tools().contains(&"Skill") && !asked.says("Greets people"), "{name}");
    }
}

#[tokio::test]
async fn what_a_skill_allows_counts_until_the_turn_ends() {
    let script = [load("mighty"), touch(), Reply::text("One."), touch(), Reply::text("Two.")];
    let mut host = Host::with(script)
        .options(Options { skills: Some(vec!["mighty".into()]), ..project() })
        .file(".claude/skills/mighty/SKILL.md", MIGHTY)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert!(result.permission_denials.is_empty(), "{:?}", result.permission_denials);
    assert!(host.asked()[1].last_text().contains("It says hello."), "{}", host.asked()[1].last_text());
    assert!(host.stage().files().unwrap().contains_key("again"));
    assert_eq!(host.run("Once more.").await.unwrap().permission_denials.len(), 1);
}

#[tokio::test]
async fn a_skill_that_allows_something_is_asked_about() {
    for (file, questions) in [(MIGHTY, 1), (GREET, 0)] {
        let mut host = Host::with([load("it"), Reply::text("Done.")])
            .options(project())
            .file(".claude/skills/it/SKILL.md", file)
            .can_use_tool(|_| PermissionResult::allow())
            .start()
            .await
            .unwrap();
        host.run("Do it.").await.unwrap();
        let tools: Vec<&Value> = host.questions().into_iter().map(|asked| &asked["tool_name"]).collect();
        assert_eq!(tools, vec![&json!("Skill"); questions]);
    }
}

#[tokio::test]
async fn what_an_untrusted_skill_allows_does_not_count() {
    let mut host = Host::with([load("mighty"), Reply::text("Done.")])
        .file(".claude/skills/mighty/SKILL.md", MIGHTY)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert_eq!(result.permission_denials.len(), 1, "{:?}", result.permission_denials);
    let told = host.asked()[1].last_text();
    assert!(
        told.contains("The skill mighty could not be loaded. It needs `touch made; echo hello`"),
        "{told}"
    );
    assert!(!host.stage().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn rules_forbid_single_skills_under_both_names_of_the_tool() {
    let by_command = Reply::tool("SlashCommand", json!({"command": "/greet Ann"}));
    let rows = [
        ("Skill(greet)", load("greet"), 1),
        ("Skill(greet)", Reply::tool("Skill", json!({"skill": "/greet Ann"})), 1),
        ("SlashCommand(/greet:*)", by_command.clone(), 1),
        ("Skill(other)", by_command, 0),
    ];
    for (rule, call, denials) in rows {
        let mut host = Host::with([call, Reply::text("Done.")])
            .options(Options { disallowed_tools: vec![rule.into()], ..project() })
            .file(".claude/skills/greet/SKILL.md", GREET)
            .start()
            .await
            .unwrap();
        let result = host.run("Greet Ann.").await.unwrap();
        assert_eq!(result.permission_denials.len(), denials, "{rule}");
        assert_eq!(host.asked()[1].says("Say hello to Ann."), denials == 0, "{rule}");
    }
}

#[tokio::test]
async fn a_skill_that_comes_later_is_there_after_a_reload() {
    let script = [Reply::text("One."), load("greet"), Reply::text("Two.")];
    let mut host = Host::with(script).options(project()).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.stage().write(".claude/skills/greet/SKILL.md", GREET).unwrap();
    let reply = host.ask(ReloadSkills {}).await.unwrap();
    assert_eq!(reply.skills[0]["name"], "greet");
    host.next_like(&json!({"subtype": "commands_changed"})).await.unwrap();
    host.run("Greet Ann.").await.unwrap();
    let asked = host.asked();
    assert!(!asked[0].tools().contains(&"Skill"));
    assert!(asked[1].tools().contains(&"Skill") && asked[1].says("- greet: Greets people"));
    assert!(asked[2].says("Say hello to Ann."));
}

fn plugin(stage: &Stage) -> PluginConfig {
    let guard = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
        "command": "echo \"not here: ${CLAUDE_PLUGIN_ROOT} $CLAUDE_PLUGIN_ROOT\" >&2; exit 2"}]}]});
    let files = [
        (".claude-plugin/plugin.json", json!({"name": "tools", "version": "2.0.0"}).to_string()),
        ("commands/go.md", "Go $0.".to_owned()),
        ("skills/greet/SKILL.md", GREET.to_owned()),
        ("output-styles/brief.md", "---\nname: Brief\n---\nUse few words.".to_owned()),
        ("hooks/hooks.json", json!({"hooks": guard}).to_string()),
    ];
    for (path, text) in files {
        stage.write(&format!("plug/{path}"), text).unwrap();
    }
    PluginConfig::local(stage.workspace().join("plug").display().to_string())
}

#[tokio::test]
async fn a_plugin_brings_commands_skills_hooks_and_styles() {
    let stage = Stage::new().unwrap();
    let config = plugin(&stage);
    let settings = json!({"outputStyle": "tools:Brief", "permissions": {"allow": ["Bash"]}}).to_string();
    let options = Options {
        setting_sources: Some(vec![]),
        settings: Some(settings),
        plugins: vec![config.clone(), PluginConfig::local("nowhere")],
        ..Options::default()
    };
    let script = [Reply::text("One."), load("tools:greet"), touch(), Reply::text("Two.")];
    let mut host = Host::with(script).stage(stage).options(options).start().await.unwrap();
    host.run("/tools:go north").await.unwrap();
    host.run("Go on.").await.unwrap();
    let asked = host.asked();
    assert!(asked[0].says("Go north."));
    assert!(asked[0].system().contains("# Output style: tools:Brief\nUse few words."));
    assert!(!asked[0].system().contains("# How you work"));
    assert!(asked[2].says("Say hello to Ann."));
    assert!(
        asked[3].last_text().contains(&format!("not here: {0} {0}", config.path)),
        "{}",
        asked[3].last_text()
    );
    assert!(!host.stage().files().unwrap().contains_key("again"));
    let init = init(&host);
    assert_eq!(init["plugins"], json!([{"name": "tools", "path": config.path, "version": "2.0.0"}]));
    assert_eq!((&init["skills"], &init["output_style"]), (&json!(["tools:greet"]), &json!("tools:Brief")));
    assert_eq!(init["plugin_errors"][0]["type"], "path-not-found");
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("tools:go")));
}

#[tokio::test]
async fn plugins_may_come_with_initialize_or_later() {
    let stage = Stage::new().unwrap();
    let config = plugin(&stage);
    let plain = Options { setting_sources: Some(vec![]), ..Options::default() };
    let mut host =
        Host::with([touch(), Reply::text("One.")]).stage(stage).options(plain.clone()).start().await.unwrap();
    let initialize = Initialize { plugins: Some(vec![config]), ..Initialize::default() };
    let reply = host.ask(initialize).await.unwrap();
    assert_eq!(reply.plugins_applied, Some(json!(true)));
    assert_eq!(reply.available_output_styles, ["default", "Explanatory", "Learning", "tools:Brief"]);
    assert!(reply.commands.iter().any(|command| command.name == "tools:greet"));
    host.run("Hi.").await.unwrap();
    assert!(host.asked()[1].last_text().contains("not here"), "its hooks count");

    let stage = Stage::new().unwrap();
    let config = plugin(&stage);
    let mut host = Host::with([Reply::text("One."), Reply::text("Two.")])
        .stage(stage)
        .options(plain)
        .start()
        .await
        .unwrap();
    host.run("Hi.").await.unwrap();
    let relative =
        ReloadPlugins { add_plugins: Some(vec![PluginConfig::local("plug")]), ..ReloadPlugins::default() };
    assert!(host.ask(relative).await.unwrap_err().to_string().contains("absolute"));
    let more = ReloadPlugins { add_plugins: Some(vec![config]), ..ReloadPlugins::default() };
    let reply = host.ask(more).await.unwrap();
    assert_eq!((reply.plugins[0]["name"].as_str(), reply.error_count), (Some("tools"), 0));
    host.next_like(&json!({"content": "The hooks of the plugin tools do not run in this session: it was loaded after the beginning."})).await.unwrap();
    let styles = host.ask(ReloadOutputStyles {}).await.unwrap();
    assert!(styles.available_output_styles.contains(&"tools:Brief".to_owned()));
    host.run("And now?").await.unwrap();
    assert!(host.asked()[1].says("- tools:go") && host.asked()[1].says("- tools:greet: Greets people"));
}

#[tokio::test]
async fn a_style_that_is_not_there_is_said_and_the_default_is_used() {
    let options =
        Options { settings: Some(json!({"outputStyle": "Pirate"}).to_string()), ..Options::default() };
    let mut host = Host::with([Reply::text("Hello.")]).options(options).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    assert!(host.asked()[0].system().contains("# How you speak"));
    assert_eq!(init(&host)["output_style"], "default");
    assert!(host.heard().iter().any(|heard| heard.json.to_string().contains("There is no output style")));
}

#[tokio::test]
async fn a_skill_called_in_a_turn_that_is_interrupted_leaves_the_conversation_in_order() {
    let slow = "---\ndescription: Slow\nallowed-tools: Bash(sleep *)\n---\n!`sleep 600`";
    let mut host = Host::with([load("slow"), Reply::text("After.")])
        .options(Options { skills: Some(vec!["slow".into()]), ..project() })
        .file(".claude/skills/slow/SKILL.md", slow)
        .start()
        .await
        .unwrap();
    host.say("Go.").await.unwrap();
    host.next_like(&json!({"tool_use_result": {"commandName": "slow"}})).await.unwrap();
    host.ask(Interrupt::default()).await.unwrap();
    assert!(host.result().await.unwrap().is_error);
    assert_eq!(host.run("Still there?").await.unwrap().result.as_deref(), Some("After."));
    assert!(host.asked()[1].says("The skill slow was not loaded: the turn was interrupted."));
    assert_eq!(host.finish().await.unwrap().code, 0);
}
