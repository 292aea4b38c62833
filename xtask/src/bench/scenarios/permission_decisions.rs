//! Time of permission decisions about commands, without an engine: the median of many decisions.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Call, CallContext, RuleLayer, RuleSet, RuleSource, ToolProperties, WorkDirs, decide};
use whimbrel_wire::permission::PermissionMode;

use crate::bench::clock::{now, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::Engine;
use crate::bench::metrics::{BaselineMetrics, Metrics, median};

const ALLOW: [&str; 12] = [
    "Bash(cargo test *)",
    "Bash(cargo build *)",
    "Bash(cargo clippy *)",
    "Bash(npm run test:*)",
    "Bash(npm run build)",
    "Bash(git log *)",
    "Bash(git diff *)",
    "Bash(make *)",
    "Bash(* --version)",
    "Read(//usr/include/**)",
    "Edit(src/**)",
    "WebFetch(domain:*.example.com)",
];

const DENY: [&str; 8] = [
    "Bash(curl *)",
    "Bash(git push *)",
    "Bash(rm *)",
    "Bash(* --force)",
    "Read(secrets/**)",
    "Read(.env)",
    "Edit(//etc/**)",
    "Edit(docs/**)",
];

const COMPOUND: &str = "cd src && CI=1 timeout 60 cargo test -p x --all-features 2>&1 | tail -n 40 | grep -v 'warning: a' > /dev/null; \
     if git diff --stat | grep -q x; then npm run build && echo \"built: done\"; else npm run lint; fi";

/// Not a scenario for engines.
#[expect(clippy::unnecessary_wraps, reason = "other scenarios can fail")]
pub(super) fn run(_: &BenchContext, _: &Engine) -> Result<Option<Metrics>> {
    Ok(None)
}

/// Measures decisions about plain, compound and huge commands under twenty rules.
pub(super) fn decision_baseline(context: &BenchContext) -> Result<BaselineMetrics> {
    let dir = context.create_dir("permission-decisions")?.canonicalize()?;
    for part in [".git/objects", ".git/refs", "src"] {
        fs::create_dir_all(dir.join(part))?;
    }
    fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    let huge = "cargo test -p x && ls -la src; ".repeat(100_000 / 31);
    for number in 0..300 {
        fs::create_dir_all(dir.join(format!("d{number}")))?;
    }
    // Repeats a piece up to 100 KB; `#` becomes a running number.
    let many = |piece: &str| {
        let mut text = String::new();
        let mut number = 0_usize;
        while text.len() < 100_000 {
            text += &piece.replace('#', &number.to_string());
            number += 1;
        }
        text
    };
    let median_us = |command: &str| median_decision_ms(&dir, command, 1_000).map(|time| time * 1000.0);
    let median_ms = |command: &str| median_decision_ms(&dir, command, 5);
    let metrics = vec![
        ("git status, us", median_us("git status")?),
        ("cargo test -p x, us", median_us("cargo test -p x")?),
        ("compound, us", median_us(COMPOUND)?),
        ("100 KB, ms", median_ms(&huge)?),
        ("100 KB of redirects, ms", median_ms(&format!("echo x{}", many(" > f#")))?),
        ("100 KB of globs, ms", median_ms(&format!("cat{}", many(" z#*")))?),
        ("100 KB of deep globs, ms", median_ms(&many("cat */*/x#*; "))?),
        ("100 KB of pipes, ms", median_ms(&format!("echo x{} | bash", " | tee x".repeat(12_000)))?),
        ("100 KB of xargs, ms", median_ms(&many("echo f# | xargs rm; "))?),
        ("100 KB of braces, ms", median_ms(&format!("ls{}", " {a,b}{c,d}{e,f}".repeat(6_000)))?),
        ("100 KB of files, ms", median_ms(&format!("rm{}", many(" f#")))?),
        ("100 KB of moves, ms", median_ms(&many("cd d#; mv f# g#; "))?),
        ("100 KB of links, ms", median_ms(&many("ln -s a# b#; cat b#; "))?),
        ("100 KB of texts, ms", median_ms(&many("bash -c 'cat f#'; "))?),
    ];
    Ok(vec![("a decision".into(), metrics)])
}

/// Median time of a decision in milliseconds.
fn median_decision_ms(dir: &Path, command: &str, times: usize) -> Result<f64> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let layer = RuleLayer {
        allow: texts(&ALLOW),
        deny: texts(&DENY),
        ..RuleLayer::new(RuleSource::ProjectSettings, dir)
    };
    let home = Path::new("/home/me");
    let mut rules = RuleSet::new(home, dir);
    let loaded = rules.add_layer(&layer, &RealFs);
    ensure!(loaded.errors.is_empty(), "invalid rules: {:?}", loaded.errors);
    let dirs = WorkDirs::new(dir, &RealFs);
    let call_context = CallContext::new(dir, home, &RealFs, ToolProperties::for_tool("Bash", &["command"]));
    let input = json!({ "command": command });
    let call = Call { tool: "Bash", input: &input };
    let decision = || {
        let started_at = now();
        std::hint::black_box(decide(&call, &rules, PermissionMode::Default, &dirs, &call_context));
        to_ms(started_at.elapsed())
    };
    Ok(median(&(0..times).map(|_| decision()).collect::<Vec<_>>()))
}
