//! Loading of rules, their warnings and errors, and the tools they apply to.

use super::*;
use crate::fs::FakeFs;
use crate::rules::rule::RuleError;
use PermissionBehavior::{Allow, Ask, Deny};

fn set(allow: &[&str], ask: &[&str], deny: &[&str]) -> (RuleSet, LoadReport) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let layer = RuleLayer {
        allow: texts(allow),
        ask: texts(ask),
        deny: texts(deny),
        ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w"))
    };
    let report = rules.add_layer(&layer, &FakeFs::default());
    (rules, report)
}

fn tool(name: &str) -> ToolName<'_> {
    let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    ToolName { name, server }
}

#[test]
fn bare_rule_matches_tools() {
    let rows = [
        (Allow, "Bash", "Bash", true),
        (Allow, "Bash(*)", "Bash", true),
        (Allow, "Edit", "Write", false),
        (Allow, "*", "Bash", false),
        (Allow, "Ba*", "Bash", false),
        (Deny, "*", "Bash", true),
        (Deny, "Ba*", "Bash", true),
        (Deny, "bash", "Bash", false),
        (Deny, "Task", "Agent", true),
        (Allow, "mcp__github", "mcp__github__get", true),
        (Allow, "mcp__git", "mcp__github__get", false),
        (Allow, "mcp__github", "mcp__githubevil__get", false),
        (Allow, "mcp__github__*", "mcp__github__get", true),
        (Allow, "mcp__github__*", "mcp__githubevil__get", false),
        (Allow, "mcp__github__g*", "mcp__github__get", true),
        (Allow, "mcp__*", "mcp__github__get", false),
        (Allow, "mcp__git*__get", "mcp__github__get", false),
        (Deny, "mcp__*", "mcp__github__get", true),
        (Deny, "mcp__git*", "mcp__github__get", true),
        (Deny, "mcp__GitHub", "mcp__github__get", false),
    ];
    for (behavior, rule, name, expected) in rows {
        let one = [rule];
        let (rules, _) = if behavior == Allow { set(&one, &[], &[]) } else { set(&[], &[], &one) };
        assert_eq!(
            rules.find_bare_rule(behavior, tool(name)).is_some(),
            expected,
            "{behavior} {rule} {name}"
        );
    }
}

#[test]
fn server_name_comes_from_the_tool() {
    // A rule, a server, one of its tools, whether an allow rule matches, whether a deny rule matches.
    let rows = [
        ("mcp__a", "a", "mcp__a__x", true, true),
        ("mcp__a", "a__x", "mcp__a__x__run", false, false),
        ("mcp__a__*", "a__x", "mcp__a__x__run", false, false),
        ("mcp__a__x*", "a", "mcp__a__xtra", true, true),
        ("mcp__a__x*", "a__xtra", "mcp__a__xtra__run", false, true),
        ("mcp__a__b", "a", "mcp__a__b", true, true),
        ("mcp__a__b", "a__b", "mcp__a__b__c", false, true),
        ("mcp__a__b__*", "a__b", "mcp__a__b__c", true, true),
        ("mcp__a__b__*", "a", "mcp__a__b__c", false, false),
        ("mcp__a__b__c", "a__b", "mcp__a__b__c", true, true),
        ("mcp__a__b__c", "a", "mcp__a__b__c", true, true),
    ];
    for (rule, server, name, grants, limits) in rows {
        let tool = ToolName { name, server: Some(server) };
        let (allowing, _) = set(&[rule], &[], &[]);
        let (denying, _) = set(&[], &[], &[rule]);
        let found =
            (allowing.find_bare_rule(Allow, tool).is_some(), denying.find_bare_rule(Deny, tool).is_some());
        assert_eq!(found, (grants, limits), "{rule} {server} {name}");
    }
}

#[test]
fn invalid_allow_rule_is_skipped() {
    let (rules, report) = set(&["Bash(a", "Bash()", "Ba*", "Bash(:*)", "Bash(make *)"], &[], &[]);
    assert_eq!(report.warnings.len(), 4);
    assert!(report.errors.is_empty());
    assert_eq!(rules.with_behavior(Allow).count(), 1);
}

#[test]
fn invalid_deny_or_ask_rule_is_an_error() {
    let (_, report) = set(&[], &["Bash (a)"], &["Read(!a)"]);
    assert_eq!(report.errors.len(), 2);
    assert!(matches!(report.errors.last(), Some(RuleError::Negation(_))));
}

#[test]
fn empty_deny_specifier_applies_to_every_call() {
    let (rules, report) = set(&[], &[], &["Bash()"]);
    assert!(matches!(rules.with_behavior(Deny).next().unwrap().matcher, RuleMatcher::AllCalls));
    assert!(matches!(report.warnings.as_slice(), [RuleWarning::AppliesToAllCalls { .. }]));
}

#[test]
fn ineffective_rules_cause_warnings() {
    let (rules, report) =
        set(&["Write(docs/**)", "Grep(x)", "WebFetch(x)", "WebSearch(x)"], &["Nonsense"], &[]);
    assert_eq!(report.warnings.len(), 5, "{:?}", report.warnings);
    assert!(rules.with_behavior(Allow).all(|rule| matches!(rule.matcher, RuleMatcher::Never)));
    let (_, report) = set(&[], &["my_tool", "X*"], &[]);
    assert!(report.warnings.is_empty());
}

