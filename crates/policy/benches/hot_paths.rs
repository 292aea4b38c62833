//! Benchmarks of frequent decisions. `cargo xtask bench --instructions` counts the instructions of each case.

use std::hint::black_box;
use std::path::Path;

use serde_json::json;
use whimbrel_policy::fs::FakeFs;
use whimbrel_policy::{Call, CallContext, RuleLayer, RuleSet, RuleSource, ToolProperties, WorkDirs, decide};
use whimbrel_wire::permission::PermissionMode;

/// Name of a case, and a function that runs it a number of times.
type Case = (&'static str, fn(u64));

const CASES: [Case; 5] = [
    ("decide an allowed command", |times| decide_repeatedly("Bash", "command", "make all", times)),
    ("decide a read-only command", |times| {
        decide_repeatedly("Bash", "command", "git log --oneline -5 | head -3", times);
    }),
    ("decide a compound command", |times| decide_repeatedly("Bash", "command", COMPOUND, times)),
    ("decide a command that needs approval", |times| {
        decide_repeatedly("Bash", "command", "npm run build", times);
    }),
    ("decide a file read", |times| decide_repeatedly("Read", "file_path", "/w/src/main.rs", times)),
];

const COMPOUND: &str = "cd src && CI=1 timeout 60 make all 2>&1 | tail -n 40 | grep -v 'a b' > /dev/null; \
     if git diff --stat | grep -q x; then npm run build && echo \"done\"; else make lint; fi";

fn decide_repeatedly(tool: &str, field: &str, value: &str, times: u64) {
    let fs = FakeFs::with_files(["/w/src/main.rs", "/w/.git/HEAD"]);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let layer = RuleLayer {
        allow: texts(&["Bash(make *)", "Edit(src/**)"]),
        deny: texts(&["Bash(curl *)", "Read(.env)", "Read(secrets/**)"]),
        ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w"))
    };
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    rules.add_layer(&layer, &fs);
    let dirs = WorkDirs::new(Path::new("/w"), &fs);
    let context = CallContext::new(
        Path::new("/w"),
        Path::new("/home/me"),
        &fs,
        ToolProperties::for_tool(tool, &[field]),
    );
    let input = json!({ field: value });
    for _ in 0..times {
        let call = Call { tool: black_box(tool), input: black_box(&input) };
        black_box(decide(&call, &rules, PermissionMode::Default, &dirs, &context));
    }
}

/// `--list` prints the cases, `NAME TIMES` repeats one; anything else runs each once.
#[expect(clippy::print_stdout, reason = "`--list` prints the cases")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => CASES.iter().for_each(|(name, _)| println!("{name}")),
        [case, times] if !case.starts_with('-') => {
            let times = times.parse().unwrap_or_default();
            CASES.iter().filter(|(name, _)| *name == case).for_each(|(_, run)| run(times));
        }
        _ => CASES.iter().for_each(|(_, run)| run(1)),
    }
}
