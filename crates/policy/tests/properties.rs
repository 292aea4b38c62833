//! Properties that hold for every call and every rule set.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use whimbrel_policy::fs::FakeFs;
use whimbrel_policy::{
    Call, CallContext, Decision, PermissionSet, RuleLayer, RuleSet, RuleSource, ToolProperties,
    UpdateContext, WorkDirs, apply_update, decide,
};
use whimbrel_wire::permission::PermissionMode;

const CWD: &str = "/fx/proj";
const HOME: &str = "/fx/home";

const MODES: [PermissionMode; 5] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::Plan,
    PermissionMode::DontAsk,
    PermissionMode::BypassPermissions,
];

/// Rules of all kinds, valid in every list.
const RULES: [&str; 26] = [
    "Bash",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(npm run test:*)",
    "Bash(make all)",
    "Bash(cat *)",
    "Bash(rm *)",
    "Bash(echo *)",
    "Bash(touch *)",
    "Bash(* --version)",
    "Bash(find *)",
    "Bash(make all && cat notes.txt)",
    "Read",
    "Read(secrets/**)",
    "Read(.env)",
    "Read(//fx/outside/**)",
    "Edit",
    "Edit(src/**)",
    "Edit(notes.txt)",
    "Edit(//fx/**)",
    "Write",
    "WebFetch(domain:*.example.com)",
    "WebFetch",
    "mcp__github",
    "mcp__github__get_*",
    "Agent(Explore)",
];

const COMMANDS: [&str; 36] = [
    "ls -la src",
    "cat notes.txt",
    "cat secrets/key.txt",
    "cat /fx/outside/data.txt",
    "cat *.txt",
    "cat s*/key.txt",
    "cat $F",
    "head -1 .env",
    "grep -r x .",
    "git status",
    "git push origin main",
    "git -C src log",
    "npm run test -u",
    "npm run build",
    "make",
    "make all",
    "make all && cat notes.txt",
    "make all; curl http://x.invalid",
    "rm -rf build",
    "rm -rf /",
    "rm -rf src",
    "rm -rf .git",
    "touch a",
    "mkdir -p a/b",
    "cp notes.txt b.txt",
    "mv notes.txt /fx/outside/",
    "sed -i s/a/b/ notes.txt",
    "echo x > notes.txt",
    "echo x > /fx/outside/f",
    "echo $(id)",
    "cd src && ls",
    "cd /fx/outside && cat data.txt",
    "find . -name '*.ts'",
    "find . -exec rm {} ;",
    "timeout 5 npm run test",
    "FOO=1 mytool --version",
];

fn disk() -> FakeFs {
    FakeFs::with_files([
        "/fx/proj/src/app.ts",
        "/fx/proj/notes.txt",
        "/fx/proj/secrets/key.txt",
        "/fx/proj/.env",
        "/fx/proj/.git/HEAD",
        "/fx/proj/.git/objects/",
        "/fx/proj/.git/refs/",
        "/fx/outside/data.txt",
        "/fx/home/.bashrc",
    ])
    .with_link("/fx/proj/link_out", "/fx/outside")
}

/// Rules and mode under which a call is decided.
#[derive(Debug, Clone)]
struct RuleSetup {
    allow: Vec<&'static str>,
    ask: Vec<&'static str>,
    deny: Vec<&'static str>,
    mode: PermissionMode,
}

impl RuleSetup {
    fn permissions(&self, fs: &FakeFs) -> PermissionSet {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let mut rules = RuleSet::new(Path::new(HOME), Path::new(CWD));
        let layer = RuleLayer {
            allow: texts(&self.allow),
            ask: texts(&self.ask),
            deny: texts(&self.deny),
            ..RuleLayer::new(RuleSource::ProjectSettings, Path::new(CWD))
        };
        rules.add_layer(&layer, fs);
        PermissionSet { rules, mode: self.mode, dirs: WorkDirs::new(Path::new(CWD), fs) }
    }

    fn decide(&self, tool: &str, input: &Value) -> Decision {
        let fs = disk();
        decide_with(&self.permissions(&fs), tool, input, &fs)
    }
}

