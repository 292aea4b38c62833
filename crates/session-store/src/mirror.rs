//! Which hosts get a copy of transcript lines, and how lines are split into mirror frames for a host that has its own
//! session store. Pure.
//!
//! Lines are mirrored verbatim. Only for hosts with a frame size limit an oversized line is shortened: first data that
//! no model receives, then images and documents, then the ends of long texts. The result can still be resumed and
//! states what is missing.

use serde_json::Value;
use whimbrel_wire::{RawJson, codec};

/// Limit on the lines of one frame, unless a single line is longer. The Python SDK aborts on frames of 1 MiB.
const MAX_FRAME_BYTES: usize = 900_000;

/// Images and documents up to this size are kept.
const MAX_INLINE_ATTACHMENT: usize = 10_000;

/// Replaces data that no model receives.
const OMITTED_TEXT: &str = "(too long for this copy)";

/// Whether the host receives a copy of each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mirror {
    /// No.
    #[default]
    Off,
    /// Yes; lines of more than a megabyte are shortened.
    SizeLimited,
    /// Yes; lines of any length.
    Unlimited,
}

impl Mirror {
    /// Mirroring mode for a host that asked for it. The TypeScript SDK reads lines of any length; the Python SDK aborts
    /// on long ones.
    pub fn for_host(entrypoint: Option<&str>) -> Self {
        if entrypoint == Some("sdk-ts") { Self::Unlimited } else { Self::SizeLimited }
    }

    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct MirrorFrames {
    /// The lines of each frame.
    pub frames: Vec<Vec<RawJson>>,
    /// Number of lines that were shortened.
    pub shortened: usize,
}

pub fn split_into_frames(lines: Vec<RawJson>, mirror: Mirror) -> MirrorFrames {
    let mut split = MirrorFrames::default();
    let mut free_bytes = 0;
    for mut line in lines {
        if mirror == Mirror::SizeLimited && line.as_str().len() > MAX_FRAME_BYTES {
            split.shortened += 1;
            line = shorten_line(line);
        }
        let size = line.as_str().len() + 1;
        match split.frames.last_mut().filter(|_| size <= free_bytes) {
            Some(frame) => {
                free_bytes -= size;
                frame.push(line);
            }
            None => {
                free_bytes = MAX_FRAME_BYTES.saturating_sub(size);
                split.frames.push(vec![line]);
            }
        }
    }
    split
}

/// Shortens a line to fit into a frame.
fn shorten_line(line: RawJson) -> RawJson {
    let Ok(mut value) = line.decode::<Value>() else { return line };
    if let Some(result) = value.get_mut("toolUseResult") {
        *result = OMITTED_TEXT.into();
    }
    if value.to_string().len() > MAX_FRAME_BYTES {
        replace_attachments(&mut value["message"]["content"]);
    }
    RawJson::parse(codec::truncate_json(value.to_string(), MAX_FRAME_BYTES)).unwrap_or(line)
}

/// Replaces images and documents by texts, also in tool results.
fn replace_attachments(content: &mut Value) {
    for block in content.as_array_mut().into_iter().flatten() {
        let size = block["source"]["data"].as_str().map_or(0, str::len);
        if size > MAX_INLINE_ATTACHMENT {
            let text = format!("({size} bytes were removed here: too long for this copy.)");
            *block = serde_json::json!({"type": "text", "text": text});
        } else if block["type"] == "tool_result" {
            replace_attachments(&mut block["content"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw_line(value: &Value) -> RawJson {
        RawJson::from_value(value).unwrap()
    }

    #[test]
    fn frames_keep_order_and_stay_within_the_limit() {
        let lines: Vec<RawJson> =
            (0..300).map(|number| raw_line(&json!([number, "w".repeat(20_000)]))).collect();
        let MirrorFrames { frames, shortened } = split_into_frames(lines.clone(), Mirror::SizeLimited);
        assert!(frames.iter().all(|frame| raw_line(&json!(frame)).as_str().len() <= MAX_FRAME_BYTES + 2));
        assert!(frames.len() < 10 && shortened == 0);
        assert_eq!(frames.concat(), lines);
        assert_eq!(split_into_frames(Vec::new(), Mirror::SizeLimited), MirrorFrames::default());
    }

    #[test]
    fn unlimited_host_gets_whole_lines() {
        let lines =
            vec![raw_line(&json!("a")), raw_line(&json!("b".repeat(5_000_000))), raw_line(&json!("c"))];
        let MirrorFrames { frames, shortened } = split_into_frames(lines.clone(), Mirror::Unlimited);
        assert_eq!((frames.concat(), frames.len(), shortened), (lines, 3, 0));
    }

    #[test]
    fn oversized_line_is_shortened_in_order_and_stays_resumable() {
        let image = json!({"type": "image", "source": {"type": "base64", "data": "QUJD".repeat(300_000)}});
        let long = "w".repeat(1_200_000);
        let rows = [
            (
                "what no model is sent",
                json!({"uuid": "u", "message": {"content": "all of it"}, "toolUseResult": {"file": &long}}),
                json!({"uuid": "u", "message": {"content": "all of it"}, "toolUseResult": OMITTED_TEXT}),
            ),
            (
                "a picture",
                json!({"uuid": "u", "message": {"content": [{"type": "text", "text": "see"}, image]}}),
                json!({"uuid": "u", "message": {"content": [{"type": "text", "text": "see"},
                    {"type": "text", "text": "(1200000 bytes were removed here: too long for this copy.)"}]}}),
            ),
            (
                "a picture in a result",
                json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]}}),
                json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                    {"type": "text", "text": "(1200000 bytes were removed here: too long for this copy.)"}]}]}}),
            ),
        ];
        for (name, whole, expected) in rows {
            let MirrorFrames { frames, shortened } =
                split_into_frames(vec![raw_line(&whole)], Mirror::SizeLimited);
            assert_eq!((shortened, frames[0][0].decode::<Value>().unwrap()), (1, expected), "{name}");
        }
        let MirrorFrames { frames, .. } =
            split_into_frames(vec![raw_line(&json!({"message": {"content": long}}))], Mirror::SizeLimited);
        let cut: Value = frames[0][0].decode().unwrap();
        let text = cut["message"]["content"].as_str().unwrap();
        assert!(text.starts_with("www") && text.ends_with("bytes left out to keep the line short]"));
        assert!(frames[0][0].as_str().len() <= MAX_FRAME_BYTES);
    }
}
