//! What an endpoint means when it refuses, pure. Providers share the outline of their error objects; the kinds, codes
//! and phrases differ.

use serde_json::Value;

use crate::fault::{Fault, FaultKind};

/// An answer with an error status, or an error object in a stream, as far as it could be read.
struct Refusal {
    status: Option<u16>,
    /// Type and code, in the provider's words.
    words: Vec<String>,
    message: String,
}

/// Whether a JSON value is an error and not an answer.
pub(super) fn is_error(value: &Value) -> bool {
    let named = match &value["error"] {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(failed) => *failed,
        Value::Number(_) | Value::Array(_) => true,
    };
    named || value["object"] == "error" || value["type"] == "error"
}

/// The fault for an error object where an answer should be.
pub(super) fn inside_stream(value: &Value) -> Fault {
    let refusal = Refusal::read(None, value);
    let kind = refusal.kind(FaultKind::Server);
    let silent = refusal.message.is_empty();
    Fault::new(
        kind,
        if silent { "The model's stream ended in an error.".to_owned() } else { refusal.message },
    )
}

/// The fault for an answer with an error status.
pub(super) fn of_status(status: u16, body: &str) -> Fault {
    let value = serde_json::from_str(body).unwrap_or(Value::Null);
    let mut refusal = Refusal::read(Some(status), &value);
    if refusal.message.is_empty() {
        refusal.message = plain(status, body);
    }
    Fault { status: Some(status), ..Fault::new(refusal.kind(FaultKind::InvalidRequest), refusal.message) }
}

/// The body if it is a line of text, else only the status: nobody reads a page of HTML in an error.
fn plain(status: u16, body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() || line.starts_with(['<', '{', '[']) {
        return format!("The model's endpoint answered with status {status}.");
    }
    format!(
        "The model's endpoint answered with status {status}: {}",
        line.chars().take(300).collect::<String>()
    )
}

impl Refusal {
    fn read(status: Option<u16>, value: &Value) -> Self {
        // Some (LiteLLM, older vLLM) do not wrap the error, some (Google) wrap it in a list.
        let value = value.get(0).unwrap_or(value);
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let code = &error["code"];
        let number =
            code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok());
        let words = [&error["type"], code, &value["code"]].into_iter().filter_map(Value::as_str);
        Self {
            status: status.or(number.filter(|code| (400..600).contains(code))),
            words: words.map(str::to_ascii_lowercase).collect(),
            message: message(value, error),
        }
    }

    /// The kind of the fault, or `otherwise`:
    /// 1. what the type or code says; 2. what the message says; 3. what the status says.
    fn kind(&self, otherwise: FaultKind) -> FaultKind {
        let said = self.message.to_ascii_lowercase();
        let by_word = || self.words.iter().find_map(|word| of_word(word));
        by_word()
            .or_else(|| self.of_message(&said))
            .or_else(|| self.status.and_then(of_code))
            .unwrap_or(otherwise)
    }

    fn of_message(&self, said: &str) -> Option<FaultKind> {
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
        // Where waiting is asked for, the same words speak of a rate.
        let may_wait = self.status == Some(429);
        if says(OUT_OF_MONEY) {
            Some(FaultKind::Billing)
        } else if says(OUT_OF_ALLOWANCE) {
            Some(FaultKind::SpendLimit)
        } else if !may_wait && says(TOO_LONG) {
            Some(FaultKind::PromptTooLong)
        } else if !may_wait && said.contains("model") && says(NO_SUCH_MODEL) {
            Some(FaultKind::ModelNotFound)
        } else {
            None
        }
    }
}

const OUT_OF_MONEY: &[&str] =
    &["exceeded your current quota", "insufficient balance", "insufficient credits"];

const OUT_OF_ALLOWANCE: &[&str] = &["billing hard limit", "reached your usage limit", "spending limit"];

const TOO_LONG: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "greater than the context length",
    "context window",
    "exceeds the available context size",
    "exceeded model token limit",
    "prompt is too long",
    "maximum prompt length",
    "input token count exceeds",
];

const NO_SUCH_MODEL: &[&str] = &[
    "not found",
    "does not exist",
    "not exist",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
];

