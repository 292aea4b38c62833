//! The contract as OpenAPI: the paths by hand, the bodies from their types. And the schema of the wire, whose frames events
//! hold.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use serde_json::{Value as Json, json};

use super::forms::ok;
use crate::error::ERROR_CODES;
use crate::message::Message;
use crate::session_actor::answer::Answer;

/// An operation of the contract.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Name of the schema of its body.
    body: Option<&'static str>,
    /// Parameters of the address: `name` or `name:type`, with `!` in front if it is required.
    query: &'static str,
    /// Status of its answer, and the name of its schema.
    answer: (u16, Option<&'static str>),
}

impl Operation {
    const fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self { method, path, summary, body: None, query: "", answer: (200, None) }
    }

    const fn body(self, name: &'static str) -> Self {
        Self { body: Some(name), ..self }
    }

    const fn query(self, names: &'static str) -> Self {
        Self { query: names, ..self }
    }

    const fn answers(self, status: u16) -> Self {
        Self { answer: (status, None), ..self }
    }

    const fn gives(self, status: u16, name: &'static str) -> Self {
        Self { answer: (status, Some(name)), ..self }
    }
}

const OPERATIONS: &[Operation] = &[
    Operation::new("get", "/healthz", "Whether the process lives").gives(200, "Status"),
    Operation::new("get", "/readyz", "Whether it takes work").gives(200, "Status"),
    Operation::new("get", "/metrics", "Metrics for Prometheus; bearer keys only").answers(200),
    Operation::new("post", "/v1/login", "Sign a device in with a code").body("Login").answers(204),
    Operation::new("post", "/v1/logout", "Sign this device out").answers(204),
    Operation::new("get", "/v1/me", "Who is signed in").gives(200, "Me"),
    Operation::new("get", "/v1/tokens", "Devices and keys").gives(200, "Tokens"),
    Operation::new("post", "/v1/tokens", "A new key or login code").body("NewToken").gives(201, "NewSecret"),
    Operation::new("delete", "/v1/tokens/{id}", "Revoke a device or key").answers(204),
    Operation::new("patch", "/v1/people/{id}", "Rename a person").body("PersonChange").gives(200, "Person"),
    Operation::new("get", "/v1/sessions", "List and search sessions")
        .query("words folder state archived:boolean origin limit:integer cursor")
        .gives(200, "Sessions"),
    Operation::new("post", "/v1/sessions", "Create a session; the same key is the same session, with 200")
        .body("NewSession")
        .gives(201, "Session"),
    Operation::new("get", "/v1/sessions/{id}", "Read a session").gives(200, "Session"),
    Operation::new("patch", "/v1/sessions/{id}", "Change title or archive")
        .body("SessionChange")
        .gives(200, "Session"),
    Operation::new("delete", "/v1/sessions/{id}", "Delete a session with its transcript").answers(204),
    Operation::new(
        "get",
        "/v1/sessions/{id}/events",
        "Events by number; `wait` holds the answer until there is one",
    )
    .query("after:integer before:integer limit:integer wait:number")
    .gives(200, "Events"),
    Operation::new("get", "/v1/sessions/{id}/events/{seq}", "An event with its whole frame")
        .gives(200, "Event"),
    Operation::new(
        "post",
        "/v1/sessions/{id}/messages",
        "Send a message; the same key is the same message, with 200",
    )
    .body("Message")
    .gives(202, "Sent"),
    Operation::new("delete", "/v1/sessions/{id}/messages/{uuid}", "Take back a message that waits")
        .answers(204),
    Operation::new("post", "/v1/sessions/{id}/control", "A control request of the wire")
        .body("Control")
        .gives(200, "Reply"),
    Operation::new(
        "delete",
        "/v1/sessions/{id}/permission-rules",
        "End a permission rule that the session lists",
    )
    .body("PermissionRule")
    .answers(204),
    Operation::new("post", "/v1/sessions/{id}/continue", "Let an interrupted turn go on").answers(202),
    Operation::new("post", "/v1/sessions/{id}/fork", "Copy the conversation to a new session")
        .body("Fork")
        .gives(201, "Session"),
    Operation::new("post", "/v1/sessions/{id}/rewind", "Go back to before a message")
        .body("Rewind")
        .gives(200, "Rewound"),
    Operation::new("get", "/v1/sessions/{id}/export", "The session as md, jsonl or html")
        .query("format")
        .answers(200),
    Operation::new("get", "/v1/requests", "Requests to people")
        .query("state session limit:integer cursor")
        .gives(200, "Requests"),
    Operation::new("get", "/v1/requests/{id}", "Read a request").gives(200, "Request"),
    Operation::new("post", "/v1/requests/{id}/answer", "Answer a request")
        .body("Answer")
        .gives(200, "Request"),
    Operation::new("post", "/v1/uploads", "Upload a file for a message; its bytes are the body")
        .query("!name")
        .gives(201, "Upload"),
    Operation::new("get", "/v1/folders", "Folders below the roots")
        .query("under limit:integer cursor")
        .gives(200, "Folders"),
    Operation::new("get", "/v1/folders/trust", "What trust in a folder adds")
        .query("!folder")
        .gives(200, "FolderTrust"),
    Operation::new("put", "/v1/folders/trust", "Trust a folder's settings, or not")
        .body("Trust")
        .gives(200, "Folder"),
    Operation::new("get", "/v1/usage", "What turns have cost, as JSON or CSV")
        .query("from:integer to:integer by format")
        .gives(200, "Usage"),
    Operation::new("get", "/v1/audit", "Who did what")
        .query("since:integer limit:integer cursor")
        .gives(200, "Audit"),
    Operation::new("get", "/v1/ws", "WebSocket, subprotocol whimbrel.1").answers(101),
    Operation::new("get", "/v1/nexia", "WebSocket with Nexia's names").query("!session").answers(101),
    Operation::new("get", "/v1/wire.schema.json", "JSON Schema of the frames").answers(200),
    Operation::new("get", "/v1/openapi.json", "This document").answers(200),
];

