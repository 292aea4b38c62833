//! The contract as OpenAPI: the paths by hand, the bodies from their types. And the schema of the wire, whose frames events
//! hold.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use serde_json::{Value as Json, json};

use super::forms::ok;
use crate::message::Message;
use crate::session_actor::answer::Answer;

/// A path: method, path, what it does, name of its body's schema.
const OPERATIONS: &[(&str, &str, &str, Option<&str>)] = &[
    ("get", "/healthz", "Whether the process lives", None),
    ("get", "/readyz", "Whether it takes work", None),
    ("get", "/metrics", "Metrics for Prometheus; bearer keys only", None),
    ("post", "/v1/login", "Sign a device in with a code", Some("Login")),
    ("post", "/v1/logout", "Sign this device out", None),
    ("get", "/v1/me", "Who is signed in", None),
    ("get", "/v1/tokens", "Devices and keys", None),
    ("post", "/v1/tokens", "A new key or login code", Some("NewToken")),
    ("delete", "/v1/tokens/{id}", "Revoke a device or key", None),
    ("patch", "/v1/people/{id}", "Rename a person", Some("PersonChange")),
    ("get", "/v1/sessions", "List and search sessions", None),
    ("post", "/v1/sessions", "Create a session", Some("NewSession")),
    ("get", "/v1/sessions/{id}", "Read a session", None),
    ("patch", "/v1/sessions/{id}", "Change title or archive", Some("SessionChange")),
    ("delete", "/v1/sessions/{id}", "Delete a session with its transcript", None),
    ("get", "/v1/sessions/{id}/events", "Events by number; `wait` holds the answer until there is one", None),
    ("get", "/v1/sessions/{id}/events/{seq}", "An event with its whole frame", None),
    ("post", "/v1/sessions/{id}/messages", "Send a message", Some("Message")),
    ("delete", "/v1/sessions/{id}/messages/{uuid}", "Take back a message that waits", None),
    ("post", "/v1/sessions/{id}/control", "A control request of the wire", Some("Control")),
    ("post", "/v1/sessions/{id}/continue", "Let an interrupted turn go on", None),
    ("post", "/v1/sessions/{id}/fork", "Copy the conversation to a new session", Some("Fork")),
    ("post", "/v1/sessions/{id}/rewind", "Go back to before a message", Some("Rewind")),
    ("get", "/v1/sessions/{id}/export", "The session as md, jsonl or html", None),
    ("get", "/v1/requests", "Requests to people", None),
    ("get", "/v1/requests/{id}", "Read a request", None),
    ("post", "/v1/requests/{id}/answer", "Answer a request", Some("Answer")),
    ("post", "/v1/uploads", "Upload a file for a message", None),
    ("get", "/v1/folders", "Folders below the roots", None),
    ("put", "/v1/folders/trust", "Trust a folder's settings, or not", Some("Trust")),
    ("get", "/v1/usage", "What turns have cost, as JSON or CSV", None),
    ("get", "/v1/audit", "Who did what", None),
    ("get", "/v1/ws", "WebSocket, subprotocol whimbrel.1", None),
    ("get", "/v1/nexia", "WebSocket with Nexia's names", None),
    ("get", "/v1/wire.schema.json", "JSON Schema of the frames", None),
    ("get", "/v1/openapi.json", "This document", None),
];

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
    schemas["Control"] =
        json!({"type": "object", "required": ["subtype"], "properties": {"subtype": {"type": "string"}}});
    schemas["Error"] = json!({
        "type": "object", "properties": {"error": {"type": "object", "properties": {
            "code": {"type": "string"}, "message": {"type": "string"}, "detail": {"type": "object"}}}},
    });
    for (name, schema) in generator.take_definitions(true) {
        schemas[name] = schema;
    }
    let mut paths = json!({});
    for (method, path, summary, body) in OPERATIONS {
        let error = json!({"description": "An error", "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"}}}});
        let mut operation =
            json!({"summary": summary, "responses": {"2XX": {"description": "Done"}, "default": error}});
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters: Json = names
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        if parameters != json!([]) {
            operation["parameters"] = parameters;
        }
        if let Some(body) = body {
            let schema = json!({"$ref": format!("#/components/schemas/{body}")});
            operation["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        paths[*path][*method] = operation;
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
        for (_, path, _, body) in OPERATIONS {
            assert!(document["paths"].get(path).is_some(), "{path}");
            if let Some(body) = body {
                assert!(document["components"]["schemas"].get(body).is_some(), "{body}");
            }
        }
        assert!(!text.contains("#/$defs/"), "references must be those of OpenAPI");
    }
}