/// Types and codes that say what is wrong, whatever the status.
fn of_word(word: &str) -> Option<FaultKind> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" => FaultKind::PromptTooLong,
        "insufficient_quota" | "exceeded_current_quota_error" | "billing_not_active" => FaultKind::Billing,
        "billing_hard_limit_reached" | "usage_limit_reached" => FaultKind::SpendLimit,
        "model_not_found" | "not_found_model" => FaultKind::ModelNotFound,
        "rate_limit_exceeded" | "rate_limit_error" | "rate_limit_reached_error" => FaultKind::RateLimit,
        "engine_overloaded_error" | "overloaded_error" | "slow_down" => FaultKind::Overloaded,
        "invalid_api_key" | "authentication_error" | "invalid_authentication_error" => {
            FaultKind::Authentication
        }
        _ => return None,
    })
}

fn of_code(status: u16) -> Option<FaultKind> {
    Some(match status {
        401 => FaultKind::Authentication,
        402 => FaultKind::Billing,
        403 => FaultKind::Forbidden,
        404 => FaultKind::ModelNotFound,
        408 | 409 | 425 => FaultKind::Server,
        413 => FaultKind::TooLarge,
        429 => FaultKind::RateLimit,
        503 | 529 => FaultKind::Overloaded,
        400..500 => FaultKind::InvalidRequest,
        500..600 => FaultKind::Server,
        _ => return None,
    })
}

