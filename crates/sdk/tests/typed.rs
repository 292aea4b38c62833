//! Answers as values of a type.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel::{Agent, Error, Scripted, Session, TurnError, query_as};

/// A scripted agent in an empty directory, and the script, which records its requests.
fn scripted_agent(replies: Value) -> (Agent, TempDir, Arc<Scripted>) {
    let dir = tempfile::tempdir().unwrap();
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new().cwd(dir.path()).persist_session(false).script(Arc::clone(&script));
    (agent, dir, script)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Invoice {
    total: u32,
}

fn output_call(output: &Value) -> Value {
    json!([{"type": "tool_use", "name": "StructuredOutput", "input": output}])
}

#[tokio::test]
async fn answer_is_a_value_of_a_type() {
    let (agent, _dir, _) = scripted_agent(json!([output_call(&json!({"total": 3}))]));
    assert_eq!(with_timeout(query_as::<Invoice>("a", &agent)).await.unwrap(), Invoice { total: 3 });
    let (agent, _dir, _) = scripted_agent(json!(["no", "no", "no", "no", "no", "no", "no"]));
    let error = with_timeout(query_as::<Invoice>("a", &agent)).await.unwrap_err();
    assert!(matches!(error, TurnError::OutputFormat { .. }), "{error:?}");
}

#[tokio::test]
async fn typed_turn_does_not_change_the_next_one() {
    let (agent, _dir, script) =
        scripted_agent(json!(["plain", output_call(&json!({"total": 3})), "plain again"]));
    let mut session = Session::open(&agent).await.unwrap();
    assert_eq!(with_timeout(session.ask("a")).await.unwrap().text(), "plain");
    let typed = with_timeout(session.ask("b").typed::<Invoice>()).await.unwrap();
    assert_eq!(typed.value, Invoice { total: 3 });
    assert_eq!(with_timeout(session.ask("c")).await.unwrap().text(), "plain again");
    let offers_output = |request: &Value| request["tools"].to_string().contains("StructuredOutput");
    assert_eq!(script.requests().iter().map(offers_output).collect::<Vec<_>>(), [false, true, false]);
}

#[tokio::test]
async fn unusable_schema_is_an_error_of_the_turn() {
    let (agent, _dir, script) = scripted_agent(json!(["plain"]));
    let mut session = Session::open(&agent).await.unwrap();
    for _ in 0..2 {
        let question = session.ask("a").output_schema(json!({"type": "string"}));
        let error = with_timeout(question).await.unwrap_err();
        assert!(matches!(error, TurnError::Session(Error::Rejected(_))), "{error:?}");
    }
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "plain");
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn dropped_question_leaves_no_format() {
    let (agent, _dir, script) = scripted_agent(json!(["plain"]));
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("a").output_schema(json!({"type": "object"}));
    // Polled once: the format is being set.
    assert!(futures::poll!(std::pin::pin!(turn.next())).is_pending());
    drop(turn);
    assert_eq!(with_timeout(session.ask("b")).await.unwrap().text(), "plain");
    assert!(!script.requests()[0]["tools"].to_string().contains("StructuredOutput"));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "snake_case")]
enum Shape {
    Circle { radius: u32 },
    Square { side: u32 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Color {
    Red,
    Green,
}

/// Asks for a value, in a run and in a turn. The model sends the outputs; the last one is accepted.
async fn ask_for<T>(name: &str, outputs: &[Value], expected: &T)
where
    T: DeserializeOwned + JsonSchema + PartialEq + std::fmt::Debug,
{
    let calls: Vec<Value> = outputs.iter().map(output_call).collect();
    let (agent, _dir, script) = scripted_agent(Value::from([calls.clone(), calls].concat()));
    let mut session = Session::open(&agent).await.unwrap();
    let typed = with_timeout(session.ask("a").typed::<T>()).await;
    assert_eq!(&typed.map_err(|error| error.to_string()).unwrap().value, expected, "{name}: turn");
    let value = with_timeout(query_as::<T>("a", &agent)).await;
    assert_eq!(&value.map_err(|error| error.to_string()).unwrap(), expected, "{name}: query");
    let requests = script.requests();
    let tools = requests[0]["tools"].as_array().unwrap();
    let schema = &tools.iter().find(|tool| tool["name"] == "StructuredOutput").unwrap()["input_schema"];
    assert_eq!(schema["type"], "object", "{name}");
    assert!(!["oneOf", "anyOf", "allOf"].iter().any(|key| schema.get(key).is_some()), "{name}: {schema}");
    assert_eq!(requests.len(), 2 * outputs.len(), "{name}: the engine has validated each output");
}

#[tokio::test]
async fn answer_of_any_shape_is_accepted() {
    let wrapped = |value: Value| json!({ "value": value });
    let mixed = wrapped(json!({"shape": "circle", "side": 1}));
    let circle = wrapped(json!({"shape": "circle", "radius": 2}));
    ask_for("enum with data", &[mixed, circle], &Shape::Circle { radius: 2 }).await;
    ask_for("enum of words", &[wrapped(json!("Blue")), wrapped(json!("Red"))], &Color::Red).await;
    ask_for("list", &[wrapped(json!([1, 2]))], &vec![1_u32, 2]).await;
    ask_for("text", &[wrapped(json!("hello"))], &"hello".to_owned()).await;
    ask_for("option", &[wrapped(json!({"total": 3}))], &Some(Invoice { total: 3 })).await;
    ask_for::<Option<Invoice>>("nothing", &[wrapped(json!(null))], &None).await;
    ask_for("struct", &[json!({"total": 3})], &Invoice { total: 3 }).await;
}
