//! Scenario files: parsing, comparison and recording of the expected outcome.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::fs;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use whimbrel_testkit::{Scenario, ScenarioRun, assert_same};

/// Writes a scenario into a new directory and loads it.
fn write_scenario(spec: &serde_json::Value) -> (TempDir, anyhow::Result<Scenario>) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("scenario.json"), spec.to_string()).unwrap();
    let scenario = Scenario::load(dir.path());
    (dir, scenario)
}

fn hello_spec() -> serde_json::Value {
    json!({"about": "Hello.", "model": ["Hello."], "host": [{"say": "Hi."}, {"waitFor": {"type": "result"}}]})
}

fn empty_run() -> ScenarioRun {
    ScenarioRun { frames: Vec::new(), requests: Vec::new(), files: Default::default(), exit: 0 }
}

#[tokio::test]
async fn written_expectations_pass_and_changes_fail() {
    let (dir, scenario) = write_scenario(&hello_spec());
    let scenario = scenario.unwrap();
    fs::write(dir.path().join("requests.jsonl"), "").unwrap();
    let run = scenario.run_in_process().await.unwrap();
    scenario.write_expected(&run).unwrap();
    scenario.check(&scenario.run_in_process().await.unwrap()).unwrap();
    let expected = fs::read_to_string(dir.path().join("expected.jsonl")).unwrap();
    fs::write(dir.path().join("expected.jsonl"), expected.replace("Hello.", "Goodbye.")).unwrap();
    let error = scenario.check(&run).unwrap_err().to_string();
    assert!(error.contains("expected.jsonl 2 differs at .message.content[0].text"), "{error}");
}

#[tokio::test]
async fn files_and_exit_code_are_compared() {
    let (dir, scenario) = write_scenario(&hello_spec());
    let scenario = scenario.unwrap();
    fs::create_dir(dir.path().join("workspace-after")).unwrap();
    scenario.write_expected(&empty_run()).unwrap();
    fs::create_dir(dir.path().join("workspace-after")).unwrap();
    let mut run = empty_run();
    run.files.insert("a.txt".into(), b"x".to_vec());
    assert!(scenario.check(&run).unwrap_err().to_string().contains("file a.txt differs"));
    assert!(
        scenario
            .check(&ScenarioRun { exit: 1, ..empty_run() })
            .unwrap_err()
            .to_string()
            .contains("exit code is 1")
    );
}

#[tokio::test]
async fn timeout_names_the_step() {
    let mut spec = hello_spec();
    spec["host"][1] = json!({"waitFor": {"type": "no_such_frame"}});
    let (_folder, scenario) = write_scenario(&spec);
    let scenario = scenario.unwrap().timeout(Duration::from_secs(3));
    let error = format!("{:#}", scenario.run_in_process().await.unwrap_err());
    assert!(error.contains("step 2") && error.contains("no_such_frame"), "{error}");
}

#[test]
fn unknown_fields_and_steps_are_rejected() {
    for (name, place, word) in
        [("a field", "/hosts", json!([])), ("a step", "/host/0", json!({"sing": "Hi."}))]
    {
        let mut spec = hello_spec();
        match place.rsplit_once('/') {
            Some(("", field)) => spec[field] = word,
            _ => *spec.pointer_mut(place).unwrap() = word,
        }
        assert!(write_scenario(&spec).1.is_err(), "{name}");
    }
}

#[test]
#[should_panic(expected = "exit code 0 against 1")]
fn assert_same_panics_with_the_difference() {
    assert_same(&empty_run(), &ScenarioRun { exit: 1, ..empty_run() });
}
