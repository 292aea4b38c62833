//! Cost of a resumed session: it covers the runs before, and so does a budget.

use whimbrel_testkit::{Reply, SessionDirs};
use whimbrel_wire::Usage;
use whimbrel_wire::message::{Outcome, TurnResult};
use whimbrel_wire::options::Options;

use super::fixture::resume_options;

fn reply() -> Reply {
    Reply::text("Done.").usage(Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() })
}

async fn run_once(dirs: &SessionDirs, options: Options) -> TurnResult {
    let mut host = dirs.host([reply()], options).start().await.unwrap();
    let result = host.run("Go.").await.unwrap();
    host.finish().await.unwrap();
    result
}

/// Input and output tokens of the only model.
fn tokens(result: &TurnResult) -> (u64, u64) {
    let usage = result.model_usage.values().next().unwrap();
    (usage.input_tokens, usage.output_tokens)
}

#[tokio::test]
async fn cost_and_tokens_cover_the_whole_session() {
    let dirs = SessionDirs::new().unwrap();
    let first = run_once(&dirs, Options::default()).await;
    assert!(first.total_cost_usd > 0.0);
    for runs in [2_u32, 3] {
        let resumed = run_once(&dirs, resume_options(&first.session_id)).await;
        assert!((resumed.total_cost_usd - f64::from(runs) * first.total_cost_usd).abs() < 1e-9, "run {runs}");
        assert_eq!(tokens(&resumed), (1_000 * u64::from(runs), 100 * u64::from(runs)));
        assert_eq!(resumed.usage.output_tokens, 100, "the usage is that of the turn");
    }
    let fork = Options { fork_session: true, ..resume_options(&first.session_id) };
    assert_eq!(tokens(&run_once(&dirs, fork).await), (1_000, 100), "a fork begins its own");
}

#[tokio::test]
async fn budget_covers_the_whole_session() {
    let dirs = SessionDirs::new().unwrap();
    let first = run_once(&dirs, Options::default()).await;
    let limited = |limit: f64| Options { max_budget_usd: Some(limit), ..resume_options(&first.session_id) };
    let mut host = dirs.host([reply()], limited(first.total_cost_usd * 0.9)).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().subtype, Outcome::ErrorMaxBudgetUsd);
    assert_eq!(host.model_requests().len(), 0, "no request is sent");
    host.finish().await.unwrap();
    assert_eq!(run_once(&dirs, limited(first.total_cost_usd * 5.0)).await.subtype, Outcome::Success);
}
