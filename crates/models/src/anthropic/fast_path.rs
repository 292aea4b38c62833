//! Fast path for text and thinking deltas, which make up most of a reply: recognized by their bytes, without a parser.
//!
//! Events written in any other way, escapes included, are left to the parser.

use crate::event::{BlockDelta, ReplyEvent};

const PREFIX: &str = r#"{"type":"content_block_delta","index":"#;
const TEXT_DELTA: &str = r#","delta":{"type":"text_delta","text":""#;
const THINKING_DELTA: &str = r#","delta":{"type":"thinking_delta","thinking":""#;
const SUFFIX: &str = r#""}}"#;

/// Decodes an event of exactly the usual form, so that [`ReplyEvent::to_raw_json`] reproduces the same bytes.
pub(super) fn decode(data: &str) -> Option<ReplyEvent> {
    let rest = data.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (index, rest) = rest.split_at_checked(rest.bytes().position(|byte| byte == b',')?)?;
    let index = parse_index(index)?;
    if let Some(text) = rest.strip_prefix(TEXT_DELTA) {
        let text = unescaped(text)?.to_owned();
        return Some(ReplyEvent::BlockDelta { index, delta: BlockDelta::Text { text } });
    }
    let thinking = unescaped(rest.strip_prefix(THINKING_DELTA)?)?.to_owned();
    Some(ReplyEvent::BlockDelta { index, delta: BlockDelta::Thinking { thinking } })
}

/// Parses a number in JSON form: digits without leading zeros.
fn parse_index(digits: &str) -> Option<usize> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (digits == "0" || !digits.starts_with('0'))).then(|| digits.parse().ok())?
}

/// Returns the text if it needs no escapes in JSON.
fn unescaped(text: &str) -> Option<&str> {
    let escaped = text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
    (!escaped).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn delta(index: usize, delta: &Value) -> String {
        json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
    }

    #[test]
    fn only_the_usual_form_is_decoded() {
        let text = delta(7, &json!({"type": "text_delta", "text": "größer, \u{7f} 🦀"}));
        let read_text = BlockDelta::Text { text: "größer, \u{7f} 🦀".into() };
        assert_eq!(decode(&text), Some(ReplyEvent::BlockDelta { index: 7, delta: read_text }));
        let thought = delta(0, &json!({"type": "thinking_delta", "thinking": ""}));
        let read_thought = BlockDelta::Thinking { thinking: String::new() };
        assert_eq!(decode(&thought), Some(ReplyEvent::BlockDelta { index: 0, delta: read_thought }));
        for other in [
            delta(0, &json!({"type": "text_delta", "text": "a\nb"})),
            delta(0, &json!({"type": "text_delta", "text": "\""})),
            delta(0, &json!({"type": "text_delta", "text": "a", "more": 1})),
            delta(0, &json!({"type": "input_json_delta", "partial_json": "1"})),
            text.replace(":7", ":07"),
            text.replace(":7", ":-7"),
            text.replace(":7", ":"),
            text.replace(":7", ": 7"),
            text.replace("}}", "} }"),
            text.replace("größer", "gr\u{1}er"),
            text[..text.len() - 1].to_owned(),
        ] {
            assert_eq!(decode(&other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn fast_path_agrees_with_the_parser_and_keeps_the_bytes(
            index in 0..3000usize, text in ".*", cut in 0..20usize,
        ) {
            let whole = delta(index, &json!({"type": "text_delta", "text": text}));
            let broken: String = whole.chars().take(whole.chars().count().saturating_sub(cut)).collect();
            for data in [&whole, &broken] {
                if let Some(event) = decode(data) {
                    let value: Value = serde_json::from_str(data).unwrap();
                    prop_assert_eq!(&value["delta"]["text"], &json!(text));
                    let raw = event.to_raw_json().unwrap();
                    prop_assert_eq!(raw.as_str(), data.as_str());
                }
            }
        }
    }
}
