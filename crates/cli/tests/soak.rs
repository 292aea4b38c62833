//! Resource usage of a process: a long session uses no more at its end than at its beginning (`cargo xtask bench soak`
//! runs longer, and measures), and many agents at once use little.

#![expect(clippy::unwrap_used, reason = "this is all tests")]

use std::fs;
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::control::Initialize;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

/// Number of prompts, and of commands per prompt.
const PROMPTS: usize = 8;
const CALLS: usize = 12;

/// Resources that a process uses.
#[derive(Debug, Clone, Copy)]
struct ProcessUsage {
    descriptors: usize,
    zombies: usize,
    anonymous_kb: u64,
}

fn measure_usage(pid: u32) -> ProcessUsage {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let anonymous = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    ProcessUsage {
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
        zombies: children(pid).into_iter().filter(|child| is_zombie(*child)).count(),
        anonymous_kb: anonymous.split_whitespace().nth(1).unwrap().parse().unwrap(),
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Waits until a condition holds for the usage: a command that has just ended may still hold a pipe or be unreaped.
async fn wait_for_usage(pid: u32, condition: impl Fn(&ProcessUsage) -> bool) {
    let settled = async {
        while !condition(&measure_usage(pid)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(120), settled).await;
    assert!(settled.is_ok(), "still used: {:?}", measure_usage(pid));
}

#[tokio::test]
async fn long_session_does_not_grow() {
    let call = |number: usize| Reply::tool("Bash", json!({"command": format!("echo {number}")}));
    let turn = || (0..CALLS).map(call).chain([Reply::text("Done.")]);
    let script: Vec<Reply> = (0..PROMPTS).flat_map(|_| turn()).collect();
    let options = Options { permission_mode: Some(PermissionMode::BypassPermissions), ..Options::default() };
    let mut host = Host::with_script(script)
        .program(env!("CARGO_BIN_EXE_whimbrel"))
        .options(options)
        .start()
        .await
        .unwrap();
    let pid = host.send_request(Initialize::default()).await.unwrap().pid.unwrap();
    let mut looks = Vec::new();
    for prompt in 0..PROMPTS {
        let result = host.run(format!("Go {prompt}.")).await.unwrap();
        assert_eq!(result.result.as_deref(), Some("Done."));
        looks.push(measure_usage(pid));
    }
    let (early, late) = (looks[2], looks[PROMPTS - 1]);
    let allowed = looks[..3].iter().map(|usage| usage.descriptors).max().unwrap();
    wait_for_usage(pid, |usage| usage.descriptors <= allowed && usage.zombies == 0).await;
    let growth = late.anonymous_kb.saturating_sub(early.anonymous_kb);
    assert!(growth < 2_000, "{growth} kB more: {looks:?}");
    assert_eq!(host.finish().await.unwrap().code, 0);
}

/// Number of agents that one reply starts.
const AGENT_COUNT: usize = 200;

/// Peak resident memory of a process.
fn peak_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn two_hundred_agents_use_little_memory() {
    for at_once in ["10", "200"] {
        let script = Script::from_fn(|asked| {
            let text = asked.last_text();
            match text.lines().any(|line| line.starts_with("You are number ")) {
                true => Reply::text("I was here.").delay(Duration::from_millis(20)),
                false if asked.messages().len() > 1 => Reply::text("All are back."),
                false => (0..AGENT_COUNT).fold(Reply::empty(), |reply, number| {
                    let prompt = format!("You are number {number}");
                    reply.and_tool("Agent", json!({"description": "be there", "prompt": prompt}))
                }),
            }
        });
        let mut host = Host::with_script(script)
            .program(env!("CARGO_BIN_EXE_whimbrel"))
            .env("WHIMBREL_AGENTS_AT_ONCE", at_once)
            .timeout(Duration::from_secs(120))
            .start()
            .await
            .unwrap();
        let pid = host.send_request(Initialize::default()).await.unwrap().pid.unwrap();
        let before = peak_kb(pid);
        assert_eq!(host.run("Start all agents.").await.unwrap().result.as_deref(), Some("All are back."));
        let back = host.model_requests().last().unwrap().last_text().matches("I was here.").count();
        assert_eq!(back, AGENT_COUNT, "at once: {at_once}");
        // An agent may take 400 kB at the peak, which depends on how many replies arrive at once.
        let grown = peak_kb(pid) - before;
        println!("at once: {at_once}, before: {before} kB, more: {grown} kB");
        assert!(grown < 80_000, "at once: {at_once}, before: {before} kB, more: {grown} kB");
        assert_eq!(host.finish().await.unwrap().code, 0);
    }
}
