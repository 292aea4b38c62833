//! Order of precedence, as tables. Shell commands have their own tables in `command`.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::call::PreToolDecision;
use crate::call::ToolProperties;
use crate::decision::SafetyRisk;
use crate::fixture::{Fixture, decision_letter};
use crate::mode::deny_if_never_asking;
use crate::paths::ResolvedFile;
use crate::rules::rule_set::{RuleLayer, RuleSource};
use crate::sandbox::{FileProtection, SandboxState};
use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

#[test]
fn each_mode_decides_each_kind_of_call() {
    let inside = json!({"file_path": "/fx/proj/src/app.ts"});
    let outside = json!({"file_path": "/fx/outside/data.txt"});
    let protected = json!({"file_path": "/fx/proj/.git/config"});
    let rows = [
        ("reading inside", "Read", inside.clone(), "AAAAA"),
        ("reading outside", "Read", outside.clone(), "???DA"),
        ("searching inside", "Grep", json!({"pattern": "x"}), "AAAAA"),
        ("searching outside", "Grep", json!({"pattern": "x", "path": "/fx/outside"}), "???DA"),
        ("globbing outside", "Glob", json!({"pattern": "/fx/outside/*"}), "???DA"),
        ("editing inside", "Edit", inside.clone(), "?A?DA"),
        ("writing inside", "Write", inside.clone(), "?A?DA"),
        ("a notebook inside", "NotebookEdit", json!({"notebook_path": "a.ipynb"}), "?A?DA"),
        ("editing outside", "Edit", outside, "???DA"),
        ("editing a protected path", "Write", protected, "???DA"),
        ("fetching", "WebFetch", json!({"url": "https://x.invalid/"}), "???DA"),
        ("searching the web", "WebSearch", json!({"query": "x"}), "???DA"),
        ("an MCP tool", "mcp__github__get_issue", json!({"q": "x"}), "???DA"),
        ("a question to the user", "AskUserQuestion", json!({}), "???D?"),
        ("a subagent", "Agent", json!({"prompt": "x"}), "AAAAA"),
        ("a task list", "TodoWrite", json!({}), "AAAAA"),
        ("a skill", "Skill", json!({"skill": "x"}), "AAAAA"),
        ("leaving plan mode", "ExitPlanMode", json!({}), "DD?DD"),
        ("an unknown kind of tool", "Unheard", json!({}), "???DA"),
    ];
    for (name, tool, input, expected) in rows {
        let fixture = Fixture::new();
        let got: String = [Default, AcceptEdits, Plan, DontAsk, BypassPermissions]
            .into_iter()
            .map(|mode| decision_letter(&deny_if_never_asking(fixture.decide(mode, tool, &input), mode)))
            .collect();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn deny_precedes_ask_and_ask_precedes_allow() {
    let call = json!({"file_path": "/fx/proj/src/app.ts"});
    type Rules<'a> = &'a [&'a str];
    let rows: [(Rules<'_>, Rules<'_>, Rules<'_>, char); 6] = [
        (&["Edit"], &["Edit"], &["Edit(src/**)"], 'D'),
        (&["Edit"], &["Edit(src/**)"], &[], '?'),
        (&["Edit(src/**)"], &["Edit(docs/**)"], &["Edit(docs/**)"], 'A'),
        (&["Edit(src/**)"], &[], &["Read(src/**)"], 'D'),
        (&["Edit(src/**)"], &["Read(*.ts)"], &[], '?'),
        (&["Write"], &[], &[], '?'),
    ];
    for (allow, ask, deny, expected) in rows {
        let fixture = Fixture::new().with_rules(allow, ask, deny);
        for mode in [Default, BypassPermissions] {
            let got = decision_letter(&fixture.decide(mode, "Edit", &call));
            let expected = if mode == BypassPermissions && allow == ["Write"] { 'A' } else { expected };
            assert_eq!(got, expected, "{allow:?} {ask:?} {deny:?} {mode}");
        }
    }
}

#[test]
fn file_rules_cover_tools() {
    let file = json!({"file_path": "/fx/proj/docs/x.md", "notebook_path": "/fx/proj/docs/x.md", "path": "/fx/proj/docs", "pattern": "x"});
    let rows = [
        // rule, then Read, Grep, Edit, Write, NotebookEdit
        ("deny Read(docs/**)", "DDDDD"),
        ("ask Read(docs/**)", "?????"),
        ("deny Edit(docs/**)", "AADDD"),
        ("ask Edit(docs/**)", "AA???"),
        ("allow Edit(docs/**)", "AAAAA"),
        ("allow Read(docs/**)", "AA???"),
        ("allow Write(docs/**)", "AA???"),
        ("deny Write(docs/**)", "AADDD"),
        ("deny Grep(docs/**)", "DDDDD"),
        ("allow Edit", "AAA??"),
        ("deny Read", "DA???"),
    ];
    for (rule, expected) in rows {
        let (behavior, rule) = rule.split_once(' ').unwrap();
        let list = [rule];
        let fixture = match behavior {
            "allow" => Fixture::new().with_rules(&list, &[], &[]),
            "ask" => Fixture::new().with_rules(&[], &list, &[]),
            _ => Fixture::new().with_rules(&[], &[], &list),
        };
        let tools = ["Read", "Grep", "Edit", "Write", "NotebookEdit"];
        let got: String =
            tools.iter().map(|tool| decision_letter(&fixture.decide(Default, tool, &file))).collect();
        assert_eq!(got, expected, "{behavior} {rule}");
    }
}

#[test]
fn reading_outside_needs_allow_for_every_form() {
    let rows: [(&[&str], &str, char); 7] = [
        (&["Read(//fx/outside/**)"], "/fx/outside/data.txt", 'A'),
        (&["Read(//fx/outside/**)"], "/fx/proj/link_out/data.txt", 'A'),
        (&["Read(//fx/proj/**)"], "/fx/proj/link_out/data.txt", '?'),
        (&["Read"], "/fx/outside/data.txt", 'A'),
        (&["Edit(//fx/outside/**)"], "/fx/outside/data.txt", 'A'),
        (&["Read(~/.ssh/**)"], "~/.ssh/id_rsa", 'A'),
        (&["Read(//FX/outside/**)"], "/fx/outside/data.txt", '?'),
    ];
    for (allow, path, expected) in rows {
        let fixture = Fixture::new().with_rules(allow, &[], &[]);
        let got = decision_letter(&fixture.decide(Default, "Read", &json!({"file_path": path})));
        assert_eq!(got, expected, "{allow:?} {path}");
    }
}

#[test]
fn denied_file_is_denied_under_every_name() {
    let names = [
        "secrets/key.txt",
        "/fx/proj/./secrets//key.txt",
        "/fx/proj/src/../secrets/key.txt",
        "/fx/proj/SECRETS/key.txt",
        "link_secret",
        "/proc/self/cwd/secrets/key.txt",
        "/proc/self/root/fx/proj/secrets/key.txt",
        "sub/secrets/k2.txt",
    ];
    for mode in [Default, AcceptEdits, Plan, DontAsk, BypassPermissions] {
        let fixture = Fixture::new().with_rules(&["Read"], &[], &["Read(secrets/**)"]);
        for name in names {
            assert_eq!(
                decision_letter(&fixture.decide(mode, "Read", &json!({"file_path": name}))),
                'D',
                "{name} {mode}"
            );
        }
    }
}

#[test]
fn hook_allow_lifts_working_directory_but_not_safety() {
    let allow = PreToolDecision::Allow { source: "h".into(), text: String::new(), rewrote_input: false };
    let ask = PreToolDecision::Ask { source: "h".into(), text: "why".into() };
    let rows = [
        ("Read", json!({"file_path": "/fx/outside/data.txt"}), &allow, Default, 'A'),
        ("Write", json!({"file_path": "/fx/proj/.git/config"}), &allow, Default, '?'),
        ("Write", json!({"file_path": "/fx/proj/a"}), &allow, Plan, '?'),
        ("AskUserQuestion", json!({}), &allow, Default, '?'),
        ("Read", json!({"file_path": "/fx/proj/notes.txt"}), &ask, Default, '?'),
        ("Read", json!({"file_path": "/fx/proj/notes.txt"}), &ask, BypassPermissions, '?'),
        ("Read", json!({"file_path": "/fx/proj/.env"}), &allow, Default, 'D'),
    ];
    for (tool, input, hook, mode, expected) in rows {
        let fixture = Fixture::new().with_rules(&[], &[], &["Read(.env)"]).with_hook(hook.clone());
        assert_eq!(
            decision_letter(&fixture.decide(mode, tool, &input)),
            expected,
            "{tool} {input} {hook:?} {mode}"
        );
    }
    let rewritten = PreToolDecision::Allow { source: "h".into(), text: String::new(), rewrote_input: true };
    assert_eq!(
        decision_letter(&Fixture::new().with_hook(rewritten).decide(Default, "AskUserQuestion", &json!({}))),
        'A'
    );
}

#[test]
fn invalid_input_is_denied_in_every_mode() {
    let rows = [
        ("Bash", json!({"command": "ls\u{0}"})),
        ("Bash", json!({"command": "ls\r"})),
        ("Bash", json!({"command": "ls \u{1b}[0m"})),
        ("Bash", json!({"command": 1})),
        ("Bash", json!({})),
        ("Read", json!({"file_path": "a\u{0}b"})),
        ("Read", json!({"file_path": ["a"]})),
        ("Glob", json!({"pattern": "a\u{0}"})),
        ("WebFetch", json!({"url": "file:///etc/passwd"})),
        ("WebFetch", json!({"url": "https://a@b.invalid"})),
    ];
    for (tool, input) in rows {
        for mode in [Default, BypassPermissions] {
            let got = Fixture::new().decide(mode, tool, &input);
            assert!(matches!(got, Decision::Deny(Reason::InvalidInput(_))), "{tool} {input} {got:?}");
        }
    }
}

#[test]
fn rules_for_fields_agents_skills_and_hosts() {
    let rows: [(&str, &str, &str, Value, char); 21] = [
        ("deny", "Agent(model:opus)", "Agent", json!({"model": "opus"}), 'D'),
        ("deny", "Agent(model:opus)", "Agent", json!({"model": "haiku"}), 'A'),
        ("ask", "Agent(isolation:*)", "Agent", json!({"isolation": "worktree"}), '?'),
        ("deny", "Agent(Explore)", "Agent", json!({"subagent_type": "Explore"}), 'D'),
        ("deny", "Agent(explore)", "Agent", json!({"subagent_type": "Explore"}), 'A'),
        ("ask", "Task(Explore)", "Agent", json!({"subagent_type": "Explore"}), '?'),
        ("deny", "Skill(a)", "Skill", json!({"skill": "a", "args": "x"}), 'D'),
        ("deny", "Skill(a:*)", "Skill", json!({"skill": "a"}), 'D'),
        ("deny", "Skill(a *)", "Skill", json!({"skill": "ab"}), 'A'),
        ("deny", "Skill(p:a)", "Skill", json!({"skill": "p:a"}), 'D'),
        ("deny", "Skill(a)", "Skill", json!({"skill": " /a now"}), 'D'),
        ("deny", "Skill(a)", "Skill", json!({"command": "/a now"}), 'D'),
        ("deny", "SlashCommand(/a:*)", "Skill", json!({"skill": "a"}), 'D'),
        ("deny", "SlashCommand(/a)", "Skill", json!({"skill": "ab"}), 'A'),
        ("deny", "SlashCommand", "Skill", json!({"skill": "a"}), 'D'),
        ("allow", "WebFetch(domain:*.x.invalid)", "WebFetch", json!({"url": "https://a.x.invalid/"}), 'A'),
        ("allow", "WebFetch(domain: x.invalid)", "WebFetch", json!({"url": "https://x.invalid/"}), '?'),
        ("deny", "WebFetch(domain: x.invalid)", "WebFetch", json!({"url": "https://x.invalid/"}), 'D'),
        ("allow", "WebSearch", "WebSearch", json!({"query": "x"}), 'A'),
        ("allow", "mcp__github", "mcp__github__get_issue", json!({}), 'A'),
        ("allow", "mcp__git", "mcp__github__get_issue", json!({}), '?'),
    ];
    for (behavior, rule, tool, input, expected) in rows {
        let list = [rule];
        let fixture = match behavior {
            "allow" => Fixture::new().with_rules(&list, &[], &[]),
            "ask" => Fixture::new().with_rules(&[], &list, &[]),
            _ => Fixture::new().with_rules(&[], &[], &list),
        };
        assert_eq!(
            decision_letter(&fixture.decide(Default, tool, &input)),
            expected,
            "{behavior} {rule} {input}"
        );
    }
}

#[test]
fn plan_mode_writes_only_the_plan_file() {
    let fixture = Fixture::new()
        .with_rules(&["Edit", "Write", "mcp__github"], &[], &[])
        .with_plan_file("/fx/home/.claude/plans/p.md");
    let rows = [
        ("Write", json!({"file_path": "/fx/home/.claude/plans/p.md"}), 'A'),
        ("Write", json!({"file_path": "/fx/proj/a"}), '?'),
        ("mcp__github__get_issue", json!({}), '?'),
        ("Read", json!({"file_path": "/fx/proj/notes.txt"}), 'A'),
    ];
    for (tool, input, expected) in rows {
        assert_eq!(decision_letter(&fixture.decide(Plan, tool, &input)), expected, "{tool} {input}");
    }
}

#[test]
fn only_session_rule_allows_protected_path() {
    let input = json!({"file_path": "/fx/proj/.claude/skills/x/SKILL.md"});
    let with = |source, rule: &str| {
        let mut fixture = Fixture::new();
        let layer =
            RuleLayer { allow: vec![rule.to_owned()], ..RuleLayer::new(source, Path::new("/fx/proj")) };
        fixture.add_layer(&layer);
        decision_letter(&fixture.decide(Default, "Write", &input))
    };
    assert_eq!(with(RuleSource::ProjectSettings, "Edit(/.claude/skills/x/**)"), '?');
    assert_eq!(with(RuleSource::Session, "Edit(**)"), '?');
    assert_eq!(with(RuleSource::Session, "Edit(/.claude/skills/y/**)"), '?');
    assert_eq!(with(RuleSource::Session, "Edit(/.claude/skills/x/**)"), 'A');
}

#[test]
fn removed_tool_is_unknown_and_names_the_rule() {
    let fixture = Fixture::new().with_rules(&["Bash"], &[], &["Ba*"]);
    let got = fixture.decide(BypassPermissions, "Bash", &json!({"command": "ls"}));
    assert!(matches!(&got, Decision::Deny(Reason::UnknownTool { removed_by: Some(_) })), "{got:?}");
    assert!(got.reason().text().contains("`Ba*`"));
}

/// A sandbox that protects some names, and nothing but the working directories is writable.
fn confined(auto_allow: bool) -> SandboxState {
    let files = FileProtection { names: &[".mcp.json", ".vscode"], only_work_dirs: true };
    SandboxState::Confined { auto_allow, files: Some(files) }
}

/// S-26: each row is a command, the rules (allow, ask, deny), how it runs, and the decisions in the modes default,
/// acceptEdits, plan, dontAsk and bypassPermissions.
#[test]
fn sandbox_state_and_rules_decide() {
    let (auto, manual) = (confined(true), confined(false));
    let (over, excluded) = (SandboxState::Overridden, SandboxState::Excluded);
    type Row<'a> = (&'a str, [&'a [&'a str]; 3], SandboxState, &'a str);
    let rows: [Row<'_>; 27] = [
        ("make all", [&[], &[], &[]], auto, "AA?AA"),
        ("make all", [&[], &[], &[]], manual, "???DA"),
        ("make all", [&[], &[], &[]], excluded, "???DA"),
        ("make all", [&[], &[], &[]], over, "???DA"),
        ("ls", [&[], &[], &[]], over, "???DA"),
        ("ls", [&[], &[], &[]], excluded, "AAAAA"),
        ("touch x", [&[], &[], &[]], manual, "?A?DA"),
        ("touch x", [&[], &[], &[]], over, "???DA"),
        ("make all", [&["Bash"], &[], &[]], over, "???DA"),
        ("make all", [&["Bash"], &[], &[]], manual, "AA?AA"),
        ("make all", [&["Bash(make *)"], &[], &[]], over, "AA?AA"),
        ("make all; id", [&["Bash(make *)"], &[], &[]], over, "???DA"),
        ("make all", [&[], &["Bash"], &[]], auto, "AA?AA"),
        ("make all", [&[], &["Bash"], &[]], manual, "???D?"),
        ("make all", [&[], &["Bash"], &[]], over, "???D?"),
        ("make all", [&[], &["Bash(make *)"], &[]], auto, "???D?"),
        ("make all", [&[], &[], &["Bash(make *)"]], auto, "DDDDD"),
        ("make all", [&["Bash(make *)"], &[], &["Bash(make *)"]], over, "DDDDD"),
        ("rm -rf /", [&[], &[], &[]], auto, "???D?"),
        ("rm -rf ~", [&[], &[], &[]], auto, "???D?"),
        ("touch .npmrc", [&[], &[], &[]], auto, "???DA"),
        ("touch .mcp.json", [&[], &[], &[]], auto, "AA?AA"),
        ("touch .git/hooks/pre-commit", [&[], &[], &[]], auto, "AA?AA"),
        ("touch sub/.vscode/tasks.json", [&[], &[], &[]], auto, "???DA"),
        ("touch .npmrc", [&[], &[], &[]], manual, "???DA"),
        ("sleep 9 &", [&[], &[], &[]], auto, "AA?AA"),
        ("echo \"$(cat x)\" > y", [&[], &[], &[]], auto, "AA?AA"),
    ];
    for (command, [allow, ask, deny], state, expected) in rows {
        let fixture = Fixture::new().with_rules_of_user(allow, ask, deny).with_sandbox(state);
        let modes = [Default, AcceptEdits, Plan, DontAsk, BypassPermissions];
        let decisions: String = modes
            .into_iter()
            .map(|mode| {
                let decision = fixture.decide_bash(mode, command);
                decision_letter(&deny_if_never_asking(decision, mode))
            })
            .collect();
        assert_eq!(decisions, expected, "{command} {state:?} {allow:?} {ask:?} {deny:?}");
    }
}

#[test]
fn leaving_the_sandbox_is_named_and_not_suggested() {
    let fixture = Fixture::new().with_sandbox(SandboxState::Overridden);
    let Decision::Ask(details) = fixture.decide_bash(Default, "make all") else { panic!("allowed") };
    assert_eq!(details.reason_type(ToolKind::Shell), Some("sandboxOverride"));
    assert!(details.suggestions.is_empty());
}

#[test]
fn only_rules_of_the_user_let_a_command_leave_the_sandbox() {
    let decide = |fixture: Fixture| {
        let fixture = fixture.with_sandbox(SandboxState::Overridden);
        decision_letter(&fixture.decide_bash(Default, "make all; make x"))
    };
    let of_project = Fixture::new().with_rules(&["Bash(make *)"], &[], &[]);
    assert_eq!(decide(of_project), '?');
    assert_eq!(decide(Fixture::new().with_rules_of_user(&["Bash(make *)"], &[], &[])), 'A');
    let both = Fixture::new().with_rules(&["Bash(make x)"], &[], &[]);
    assert_eq!(decide(both.with_rules_of_user(&["Bash(make all)"], &[], &[])), '?');
}

#[test]
fn the_flag_is_a_field_for_rules() {
    let input = json!({"command": "make all", "dangerouslyDisableSandbox": true});
    let decide = |rule: &str, state| {
        let fixture = Fixture::new().with_rules_of_user(&["Bash(make *)"], &[], &[rule]).with_sandbox(state);
        decision_letter(&fixture.decide(Default, "Bash", &input))
    };
    assert_eq!(decide("Bash(dangerouslyDisableSandbox:true)", SandboxState::Overridden), 'D');
    assert_eq!(decide("Bash(dangerouslyDisableSandbox:false)", SandboxState::Overridden), 'A');
}

#[test]
fn skill_with_rules_or_hooks_asks() {
    let fixture = Fixture::new();
    let properties =
        ToolProperties { adds_rules_or_hooks: true, ..ToolProperties::for_tool("Skill", &["skill"]) };
    assert_eq!(
        decision_letter(&fixture.decide_as(Default, properties, "Skill", &json!({"skill": "x"}))),
        '?'
    );
}

#[test]
fn ambiguous_file_names_ask() {
    for name in ["a.", "b ", "GIT~1/config"] {
        let input = json!({"file_path": format!("/fx/proj/{name}")});
        let got = Fixture::new().decide(AcceptEdits, "Write", &input);
        let risk = Reason::Safety { risk: SafetyRisk::SuspiciousPath, approvable: false };
        assert_eq!(got.reason(), &risk, "{name}");
    }
}

#[test]
fn ask_rule_does_not_hide_safety_reason() {
    let fixture = Fixture::new().with_rules(&[], &["Bash(rm *)", "Bash(touch *)"], &[]);
    let ask_details = |mode, command: &str| match fixture.decide_bash(mode, command) {
        Decision::Ask(details) => *details,
        other => panic!("{command}: {other:?}"),
    };
    for mode in [Default, BypassPermissions] {
        let critical = ask_details(mode, "rm -rf /");
        assert_eq!(critical.reason_type(ToolKind::Shell), Some("safetyCheck"), "{mode}");
        assert!(critical.should_default_to_no() && critical.matched_ask_rule().is_some(), "{mode}");
        let plain = ask_details(mode, "rm x");
        assert_eq!(plain.reason_type(ToolKind::Shell), Some("rule"), "{mode}");
        assert!(plain.matched_ask_rule().is_some(), "{mode}");
    }
    let protected = ask_details(Default, "touch .npmrc");
    assert_eq!(protected.reason_type(ToolKind::Shell), Some("safetyCheck"));
    let everything = ask_details(BypassPermissions, "touch .npmrc");
    assert_eq!(everything.reason_type(ToolKind::Shell), Some("rule"));
}

#[test]
fn search_asks_if_ask_rule_matches_below() {
    let fixture = Fixture::new().with_rules(&[], &["Read(secrets/**)"], &[]);
    let rows = [("Grep", ".", '?'), ("Grep", "src", 'A'), ("Grep", "sub", '?'), ("Glob", ".", '?')];
    for (tool, path, expected) in rows {
        let input = serde_json::json!({"pattern": "*", "path": path});
        assert_eq!(decision_letter(&fixture.decide(Default, tool, &input)), expected, "{tool} {path}");
    }
}

#[test]
fn decision_resolves_the_file() {
    let fixture = Fixture::new();
    let resolve = |tool: &str, input| fixture.decide_and_resolve(Default, tool, &input).checked.file;
    let rows = [
        ("src/./app.ts", "/fx/proj/src/app.ts", "/fx/proj/src/app.ts"),
        ("src/../notes.txt", "/fx/proj/notes.txt", "/fx/proj/notes.txt"),
        ("link_secret", "/fx/proj/link_secret", "/fx/proj/secrets/key.txt"),
        ("link_out/new/x", "/fx/proj/link_out/new/x", "/fx/outside/new/x"),
        ("link_out/../x", "/fx/x", "/fx/x"),
        ("~/.bashrc", "/fx/home/.bashrc", "/fx/home/.bashrc"),
    ];
    for (written, shown, real) in rows {
        let expected = Some(ResolvedFile { display_path: shown.into(), real_path: real.into() });
        assert_eq!(resolve("Read", json!({"file_path": written})), expected, "{written}");
        assert_eq!(resolve("Write", json!({"file_path": written, "content": ""})), expected, "{written}");
        assert_eq!(resolve("NotebookEdit", json!({"notebook_path": written})), expected, "{written}");
    }
    assert_eq!(resolve("Grep", json!({"pattern": "x", "path": "src"})), None);
    assert_eq!(resolve("Bash", json!({"command": "cat src/app.ts"})), None);
}
