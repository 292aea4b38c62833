//! One line of a transcript, as far as a reader needs it. Nothing here fails on what it does not know: a field of a
//! wrong shape is a field that is not there.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use whimbrel_wire::codec;

use super::tool_searches;

/// The type of a line that says what the model was told beside the conversation. It is no part of the tree.
pub(super) const HIDDEN_TEXT: &str = "brief";

/// The type of a line that says that a call with effects is about to run. It is no part of the tree.
pub(super) const TOOL_START: &str = "tool-start";

/// The type of a line that names messages which a provider has refused for good. It is no part of the tree.
pub(super) const REJECTED: &str = "refused";

/// The type of a line that other engines write: it says which parts of the conversation are kept elsewhere. It is no part of
/// the tree.
pub(super) const CONTENT_REPLACEMENT: &str = "content-replacement";

/// The subtype of a system line at which a summary took the place of the conversation.
pub(super) const COMPACT_BOUNDARY: &str = "compact_boundary";

/// The subtype of a system line at which the conversation was cleared.
pub(super) const CONVERSATION_CLEARED: &str = "conversation_cleared";

/// How often a broken line is searched for a whole one in it.
const MAX_SALVAGE_ATTEMPTS: usize = 8;

/// Stands for a name (of a line, a call, a text) where many are kept: 16 bytes whatever the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdKey(u128);

impl IdKey {
    /// The key of a name.
    pub fn new(name: &str) -> Self {
        if name.len() == 36
            && let Ok(uuid) = Uuid::try_parse(name)
        {
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

/// A value that nobody has looked at yet.
type RawField<'a> = Option<&'a RawValue>;

/// The fields of a line that matter to a reader.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TranscriptEntry<'a> {
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
    pub(super) message: RawField<'a>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Said by the person, the host or a tool.
    User,
    /// Said by the model.
    Assistant,
    /// The conversation was replaced by a summary here.
    CompactBoundary,
    /// The conversation was cleared here: nothing before it counts.
    Cleared,
    /// Another link of the tree, of which the model is told nothing.
    Other,
}

/// Who a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryBranch {
    /// The conversation itself.
    Main,
    /// A subagent or a teammate.
    Sidechain,
}

impl<'a> TranscriptEntry<'a> {
    /// Reads a line. One that is broken in front may have a whole one at its end: an engine that was killed within a
    /// line may have left it for the next one to go on in.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<(Self, usize)> {
        if let Ok(line) = serde_json::from_slice::<Self>(bytes) {
            return Some((line, 0));
        }
        let starts = [&br#"{"parentUuid":"#[..], br#"{"type":"#].map(|start| memmem::find_iter(bytes, start));
        let mut starts: Vec<usize> = starts.into_iter().flat_map(|found| found.take(MAX_SALVAGE_ATTEMPTS)).collect();
        starts.sort_unstable();
        let whole = |at: &usize| {
            let line = serde_json::from_slice::<Self>(&bytes[*at..]).ok()?;
            (line.uuid().is_some() || line.is_type(TOOL_START)).then_some((line, *at))
        };
        starts.iter().find_map(whole)
    }

    /// Reads the line that bytes begin with, and where it ends: another one may follow without an end between them.
    pub(super) fn parse_first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut lines = serde_json::Deserializer::from_slice(bytes).into_iter::<Self>();
        let line = lines.next()?.ok()?;
        Some((line, lines.byte_offset()))
    }

    /// Tells two lines of one name apart: a line that was written twice has the same one.
    pub(super) fn fingerprint(&self, length: u32) -> u32 {
        let mut hasher = DefaultHasher::new();
        (length, self.timestamp.map(RawValue::get)).hash(&mut hasher);
        hasher.finish() as u32
    }

    /// What it is in the tree; none if it is no part of it.
    pub(super) fn kind(&self) -> Option<EntryKind> {
        match string_value(self.kind)?.as_ref() {
            "user" => Some(EntryKind::User),
            "assistant" => Some(EntryKind::Assistant),
            "system" => Some(match string_value(self.subtype).as_deref() {
                Some(COMPACT_BOUNDARY) => EntryKind::CompactBoundary,
                Some(CONVERSATION_CLEARED) => EntryKind::Cleared,
                _ => EntryKind::Other,
            }),
            "progress" | "attachment" => Some(EntryKind::Other),
            _ => None,
        }
    }

    /// Whether its type has this name.
    pub(super) fn is_type(&self, name: &str) -> bool {
        string_value(self.kind).as_deref() == Some(name)
    }

