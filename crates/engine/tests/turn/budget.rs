//! Budgets: reservations, spending, and the end of a turn when the budget is exhausted.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::Usage;
use whimbrel_wire::control::{GetSessionCost, SetModel};
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

fn host(dollars: f64, script: impl Into<Script>) -> HostBuilder {
    let mode = Some(PermissionMode::AcceptEdits);
    Host::with_script(script).options(Options {
        max_budget_usd: Some(dollars),
        permission_mode: mode,
        ..Options::default()
    })
}

/// Usage that costs this many dollars, at 25 dollars per million output tokens.
fn usage_costing(dollars: f64) -> Usage {
    Usage { output_tokens: (dollars * 40_000.0) as u64, ..Usage::default() }
}

fn write_call(file: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": file, "content": "x"}))
}

fn agent_input() -> Value {
    json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"})
}

fn is_budget_error(result: &TurnResult) -> bool {
    result.subtype == Outcome::ErrorMaxBudgetUsd
        && result.is_error
        && result.result.is_none()
        && result.terminal_reason == Some(TerminalReason::BudgetExhausted)
        && result.errors.as_ref().is_some_and(|errors| errors[0].contains("budget"))
}

#[tokio::test]
async fn exceeding_the_budget_ends_the_turn_before_its_tool_calls() {
    let script = [
        write_call("a").usage(usage_costing(0.5)),
        write_call("b").usage(usage_costing(0.5)),
        Reply::text("never"),
    ];
    let mut host = host(1.0, script).start().await.unwrap();
    let result = host.run("Write.").await.unwrap();
    assert!(is_budget_error(&result), "{result:?}");
    assert!((result.total_cost_usd - 1.0).abs() < 1e-9);
    let files: Vec<String> = host.dirs().files().unwrap().into_keys().collect();
    assert_eq!(files, ["a"]);
    let next = host.run("Go on.").await.unwrap();
    assert!(is_budget_error(&next), "the next prompt ends with the same error");
    assert_eq!(host.model_requests().len(), 2, "no further request is sent");
    assert_eq!(host.finish().await.unwrap().code, 1);
}

