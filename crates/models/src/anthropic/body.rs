//! Request bodies of the Messages API, pure. Constant parts come first, so that consecutive requests share a byte
//! prefix and the provider's prompt cache applies.

use bytes::Bytes;
use serde_json::Value;

use super::extra_body::ExtraBody;
use crate::catalog::LONG_CONTEXT_SUFFIX;
use crate::prompt_cache::PromptCaching;
use crate::request::{Effort, OptionalPart, Request, TaskBudget, Thinking, ThinkingDisplay};

/// Smallest thinking limit that the API accepts.
const MIN_THINKING_TOKENS: u64 = 1024;

const INTERLEAVED_THINKING_BETA: &str = "interleaved-thinking-2025-05-14";
const EFFORT_BETA: &str = "effort-2025-11-24";
const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";
const LONG_CONTEXT_BETA: &str = "context-1m-2025-08-07";

/// What the user changes in every request of a client.
#[derive(Debug, Clone, Default)]
pub struct BodyOverrides {
    /// Additional fields.
    pub extra: ExtraBody,
    /// Which models get cache breakpoints.
    pub caching: PromptCaching,
}

/// Renders the body as parts to be sent in order, without the optional parts in `unsupported`.
/// The prefix and the frozen history are shared, not copied.
pub fn render(request: &Request, unsupported: &[OptionalPart], overrides: &BodyOverrides) -> Vec<Bytes> {
    let (prefix, parts) = match overrides.caching.is_enabled(&request.model) {
        true => (request.prefix.json().clone(), request.history.parts().to_vec()),
        false => (request.prefix.unmarked_json(), request.history.unmarked_parts()),
    };
    let mut head = render_head(request, unsupported);
    if !overrides.extra.is_empty() {
        head = overrides.extra.merge_into(head);
    }
    let mut pieces = Vec::with_capacity(parts.len() + 4);
    pieces.push(Bytes::from(head));
    pieces.push(prefix);
    pieces.push(Bytes::from_static(br#""messages":["#));
    pieces.extend(parts);
    pieces.push(Bytes::from_static(b"]}"));
    pieces
}

/// Renders the whole body as one value, for tests and scripts.
pub fn to_value(request: &Request) -> Value {
    serde_json::from_slice(&render(request, &[], &BodyOverrides::default()).concat()).unwrap_or_default()
}

/// Beta features of a request without duplicates and without those in `unsupported`.
pub fn betas<'a>(request: &'a Request, unsupported: &[OptionalPart]) -> Vec<&'a str> {
    let mut betas = vec![INTERLEAVED_THINKING_BETA];
    betas.extend(request.effort.map(|_| EFFORT_BETA));
    betas.extend(request.task_budget.map(|_| TASK_BUDGET_BETA));
    betas.extend(request.model.ends_with(LONG_CONTEXT_SUFFIX).then_some(LONG_CONTEXT_BETA));
    for beta in request.betas.iter().map(|beta| beta.trim()).filter(|beta| !beta.is_empty()) {
        if !betas.contains(&beta) {
            betas.push(beta);
        }
    }
    betas.retain(|beta| !unsupported.iter().any(|part| part.covers_beta(beta)));
    betas
}