/// The schemas of answers.
fn answer_schemas() -> Json {
    let object = |fields: &[(&str, Json)]| {
        let properties: serde_json::Map<String, Json> =
            fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        json!({"type": "object", "properties": properties})
    };
    let text = || json!({"type": "string"});
    let int = || json!({"type": "integer"});
    let flag = || json!({"type": "boolean"});
    let any = || json!({"type": "object"});
    let maybe = |kind: &str| json!({"type": kind, "nullable": true});
    let one = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let list = |item: Json| json!({"type": "array", "items": item});
    let page = |name: &str, item: Json| object(&[(name, list(item)), ("next", maybe("string"))]);
    let states = |names: &[&str]| json!({"type": "string", "enum": names});
    json!({
        "Status": object(&[("status", text())]),
        "Person": object(&[("id", text()), ("name", text()), ("role", text())]),
        "Me": object(&[("person", json!({"nullable": true, "allOf": [one("Person")]})), ("roots", list(text())),
            ("version", text()), ("api", int()), ("features", list(text()))]),
        "Token": object(&[("id", text()), ("kind", states(&["device", "key", "code", "file"])), ("name", text()),
            ("made_at", int()), ("seen_at", maybe("integer")), ("ends_at", maybe("integer")), ("current", flag())]),
        "Tokens": page("tokens", one("Token")),
        "NewSecret": object(&[("id", text()), ("secret", text()), ("ends_at", int())]),
        "Session": object(&[("id", text()), ("engine_session", text()), ("folder", text()), ("title", text()),
            ("state", states(&["resting", "running", "waiting", "interrupted", "failed", "elsewhere"])),
            ("mode", maybe("string")), ("model", maybe("string")), ("origin", text()), ("parent", maybe("string")),
            ("group", maybe("string")), ("head", int()), ("queued", int()), ("open_requests", int()),
            ("cost_usd", json!({"type": "number"})), ("trusted", flag()), ("made_at", int()), ("touched_at", int()),
            ("archived", flag()),
            ("hits", list(object(&[("seq", int()), ("text", text())])))]),
        "Sessions": page("sessions", one("Session")),
        "Event": object(&[("session", text()), ("seq", int()), ("at", int()),
            ("frame", json!({"type": "object", "description": "A frame of the wire, or of the host"})), ("cut", flag())]),
        "Events": object(&[("events", list(one("Event"))), ("head", int()), ("open", list(one("Request")))]),
        "Sent": object(&[("uuid", text()), ("seq", int()), ("state", text()), ("replayed", flag())]),
        "Reply": any(),
        "Rewound": object(&[("files", list(object(&[("path", text()),
            ("change", states(&["created", "removed", "restored"]))]))), ("session", one("Session")), ("undo", text())]),
        "Request": object(&[("id", text()), ("session", text()), ("session_title", text()), ("folder", text()),
            ("kind", states(&["permission", "question", "plan", "elicitation"])),
            ("state", states(&["open", "allowed", "denied", "withdrawn", "lost", "replaced"])), ("opened_at", int()),
            ("closed_at", maybe("integer")), ("by", json!({"nullable": true, "allOf": [one("Person")]})),
            ("request", any()), ("scopes", list(object(&[("scope", text()), ("rule", text())]))), ("answer", any()),
            ("by_request", text())]),
        "Requests": page("requests", one("Request")),
        "Upload": object(&[("id", text()), ("name", text()), ("type", text()), ("size", int())]),
        "Folder": object(&[("path", text()), ("name", text()), ("trusted", flag())]),
        "Folders": page("folders", one("Folder")),
        "FolderTrust": object(&[("folder", text()), ("trusted", flag()), ("adds", any())]),
        "Usage": object(&[("rows", list(object(&[("key", text()), ("turns", int()), ("input", int()), ("output", int()),
            ("cache_read", int()), ("cache_write", int()), ("cost_usd", json!({"type": "number"}))])))]),
        "Audit": page("audit", object(&[("id", text()), ("at", int()), ("by", any()), ("what", text()), ("body", any())])),
        "Error": object(&[("error", object(&[("code", states(&ERROR_CODES)), ("message", text()), ("detail", any())]))]),
    })
}

