//! Replaces recorded ids in the events of a reply by current ones. Pure.

use serde_json::Value;
use whimbrel_wire::RawJson;

use super::ids::{self, IdMap};

/// Event fields that stream a text in fragments. Thinking is signed, so it is left unchanged.
const STREAMED_FIELDS: [&str; 2] = ["/delta/text", "/delta/partial_json"];

/// Returns the events with current ids. An id may span several fragments of a text, so if one is replaced, the first
/// fragment holds the whole text.
pub(super) fn substitute_ids(events: &[RawJson], now: &IdMap) -> Vec<RawJson> {
    if now.is_identity() {
        return events.to_vec();
    }
    let mut told: Vec<Value> = events.iter().map(|event| event.decode().unwrap_or_default()).collect();
    for field in STREAMED_FIELDS {
        for block in blocks_with_field(&told, field) {
            substitute_block(&mut told, field, &block, now);
        }
    }
    for event in told.iter_mut().filter(|event| event["type"] == "content_block_start") {
        ids::for_each_string(event, &mut |text| *text = now.substitute(text));
    }
    told.iter()
        .zip(events)
        .map(|(event, then)| RawJson::from_value(event).unwrap_or_else(|_| then.clone()))
        .collect()
}

/// Indexes of the blocks that stream this field.
fn blocks_with_field(events: &[Value], field: &str) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for event in events.iter().filter(|event| event.pointer(field).is_some()) {
        if !blocks.contains(&event["index"]) {
            blocks.push(event["index"].clone());
        }
    }
    blocks
}

fn substitute_block(events: &mut [Value], field: &str, block: &Value, now: &IdMap) {
    let mut pieces: Vec<&mut String> = events
        .iter_mut()
        .filter(|event| event["index"] == *block)
        .filter_map(|event| match event.pointer_mut(field) {
            Some(Value::String(piece)) => Some(piece),
            _ => None,
        })
        .collect();
    let whole: String = pieces.iter().map(|piece| piece.as_str()).collect();
    let again = now.substitute(&whole);
    if again != whole
        && let Some((first, rest)) = pieces.split_first_mut()
    {
        **first = again;
        rest.iter_mut().for_each(|piece| piece.clear());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn id_split_over_fragments_is_replaced_and_thinking_kept() {
        let piece = |index: u32, field: &str, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {field: text}});
        let start = |index: u32, text: &str| json!({"type": "content_block_start", "index": index, "content_block": {"text": text}});
        let then = [
            start(0, ""),
            piece(0, "thinking", "I wait for a11111111."),
            start(1, "a11111111"),
            piece(1, "text", "Ask a111"),
            piece(1, "text", "11111 or b22222222."),
            piece(2, "partial_json", "{\"to\": \"a1111"),
            piece(2, "partial_json", "1111\"}"),
            piece(3, "text", "Nobody."),
        ];
        let events = then.clone().map(|event| RawJson::from_value(&event).unwrap());
        let mut now = IdMap::default();
        assert_eq!(substitute_ids(&events, &now), events);
        now.insert_pairs(&["a11111111".to_owned()], &["a33333333".to_owned()]);
        let told: Vec<Value> =
            substitute_ids(&events, &now).iter().map(|event| event.decode().unwrap()).collect();
        let expected = [
            start(0, ""),
            piece(0, "thinking", "I wait for a11111111."),
            start(1, "a33333333"),
            piece(1, "text", "Ask a33333333 or b22222222."),
            piece(1, "text", ""),
            piece(2, "partial_json", "{\"to\": \"a33333333\"}"),
            piece(2, "partial_json", ""),
            piece(3, "text", "Nobody."),
        ];
        assert_eq!(told, expected);
    }
}