fn decide_with(permissions: &PermissionSet, tool: &str, input: &Value, fs: &FakeFs) -> Decision {
    let fields = ["command", "file_path", "url", "subagent_type", "q"];
    let context =
        CallContext::new(Path::new(CWD), Path::new(HOME), fs, ToolProperties::for_tool(tool, &fields));
    decide(&Call { tool, input }, &permissions.rules, permissions.mode, &permissions.dirs, &context)
}

/// Rank of a decision: higher ranks permit more.
fn rank_permissiveness(decision: &Decision) -> u8 {
    match decision {
        Decision::Deny(_) => 0,
        Decision::Ask(_) => 1,
        Decision::Allow(_) => 2,
    }
}

fn some_rules() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(RULES.to_vec(), 0..4)
}

fn rule_setups() -> impl Strategy<Value = RuleSetup> {
    (some_rules(), some_rules(), some_rules(), select(MODES.to_vec()))
        .prop_map(|(allow, ask, deny, mode)| RuleSetup { allow, ask, deny, mode })
}

fn calls() -> impl Strategy<Value = (&'static str, Value)> {
    let paths = [
        "src/app.ts",
        "notes.txt",
        ".env",
        "secrets/key.txt",
        "/fx/outside/data.txt",
        ".git/config",
        "link_out/x",
    ];
    let command = select(COMMANDS.to_vec()).prop_map(|command| ("Bash", json!({"command": command})));
    let file = (select(vec!["Read", "Edit", "Write"]), select(paths.to_vec()))
        .prop_map(|(tool, path)| (tool, json!({"file_path": path})));
    let others = select(vec![
        ("WebFetch", json!({"url": "https://a.example.com/"})),
        ("mcp__github__get_issue", json!({"q": "x"})),
        ("Agent", json!({"subagent_type": "Explore"})),
        ("Skill", json!({"skill": "x"})),
        ("WebSearch", json!({"query": "x"})),
    ]);
    prop_oneof![6 => command, 3 => file, 1 => others]
}

/// Prefixes of a simple command.
const PREFIXES: [&str; 30] = [
    "",
    "timeout 5 ",
    "timeout -k 1 --signal=9 5 ",
    "time ",
    "time -p ",
    "nice -n 5 ",
    "nohup ",
    "stdbuf -oL ",
    "env A=1 ",
    "env -i ",
    "sudo -u x ",
    "doas ",
    "command ",
    "builtin ",
    "exec ",
    "setsid ",
    "watch -n 1 ",
    "flock /tmp/l ",
    "xargs -n 1 ",
    "xargs --replace ",
    "xargs --eof ",
    "xargs --max-lines -P 2 ",
    "nsenter --root ",
    "env -u HOME -C / ",
    "exec -a x ",
    "builtin command ",
    "fakeroot -- ",
    "sudo --odd ",
    "sudo --odd value ",
    "nice -Z value ",
];

/// Constructs that run a list of commands `@`.
const WRAPPINGS: [&str; 49] = [
    "cd src; @",
    "cd -P -- src; @",
    "time cd src && @",
    "CDPATH=src; cd x; @",
    "cd s*; @",
    "pushd src; @; popd",
    "(@)",
    "( @ )",
    "{ @; }",
    "true && @",
    "false || @",
    "true; @",
    "@; true",
    "true | @",
    "@ | cat",
    "@ &",
    "! @",
    "if true; then @; fi",
    "if @; then true; fi",
    "while true; do @; done",
    "until @; do true; done",
    "for i in 1 2; do @; done",
    "case x in x) @;; esac",
    "f() { @; }; f",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "cat <(@)",
    "echo ${x:-$(@)}",
    "true\n@",
    "@ # comment\n",
    "# comment\n@",
    "cat <<EOF\n$(@)\nEOF",
    "@ > /dev/null 2>&1",
    "((1<<2))\n@\n2",
    "while ((x<<'E')); do @; done",
    "eval -- '@'",
    "bash -c '@'",
    "{ bash; } <<< '@'",
    "(sh -s) <<< '@'",
    "if true; then env bash; fi <<< '@'",
    "g() { bash; }; g <<< '@'",
    "exec 3<<< '@'; . /dev/fd/3",
    "echo '@' | bash",
    "time echo -n '@' | { bash; }",
    "{ printf %s '@'; } | sh",
    "script /dev/null -qc '@'",
    "alias a='@'\na",
    "trap -- '@' EXIT",
];

