//! Exports the spans of an agent to OpenTelemetry: `cargo run --example opentelemetry`
//! Here they stay in memory and are printed as a tree; a service gives `with_simple_exporter` an OTLP exporter instead.
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use opentelemetry::trace::{SpanId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use whimbrel::{Agent, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("my-service"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "echo hello"}}]);
    let agent = Agent::new().allow_tool("Bash(echo:*)");
    let agent = model::real_or_scripted(agent, json!([call, "It says hello."]))?;
    // The span of the caller is the parent of the agent's.
    let request = tracing::info_span!("POST /ask");
    println!("{}", query("Run `echo hello`.", &agent).into_future().instrument(request).await?);

    provider.force_flush()?;
    let spans = exporter.get_finished_spans()?;
    print_tree(&spans, SpanId::INVALID, 0);
    Ok(())
}

/// Prints the spans below a parent, in the order in which they began.
fn print_tree(spans: &[SpanData], parent: SpanId, depth: usize) {
    let mut children: Vec<&SpanData> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
    children.sort_by_key(|span| span.start_time);
    for span in children {
        let attributes = span.attributes.iter().filter(|pair| pair.key.as_str().starts_with("gen_ai."));
        let attributes: Vec<String> =
            attributes.map(|pair| format!("{}={}", pair.key, pair.value.as_str())).collect();
        println!("{}{} {{{}}}", "  ".repeat(depth), span.name, attributes.join(", "));
        print_tree(spans, span.span_context.span_id(), depth + 1);
    }
}
