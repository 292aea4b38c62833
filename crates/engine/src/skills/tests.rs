//! Tests of skills.

use std::fs;
use std::path::Path;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::plugins::Plugins;

use super::*;

/// Skills of a project with this trust.
pub(crate) fn test_skills(dir: &Path, only: Option<&[&str]>, trust: Trust) -> Skills {
    let root = dir.canonicalize().unwrap();
    let files = [
        (
            "skills/pdf/SKILL.md",
            "---\nname: reader\ndescription: Reads PDF files\nallowed-tools: Bash(touch *)\n---\nUse ${CLAUDE_SKILL_DIR}/x.",
        ),
        ("skills/bare/SKILL.md", "Says nothing of itself"),
        ("skills/secret/SKILL.md", "---\ndescription: For people\ndisable-model-invocation: true\n---\nx"),
        ("commands/fix.md", "Fix it"),
    ];
    for (path, text) in files {
        let path = root.join(".claude").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let sources = [whimbrel_wire::options::SettingSource::Project].into();
    let locations = ConfigLocations {
        working_dir: root.clone(),
        project_dir: root,
        sources,
        trust,
        ..ConfigLocations::default()
    };
    let (commands, _) = Commands::discover(&locations, &Plugins::default());
    let only = only.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    Skills::new(&commands, only, trust)
}

fn listed_lines(skills: &Skills) -> Vec<String> {
    let listing = skills.listing().unwrap_or_default();
    listing.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

#[test]
fn listed_and_callable_skills_differ() {
    let dir = tempfile::tempdir().unwrap();
    let skills = test_skills(dir.path(), None, Trust::Full);
    assert_eq!(listed_lines(&skills), ["fix: Fix it", "pdf: Reads PDF files"]);
    assert_eq!(skills.names(), ["bare", "pdf", "secret"]);
    let rows = [
        ("pdf", Ok(())),
        ("bare", Ok(())),
        ("fix", Ok(())),
        ("reader", Err("Its name is pdf.")),
        ("secret", Err("/secret")),
        ("nosuch", Err("Available: bare, fix, pdf.")),
    ];
    for (name, expected) in rows {
        match (skills.find_callable(name), expected) {
            (Ok(file), Ok(())) => assert_eq!(file.name, name),
            (Err(missing), Err(part)) => assert!(missing.to_string().contains(part), "{missing}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn a_host_can_limit_the_skills() {
    let dir = tempfile::tempdir().unwrap();
    let rows: [(Option<&[&str]>, &[&str]); 5] = [
        (Some(&["pdf"]), &["pdf: Reads PDF files"]),
        (Some(&["*"]), &["fix: Fix it", "pdf: Reads PDF files"]),
        (Some(&["all"]), &["fix: Fix it", "pdf: Reads PDF files"]),
        (Some(&[]), &[]),
        (Some(&["reader"]), &[]),
    ];
    for (only, expected) in rows {
        let skills = test_skills(dir.path(), only, Trust::Full);
        assert_eq!(listed_lines(&skills), expected, "{only:?}");
        assert_eq!(skills.is_empty(), expected.is_empty(), "{only:?}");
        assert_eq!(skills.names().len(), 3, "{only:?}");
    }
}

#[test]
fn a_subagent_gets_the_body_of_a_skill() {
    let dir = tempfile::tempdir().unwrap();
    let skills = test_skills(dir.path(), Some(&[]), Trust::Full);
    let at = dir.path().canonicalize().unwrap().join(".claude/skills/pdf");
    let expected = format!("Base directory for this skill: {0}\n\nUse {0}/x.", at.display());
    assert_eq!(skills.render_body("pdf"), Ok(expected.clone()));
    assert_eq!(skills.render_body("reader"), Ok(expected));
    assert!(skills.render_body("secret").is_ok());
    assert!(matches!(skills.render_body("fix"), Err(SkillError::Unknown { .. })));
    fs::remove_dir_all(at).unwrap();
    assert!(matches!(skills.render_body("pdf"), Err(SkillError::Unreadable(_))));
}