#[test]
fn older_and_official_tool_names_cause_no_warning() {
    let names = [
        "AgentOutputTool",
        "BashOutput",
        "Config",
        "KillBash",
        "KillShell",
        "ListMcpResources",
        "ListPeers",
        "LS",
        "LSP",
        "MultiEdit",
        "NotebookRead",
        "ReadMcpResourceTool",
        "SlashCommand",
        "Task",
        "TodoRead",
        "TodoWrite",
        "Workflow",
    ];
    for behavior in [Deny, Ask] {
        let (_, report) = if behavior == Deny { set(&[], &[], &names) } else { set(&[], &names, &[]) };
        assert_eq!(report, LoadReport::default(), "{behavior}");
    }
    let (_, report) = set(&[], &[], &["Workfow"]);
    assert_eq!(report.warnings.len(), 1, "a misspelled name is reported");
}

#[test]
fn deny_rule_with_an_older_name_removes_the_current_tool() {
    for (older, current) in [
        ("BashOutput", "TaskOutput"),
        ("KillBash", "TaskStop"),
        ("KillShell", "TaskStop"),
        ("ReadMcpResource", "ReadMcpResourceTool"),
        ("Task", "Agent"),
    ] {
        let (rules, _) = set(&[], &[], &[older]);
        assert!(rules.find_rule_removing_tool(tool(current)).is_some(), "{older}");
    }
}

#[test]
fn path_rules_of_other_tools_apply_as_read_or_edit() {
    let (rules, report) = set(&[], &["Glob(a)"], &["Write(b)", "NotebookEdit(c)", "Grep(d)"]);
    assert_eq!(rules.read_rules(Ask).count(), 1);
    assert_eq!(rules.edit_rules(Deny).count(), 2);
    assert_eq!(rules.read_rules(Deny).count(), 1);
    let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "ask rule `Glob(a)` applies as `Read(a)`, to every tool that reads files; write that rule instead",
            "deny rule `Write(b)` applies as `Edit(b)`, to every tool that edits files; write that rule instead",
            "deny rule `NotebookEdit(c)` applies as `Edit(c)`, to every tool that edits files; write that rule instead",
            "deny rule `Grep(d)` applies as `Read(d)`, to every tool that reads files; write that rule instead",
        ]
    );
}

#[test]
fn single_slash_rule_warns_if_root_was_meant() {
    let fs = FakeFs::with_files(["/etc/passwd", "/w/src/a.rs"]);
    for (rule, warns) in [
        ("Read(/etc/**)", true),
        ("Edit(/etc/passwd)", true),
        ("Read(//etc/**)", false),
        ("Read(/src/**)", false),
        ("Read(/nowhere/**)", false),
        ("Read(/*)", false),
    ] {
        let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
        let layer = RuleLayer {
            deny: vec![rule.into()],
            ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w"))
        };
        let report = rules.add_layer(&layer, &fs);
        let found = matches!(report.warnings.as_slice(), [RuleWarning::SingleSlash { .. }]);
        assert_eq!(found, warns, "{rule}: {report:?}");
    }
}

#[test]
fn managed_only_ignores_other_rules() {
    let (mut rules, _) = set(&["Bash"], &[], &["Read"]);
    rules.limit_to_managed();
    assert_eq!((rules.with_behavior(Allow).count(), rules.with_behavior(Deny).count()), (0, 0));
}

#[test]
fn end_conversation_cannot_be_removed() {
    let (rules, _) = set(&[], &[], &["*"]);
    assert!(rules.find_rule_removing_tool(tool("Bash")).is_some());
    assert!(rules.find_rule_removing_tool(tool("EndConversation")).is_none());
}

#[test]
fn rule_display_names_its_source() {
    let (rules, _) = set(&[], &[], &["Bash(rm *)"]);
    assert_eq!(
        rules.with_behavior(Deny).next().unwrap().sourced.to_string(),
        "deny rule `Bash(rm *)` of projectSettings"
    );
}

#[test]
fn rule_that_cannot_match_warns() {
    for (rule, warns) in [
        ("bash(rm:*)", true),
        ("Bsh(rm:*)", true),
        ("WebFetch(url:*)", true),
        ("WebFetch(domain:)", true),
        ("WebFetch(domain: )", true),
        ("Bash(command:rm*)", true),
        ("Bash(rm:*)", false),
        ("Agent(isolation:*)", false),
        ("WebFetch(domain:example.com)", false),
    ] {
        let (_, report) = set(&[], &[], &[rule]);
        assert_eq!(report.warnings.len(), usize::from(warns), "{rule}: {report:?}");
    }
    for host in ["example.com", " example.com ", "https://example.com/x", "example.com:443", "EXAMPLE.com."] {
        let (rules, _) = set(&[], &[], &[&format!("WebFetch(domain:{host})")]);
        let rule = rules.with_behavior(Deny).next().unwrap();
        assert!(
            matches!(&rule.matcher, RuleMatcher::Domain(domain) if domain.matches("example.com")),
            "{host}"
        );
    }
}
