//! Every scenario, run by the engine in this process and, if `WHIMBREL_BIN` is set, by that program.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::path::Path;

use whimbrel_testkit::{Scenario, assert_same};

fn load_scenario(name: &str) -> Scenario {
    Scenario::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name)).unwrap()
}

async fn check_scenario(name: &str) {
    let scenario = load_scenario(name);
    let run = scenario.run_in_process().await.unwrap();
    if let Some(program) = std::env::var_os("WHIMBREL_BIN") {
        assert_same(&run, &scenario.run_binary(Path::new(&program)).await.unwrap());
    }
    scenario.check(&run).unwrap();
}

macro_rules! scenarios {
    ($($test:ident => $name:literal,)*) => {
        $(#[tokio::test]
        async fn $test() {
            check_scenario($name).await;
        })*

        #[test]
        fn every_scenario_is_listed() {
            let scenario_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
            let names: Vec<String> = Scenario::load_all(&scenario_dir).unwrap().iter().map(Scenario::name).collect();
            let mut listed = vec![$($name),*];
            listed.sort_unstable();
            assert_eq!(names, listed);
        }
    };
}

scenarios! {
    api_error => "api-error",
    budget_used_up => "budget-used-up",
    calls_with_one_id => "calls-with-one-id",
    clear => "clear",
    command_file => "command-file",
    compact => "compact",
    compact_auto => "compact-auto",
    compact_nothing => "compact-nothing",
    interrupt_mid_stream => "interrupt-mid-stream",
    interrupt_mid_tool => "interrupt-mid-tool",
    max_turns => "max-turns",
    model_fallback => "model-fallback",
    parallel_reads => "parallel-reads",
    permission_allowed => "permission-allowed",
    permission_denied => "permission-denied",
    permission_denied_interrupt => "permission-denied-interrupt",
    plain_text => "plain-text",
    plan_mode => "plan-mode",
    plugin => "plugin",
    prompt_next => "prompt-next",
    prompts_joined => "prompts-joined",
    question_to_the_user => "question-to-the-user",
    retry_announced => "retry-announced",
    rewind_files => "rewind-files",
    search_leaves_out => "search-leaves-out",
    skill_called => "skill-called",
    structured_output => "structured-output",
    subagent_denied_interrupt => "subagent-denied-interrupt",
    tool_loop => "tool-loop",
}
