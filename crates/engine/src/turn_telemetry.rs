//! The span of a turn, and its figures.

use std::time::Instant;

use whimbrel_os::clock;
use whimbrel_tools::telemetry::{self, AgentEnd, AgentSpan, AgentStart, ContentCapture, PromptSpans};

use crate::agent::Agent;
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;

/// A turn that is being traced.
pub(crate) struct TurnTelemetry {
    span: AgentSpan,
    started_at: Instant,
    /// Input and output tokens of the agent before the turn.
    tokens_before: (u64, u64),
    cost_before: f64,
}

impl TurnTelemetry {
    /// The turn of the main agent that answers these prompts.
    pub(crate) fn for_prompts(agent: &Agent, spans: &PromptSpans, prompts: &[String]) -> Self {
        Self::new(agent, None, "main", |start, content| {
            AgentSpan::for_prompts(spans, prompts, start, content)
        })
    }

    /// A turn of a subagent or teammate.
    pub(crate) fn for_subagent(agent: &Agent, id: &str, name: &str) -> Self {
        Self::new(agent, Some(id), name, AgentSpan::for_subagent)
    }

    fn new(
        agent: &Agent,
        agent_id: Option<&str>,
        agent_name: &str,
        span: impl FnOnce(AgentStart<'_>, ContentCapture) -> AgentSpan,
    ) -> Self {
        let workspace = &agent.tool_env.context.workspace;
        let (session_id, model) = (agent.frame_sender.session_id(), agent.model());
        let start = AgentStart { session_id: &session_id, agent_id, agent_name, model: &model };
        Self {
            span: span(start, ContentCapture::from_env(|name| workspace.variable(name))),
            started_at: clock::monotonic(),
            tokens_before: own_tokens(agent),
            cost_before: agent.ledger.own_cost_usd(),
        }
    }

    /// Runs the turn in its span.
    pub(crate) fn run<F: Future>(&self, turn: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.run(turn)
    }

    /// Records how the turn has ended.
    pub(crate) fn record_end(&self, agent: &Agent, outcome: &TurnOutcome) {
        telemetry::record_turn(clock::monotonic() - self.started_at);
        let ((input, output), before) = (own_tokens(agent), self.tokens_before);
        self.span.record_end(AgentEnd {
            input_tokens: input.saturating_sub(before.0),
            output_tokens: output.saturating_sub(before.1),
            cost_usd: agent.ledger.own_cost_usd() - self.cost_before,
            error: error_type(outcome.end),
            text: &outcome.text,
        });
    }
}

/// Input and output tokens of an agent so far.
fn own_tokens(agent: &Agent) -> (u64, u64) {
    let usage = agent.ledger.own_usage();
    (usage.input_tokens, usage.output_tokens)
}

/// Kind of a failure, for spans.
fn error_type(end: TurnEnd) -> Option<&'static str> {
    Some(match end {
        TurnEnd::Done | TurnEnd::HookStopped | TurnEnd::HookDeferred => return None,
        TurnEnd::AbortedStreaming | TurnEnd::AbortedTools => "interrupted",
        TurnEnd::MaxTurns => "max_turns",
        TurnEnd::ApiError => "api_error",
        TurnEnd::Refused => "refused",
        TurnEnd::OutputLimit => "output_limit",
        TurnEnd::Stalled => "stalled",
        TurnEnd::NoStructuredOutput => "no_structured_output",
        TurnEnd::BudgetExceeded => "budget_exceeded",
        TurnEnd::ContextTooLong => "context_too_long",
        TurnEnd::Conflict => "conflict",
    })
}
