//! Tests of finding commands and skills.

use std::fs;
use std::os::unix::fs::symlink;

use whimbrel_config::locations::test_project::{TestProject, test_project};
use whimbrel_config::plugins::enabled::EnabledPlugins;

use super::*;

fn found_names(project: &TestProject) -> (Vec<String>, Vec<String>) {
    let (found, warnings) = find_commands(&project.locations, &Plugins::default());
    let name = |file: &Arc<CommandFile>| {
        format!("{} {}", file.name, file.path.strip_prefix(&project.root).unwrap().display())
    };
    (found.iter().map(name).collect(), warnings)
}

#[test]
fn names_come_from_directories_and_the_nearest_wins() {
    let mut project = test_project(&[
        ("home/.claude/commands/mine.md", "m"),
        ("home/.claude/commands/both.md", "user"),
        ("code/.claude/commands/both.md", "top"),
        ("code/.claude/commands/deep/er/one.md", "x"),
        ("code/app/.claude/commands/both.md", "app"),
        ("code/app/.claude/commands/notes.txt", "no command"),
        ("code/app/.claude/commands/.md", "no name"),
    ]);
    let all = [
        "both code/app/.claude/commands/both.md",
        "deep:er:one code/.claude/commands/deep/er/one.md",
        "mine home/.claude/commands/mine.md",
    ];
    assert_eq!(found_names(&project), (all.map(String::from).to_vec(), vec![]));
    project.locations.sources = [SettingSource::User].into();
    assert_eq!(
        found_names(&project).0,
        ["both home/.claude/commands/both.md", "mine home/.claude/commands/mine.md"]
    );
    project.locations.sources = [].into();
    assert_eq!(found_names(&project), (vec![], vec![]));
}

#[test]
fn invalid_files_are_reported_and_the_rest_is_found() {
    let project = test_project(&[
        ("code/app/.claude/commands/good.md", "---\nmodel: [\n---\nbody"),
        ("code/app/.claude/commands/two words.md", "x"),
        ("code/app/.claude/commands/compact.md", "x"),
        ("home/secret.md", "secret"),
    ]);
    let dir = project.root.join("code/app/.claude/commands");
    symlink(project.root.join("home/secret.md"), dir.join("steal.md")).unwrap();
    symlink("..", dir.join("circle")).unwrap();
    symlink("nowhere", dir.join("dangling.md")).unwrap();
    nix::unistd::mkfifo(&dir.join("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(dir.join("folder.md")).unwrap();
    let (found, warnings) = found_names(&project);
    assert_eq!(found, ["good code/app/.claude/commands/good.md"]);
    for part in [
        "compact.md is ignored",
        "folder.md cannot",
        "good.md, line",
        "pipe.md cannot",
        "steal.md links",
        "two words.md is ignored",
    ] {
        assert_eq!(
            warnings.iter().filter(|warning| warning.contains(part)).count(),
            1,
            "{part}: {warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 6, "{warnings:?}");
}

#[test]
fn skills_are_directories_and_the_users_win() {
    let mut project = test_project(&[
        ("home/.claude/skills/both/SKILL.md", "---\ndescription: Mine\n---\nmine"),
        ("code/.claude/skills/both/SKILL.md", "---\ndescription: Its\n---\nits"),
        ("code/.claude/commands/pdf.md", "a command"),
        (
            "code/app/.claude/skills/pdf/SKILL.md",
            "---\nname: reader\ndescription: Reads\nuser-invocable: false\nallowed-tools: Read\n---\nx",
        ),
        ("code/app/.claude/skills/pdf/more/SKILL.md", "no skill of its own"),
        ("code/app/.claude/skills/bare/SKILL.md", "First line"),
        ("code/app/.claude/skills/notes.md", "no skill"),
    ]);
    let (found, warnings) = find_commands(&project.locations, &Plugins::default());
    let shown: Vec<String> = found
        .iter()
        .map(|file| {
            let at = file.path.strip_prefix(&project.root).unwrap().display();
            format!("{} {at} {:?} {:?} {}", file.name, file.alias, file.callers, file.grants_permissions)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "bare code/app/.claude/skills/bare/SKILL.md None All false",
            "both home/.claude/skills/both/SKILL.md None All false",
            "pdf code/app/.claude/skills/pdf/SKILL.md Some(\"reader\") Model true",
        ]
    );
    assert!(found.iter().all(|file| file.is_skill()));
    assert_eq!(found[2].skill_dir, Some(project.root.join("code/app/.claude/skills/pdf")));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("bare") && warnings[0].contains("description"), "{warnings:?}");
    project.locations.sources = [].into();
    assert!(find_commands(&project.locations, &Plugins::default()).0.is_empty());
}

#[test]
fn plugin_commands_are_prefixed() {
    let project = test_project(&[
        ("plug/commands/go.md", "Go"),
        ("plug/commands/sub/deep.md", "Deep"),
        ("plug/extra/one.md", "One"),
        ("plug/skills/psk/SKILL.md", "---\ndescription: d\n---\n${CLAUDE_PLUGIN_ROOT} ${CLAUDE_SKILL_DIR}"),
        ("plug/lone/SKILL.md", "---\ndescription: d\n---\nx"),
        (
            "plug/.claude-plugin/plugin.json",
            r#"{"name": "my", "commands": "./extra/one.md", "skills": "./lone"}"#,
        ),
    ]);
    let config = whimbrel_wire::options::PluginConfig::local("plug");
    let plugins = Plugins::load(&[config], &EnabledPlugins::default(), &project.root);
    let no_sources = ConfigLocations { sources: [].into(), ..project.locations.clone() };
    let (found, warnings) = find_commands(&no_sources, &plugins);
    let names: Vec<(&str, Option<&str>)> =
        found.iter().map(|file| (file.name.as_str(), file.alias.as_deref())).collect();
    assert_eq!(
        names,
        [
            ("my:go", None),
            ("my:lone", Some("lone")),
            ("my:one", None),
            ("my:psk", Some("psk")),
            ("my:sub:deep", None)
        ]
    );
    assert_eq!(warnings, Vec::<String>::new());
    let root = project.root.join("plug");
    let filled = found[3].expand_paths(&found[3].parse().unwrap().body);
    assert_eq!(filled, format!("{} {}", root.display(), root.join("skills/psk").display()));
}

#[test]
fn skill_directories_of_the_host_replace_the_others() {
    let skill = "---\ndescription: d\n---\nbody";
    let mut project = test_project(&[
        ("home/.claude/skills/mine/SKILL.md", skill),
        ("code/app/.claude/skills/ours/SKILL.md", skill),
        ("code/app/.claude/commands/run.md", "x"),
        ("elsewhere/given/SKILL.md", skill),
    ]);
    project.locations.named_skill_dirs = vec![project.root.join("elsewhere")];
    let expected = ["given elsewhere/given/SKILL.md", "run code/app/.claude/commands/run.md"];
    assert_eq!(found_names(&project), (expected.map(String::from).to_vec(), vec![]));
}