/// What was said, wherever it stands; with what an upstream provider said (OpenRouter), where that is told.
fn message(value: &Value, error: &Value) -> String {
    let said = [
        &error["message"],
        &value["error"],
        &value["message"],
        &value["detail"],
        &value["detail"][0]["msg"],
        value,
    ];
    let said = said.into_iter().find_map(Value::as_str).unwrap_or_default();
    match error["metadata"]["raw"].as_str() {
        Some(upstream) if !upstream.is_empty() => format!("{said}: {upstream}"),
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_its_text_name_the_fault() {
        use FaultKind::*;
        let rows = [
            (
                "OpenAI: key",
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
                Authentication,
                "Incorrect API key provided: sk-x.",
            ),
            (
                "OpenAI: region",
                403,
                r#"{"error":{"code":"unsupported_country_region_territory","message":"Country not supported","type":"request_forbidden"}}"#,
                Forbidden,
                "Country not supported",
            ),
            (
                "OpenAI: model",
                404,
                r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
                ModelNotFound,
                "The model `gpt-9` does not exist or you do not have access to it.",
            ),
            (
                "OpenAI: rate",
                429,
                r#"{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
                RateLimit,
                "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000",
            ),
            (
                "OpenAI: quota",
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                Billing,
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            (
                "OpenAI: hard limit",
                400,
                r#"{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}"#,
                SpendLimit,
                "Billing hard limit has been reached",
            ),
            (
                "OpenAI: too long",
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                PromptTooLong,
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            ),
            (
                "OpenAI: output limit",
                400,
                r#"{"error":{"message":"max_tokens is too large: 64000. This model supports at most 16384 completion tokens.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}"#,
                InvalidRequest,
                "max_tokens is too large: 64000. This model supports at most 16384 completion tokens.",
            ),
            (
                "OpenAI: server",
                500,
                r#"{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}"#,
                Server,
                "The server had an error",
            ),
            (
                "OpenAI: overload",
                503,
                r#"{"error":{"message":"Slow down","type":"service_unavailable_error","code":"slow_down"}}"#,
                Overloaded,
                "Slow down",
            ),
            (
                "Kimi: too long",
                400,
                r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)","type":"invalid_request_error"}}"#,
                PromptTooLong,
                "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
            ),
            (
                "Kimi: overload",
                429,
                r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#,
                Overloaded,
                "The engine is currently overloaded, please try again later",
            ),
            (
                "Kimi: quota",
                429,
                r#"{"error":{"message":"Your account is suspended","type":"exceeded_current_quota_error"}}"#,
                Billing,
                "Your account is suspended",
            ),
            (
                "Kimi: allowance",
                403,
                r#"{"error":{"message":"You've reached your usage limit for this billing cycle","type":"access_terminated_error"}}"#,
                SpendLimit,
                "You've reached your usage limit for this billing cycle",
            ),
            (
                "Kimi: model",
                404,
                r#"{"error":{"message":"Not found the model kimi-9 or Permission denied","type":"resource_not_found_error"}}"#,
                ModelNotFound,
                "Not found the model kimi-9 or Permission denied",
            ),
            (
                "DeepSeek: money",
                402,
                r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
                Billing,
                "Insufficient Balance",
            ),
            (
                "DeepSeek: model",
                400,
                r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
                ModelNotFound,
                "Model Not Exist",
            ),
            (
                "Ollama: model",
                404,
                r#"{"error":{"message":"model \"llama9\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
                ModelNotFound,
                "model \"llama9\" not found, try pulling it first",
            ),
            (
                "Ollama: no tools",
                400,
                r#"{"error":{"message":"registry.ollama.ai/library/gemma does not support tools","type":"api_error"}}"#,
                InvalidRequest,
                "registry.ollama.ai/library/gemma does not support tools",
            ),
            (
                "vLLM: too long, not wrapped",
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).","type":"BadRequestError","param":null,"code":400}"#,
                PromptTooLong,
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
            ),
            (
                "vLLM: model",
                404,
                r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}}"#,
                ModelNotFound,
                "The model `x` does not exist.",
            ),
            (
                "llama.cpp: too long",
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
                PromptTooLong,
                "the request exceeds the available context size, try increasing it",
            ),
            (
                "llama.cpp: loading",
                503,
                r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
                Overloaded,
                "Loading model",
            ),
            (
                "LM Studio: too long",
                400,
                r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
                PromptTooLong,
                "The number of tokens to keep from the initial prompt is greater than the context length.",
            ),
            (
                "OpenRouter: model",
                400,
                r#"{"error":{"message":"x/y is not a valid model ID","code":400},"user_id":"u"}"#,
                ModelNotFound,
                "x/y is not a valid model ID",
            ),
            (
                "OpenRouter: upstream",
                502,
                r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream died","provider_name":"P"}}}"#,
                Server,
                "Provider returned error: upstream died",
            ),
            (
                "FastAPI: field",
                422,
                r#"{"detail":[{"loc":["body","tools"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}"#,
                InvalidRequest,
                "Extra inputs are not permitted",
            ),
            (
                "Google: a list",
                400,
                r#"[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}]"#,
                PromptTooLong,
                "The input token count exceeds the maximum number of tokens allowed",
            ),
            (
                "too large",
                413,
                "Payload Too Large\n",
                TooLarge,
                "The model's endpoint answered with status 413: Payload Too Large",
            ),
            ("slow", 408, "", Server, "The model's endpoint answered with status 408."),
            (
                "a page",
                502,
                "<html><body>Bad gateway</body></html>",
                Server,
                "The model's endpoint answered with status 502.",
            ),
            ("sent elsewhere", 302, "", InvalidRequest, "The model's endpoint answered with status 302."),
        ];
        for (name, status, body, kind, message) in rows {
            let fault = of_status(status, body);
            assert_eq!((fault.kind, &*fault.message, fault.status), (kind, message, Some(status)), "{name}");
        }
    }

    #[test]
    fn an_error_is_told_from_an_answer() {
        for (json, expected) in [
            (r#"{"choices":[]}"#, false),
            (r#"{"choices":[],"error":null}"#, false),
            (r#"{"choices":[],"error":{}}"#, false),
            (r#"{"object":"chat.completion.chunk"}"#, false),
            (r#"{"error":"no"}"#, true),
            (r#"{"error":{"message":"no"}}"#, true),
            (r#"{"object":"error","message":"no"}"#, true),
            (r#"{"type":"error","message":"no"}"#, true),
        ] {
            assert_eq!(is_error(&serde_json::from_str(json).unwrap()), expected, "{json}");
        }
    }

    #[test]
    fn an_error_in_a_stream_needs_no_status() {
        for (json, kind, message) in [
            (r#"{"error":{"message":"no","code":429}}"#, FaultKind::RateLimit, "no"),
            (r#"{"error":{"message":"no","code":"401"}}"#, FaultKind::Authentication, "no"),
            (r#"{"error":{"message":"no","type":"overloaded_error"}}"#, FaultKind::Overloaded, "no"),
            (r#"{"error":{"message":"no"}}"#, FaultKind::Server, "no"),
            (r#"{"error":{"code":7}}"#, FaultKind::Server, "The model's stream ended in an error."),
            (r#""plain words""#, FaultKind::Server, "plain words"),
        ] {
            let fault = inside_stream(&serde_json::from_str(json).unwrap());
            assert_eq!((fault.kind, &*fault.message), (kind, message), "{json}");
        }
    }
}
