//! Decodes lines into frames and encodes frames into lines.
//!
//! Strict about known types: an invalid field is an error that names the field and quotes the line.
//! Lenient otherwise: an unknown type becomes a frame like any other, and unknown fields are ignored.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::excerpt;
use crate::frame::{Frame, FrameHead};
use crate::raw::RawJson;

pub use crate::error::WireError;
pub use crate::truncate::{MAX_LINE_IN, MAX_LINE_OUT};

/// Parses a line whose type is known.
type FrameParser = fn(&FrameHead<'_>, &str) -> Result<Frame, WireError>;

/// Decodes one line.
pub fn decode(line: &str) -> Result<Frame, WireError> {
    decode_with(Frame::parse, line)
}

/// Decodes one line that a host sent to the engine.
pub fn decode_from_host(line: &str) -> Result<Frame, WireError> {
    decode_with(Frame::parse_from_host, line)
}

/// For a frame inside another value; a line is decoded by [`decode`].
impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = RawJson::deserialize(deserializer)?;
        decode(line.as_str()).map_err(D::Error::custom)
    }
}

fn decode_with(reader: FrameParser, line: &str) -> Result<Frame, WireError> {
    if line.len() > MAX_LINE_IN {
        return Err(WireError::TooLong);
    }
    // Repair is tried only after a failure, so that valid lines do not pay for it.
    parse_line(reader, line).or_else(|error| {
        replace_lone_surrogates(line).map_or(Err(error), |repaired| parse_line(reader, &repaired))
    })
}

fn parse_line(reader: FrameParser, line: &str) -> Result<Frame, WireError> {
    match serde_json::from_str::<FrameHead<'_>>(line) {
        Ok(head) => reader(&head, line),
        Err(error) if error.is_data() => Err(WireError::NoType { line: excerpt(line) }),
        Err(error) => Err(WireError::not_json(line, &error)),
    }
}

/// Replaces escaped lone surrogates by `\ufffd`. JavaScript and Python write them for a text that was cut inside a
/// character.
/// Returns `None` if there is no lone surrogate.
pub fn replace_lone_surrogates(line: &str) -> Option<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut repaired = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (copied, length) = match (parse_surrogate(rest), rest.get(6..).and_then(parse_surrogate)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (&rest[..12], 12),
            (Some(_), _) => {
                repaired = true;
                ("\\ufffd", 6)
            }
            // Any other escape: copy the backslash and the escaped character.
            (None, _) => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                (&rest[..length], length)
            }
        };
        out.push_str(copied);
        rest = &rest[length..];
    }
    out.push_str(rest);
    repaired.then_some(out)
}

/// Parses the `\uXXXX` escape at the start of a text; `None` unless it is a surrogate.
fn parse_surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xD800..=0xDFFF).contains(code))
}

/// Appends a frame as one line, newline included. A frame longer than [`MAX_LINE_OUT`] is truncated, with a note inside
/// it.
/// Transcript mirrors are never truncated: their sender limits their length.
pub fn encode(frame: &Frame, line: &mut Vec<u8>) {
    let start = line.len();
    // Writing to a vector cannot fail, and every frame has only string keys.
    if serde_json::to_writer(&mut *line, frame).is_err() {
        line.truncate(start);
        return;
    }
    if line.len() - start > MAX_LINE_OUT && !matches!(frame, Frame::TranscriptMirror(_)) {
        crate::truncate::truncate_line(line, start, MAX_LINE_OUT);
    }
    line.push(b'\n');
}

/// Truncates a JSON object to fewer than `limit` bytes, with a note inside it.
pub fn truncate_json(json: String, limit: usize) -> String {
    let mut line = json.into_bytes();
    if line.len() >= limit {
        crate::truncate::truncate_line(&mut line, 0, limit);
    }
    String::from_utf8(line).unwrap_or_default()
}

