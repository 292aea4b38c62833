//! Differential test: allowed commands are run by a real bash, and the programs that ran are checked against the
//! rules.
//!
//! Commands from a grammar of unusual bash syntax are decided under random rules. Allowed ones run in a temporary
//! directory in which every program is a stub that records its call. Nothing may run, be written or be read that the
//! rules do not cover.
//!
//! `WHIMBREL_FUZZ_CASES=1000000 cargo test -p whimbrel-policy --test execution` runs longer, with other cases each
//! time.
//!
//! Modules: `grammar` (commands), `fragments` (their parts), `rule_setup` (rules and decisions), `harness`
//! (directory, stubs, bash), `oracle` (what may happen), `variables` (scripts that assign and use variables).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells how much it has tried"
)]

mod fragments;
mod grammar;
mod harness;
mod oracle;
mod rule_setup;
mod variables;

use std::cell::Cell;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use harness::BashHarness;
use rule_setup::RuleSetup;

/// Numbers of commands decided, allowed, and seen to run a program.
#[derive(Default)]
struct Counts {
    judged: Cell<u32>,
    allowed: Cell<u32>,
    ran: Cell<u32>,
}

fn add_one(count: &Cell<u32>) {
    count.set(count.get() + 1);
}

/// Creates a test runner: the default number of cases with a fixed seed, or as many as requested with random seeds.
fn runner(usual: u32) -> TestRunner {
    let wanted = std::env::var("WHIMBREL_FUZZ_CASES").ok();
    let cases = wanted.as_deref().map(|cases| cases.parse().expect("WHIMBREL_FUZZ_CASES must be a number"));
    let config = Config { cases: cases.unwrap_or(usual), failure_persistence: None, ..Config::default() };
    match cases {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

fn check(scene: &RuleSetup, command: &str, stage: &BashHarness, tally: &Counts) -> Result<(), TestCaseError> {
    add_one(&tally.judged);
    if !scene.allows(command, stage.work_dir(), stage) || !grammar::uses_only_known_paths(command) {
        return Ok(());
    }
    add_one(&tally.allowed);
    let seen = stage.run_command(command);
    if !seen.runs.is_empty() {
        add_one(&tally.ran);
    }
    match oracle::find_violation(scene, &seen, stage) {
        None => Ok(()),
        Some(wrong) => Err(TestCaseError::fail(format!("{wrong}\nthe command:\n{command}\n"))),
    }
}

/// Decides and runs commands. Fails on a violation, or if too few commands run.
fn run_all(usual: u32, scenes: impl Strategy<Value = RuleSetup>) {
    let stage = BashHarness::new();
    let tally = Counts::default();
    let cases = (scenes, grammar::commands());
    let result = runner(usual).run(&cases, |(scene, command)| check(&scene, &command, &stage, &tally));
    println!("{} judged, {} allowed, {} ran", tally.judged.get(), tally.allowed.get(), tally.ran.get());
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(tally.ran.get() * 20 > tally.judged.get(), "too few commands ran to show anything");
}

#[test]
fn only_covered_commands_run() {
    run_all(1_200, rule_setup::rule_setups());
}

#[test]
fn denied_commands_do_not_run_where_all_else_is_allowed() {
    run_all(300, rule_setup::open_rule_setups());
}

#[test]
fn inherited_variable_values_are_not_used() {
    let stage = BashHarness::new();
    let scene = variables::rule_setup();
    let tally = Counts::default();
    let result = runner(1_500).run(&variables::scripts(), |script| {
        add_one(&tally.judged);
        if !scene.allows(&script, stage.work_dir(), &stage) {
            return Ok(());
        }
        add_one(&tally.allowed);
        match variables::find_violation(&stage.run_command_with_env(&script, variables::ENVIRONMENT)) {
            None => Ok(()),
            Some(wrong) => Err(TestCaseError::fail(format!("{wrong}\nthe command:\n{script}\n"))),
        }
    });
    println!("{} judged, {} allowed", tally.judged.get(), tally.allowed.get());
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(tally.allowed.get() * 20 > tally.judged.get(), "too few scripts ran to show anything");
}

#[test]
fn harness_records_what_happens() {
    let stage = BashHarness::new();
    let seen =
        stage.run_command("cd src && tool 'a b' < b.txt | timeout 5 npm x > ../made.txt; echo \"$(evil)\"");
    let names: Vec<&str> = seen.runs.iter().map(|run| run.program.as_str()).collect();
    for name in ["tool", "timeout", "npm", "evil"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let tool = seen.runs.iter().find(|run| run.program == "tool").unwrap();
    assert_eq!((tool.arguments.as_slice(), tool.input.as_str()), (&["a b".to_owned()][..], "plain"));
    assert_eq!(tool.directory, stage.work_dir().join("src"));
    assert_eq!(seen.written, [stage.work_dir().join("made.txt")]);
    assert!(seen.builtins.contains(&"cd".to_owned()), "{:?}", seen.builtins);
    // The files are reset for the next command.
    assert_eq!(stage.run_command("true").written, Vec::<std::path::PathBuf>::new());
}