    pub(super) fn branch(&self) -> EntryBranch {
        let side = is_true(self.is_sidechain) || string_value(self.team_name).is_some_and(|name| !name.is_empty());
        if side { EntryBranch::Sidechain } else { EntryBranch::Main }
    }

    pub(super) fn uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.uuid)
    }

    pub(super) fn parent_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.parent_uuid)
    }

    /// The line that a boundary follows, though not in the tree.
    pub(super) fn logical_parent_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.logical_parent_uuid)
    }

    /// The line of the call that is answered here.
    pub(super) fn source_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.source)
    }

    /// The line that this one says again, after a summary took its place.
    pub(super) fn copied_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.copy_of)
    }

    pub(super) fn is_meta(&self) -> bool {
        is_true(self.is_meta)
    }

    pub(super) fn is_summary(&self) -> bool {
        is_true(self.is_compact_summary)
    }

    /// Whether a call of this line that had begun has a line that says so.
    pub(super) fn starts_recorded(&self) -> bool {
        is_true(self.starts_recorded)
    }

    /// The call that is about to run.
    pub(super) fn tool_use_id(&self) -> Option<Cow<'a, str>> {
        string_value(self.tool_use_id)
    }

    /// The agent that makes that call.
    pub(super) fn agent_id(&self) -> Option<Cow<'a, str>> {
        string_value(self.agent_id)
    }

    /// The line before which the model was told [`Line::text`].
    pub(super) fn before_uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.before_uuid)
    }

    /// The messages that were refused.
    pub(super) fn rejected_uuids(&self) -> Vec<String> {
        self.message_uuids.and_then(|names| serde_json::from_str(names.get()).ok()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        string_value(self.text)
    }

    pub(super) fn cwd(&self) -> Option<Cow<'a, str>> {
        string_value(self.cwd)
    }

    pub(super) fn permission_mode(&self) -> Option<Cow<'a, str>> {
        string_value(self.permission_mode)
    }

    pub(super) fn custom_title(&self) -> Option<Cow<'a, str>> {
        string_value(self.custom_title)
    }

    /// The tools on demand that it says were loaded.
    pub(super) fn loaded_tools(&self) -> Vec<String> {
        tool_searches::loaded_tool_names(self.tool_use_result, self.compact_metadata)
    }

    pub(super) fn ai_title(&self) -> Option<Cow<'a, str>> {
        string_value(self.ai_title)
    }
}

/// A line as every parser takes it: with the sign for what cannot be read in the place of each half of a character.
pub(super) fn replace_lone_surrogates(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_suspect = [&br"\ud"[..], br"\uD"].iter().any(|half| memmem::find(bytes, half).is_some());
    let text = if is_suspect { std::str::from_utf8(bytes).ok() } else { None };
    text.and_then(codec::replace_lone_surrogates).map_or(Cow::Borrowed(bytes), |text| Cow::Owned(text.into_bytes()))
}

fn is_true(field: RawField<'_>) -> bool {
    field.is_some_and(|value| value.get() == "true")
}

/// The text of a field, if it is one.
fn string_value(field: RawField<'_>) -> Option<Cow<'_, str>> {
    let json = field?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        let mended = || serde_json::from_str(&codec::replace_lone_surrogates(json)?).ok();
        serde_json::from_str(json).ok().or_else(mended).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_its_type_says_and_a_wrong_field_is_none() {
        let rows = [
            (r#"{"type":"user","uuid":"a"}"#, Some(EntryKind::User)),
            (r#"{"type":"system","subtype":"compact_boundary"}"#, Some(EntryKind::CompactBoundary)),
            (r#"{"type":"system","subtype":"conversation_cleared"}"#, Some(EntryKind::Cleared)),
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
    fn a_whole_line_behind_a_broken_one_is_found() {
        let torn = r#"{"parentUuid":"x","message":{"content":[{"type":"te"#;
        let whole = r#"{"parentUuid":"a\u0062","uuid":"c","type":"user"}"#;
        let both = format!("\0\0{torn}{whole}");
        let (line, at) = TranscriptEntry::parse(both.as_bytes()).unwrap();
        assert_eq!(&both[at..], whole);
        assert_eq!((line.uuid().as_deref(), line.parent_uuid().as_deref()), (Some("c"), Some("ab")));
    }

    #[test]
    fn keys_tell_names_apart_and_uuids_alike_in_any_case() {
        assert_eq!(
            IdKey::new("AAAAAAAA-2222-4333-8444-555555555555"),
            IdKey::new("aaaaaaaa-2222-4333-8444-555555555555")
        );
        assert_ne!(IdKey::new("a"), IdKey::new("b"));
    }
}