/// Undoes the truncation of [`encode`] in a value that the host sends back: a truncated string becomes the original one
/// if its kept beginning matches.
pub fn restore_truncated(given_back: &mut serde_json::Value, original: &serde_json::Value) {
    crate::truncate::restore(given_back, original);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::User;

    #[test]
    fn lone_surrogate_becomes_replacement_character() {
        let line = r#"{"type":"user","message":{"role":"user","content":"cut \ud83d, whole \ud83d\ude00, \\ud83d"}}"#;
        let Ok(Frame::User(user)) = decode(line) else { panic!("not read") };
        assert_eq!(user.message.content.joined_text(), "cut \u{fffd}, whole 😀, \\ud83d");
    }

    #[test]
    fn unknown_type_is_passed_on_unchanged() {
        let line = r#"{"type":"brand_new","n":1.50,"z":{"b":1,"a":2}}"#;
        let mut out = Vec::new();
        encode(&decode(line).unwrap(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
    }

    #[test]
    fn host_may_send_only_types_meant_for_the_engine() {
        for line in [r#"{"type":"keep_alive"}"#, r#"{"type":"brand_new","n":1}"#] {
            assert_eq!(decode_from_host(line), decode(line));
        }
        let error = decode_from_host(r#"{"type":"system","subtype":"init"}"#).unwrap_err();
        assert_eq!(error.to_string(), "a host must not send \"system\" lines");
    }

    #[test]
    fn invalid_field_of_a_known_type_is_named() {
        let error = decode(r#"{"type":"user","message":{"role":"user","content":"x"},"priority":"soon"}"#)
            .unwrap_err();
        let WireError::InvalidField { kind, field, line, .. } = error else { panic!("{error}") };
        assert_eq!((kind.as_str(), field.as_str()), ("user", "priority"));
        assert!(line.contains("soon"));
    }

    #[test]
    fn invalid_block_is_located_by_its_path() {
        let line = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"x"},{"type":"tool_use","id":1}]},"parent_tool_use_id":null}"#;
        let WireError::InvalidField { field, reason, .. } = decode(line).unwrap_err() else { panic!() };
        assert_eq!(field, "message.content[1]");
        assert!(reason.contains("id"), "{reason}");
    }

    #[test]
    fn deeply_nested_line_is_rejected() {
        let deep = format!(
            r#"{{"type":"user","message":{{"content":"x"}},"tool_use_result":{}1{}}}"#,
            "[".repeat(500),
            "]".repeat(500)
        );
        assert!(matches!(decode(&deep), Err(WireError::InvalidField { .. })));
    }

    #[test]
    fn overlong_line_is_truncated_and_still_decodes() {
        let mut line = Vec::new();
        encode(&User::prompt("x".repeat(2 * MAX_LINE_OUT)).into(), &mut line);
        assert!(line.len() <= MAX_LINE_OUT);
        let Ok(Frame::User(user)) = decode(str::from_utf8(&line).unwrap()) else { panic!() };
        assert!(user.message.content.joined_text().ends_with("bytes left out to keep the line short]"));
    }

    #[test]
    fn transcript_mirrors_are_never_truncated() {
        let entries = vec![RawJson::from_value(&"x".repeat(2 * MAX_LINE_OUT)).unwrap()];
        let mirror = crate::notice::TranscriptMirror { file_path: "f".into(), entries: entries.clone() };
        let mut line = Vec::new();
        encode(&mirror.into(), &mut line);
        let Ok(Frame::TranscriptMirror(read)) = decode(str::from_utf8(&line).unwrap()) else { panic!() };
        assert_eq!(read.entries, entries);
    }

    #[test]
    fn line_without_a_type_is_rejected() {
        assert!(matches!(decode("this is not json"), Err(WireError::NotJson { .. })));
        assert!(matches!(decode("[1]"), Err(WireError::NoType { .. })));
        assert!(matches!(decode(r#"{"kind":"user"}"#), Err(WireError::NoType { .. })));
        assert!(matches!(decode(r#"{"type":"user""#), Err(WireError::NotJson { .. })));
    }
}
