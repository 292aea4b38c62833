//! Spans of agents, model calls and tool calls, as OpenTelemetry gets them.
#![cfg(all(feature = "in-process", feature = "tracing"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry::trace::{SpanId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tracing::Instrument;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;
use whimbrel::{Agent, Scripted, Session, Subagent, ToolContext, ToolServer, TurnError, query, tool};

/// Spans of this thread, which runs the whole test.
struct Spans {
    provider: SdkTracerProvider,
    exporter: InMemorySpanExporter,
    _guard: DefaultGuard,
}

impl Spans {
    fn collect() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        Self { provider, exporter, _guard: guard }
    }

    /// Names of the spans as a tree, each with its children in the order in which they began.
    fn tree(&self) -> Value {
        self.provider.force_flush().unwrap();
        let spans = self.exporter.get_finished_spans().unwrap();
        children(&spans, SpanId::INVALID)
    }

    /// Attributes of the only span with this name.
    fn attributes(&self, name: &str) -> BTreeMap<String, String> {
        let spans = self.exporter.get_finished_spans().unwrap();
        let found: Vec<&SpanData> = spans.iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0]
            .attributes
            .iter()
            .map(|pair| (pair.key.to_string(), pair.value.as_str().into_owned()))
            .collect()
    }
}

fn children(spans: &[SpanData], parent: SpanId) -> Value {
    let mut found: Vec<&SpanData> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
    found.sort_by_key(|span| span.start_time);
    let tree = |span: &&SpanData| match children(spans, span.span_context.span_id()) {
        Value::Array(below) if below.is_empty() => json!(span.name),
        below => json!({ span.name.to_string(): below }),
    };
    Value::Array(found.iter().map(tree).collect())
}

fn agent(replies: Value) -> Agent {
    let script = Scripted::replies(replies).unwrap();
    Agent::new().cwd(std::env::temp_dir()).persist_session(false).script(script)
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn call(name: &str, input: Value) -> Value {
    json!([{"type": "tool_use", "id": "call_1", "name": name, "input": input}])
}

#[tokio::test]
async fn agent_model_and_tool_spans_are_below_the_caller() {
    let spans = Spans::collect();
    let seen = Arc::<Mutex<Option<String>>>::default();
    let seen_by_tool = Arc::clone(&seen);
    let look = tool("look", "Looks", move |_: ToolContext| {
        *seen_by_tool.lock().unwrap() =
            tracing::Span::current().metadata().map(|span| span.name().to_owned());
        async { "nothing" }
    });
    let agent = agent(json!([call("mcp__eyes__look", json!({})), "Nothing."]))
        .tool_server(ToolServer::new("eyes").tool(look))
        .allowed_tools(["mcp__eyes"]);
    let answer =
        query("Look.", &agent).into_future().instrument(tracing::info_span!("request")).await.unwrap();
    assert_eq!(
        spans.tree(),
        json!([{"request": [{"invoke_agent main": ["chat sdk", "execute_tool mcp__eyes__look", "chat sdk"]}]}])
    );
    assert_eq!(seen.lock().unwrap().as_deref(), Some("execute_tool"), "the function runs in its span");
    let attributes = spans.attributes("invoke_agent main");
    assert_eq!(attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(attributes["gen_ai.conversation.id"], answer.session_id());
    assert!(attributes.contains_key("whimbrel.cost_usd"));
    assert!(!attributes.contains_key("gen_ai.output.messages"), "contents are not asked for");
    let attributes = spans.attributes("execute_tool mcp__eyes__look");
    assert_eq!(attributes["gen_ai.tool.name"], "mcp__eyes__look");
    assert_eq!(attributes["whimbrel.permission"], "allow");
    assert!(attributes.contains_key("gen_ai.tool.call.id"));
    assert!(!attributes.contains_key("gen_ai.tool.call.arguments"));
}

#[tokio::test]
async fn each_turn_is_below_the_span_that_asks() {
    let spans = Spans::collect();
    let mut session = Session::open(&agent(json!(["one", "two"]))).await.unwrap();
    for name in ["first", "second"] {
        let span = tracing::info_span!("ask", otel.name = name);
        session.ask("next").into_future().instrument(span).await.unwrap();
    }
    drop(session);
    assert_eq!(
        spans.tree(),
        json!([{"first": [{"invoke_agent main": ["chat sdk"]}]}, {"second": [{"invoke_agent main": ["chat sdk"]}]}])
    );
}

#[tokio::test]
async fn subagent_is_below_the_call_that_starts_it() {
    let spans = Spans::collect();
    let start = call("Agent", json!({"subagent_type": "scout", "description": "look", "prompt": "Look."}));
    let agent =
        agent(json!([start, "Nothing there.", "Done."])).subagent("scout", Subagent::new("Looks", "Look."));
    query("go", &agent).await.unwrap();
    assert_eq!(
        spans.tree(),
        json!([{"invoke_agent main": [
            "chat sdk", {"execute_tool Agent": [{"invoke_agent scout": ["chat sdk"]}]}, "chat sdk",
        ]}])
    );
}

#[tokio::test]
async fn denied_call_and_failed_turn_are_errors() {
    let spans = Spans::collect();
    let agent =
        agent(json!([call("Bash", json!({"command": "touch /nowhere/a"})), "unreached"])).max_turns(1);
    assert!(matches!(query("go", &agent).await, Err(TurnError::MaxTurns(_))));
    spans.tree();
    assert_eq!(spans.attributes("execute_tool Bash")["error.type"], "denied");
    assert_eq!(spans.attributes("execute_tool Bash")["whimbrel.permission"], "deny");
    assert_eq!(spans.attributes("invoke_agent main")["error.type"], "max_turns");
}

#[tokio::test]
async fn contents_are_recorded_if_asked_for() {
    let spans = Spans::collect();
    let agent = agent(json!([call("Bash", json!({"command": "echo hello"})), "Hello it is."]))
        .allow_tool("Bash(echo:*)")
        .trace_contents(true);
    query("go", &agent).await.unwrap();
    spans.tree();
    assert_eq!(spans.attributes("invoke_agent main")["gen_ai.output.messages"], "Hello it is.");
    let attributes = spans.attributes("execute_tool Bash");
    assert!(attributes["gen_ai.tool.call.arguments"].contains("echo hello"));
    assert!(attributes["gen_ai.tool.call.result"].contains("hello"));
}

#[tokio::test]
async fn warnings_are_events_and_calls() {
    use std::fmt::Write as _;

    /// Collects the texts of events.
    #[derive(Clone, Default)]
    struct Events(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Events {
        fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            let mut text = event.metadata().target().to_owned();
            event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                write!(text, " {field}={value:?}").unwrap();
            });
            self.0.lock().unwrap().push(text);
        }
    }

    let events = Events::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(events.clone()));
    let called = Arc::<Mutex<Vec<String>>>::default();
    let called_by_agent = Arc::clone(&called);
    let agent = agent(json!(["Hello."]))
        .disallowed_tools(["Bahs"])
        .on_warning(move |text| called_by_agent.lock().unwrap().push(text.to_owned()));
    query("hi", &agent).await.unwrap();
    let is_about_rule = |text: &String| text.contains("Bahs");
    assert!(called.lock().unwrap().iter().any(is_about_rule), "{called:?}");
    let events = events.0.lock().unwrap();
    assert!(
        events.iter().any(|text| is_about_rule(text) && text.contains("whimbrel::warning")),
        "{events:?}"
    );
}
