//! Tools as a client sees them. The served program is tested in `cli/tests`.

use serde_json::{Value, json};
use whimbrel_tools::api::ToolEntry;
use whimbrel_wire::content::{Block, ResultContent, Source};

use super::convert;
use super::convert::{TOOLS, ToolAccess};
use crate::builtin_tools;
use crate::tool_scheduler::ToolCallResult;

#[test]
fn read_only_annotations_match_declared_effects() {
    let all = builtin_tools();
    for (name, access) in TOOLS {
        let tool = all.iter().find(|tool| tool.name() == name).unwrap_or_else(|| panic!("no {name}"));
        let is_read_only = matches!(access, ToolAccess::ReadOnly | ToolAccess::ReadOnlyNetwork);
        for example in tool.examples() {
            let Ok(effects) = tool.effects(&example.input) else { continue };
            assert!(!is_read_only || effects.is_parallel_safe(), "{name}: {}", example.title);
        }
        let listed = serde_json::to_value(convert::to_listed_tool(&ToolEntry::new(tool.clone()))).unwrap();
        assert_eq!(
            (&listed["name"], &listed["annotations"]["readOnlyHint"]),
            (&json!(name), &json!(is_read_only))
        );
        assert_eq!(listed["inputSchema"]["type"], "object", "{name}");
    }
}

#[test]
fn results_keep_their_content_type() {
    let result = |content, is_error| ToolCallResult {
        id: "call".into(),
        content,
        meta: Value::Null,
        is_error,
        command_exit: None,
        denial: None,
        notes: vec!["a note".into()],
        end_turn: None,
        hook_deferred_call: None,
    };
    let image = Source::Base64 { media_type: "image/png".into(), data: "AQID".into() };
    let document = Source::Base64 { media_type: "application/pdf".into(), data: "BAUG".into() };
    let blocks = vec![
        Block::text("seen"),
        Block::Image { source: image },
        Block::Document { source: document, title: None },
    ];
    let shown = |result| serde_json::to_value(convert::to_call_result(result)).unwrap();
    let good = shown(result(ResultContent::Blocks(blocks), false));
    assert_eq!(good["content"][0], json!({"type": "text", "text": "seen"}));
    assert_eq!(good["content"][1], json!({"type": "image", "data": "AQID", "mimeType": "image/png"}));
    assert_eq!(good["content"][2]["resource"]["blob"], "BAUG");
    assert_eq!(good["content"][3]["text"], "a note");
    assert_ne!(good["isError"], json!(true));
    let bad = shown(result(ResultContent::Text("<tool_use_error>No.</tool_use_error>".into()), true));
    assert_eq!((&bad["content"][0]["text"], &bad["isError"]), (&json!("No."), &json!(true)));
}
