//! Error responses of real providers and their classification.

use ModelErrorKind::*;

use super::*;

/// Name, status, body, expected kind, expected message.
type Row = (&'static str, u16, &'static str, ModelErrorKind, &'static str);

const ROWS: &[Row] = &[
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
        "tools: Extra inputs are not permitted",
    ),
    (
        "Mistral: fields",
        422,
        r#"{"object":"error","message":{"detail":[{"loc":["body","messages",2,"reasoning_content"],"msg":"no"},{"loc":["body"],"msg":"not so"}]}}"#,
        InvalidRequest,
        "messages.2.reasoning_content: no; not so",
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

#[test]
fn status_and_text_determine_the_error_kind() {
    for (name, status, body, kind, message) in ROWS {
        let error = from_status(*status, body);
        assert_eq!((error.kind, &*error.message, error.status), (*kind, *message, Some(*status)), "{name}");
    }
}

#[test]
fn error_objects_are_recognized() {
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
fn stream_error_needs_no_status() {
    for (json, kind, message) in [
        (r#"{"error":{"message":"no","code":429}}"#, RateLimit, "no"),
        (r#"{"error":{"message":"no","code":"401"}}"#, Authentication, "no"),
        (r#"{"error":{"message":"no","type":"overloaded_error"}}"#, Overloaded, "no"),
        (r#"{"error":{"message":"no"}}"#, Server, "no"),
        (r#"{"error":{"code":7}}"#, Server, "The model's stream ended in an error."),
        (r#""plain words""#, Server, "plain words"),
    ] {
        let error = from_stream_value(&serde_json::from_str(json).unwrap());
        assert_eq!((error.kind, &*error.message), (kind, message), "{json}");
    }
}