fn render_head(request: &Request, unsupported: &[OptionalPart]) -> String {
    let model = request.model.trim_end_matches(LONG_CONTEXT_SUFFIX);
    let mut head = format!(r#"{{"model":{},"max_tokens":{},"#, Value::from(model), request.max_tokens);
    if !request.session_id.is_empty() && !unsupported.contains(&OptionalPart::Metadata) {
        let user = format!("whimbrel_session_{}", request.session_id);
        head += &format!(r#""metadata":{{"user_id":{}}},"#, Value::from(user));
    }
    if !unsupported.contains(&OptionalPart::Thinking) {
        let display =
            request.thinking_display.filter(|_| !unsupported.contains(&OptionalPart::ThinkingDisplay));
        head += &render_thinking(request.thinking, display, request.max_tokens);
    }
    head += &render_output_config(request, unsupported);
    head += r#""stream":true,"#;
    head
}

/// Renders effort and task budget, if present.
fn render_output_config(request: &Request, unsupported: &[OptionalPart]) -> String {
    let effort = request.effort.filter(|_| !unsupported.contains(&OptionalPart::Effort));
    let budget = request.task_budget.filter(|_| !unsupported.contains(&OptionalPart::TaskBudget));
    let effort = effort.map(|effort| format!(r#""effort":"{}""#, effort_name(effort)));
    let budget = budget.map(|TaskBudget { total, remaining }| {
        let remaining = remaining.map(|remaining| format!(r#","remaining":{remaining}"#)).unwrap_or_default();
        format!(r#""task_budget":{{"type":"tokens","total":{total}{remaining}}}"#)
    });
    let fields: Vec<String> = effort.into_iter().chain(budget).collect();
    if fields.is_empty() { String::new() } else { format!(r#""output_config":{{{}}},"#, fields.join(",")) }
}

/// Renders the thinking configuration. Its limit must be below the output limit; if that is too small, thinking is off.
fn render_thinking(thinking: Thinking, display: Option<ThinkingDisplay>, max_tokens: u64) -> String {
    let display = display.map(|display| format!(r#","display":"{display}""#)).unwrap_or_default();
    match thinking {
        Thinking::Enabled { budget } if budget > 0 && max_tokens > MIN_THINKING_TOKENS => {
            let budget = budget.clamp(MIN_THINKING_TOKENS, max_tokens - 1);
            format!(r#""thinking":{{"type":"enabled","budget_tokens":{budget}{display}}},"#)
        }
        Thinking::Adaptive => format!(r#""thinking":{{"type":"adaptive"{display}}},"#),
        Thinking::Enabled { .. } | Thinking::Disabled => String::new(),
    }
}

fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Xhigh => "xhigh",
        Effort::Max => "max",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use whimbrel_wire::{Block, RawJson, Role};

    use super::*;
    use crate::history::History;
    use crate::request::{RequestPrefix, ToolSpec};

    fn request(history: &mut History) -> Request {
        let input_schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        let tools = vec![ToolSpec { name: "Bash".into(), description: "runs".into(), input_schema }.into()];
        Request {
            max_tokens: 32_000,
            session_id: "s1".into(),
            ..Request::new(
                "claude-x",
                Arc::new(RequestPrefix::new(vec!["Be brief.".into()], tools)),
                history.snapshot(),
            )
        }
    }

    fn history_with(text: &str) -> History {
        let mut history = History::new();
        history.push(Role::User, &Block::text(text));
        history
    }

    #[test]
    fn request_has_all_parts_in_a_stable_order() {
        let request = Request {
            thinking: Thinking::Enabled { budget: 40_000 },
            effort: Some(Effort::Low),
            ..request(&mut history_with("hi"))
        };
        let mark = json!({"type": "ephemeral"});
        let expected = json!({
            "model": "claude-x",
            "max_tokens": 32000,
            "metadata": {"user_id": "whimbrel_session_s1"},
            "thinking": {"type": "enabled", "budget_tokens": 31999},
            "output_config": {"effort": "low"},
            "stream": true,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
            "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]}],
        });
        assert_eq!(to_value(&request).to_string(), expected.to_string());
    }

    #[test]
    fn thinking_fits_the_output_limit() {
        let table = [
            ("off", Thinking::Disabled, 32_000, Value::Null),
            ("as much as useful", Thinking::Adaptive, 32_000, json!({"type": "adaptive"})),
            (
                "within",
                Thinking::Enabled { budget: 3000 },
                32_000,
                json!({"type": "enabled", "budget_tokens": 3000}),
            ),
            (
                "above",
                Thinking::Enabled { budget: 9000 },
                5000,
                json!({"type": "enabled", "budget_tokens": 4999}),
            ),
            (
                "below the least",
                Thinking::Enabled { budget: 1 },
                5000,
                json!({"type": "enabled", "budget_tokens": 1024}),
            ),
            ("none at all", Thinking::Enabled { budget: 0 }, 5000, Value::Null),
            ("no room", Thinking::Enabled { budget: 9000 }, 1024, Value::Null),
        ];
        for (name, thinking, max_tokens, expected) in table {
            let request = Request { thinking, max_tokens, ..request(&mut history_with("hi")) };
            assert_eq!(to_value(&request)["thinking"], expected, "{name}");
        }
    }

    #[test]
    fn thinking_display_is_sent_only_with_thinking() {
        let (enabled, shown) = (Thinking::Enabled { budget: 3000 }, Some(ThinkingDisplay::Omitted));
        let table = [
            ("adaptive", Thinking::Adaptive, shown, json!({"type": "adaptive", "display": "omitted"})),
            (
                "within a limit",
                enabled,
                Some(ThinkingDisplay::Summarized),
                json!({"type": "enabled", "budget_tokens": 3000, "display": "summarized"}),
            ),
            ("nothing asked", Thinking::Adaptive, None, json!({"type": "adaptive"})),
            ("no thinking", Thinking::Disabled, shown, Value::Null),
        ];
        for (name, thinking, thinking_display, expected) in table {
            let request = Request { thinking, thinking_display, ..request(&mut history_with("hi")) };
            assert_eq!(to_value(&request)["thinking"], expected, "{name}");
        }
        let request = Request {
            thinking: Thinking::Adaptive,
            thinking_display: shown,
            ..request(&mut history_with("hi"))
        };
        let body = render(&request, &[OptionalPart::ThinkingDisplay], &BodyOverrides::default()).concat();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["thinking"], json!({"type": "adaptive"}), "refused");
    }

    #[test]
    fn betas_are_listed_once() {
        let mut request = request(&mut history_with("hi"));
        assert_eq!(betas(&request, &[]), [INTERLEAVED_THINKING_BETA]);
        request.betas = vec!["new-1".into(), " ".into(), "new-1".into(), INTERLEAVED_THINKING_BETA.into()];
        request.effort = Some(Effort::High);
        request.model = "claude-x[1m]".into();
        assert_eq!(
            betas(&request, &[]),
            [INTERLEAVED_THINKING_BETA, EFFORT_BETA, LONG_CONTEXT_BETA, "new-1"]
        );
        assert_eq!(to_value(&request)["model"], "claude-x");
    }

    #[test]
    fn task_budget_is_sent_beside_the_effort() {
        let mut request = request(&mut history_with("hi"));
        request.task_budget = Some(TaskBudget { total: 50_000, remaining: None });
        let budget = json!({"type": "tokens", "total": 50_000});
        assert_eq!(to_value(&request)["output_config"], json!({"task_budget": budget}));
        assert_eq!(betas(&request, &[]), [INTERLEAVED_THINKING_BETA, TASK_BUDGET_BETA]);
        request.effort = Some(Effort::Low);
        assert_eq!(to_value(&request)["output_config"], json!({"effort": "low", "task_budget": budget}));
        request.task_budget = Some(TaskBudget { total: 50_000, remaining: Some(7) });
        assert_eq!(to_value(&request)["output_config"]["task_budget"]["remaining"], 7);
    }

    #[test]
    fn rejected_parts_are_omitted() {
        let mut request = request(&mut history_with("hi"));
        request.effort = Some(Effort::High);
        request.thinking = Thinking::Adaptive;
        assert_eq!(betas(&request, &[OptionalPart::Beta(INTERLEAVED_THINKING_BETA.into())]), [EFFORT_BETA]);
        assert_eq!(betas(&request, &[OptionalPart::AllBetas]), [""; 0]);
        let unsupported = [OptionalPart::Metadata, OptionalPart::Thinking, OptionalPart::Effort];
        let body = render(&request, &unsupported, &BodyOverrides::default()).concat();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["model", "max_tokens", "stream", "system", "tools", "messages"]);
    }

    #[test]
    fn caching_can_be_disabled_for_a_model() {
        let switch = |name: &str| (name == "DISABLE_PROMPT_CACHING_OPUS").then(|| "1".to_owned());
        let overrides =
            BodyOverrides { caching: PromptCaching::from_env(switch), ..BodyOverrides::default() };
        let mut history = history_with("one");
        history.snapshot();
        history.push(Role::Assistant, &Block::text("two"));
        let input = json!({"a": 1, "cache_control": {"type": "ephemeral"}});
        history.push(Role::Assistant, &Block::ToolUse { id: "c".into(), name: "x".into(), input });
        history.push(Role::User, &Block::text("three"));
        let mut request = request(&mut history);
        let count_marks = |request: &Request| {
            let body = render(request, &[], &overrides).concat();
            let body: Value = serde_json::from_slice(&body).unwrap();
            body.to_string().matches("cache_control").count()
        };
        assert_eq!(count_marks(&request), 4, "another model: system, two messages, and the tool input");
        request.model = "claude-opus-x".into();
        assert_eq!(count_marks(&request), 1, "only the tool input");
    }

    #[test]
    fn consecutive_requests_share_a_byte_prefix() {
        let bare = |request: &Request| {
            let text = String::from_utf8(render(request, &[], &BodyOverrides::default()).concat()).unwrap();
            text.replace(crate::prompt_cache::CACHE_CONTROL, "").trim_end_matches("]}]}").to_owned()
        };
        let mut history = history_with("one");
        let first = bare(&request(&mut history));
        history.push(Role::Assistant, &Block::text("two"));
        history.push(Role::User, &Block::text("three"));
        assert!(bare(&request(&mut history)).starts_with(&first));
    }
}