#[tokio::test]
async fn task_budget_is_shared_with_subagents() {
    let output_usage = |tokens: u64| Usage { output_tokens: tokens, ..Usage::default() };
    let script = [
        Reply::tool("Agent", agent_input()).usage(output_usage(5_000)),
        Reply::text("Seen.").usage(output_usage(4_000)),
        Reply::tool("Agent", agent_input()).usage(output_usage(10)),
        Reply::text("Done.").usage(output_usage(10)),
        Reply::text("Again.").usage(output_usage(10)),
    ];
    let options = Options { task_budget: Some(8_000), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    assert_eq!(host.run("Look.").await.unwrap().result.as_deref(), Some("Done."));
    host.run("Once more.").await.unwrap();
    let budgets: Vec<Value> = host
        .model_requests()
        .iter()
        .map(|request| request.body["output_config"]["task_budget"]["remaining"].clone())
        .collect();
    assert!(
        budgets[1].as_u64().is_some_and(|left| left <= 8_000),
        "a subagent gets the remaining budget: {budgets:?}"
    );
    let others = [&budgets[0], &budgets[2], &budgets[3], &budgets[4]];
    assert_eq!(
        others,
        [&json!(null), &json!(0), &json!(0), &json!(null)],
        "the second subagent is not started"
    );
    let none = Options { task_budget: Some(0), ..Options::default() };
    let mut host = Host::with_script([Reply::text("never")]).options(none).start().await.unwrap();
    assert!(host.next_result().await.unwrap().errors.unwrap()[0].contains("--task-budget"));
}

#[tokio::test]
async fn turn_within_budget_succeeds() {
    let script = [write_call("a").usage(usage_costing(0.4)), Reply::text("Done.").usage(usage_costing(0.5))];
    let mut host = host(1.0, script).start().await.unwrap();
    assert_eq!(host.run("Write.").await.unwrap().result.as_deref(), Some("Done."));
}

#[tokio::test]
async fn subagent_exceeding_the_budget_ends_the_turn() {
    let script = [
        Reply::tool("Agent", agent_input()),
        Reply::text("I saw.").usage(usage_costing(2.0)),
        Reply::text("never"),
    ];
    let mut host = host(1.0, script).start().await.unwrap();
    let result = host.run("Start an agent.").await.unwrap();
    assert!(is_budget_error(&result), "{result:?}");
    assert_eq!(host.model_requests().len(), 2);
}

#[tokio::test]
async fn parallel_subagents_respect_the_budget() {
    let reply_for = |request: &ModelRequest| match request.contains_text("Look around.") {
        true => Reply::text("I saw.").usage(usage_costing(0.04)),
        false => (0..7)
            .fold(Reply::tool("Agent", agent_input()), |reply, _| reply.and_tool("Agent", agent_input())),
    };
    let mut host = host(0.05, Script::from_fn(reply_for)).start().await.unwrap();
    let result = host.run("Start the agents.").await.unwrap();
    assert!(is_budget_error(&result), "{result:?}");
    assert!(host.model_requests().len() <= 4, "{} requests", host.model_requests().len());
    assert!(result.total_cost_usd < 0.15, "{}", result.total_cost_usd);
}

#[tokio::test]
async fn model_without_price_is_rejected_under_a_budget() {
    let options =
        Options { model: Some("unknown-model".into()), max_budget_usd: Some(1.0), ..Options::default() };
    let mut rejected = Host::with_script([Reply::text("never")]).options(options).start().await.unwrap();
    let text = rejected.next_result().await.unwrap().errors.unwrap().join(" ");
    assert!(text.contains("unknown-model") && text.contains("price is unknown"), "{text}");

    let mut host = host(1.0, [Reply::text("Hello."), Reply::text("never")]).start().await.unwrap();
    host.run("Hello?").await.unwrap();
    host.send_request(SetModel { model: Some("unknown-model".into()) }).await.unwrap();
    let result = host.run("And you?").await.unwrap();
    assert!(result.is_error && result.result.unwrap().contains("price is unknown"));
    assert_eq!(host.model_requests().len(), 1);
}

#[tokio::test]
async fn reply_without_usage_is_charged_by_estimate() {
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "x"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "Read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"file_path\": \"a\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let script = Script::from_fn(move |_| Reply::empty().raw_body(body.clone()));
    let mut host = host(0.2, script).start().await.unwrap();
    let result = host.run("Read for ever.").await.unwrap();
    assert!(is_budget_error(&result), "{result:?}");
    assert!((2..20).contains(&host.model_requests().len()), "{} requests", host.model_requests().len());
}

#[tokio::test]
async fn task_budget_is_sent_to_the_model() {
    let options = Options { task_budget: Some(30_000), ..Options::default() };
    let mut host = Host::with_script([Reply::text("Hello.")]).options(options).start().await.unwrap();
    assert_eq!(host.run("Hello?").await.unwrap().result.as_deref(), Some("Hello."));
    assert_eq!(host.model_requests()[0].body["output_config"]["task_budget"]["total"], 30_000);
}

#[tokio::test]
async fn background_agents_respect_the_budget_and_report_it_once() {
    let background_input =
        |prompt: &str| json!({"description": "look", "prompt": prompt, "run_in_background": true});
    // Ten at once. Each reply costs 0.3 dollars, more than the estimate; four are released and cross the limit.
    let next_reply = move |request: &ModelRequest| match request.contains_text("Start the agents.") {
        true if request.contains_text("in the background") => Reply::text("Launched."),
        true => (1..10).fold(Reply::tool("Agent", background_input("Look at 0!")), |reply, index| {
            reply.and_tool("Agent", background_input(&format!("Look at {index}!")))
        }),
        false => {
            let index = (0..10).find(|index| request.contains_text(&format!("Look at {index}!"))).unwrap();
            let read_call = Reply::tool("Read", json!({"file_path": "a"})).usage(usage_costing(0.3));
            read_call.hold_until(format!("look {index}"))
        }
    };
    let mut host = host(1.0, Script::from_fn(next_reply)).file("a", "x").start().await.unwrap();
    assert_eq!(host.run("Start the agents.").await.unwrap().result.as_deref(), Some("Launched."));
    host.api().unwrap().wait_for_model_requests(12).await.unwrap();
    for index in 0..4 {
        host.api().unwrap().release(format!("look {index}"));
    }
    let last = host.next_result().await.unwrap();
    assert!(is_budget_error(&last), "{last:?}");
    assert_eq!(host.finish().await.unwrap().code, 1);
    let frames = || host.received().iter().map(|received| &received.json);
    assert_eq!(frames().filter(|frame| frame["subtype"] == "task_notification").count(), 10);
    let results: Vec<&Value> = frames().filter(|frame| frame["type"] == "result").collect();
    assert_eq!(results.len(), 2, "the exhausted budget is reported once");
    let spent = results[1]["total_cost_usd"].as_f64().unwrap();
    assert!((1.2..1.21).contains(&spent), "{spent}");
    assert_eq!(host.model_requests().len(), 12, "pending requests are cancelled and none follow");
}

#[tokio::test]
async fn session_cost_lists_every_agent() {
    let script = [
        Reply::tool("Agent", agent_input()).usage(usage_costing(0.25)),
        Reply::text("I saw.").usage(usage_costing(0.5)),
        Reply::text("Done.").usage(usage_costing(0.25)),
    ];
    let mut host = host(5.0, script).start().await.unwrap();
    let result = host.run("Start an agent.").await.unwrap();
    assert!((result.total_cost_usd - 1.0).abs() < 1e-9, "total: {}", result.total_cost_usd);
    let text = host.send_request(GetSessionCost {}).await.unwrap().text;
    assert!(text.starts_with("Total cost: $1.0000"), "{text}");
    let agent = text.lines().find(|line| line.starts_with("of which general-purpose (")).unwrap();
    assert!(agent.ends_with("20000 tokens ($0.5000)"), "{agent}");
}
