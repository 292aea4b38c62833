//! One entry of a transcript, parsed leniently: a field of the wrong type counts as absent.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use whimbrel_wire::codec;

/// Type of an entry with text for the model that is hidden from the user. Not part of the tree.
pub(crate) const HIDDEN_TEXT: &str = "brief";

/// Type of an entry recording that a tool call with effects is about to run. Not part of the tree.
pub(crate) const TOOL_START: &str = "tool-start";

/// Type of an entry listing messages that a provider rejected permanently. Not part of the tree.
pub(crate) const REJECTED: &str = "refused";

/// Type of an entry, written by other engines, that names content stored elsewhere. Not part of the tree.
pub(crate) const CONTENT_REPLACEMENT: &str = "content-replacement";

/// Subtype of the system entry at which a compaction summary replaced the conversation.
pub(crate) const COMPACT_BOUNDARY: &str = "compact_boundary";

/// Subtype of the system entry at which the conversation went back to an earlier entry: its parent, or the beginning.
pub(crate) const CONVERSATION_REWOUND: &str = "conversation_rewound";

/// Limit on offsets at which a broken line is searched for a complete entry.
const MAX_RECOVERY_OFFSETS: usize = 8;

/// Text for the model that is hidden from the user.
#[derive(Debug)]
pub(crate) struct HiddenText {
    pub(crate) text: String,
    /// The permission mode that the text announces, if it does.
    pub(crate) announced_mode: Option<String>,
}

/// Fixed-size key (16 bytes) for a uuid, a call id or a text, used in large sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdKey(u128);

impl IdKey {
    pub fn new(name: &str) -> Self {
        if let Some(uuid) = parse_uuid(name) {
            return Self(uuid.as_u128());
        }
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, name).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        Self(half(1) << 64 | half(2))
    }
}

/// Parses a UUID in its hyphenated form.
pub(crate) fn parse_uuid(text: &str) -> Option<Uuid> {
    (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten()
}

/// A field that is not parsed yet.
type RawField<'a> = Option<&'a RawValue>;

/// The fields that readers need.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TranscriptEntry<'a> {
    #[serde(rename = "type", borrow)]
    kind: RawField<'a>,
    #[serde(borrow)]
    uuid: RawField<'a>,
    #[serde(borrow)]
    parent_uuid: RawField<'a>,
    #[serde(borrow)]
    logical_parent_uuid: RawField<'a>,
    #[serde(rename = "sourceToolAssistantUUID", borrow)]
    source: RawField<'a>,
    #[serde(borrow)]
    left_uuid: RawField<'a>,
    #[serde(borrow)]
    copy_of: RawField<'a>,
    #[serde(borrow)]
    is_sidechain: RawField<'a>,
    #[serde(borrow)]
    is_meta: RawField<'a>,
    #[serde(borrow)]
    is_compact_summary: RawField<'a>,
    #[serde(borrow)]
    team_name: RawField<'a>,
    #[serde(borrow)]
    subtype: RawField<'a>,
    #[serde(borrow)]
    starts_recorded: RawField<'a>,
    #[serde(borrow)]
    before_uuid: RawField<'a>,
    #[serde(rename = "toolUseID", borrow)]
    tool_use_id: RawField<'a>,
    #[serde(borrow)]
    agent_id: RawField<'a>,
    #[serde(borrow)]
    text: RawField<'a>,
    #[serde(borrow)]
    message_uuids: RawField<'a>,
    #[serde(borrow)]
    timestamp: RawField<'a>,
    #[serde(borrow)]
    cwd: RawField<'a>,
    #[serde(borrow)]
    permission_mode: RawField<'a>,
    #[serde(borrow)]
    custom_title: RawField<'a>,
    #[serde(borrow)]
    ai_title: RawField<'a>,
    #[serde(borrow)]
    tool_use_result: RawField<'a>,
    #[serde(borrow)]
    compact_metadata: RawField<'a>,
    #[serde(borrow)]
    pub(crate) message: RawField<'a>,
}

/// Kind of an entry of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// Message of the user, the host or a tool.
    User,
    /// Message of the model.
    Assistant,
    /// A compaction summary replaced the conversation here.
    CompactBoundary,
    /// The conversation went back to the parent of this entry.
    Rewound,
    /// Any other entry; not sent to the model.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryBranch {
    /// The conversation itself.
    Main,
    /// A subagent or a teammate.
    Sidechain,
}