/// Forms that assign the value `@` to `f`.
const ASSIGN_FORMS: [&str; 17] = [
    "f=@",
    "f=; f+=@",
    "declare f=@",
    "f=; declare f+=@",
    "export f=@",
    "f[0]=@",
    "read f <<< @",
    "printf -v f @",
    "printf -vf @",
    "g=@; f=$g",
    "declare -n h=f; h=@",
    "f=${nope:-@}",
    ": ${nope:=@}; f=$nope",
    "mapfile -t f <<< @",
    "eval -- f=@",
    ". /dev/stdin <<< f=@",
    "for f in ls @; do :; done",
];

/// Forms that run the value of `f`.
const USE_FORMS: [&str; 6] =
    ["$f x", "\"$f\"", "env $f x", "eval $f x", "bash -c \"$f x\"", "h() { $f x; }; h"];

/// Commands that print a text or hide it.
const TEXT_PRODUCERS: [&str; 12] = [
    "echo @",
    "echo -n @",
    "printf %s @",
    "printf '%s\\n' @",
    "time echo @",
    "{ echo @; }",
    "(echo @)",
    "if true; then echo @; fi",
    "for i in @; do echo $i; done",
    "cat <<< @",
    "rev <<< x",
    "f2() { echo @; }; f2",
];

/// Commands that run the text they read.
const TEXT_RUNNERS: [&str; 16] = [
    "bash",
    "sh -s",
    "bash -",
    "bash /dev/stdin",
    "env bash",
    "timeout 5 sh -e",
    "{ bash; }",
    "( sh )",
    "if true; then bash; fi",
    "while :; do bash; break; done",
    "echo $(bash)",
    "source /dev/stdin",
    "xargs env",
    "xargs -n1 timeout 5",
    "xargs -I{} sh -c {}",
    "shell",
];

