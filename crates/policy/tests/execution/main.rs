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
    reason = "a test fails by panicking, and prints how many commands it has tried"
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
    decided: Cell<u32>,
    allowed: Cell<u32>,
    ran: Cell<u32>,
}

fn add_one(count: &Cell<u32>) {
    count.set(count.get() + 1);
}

/// Creates a test runner: the default number of cases with a fixed seed, or as many as requested with random seeds.
fn runner(default_cases: u32) -> TestRunner {
    let wanted = std::env::var("WHIMBREL_FUZZ_CASES").ok();
    let cases = wanted.as_deref().map(|cases| cases.parse().expect("WHIMBREL_FUZZ_CASES must be a number"));
    let config =
        Config { cases: cases.unwrap_or(default_cases), failure_persistence: None, ..Config::default() };
    match cases {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

fn check(
    setup: &RuleSetup,
    command: &str,
    harness: &BashHarness,
    counts: &Counts,
) -> Result<(), TestCaseError> {
    add_one(&counts.decided);
    if !setup.allows(command, harness.work_dir(), harness) || !grammar::uses_only_known_paths(command) {
        return Ok(());
    }
    add_one(&counts.allowed);
    let seen = harness.run_command(command);
    if !seen.runs.is_empty() {
        add_one(&counts.ran);
    }
    match oracle::find_violation(setup, &seen, harness) {
        None => Ok(()),
        Some(violation) => Err(TestCaseError::fail(format!("{violation}\nthe command:\n{command}\n"))),
    }
}

/// Decides and runs commands. Fails on a violation, or if too few commands run.
fn run_all(default_cases: u32, setups: impl Strategy<Value = RuleSetup>) {
    let harness = BashHarness::new();
    let counts = Counts::default();
    let cases = (setups, grammar::commands());
    let result =
        runner(default_cases).run(&cases, |(setup, command)| check(&setup, &command, &harness, &counts));
    println!("{} decided, {} allowed, {} ran", counts.decided.get(), counts.allowed.get(), counts.ran.get());
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(counts.ran.get() * 20 > counts.decided.get(), "too few commands ran to show anything");
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
    let harness = BashHarness::new();
    let setup = variables::rule_setup();
    let counts = Counts::default();
    let result = runner(1_500).run(&variables::scripts(), |script| {
        add_one(&counts.decided);
        if !setup.allows(&script, harness.work_dir(), &harness) {
            return Ok(());
        }
        add_one(&counts.allowed);
        match variables::find_violation(&harness.run_command_with_env(&script, variables::ENVIRONMENT)) {
            None => Ok(()),
            Some(violation) => Err(TestCaseError::fail(format!("{violation}\nthe command:\n{script}\n"))),
        }
    });
    println!("{} decided, {} allowed", counts.decided.get(), counts.allowed.get());
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(counts.allowed.get() * 20 > counts.decided.get(), "too few scripts ran to show anything");
}

#[test]
fn harness_records_what_happens() {
    let harness = BashHarness::new();
    let seen =
        harness.run_command("cd src && tool 'a b' < b.txt | timeout 5 npm x > ../made.txt; echo \"$(evil)\"");
    let names: Vec<&str> = seen.runs.iter().map(|run| run.program.as_str()).collect();
    for name in ["tool", "timeout", "npm", "evil"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let tool = seen.runs.iter().find(|run| run.program == "tool").unwrap();
    assert_eq!((tool.arguments.as_slice(), tool.input.as_str()), (&["a b".to_owned()][..], "plain"));
    assert_eq!(tool.directory, harness.work_dir().join("src"));
    assert_eq!(seen.written, [harness.work_dir().join("made.txt")]);
    assert!(seen.builtins.contains(&"cd".to_owned()), "{:?}", seen.builtins);
    // The files are reset for the next command.
    assert_eq!(harness.run_command("true").written, Vec::<std::path::PathBuf>::new());
}