impl<'a> TranscriptEntry<'a> {
    /// Parses a line. If its beginning is broken, looks for a complete entry at its end: an engine killed within a line
    /// leaves it for the next writer to continue. Also returns the offset of the entry.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<(Self, usize)> {
        if let Ok(line) = serde_json::from_slice::<Self>(bytes) {
            return Some((line, 0));
        }
        let starts = [&br#"{"parentUuid":"#[..], br#"{"type":"#].map(|start| memmem::find_iter(bytes, start));
        let mut starts: Vec<usize> =
            starts.into_iter().flat_map(|found| found.take(MAX_RECOVERY_OFFSETS)).collect();
        starts.sort_unstable();
        let whole = |at: &usize| {
            let line = serde_json::from_slice::<Self>(&bytes[*at..]).ok()?;
            (line.uuid().is_some() || line.is_type(TOOL_START)).then_some((line, *at))
        };
        starts.iter().find_map(whole)
    }

    /// Parses the first entry of a line and returns where it ends. More entries follow if newlines were lost.
    pub(crate) fn parse_first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut lines = serde_json::Deserializer::from_slice(bytes).into_iter::<Self>();
        let line = lines.next()?.ok()?;
        Some((line, lines.byte_offset()))
    }

    /// Distinguishes different entries with the same uuid; equal for an entry written twice.
    pub(crate) fn fingerprint(&self, length: u32) -> u32 {
        let mut hasher = DefaultHasher::new();
        (length, self.timestamp.map(RawValue::get)).hash(&mut hasher);
        hasher.finish() as u32
    }

    /// The kind of the entry; `None` if it is not part of the tree.
    pub(crate) fn kind(&self) -> Option<EntryKind> {
        match string_value(self.kind)?.as_ref() {
            "user" => Some(EntryKind::User),
            "assistant" => Some(EntryKind::Assistant),
            "system" => Some(match string_value(self.subtype).as_deref() {
                Some(COMPACT_BOUNDARY) => EntryKind::CompactBoundary,
                Some(CONVERSATION_REWOUND) => EntryKind::Rewound,
                _ => EntryKind::Other,
            }),
            "progress" | "attachment" => Some(EntryKind::Other),
            _ => None,
        }
    }

    /// Compares the `type` field.
    pub(crate) fn is_type(&self, name: &str) -> bool {
        string_value(self.kind).as_deref() == Some(name)
    }

    pub(crate) fn branch(&self) -> EntryBranch {
        let side =
            is_true(self.is_sidechain) || string_value(self.team_name).is_some_and(|name| !name.is_empty());
        if side { EntryBranch::Sidechain } else { EntryBranch::Main }
    }

    pub(crate) fn uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.uuid)
    }

    pub(crate) fn parent_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.parent_uuid)
    }

    /// The entry before a compaction boundary, which is not its parent.
    pub(crate) fn logical_parent_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.logical_parent_uuid)
    }

    /// The entry of the tool call that this entry answers.
    pub(crate) fn source_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.source)
    }

    /// The last entry before a rewind.
    pub(crate) fn left_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.left_uuid)
    }

    /// The prompt that this entry repeats after a compaction.
    pub(crate) fn copied_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.copy_of)
    }

    pub(crate) fn is_meta(&self) -> bool {
        is_true(self.is_meta)
    }

    pub(crate) fn is_summary(&self) -> bool {
        is_true(self.is_compact_summary)
    }

    /// The engine that wrote this entry recorded the start of every call with effects.
    pub(crate) fn starts_recorded(&self) -> bool {
        is_true(self.starts_recorded)
    }

    /// The call that is about to run.
    pub(crate) fn tool_use_id(&self) -> Option<Cow<'a, str>> {
        string_value(self.tool_use_id)
    }

    /// The agent that runs the call.
    pub(crate) fn agent_id(&self) -> Option<Cow<'a, str>> {
        string_value(self.agent_id)
    }

    /// The entry before which the model received [`TranscriptEntry::text`].
    pub(crate) fn before_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.before_uuid)
    }

    /// The messages that were rejected.
    pub(crate) fn rejected_uuids(&self) -> Vec<String> {
        self.message_uuids.and_then(|names| serde_json::from_str(names.get()).ok()).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        string_value(self.text)
    }

    pub(crate) fn cwd(&self) -> Option<Cow<'a, str>> {
        string_value(self.cwd)
    }

    pub(crate) fn permission_mode(&self) -> Option<Cow<'a, str>> {
        string_value(self.permission_mode)
    }

    pub(crate) fn custom_title(&self) -> Option<Cow<'a, str>> {
        string_value(self.custom_title)
    }

    /// Names of deferred tools that the entry records as loaded.
    pub(crate) fn loaded_tools(&self) -> Vec<String> {
        loaded_tool_names(self.tool_use_result, self.compact_metadata)
    }

    pub(crate) fn ai_title(&self) -> Option<Cow<'a, str>> {
        string_value(self.ai_title)
    }
}