/// Inserts a command into a construct, escaped so that it does not end quotes or backquotes.
fn wrap(inner: &str, outer: &str) -> String {
    if outer.contains('`') {
        return outer.replace('@', &inner.replace('\\', "\\\\").replace('`', "\\`"));
    }
    if outer.contains("'@'") {
        return outer.replace('@', &inner.replace('\'', r"'\''"));
    }
    outer.replace('@', inner)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn added_deny_or_ask_rule_never_permits_more(
        setup in rule_setups(), rule in select(RULES.to_vec()), asks in any::<bool>(), (tool, input) in calls(),
    ) {
        let before = setup.decide(tool, &input);
        let mut more = setup.clone();
        if asks { more.ask.push(rule) } else { more.deny.push(rule) }
        let after = more.decide(tool, &input);
        prop_assert!(rank_permissiveness(&after) <= rank_permissiveness(&before), "{rule}: {before:?} became {after:?}");
    }

    #[test]
    fn added_allow_rule_is_never_stricter(setup in rule_setups(), rule in select(RULES.to_vec()), (tool, input) in calls()) {
        let before = setup.decide(tool, &input);
        let mut more = setup.clone();
        more.allow.push(rule);
        let after = more.decide(tool, &input);
        prop_assert!(rank_permissiveness(&after) >= rank_permissiveness(&before), "{rule}: {before:?} became {after:?}");
    }

    #[test]
    fn denied_command_is_not_allowed_when_wrapped(
        mode in select(MODES.to_vec()), assignment in select(vec!["", "A=1 B=$C "]), prefixes in vec(select(PREFIXES.to_vec()), 0..3),
        wrappings in vec(select(WRAPPINGS.to_vec()), 0..4),
        (rule, command) in select(vec![
            ("Bash(curl *)", "curl http://x.invalid"),
            ("Bash(git clean:*)", "git clean -fd"),
            ("Bash(rm *)", "/bin/rm -rf x"),
            ("Bash(make all)", "make all"),
            ("Read(secrets/**)", "cat secrets/key.txt"),
            ("Edit(notes.txt)", "touch notes.txt"),
        ]),
    ) {
        let setup = RuleSetup { allow: vec!["Bash"], ask: vec![], deny: vec![rule], mode };
        let plain = setup.decide("Bash", &json!({"command": command}));
        prop_assert!(matches!(plain, Decision::Deny(_)), "{command}: {plain:?}");
        let wrapped = wrappings.iter().fold(format!("{assignment}{}{command}", prefixes.concat()), |inner, outer| wrap(&inner, outer));
        let decision = setup.decide("Bash", &json!({"command": wrapped}));
        prop_assert!(!matches!(decision, Decision::Allow(_)), "{wrapped}: {decision:?}");
    }

    #[test]
    fn many_directories_hide_nothing(
        count in 0_usize..120, absolute in any::<bool>(),
        (rule, command) in select(vec![
            ("Read(secrets/**)", "cat secrets/key.txt"),
            ("Read(secrets/**)", "cat s*/key.txt"),
            ("Edit(notes.txt)", "touch notes.txt"),
            ("Bash(curl *)", "rm -rf ../proj"),
        ]),
    ) {
        let setup = RuleSetup { allow: vec![], ask: vec![], deny: vec![rule], mode: PermissionMode::BypassPermissions };
        let root = if absolute { "/a/" } else { "" };
        let moves: String = (0..count).map(|number| format!("cd {root}d{number}; ")).collect();
        let decision = setup.decide("Bash", &json!({"command": format!("{moves}{command}")}));
        prop_assert!(!matches!(decision, Decision::Allow(_)), "{count} {command}: {decision:?}");
    }

    #[test]
    fn denied_command_is_not_run_through_a_variable(
        assignments in vec(select(ASSIGN_FORMS.to_vec()), 1..4), other in select(vec!["", "f=ls; ", "f=; ", "f=ls; f+=x; "]),
        user in select(USE_FORMS.to_vec()), late in any::<bool>(),
    ) {
        let setup = RuleSetup { allow: vec!["Bash"], ask: vec![], deny: vec!["Bash(curl *)"], mode: PermissionMode::Default };
        let assignments = assignments.join("; ").replace('@', "curl");
        let command = if late {
            format!("{other}while true; do {user}; {assignments}; done")
        } else {
            format!("{other}{assignments}; {user}")
        };
        let decision = setup.decide("Bash", &json!({"command": command}));
        prop_assert!(!matches!(decision, Decision::Allow(_)), "{command}: {decision:?}");
    }

    #[test]
    fn denied_command_is_not_run_through_shell_input(
        writer in select(TEXT_PRODUCERS.to_vec()), between in select(vec![" | ", " | cat | ", " |& ", " | tee x | "]), runner in select(TEXT_RUNNERS.to_vec()),
    ) {
        let setup = RuleSetup { allow: vec!["Bash"], ask: vec![], deny: vec!["Bash(curl *)"], mode: PermissionMode::Default };
        let command = format!("shell() {{ bash; }}; {}{between}{runner}", writer.replace('@', "curl"));
        let decision = setup.decide("Bash", &json!({"command": command}));
        prop_assert!(!matches!(decision, Decision::Allow(_)), "{command}: {decision:?}");
    }

    #[test]
    fn suggestions_allow_the_call(setup in rule_setups(), (tool, input) in calls()) {
        let fs = disk();
        let mut permissions = setup.permissions(&fs);
        if let Decision::Ask(question) = decide_with(&permissions, tool, &input, &fs)
            && !question.suggestions.is_empty()
        {
            let context = UpdateContext { bypass_available: false, fs: &fs };
            for update in &question.suggestions {
                prop_assert_eq!(apply_update(&mut permissions, update, &context), []);
            }
            let after = decide_with(&permissions, tool, &input, &fs);
            prop_assert!(matches!(after, Decision::Allow(_)), "{:?} gave {after:?}", question.suggestions);
        }
    }

    #[test]
    fn any_text_gets_a_decision(setup in rule_setups(), command in "\\PC{0,60}|[a-z $(){}<>|&;'\"`\\\\\n*?#=!-]{0,40}") {
        let decision = setup.decide("Bash", &json!({"command": command}));
        prop_assert!(!decision.reason().text().is_empty());
    }
}
