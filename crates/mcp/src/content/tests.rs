//! Tests of result conversion.

use serde_json::json;
use tempfile::TempDir;

use super::*;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn output_limits(dir: &TempDir) -> OutputLimits {
    OutputLimits { output_dir: dir.path().join("spill"), max_text_bytes: 1000 }
}

async fn convert(dir: &TempDir, result: Value) -> Result<Vec<Block>, FailedCall> {
    convert_call_result(serde_json::from_value(result).unwrap(), output_limits(dir)).await
}

/// Result blocks as JSON.
async fn blocks_json(dir: &TempDir, result: Value) -> Vec<Value> {
    let blocks = convert(dir, result).await.unwrap();
    blocks.iter().map(|block| serde_json::to_value(block).unwrap()).collect()
}

#[tokio::test]
async fn texts_and_images_are_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let text = json!({"type": "text", "text": "look"});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let blocks = blocks_json(&dir, json!({"content": [text, image]})).await;
    assert_eq!(blocks[0], text);
    assert_eq!(
        blocks[1],
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
    );
    // The declared MIME type is ignored.
    let mislabeled = json!({"content": [{"type": "image", "data": PNG, "mimeType": "image/tiff"}]});
    assert_eq!(blocks_json(&dir, mislabeled).await[0], blocks[1]);
    let embedded =
        json!({"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": PNG}});
    assert_eq!(blocks_json(&dir, json!({"content": [embedded]})).await[0], blocks[1]);
}

#[tokio::test]
async fn invalid_content_becomes_text() {
    let dir = tempfile::tempdir().unwrap();
    let not_an_image = BASE64_STANDARD.encode("not an image");
    for (name, block, expected) in [
        (
            "not valid base64",
            json!({"type": "image", "data": "%%%", "mimeType": "image/png"}),
            "not valid base64",
        ),
        (
            "not an image",
            json!({"type": "image", "data": not_an_image, "mimeType": "image/png"}),
            "not shown",
        ),
        (
            "truncated image",
            json!({"type": "image", "data": PNG[..40], "mimeType": "image/png"}),
            "not shown",
        ),
        ("invalid audio", json!({"type": "audio", "data": "!", "mimeType": "audio/wav"}), "not readable"),
        ("unknown", json!({"type": "other", "a": 1}), "unknown type] {\"type\":\"other\""),
        ("incomplete block", json!({"type": "text"}), "unknown type"),
    ] {
        let blocks = blocks_json(&dir, json!({"content": [block, {"type": "text", "text": "rest"}]})).await;
        assert!(blocks[0]["text"].as_str().unwrap().contains(expected), "{name}: {blocks:?}");
        assert_eq!(blocks[1]["text"], "rest", "{name}");
    }
}

#[tokio::test]
async fn unreadable_content_is_saved_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = BASE64_STANDARD.encode("RIFF");
    for (block, prefix, suffix) in [
        (
            json!({"type": "audio", "data": data, "mimeType": "audio/wav"}),
            "[audio: audio/wav, 4 bytes, saved to ",
            "wav]",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a://b", "blob": data}}),
            "[resource a://b: application/octet-stream, 4 bytes, saved to ",
            "bin]",
        ),
    ] {
        let blocks = blocks_json(&dir, json!({"content": [block]})).await;
        let text = blocks[0]["text"].as_str().unwrap();
        let path = text.strip_prefix(prefix).unwrap().strip_suffix(']').unwrap();
        assert!(text.ends_with(suffix), "{text}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "RIFF");
    }
}

#[tokio::test]
async fn resources_and_structured_content_become_text() {
    let dir = tempfile::tempdir().unwrap();
    let text = json!({"type": "resource", "resource": {"uri": "a://b", "text": "inside"}});
    let link = json!({"type": "resource_link", "uri": "a://c", "name": "c", "description": "more"});
    let blocks = blocks_json(&dir, json!({"content": [text, link]})).await;
    assert_eq!(blocks[0]["text"], "[resource a://b]\ninside");
    assert_eq!(blocks[1]["text"], "[resource a://c (c): more; ReadMcpResourceTool reads it]");
    let structured = json!({"structuredContent": {"sum": 5}});
    assert_eq!(blocks_json(&dir, structured).await[0]["text"], r#"{"sum":5}"#);
    let both = json!({"content": [{"type": "text", "text": "five"}], "structuredContent": {"sum": 5}});
    assert_eq!(blocks_json(&dir, both).await, [json!({"type": "text", "text": "five"})]);
    assert_eq!(blocks_json(&dir, json!({"content": []})).await[0]["text"], "(no output)");
    assert_eq!(blocks_json(&dir, json!({})).await[0]["text"], "(no output)");
}

#[tokio::test]
async fn error_results_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    for (name, result, expected) in [
        ("with text", json!({"isError": true, "content": [text("a"), text("b")]}), "a\nb"),
        (
            "without text",
            json!({"isError": true, "content": []}),
            "The tool failed without an error message.",
        ),
        (
            "with an unknown block",
            json!({"isError": true, "content": [text("a"), {"type": "other"}]}),
            "a\n[content of",
        ),
        ("no result", json!({"weather": "fine"}), "not a tool result: {\"weather\":\"fine\"}"),
        ("result of another request", json!({"tools": []}), "not a tool result"),
    ] {
        let Err(failed) = convert(&dir, result).await else { panic!("{name}") };
        assert!(failed.text().contains(expected) && failed.is_text(), "{name}: {failed:?}");
    }
}

#[tokio::test]
async fn error_result_keeps_its_images() {
    let dir = tempfile::tempdir().unwrap();
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    for (text, expected) in [("why", "why"), (" ", NO_ERROR_MESSAGE)] {
        let content = json!([{"type": "text", "text": text}, image]);
        let failed = convert(&dir, json!({"isError": true, "content": content})).await.unwrap_err();
        assert_eq!((failed.text().as_str(), failed.is_text()), (expected, false));
        let kinds: Vec<bool> = failed.into_content().iter().map(|b| block_text(b).is_some()).collect();
        assert_eq!(kinds, [true, false]);
    }
}

#[tokio::test]
async fn long_text_is_truncated_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let line = "0123456789\n".repeat(5000);
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = json!([{"type": "text", "text": "first"}, image, {"type": "text", "text": line}]);
    let blocks = blocks_json(&dir, json!({"content": content})).await;
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(text.len() < 14_000 && text.contains("<persisted-output>") && text.contains("first"), "{text}");
    assert_eq!(blocks[1]["type"], "image");
    let file = std::fs::read_dir(dir.path().join("spill")).unwrap().next().unwrap().unwrap().path();
    assert!(text.contains(file.to_str().unwrap()));
    assert_eq!(std::fs::read_to_string(file).unwrap(), format!("first\n{line}\n"));
}