/// Tool names in the result of a search or in the metadata of a boundary. Invalid data yields none.
fn loaded_tool_names(result: Option<&RawValue>, boundary: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Search {
        #[serde(default)]
        matches: Vec<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Boundary {
        #[serde(default)]
        pre_compact_discovered_tools: Vec<String>,
    }
    let found = result.and_then(|json| serde_json::from_str::<Search>(json.get()).ok()).unwrap_or_default();
    let carried =
        boundary.and_then(|json| serde_json::from_str::<Boundary>(json.get()).ok()).unwrap_or_default();
    found.matches.into_iter().chain(carried.pre_compact_discovered_tools).collect()
}

/// Replaces lone surrogate escapes by U+FFFD, so that every parser accepts the line.
pub(crate) fn replace_lone_surrogates(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_suspect = [&br"\ud"[..], br"\uD"].iter().any(|half| memmem::find(bytes, half).is_some());
    let text = if is_suspect { std::str::from_utf8(bytes).ok() } else { None };
    text.and_then(codec::replace_lone_surrogates)
        .map_or(Cow::Borrowed(bytes), |text| Cow::Owned(text.into_bytes()))
}

fn is_true(field: RawField<'_>) -> bool {
    field.is_some_and(|value| value.get() == "true")
}

/// The value of a field if it is a string.
fn string_value(field: RawField<'_>) -> Option<Cow<'_, str>> {
    let json = field?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        let replaced = || serde_json::from_str(&codec::replace_lone_surrogates(json)?).ok();
        serde_json::from_str(json).ok().or_else(replaced).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_kind_follows_type_and_wrong_fields_are_absent() {
        let rows = [
            (r#"{"type":"user","uuid":"a"}"#, Some(EntryKind::User)),
            (r#"{"type":"system","subtype":"compact_boundary"}"#, Some(EntryKind::CompactBoundary)),
            (r#"{"type":"system","subtype":"conversation_rewound"}"#, Some(EntryKind::Rewound)),
            (r#"{"type":"system","subtype":7}"#, Some(EntryKind::Other)),
            (r#"{"type":"attachment","uuid":{"x":1}}"#, Some(EntryKind::Other)),
            (r#"{"type":"cost-state","uuid":"a"}"#, None),
            (r#"{"type":null}"#, None),
        ];
        for (line, kind) in rows {
            assert_eq!(TranscriptEntry::parse(line.as_bytes()).unwrap().0.kind(), kind, "{line}");
        }
        for line in ["", "[1]", "null", "{", "\0\0\0", r#"{"type":"user""#] {
            assert!(TranscriptEntry::parse(line.as_bytes()).is_none(), "{line:?}");
        }
    }

    #[test]
    fn complete_entry_after_a_broken_one_is_found() {
        let torn = r#"{"parentUuid":"x","message":{"content":[{"type":"te"#;
        let whole = r#"{"parentUuid":"a\u0062","uuid":"c","type":"user"}"#;
        let both = format!("\0\0{torn}{whole}");
        let (line, at) = TranscriptEntry::parse(both.as_bytes()).unwrap();
        assert_eq!(&both[at..], whole);
        assert_eq!((line.uuid().as_deref(), line.parent_uuid().as_deref()), (Some("c"), Some("ab")));
    }

    #[test]
    fn keys_differ_by_name_and_ignore_uuid_case() {
        assert_eq!(
            IdKey::new("AAAAAAAA-2222-4333-8444-555555555555"),
            IdKey::new("aaaaaaaa-2222-4333-8444-555555555555")
        );
        assert_ne!(IdKey::new("a"), IdKey::new("b"));
    }
}