/// The parameters of an operation: parts of its path, then those of the address.
fn parameters_of(operation: &Operation) -> Vec<Json> {
    let parts = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parts =
        parts.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let query = operation.query.split_whitespace().map(|parameter| {
        let (is_required, parameter) = match parameter.strip_prefix('!') {
            Some(parameter) => (true, parameter),
            None => (false, parameter),
        };
        let (name, kind) = parameter.split_once(':').unwrap_or((parameter, "string"));
        json!({"name": name, "in": "query", "required": is_required, "schema": {"type": kind}})
    });
    parts.chain(query).collect()
}

pub(crate) async fn document() -> Response {
    ok(&build_document())
}

fn build_document() -> Json {
    let mut generator = SchemaGenerator::new(schemars::generate::SchemaSettings::openapi3());
    let mut schemas = json!({});
    let mut add = |name: &str, schema: schemars::Schema| schemas[name] = schema.to_value();
    add("Message", generator.subschema_for::<Message>());
    add("Answer", generator.subschema_for::<Answer>());
    add("NewSession", generator.subschema_for::<super::sessions::NewSession>());
    add("SessionChange", generator.subschema_for::<super::sessions::SessionChange>());
    add("Fork", generator.subschema_for::<super::sessions::Fork>());
    add("Rewind", generator.subschema_for::<super::sessions::RewindBody>());
    add("Login", generator.subschema_for::<super::tokens::Login>());
    add("NewToken", generator.subschema_for::<super::tokens::NewTokenBody>());
    add("PersonChange", generator.subschema_for::<super::tokens::PersonChange>());
    add("Trust", generator.subschema_for::<super::folders::Trust>());
    add("PermissionRule", generator.subschema_for::<super::permission_rules::PermissionRule>());
    schemas["Control"] =
        json!({"type": "object", "required": ["subtype"], "properties": {"subtype": {"type": "string"}}});
    if let (Some(schemas), Json::Object(answers)) = (schemas.as_object_mut(), answer_schemas()) {
        schemas.extend(answers);
    }
    for (name, schema) in generator.take_definitions(true) {
        schemas[name] = schema;
    }
    let mut paths = json!({});
    let content = |name: &str| json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}});
    for operation in OPERATIONS {
        let (status, answer) = operation.answer;
        let mut done = json!({"description": "Done"});
        if let Some(answer) = answer {
            done["content"] = content(answer);
        }
        let error = json!({"description": "An error", "content": content("Error")});
        let mut described =
            json!({"summary": operation.summary, "responses": {status.to_string(): done, "default": error}});
        let parameters = parameters_of(operation);
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        if let Some(body) = operation.body {
            described["requestBody"] = json!({"required": true, "content": content(body)});
        }
        paths[operation.path][operation.method] = described;
    }
    json!({
        "openapi": "3.0.3",
        "info": {"title": "whimbrel serve", "version": "1"},
        "security": [{"key": []}, {"cookie": []}],
        "components": {"schemas": schemas, "securitySchemes": {
            "key": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "whimbrel"},
        }},
        "paths": paths,
    })
}

/// A copy of `schema/wire.schema.json`, so that the crate can be packaged.
const WIRE_SCHEMA: &str = include_str!("../../wire.schema.json");

pub(crate) async fn wire_schema() -> Response {
    ([(header::CONTENT_TYPE, "application/schema+json")], WIRE_SCHEMA).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_of_the_wire_is_the_current_one() {
        let current = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/wire.schema.json");
        let current = std::fs::read_to_string(current).unwrap();
        assert!(WIRE_SCHEMA == current, "copy schema/wire.schema.json to crates/host/wire.schema.json");
    }

    #[test]
    fn bodies_are_described() {
        let document = build_document();
        let text = document.to_string();
        for Operation { path, body, answer: (_, answer), .. } in OPERATIONS {
            assert!(document["paths"].get(path).is_some(), "{path}");
            for name in [body, answer].into_iter().flatten() {
                assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
            }
        }
        assert!(!text.contains("#/$defs/"), "references must be those of OpenAPI");
    }
}
