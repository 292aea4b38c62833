//! Tests of listing.

use serde_json::json;

use super::*;

fn page(value: Value) -> Page<Tool> {
    parse_tools_page(serde_json::from_value(value).unwrap()).unwrap()
}

#[test]
fn an_invalid_tool_does_not_affect_the_others() {
    let valid = json!({"name": "a", "inputSchema": {"type": "object"}});
    let complete = page(json!({"tools": [valid], "nextCursor": "2"}));
    assert_eq!((complete.items.len(), complete.unreadable, complete.next.as_deref()), (1, 0, Some("2")));
    let partial = page(json!({"tools": [valid, {"name": 3}, {"name": "no schema"}, "x"], "nextCursor": "2"}));
    assert_eq!((partial.items.len(), partial.unreadable, partial.next.as_deref()), (1, 3, Some("2")));
    assert!(parse_tools_page(serde_json::from_value(json!({"tools": 5})).unwrap()).is_none());
    assert!(parse_tools_page(serde_json::from_value(json!({})).unwrap()).is_none());
}

#[test]
fn tools_are_kept_within_limits() {
    let tool = |value: Value| to_listed_tool(serde_json::from_value(value).unwrap());
    let (echo, note) = tool(json!({
        "name": "echo", "description": "Says it again", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
        "_meta": {"anthropic/requiresUserInteraction": true, "anthropic/alwaysLoad": false},
    }))
    .unwrap();
    assert!(echo.read_only && echo.interactive && echo.always_load == Some(false) && note.is_none());
    assert_eq!(
        serde_json::to_value(echo.info()).unwrap(),
        json!({"name": "echo", "description": "Says it again", "annotations": {"readOnly": true, "openWorld": false}})
    );
    let (long, _) = tool(json!({"name": "x", "description": "ä".repeat(3000), "inputSchema": {}})).unwrap();
    assert!(
        long.description.len() < limits::MAX_DESCRIPTION_BYTES + 20
            && long.description.ends_with("ä… (truncated)")
    );
    let large = json!({"name": "x", "inputSchema": {"type": "object", "title": "t".repeat(limits::MAX_SCHEMA_BYTES)}});
    let (large, note) = tool(large).unwrap();
    assert_eq!(large.schema.as_str(), r#"{"type":"object"}"#);
    assert!(large.description.contains("is not available") && note.unwrap().contains("of x is too large"));
    assert!(tool(json!({"name": " ", "inputSchema": {}})).is_err());
    assert!(
        tool(json!({"name": "x", "inputSchema": {"properties": {"a b": {}}}})).unwrap_err().contains("a b")
    );
}
