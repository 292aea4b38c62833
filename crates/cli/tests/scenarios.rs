//! Runs every scenario of the testkit with the built program: its frames must equal those of the engine in process.

use std::path::Path;

use whimbrel_testkit::scenario::Scenario;

#[tokio::test]
async fn program_plays_every_scenario_like_the_engine_in_process() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/scenarios");
    let program = Path::new(env!("CARGO_BIN_EXE_whimbrel"));
    let scenarios = Scenario::load_all(&dir).unwrap();
    assert!(!scenarios.is_empty());
    for scenario in scenarios {
        let run = scenario.run_binary(program).await.unwrap();
        scenario.check(&run).unwrap_or_else(|error| panic!("{}: {error}", scenario.name()));
    }
}
