//! One line of a transcript, as far as a reader needs it. Nothing here fails on what it does not know: a field of a
//! wrong shape is a field that is not there.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use whimbrel_wire::codec;

use super::loaded;

/// The type of a line that says what the model was told beside the conversation. It is no part of the tree.
pub(super) const BRIEF: &str = "brief";

/// The type of a line that says that a call with effects is about to run. It is no part of the tree.
pub(super) const TOOL_START: &str = "tool-start";

/// The type of a line that names messages which a provider has refused for good. It is no part of the tree.
pub(super) const REFUSED: &str = "refused";

/// The type of a line that other engines write: it says which parts of the conversation are kept elsewhere. It is no part of
/// the tree.
pub(super) const REPLACEMENT: &str = "content-replacement";

/// The subtype of a system line at which a summary took the place of the conversation.
pub(super) const BOUNDARY: &str = "compact_boundary";

/// The subtype of a system line at which the conversation was cleared.
pub(super) const CLEARED: &str = "conversation_cleared";

/// How often a broken line is searched for a whole one in it.
const SALVAGES: usize = 8;

/// Stands for a name (of a line, a call, a text) where many are kept: 16 bytes whatever the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u128);

impl Key {
    /// The key of a name.
    pub fn of(name: &str) -> Self {
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
type Field<'a> = Option<&'a RawValue>;

/// The fields of a line that matter to a reader.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Field<'a>,
    #[serde(borrow)]
    uuid: Field<'a>,
    #[serde(borrow)]
    parent_uuid: Field<'a>,
    #[serde(borrow)]
    logical_parent_uuid: Field<'a>,
    #[serde(rename = "sourceToolAssistantUUID", borrow)]
    source: Field<'a>,
    #[serde(borrow)]
    copy_of: Field<'a>,
    #[serde(borrow)]
    is_sidechain: Field<'a>,
    #[serde(borrow)]
    is_meta: Field<'a>,
    #[serde(borrow)]
    is_compact_summary: Field<'a>,
    #[serde(borrow)]
    team_name: Field<'a>,
    #[serde(borrow)]
    subtype: Field<'a>,
    #[serde(borrow)]
    starts_recorded: Field<'a>,
    #[serde(borrow)]
    before_uuid: Field<'a>,
    #[serde(rename = "toolUseID", borrow)]
    tool_use_id: Field<'a>,
    #[serde(borrow)]
    agent_id: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    message_uuids: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
    #[serde(borrow)]
    cwd: Field<'a>,
    #[serde(borrow)]
    permission_mode: Field<'a>,
    #[serde(borrow)]
    custom_title: Field<'a>,
    #[serde(borrow)]
    ai_title: Field<'a>,
    #[serde(borrow)]
    tool_use_result: Field<'a>,
    #[serde(borrow)]
    compact_metadata: Field<'a>,
    #[serde(borrow)]
    pub(super) message: Field<'a>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Said by the person, the host or a tool.
    User,
    /// Said by the model.
    Assistant,
    /// The conversation was replaced by a summary here.
    Boundary,
    /// The conversation was cleared here: nothing before it counts.
    Cleared,
    /// Another link of the tree, of which the model is told nothing.
    Link,
}

/// Who a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    /// The conversation itself.
    Main,
    /// A subagent or a teammate.
    Side,
}

impl<'a> Line<'a> {
    /// Reads a line. One that is broken in front may have a whole one at its end: an engine that was killed within a
    /// line may have left it for the next one to go on in.
    pub(super) fn read(bytes: &'a [u8]) -> Option<(Self, usize)> {
        if let Ok(line) = serde_json::from_slice::<Self>(bytes) {
            return Some((line, 0));
        }
        let starts = [&br#"{"parentUuid":"#[..], br#"{"type":"#].map(|start| memmem::find_iter(bytes, start));
        let mut starts: Vec<usize> = starts.into_iter().flat_map(|found| found.take(SALVAGES)).collect();
        starts.sort_unstable();
        let whole = |at: &usize| {
            let line = serde_json::from_slice::<Self>(&bytes[*at..]).ok()?;
            (line.uuid().is_some() || line.kind_is(TOOL_START)).then_some((line, *at))
        };
        starts.iter().find_map(whole)
    }

    /// Reads the line that bytes begin with, and where it ends: another one may follow without an end between them.
    pub(super) fn first(bytes: &'a [u8]) -> Option<(Self, usize)> {
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
    pub(super) fn kind(&self) -> Option<Kind> {
        match text(self.kind)?.as_ref() {
            "user" => Some(Kind::User),
            "assistant" => Some(Kind::Assistant),
            "system" => Some(match text(self.subtype).as_deref() {
                Some(BOUNDARY) => Kind::Boundary,
                Some(CLEARED) => Kind::Cleared,
                _ => Kind::Link,
            }),
            "progress" | "attachment" => Some(Kind::Link),
            _ => None,
        }
    }

    /// Whether its type has this name.
    pub(super) fn kind_is(&self, name: &str) -> bool {
        text(self.kind).as_deref() == Some(name)
    }

    pub(super) fn branch(&self) -> Branch {
        let side = is_true(self.is_sidechain) || text(self.team_name).is_some_and(|name| !name.is_empty());
        if side { Branch::Side } else { Branch::Main }
    }

    pub(super) fn uuid(&self) -> Option<Cow<'a, str>> {
        text(self.uuid)
    }

    pub(super) fn parent(&self) -> Option<Cow<'a, str>> {
        text(self.parent_uuid)
    }

    /// The line that a boundary follows, though not in the tree.
    pub(super) fn logical_parent(&self) -> Option<Cow<'a, str>> {
        text(self.logical_parent_uuid)
    }

    /// The line of the call that is answered here.
    pub(super) fn source(&self) -> Option<Cow<'a, str>> {
        text(self.source)
    }

    /// The line that this one says again, after a summary took its place.
    pub(super) fn copy_of(&self) -> Option<Cow<'a, str>> {
        text(self.copy_of)
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
        text(self.tool_use_id)
    }

    /// The agent that makes that call.
    pub(super) fn agent_id(&self) -> Option<Cow<'a, str>> {
        text(self.agent_id)
    }

    /// The line before which the model was told [`Line::text`].
    pub(super) fn before(&self) -> Option<Cow<'a, str>> {
        text(self.before_uuid)
    }

    /// The messages that were refused.
    pub(super) fn message_uuids(&self) -> Vec<String> {
        self.message_uuids.and_then(|names| serde_json::from_str(names.get()).ok()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        text(self.text)
    }

    pub(super) fn cwd(&self) -> Option<Cow<'a, str>> {
        text(self.cwd)
    }

    pub(super) fn permission_mode(&self) -> Option<Cow<'a, str>> {
        text(self.permission_mode)
    }

    pub(super) fn custom_title(&self) -> Option<Cow<'a, str>> {
        text(self.custom_title)
    }

    /// The tools on demand that it says were loaded.
    pub(super) fn tools(&self) -> Vec<String> {
        loaded::names(self.tool_use_result, self.compact_metadata)
    }

    pub(super) fn ai_title(&self) -> Option<Cow<'a, str>> {
        text(self.ai_title)
    }
}

/// A line as every parser takes it: with the sign for what cannot be read in the place of each half of a character.
pub(super) fn whole(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_suspect = [&br"\ud"[..], br"\uD"].iter().any(|half| memmem::find(bytes, half).is_some());
    let text = if is_suspect { std::str::from_utf8(bytes).ok() } else { None };
    text.and_then(codec::mend).map_or(Cow::Borrowed(bytes), |text| Cow::Owned(text.into_bytes()))
}

fn is_true(field: Field<'_>) -> bool {
    field.is_some_and(|value| value.get() == "true")
}

/// The text of a field, if it is one.
fn text(field: Field<'_>) -> Option<Cow<'_, str>> {
    let json = field?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        let mended = || serde_json::from_str(&codec::mend(json)?).ok();
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
            (r#"{"type":"user","uuid":"a"}"#, Some(Kind::User)),
            (r#"{"type":"system","subtype":"compact_boundary"}"#, Some(Kind::Boundary)),
            (r#"{"type":"system","subtype":"conversation_cleared"}"#, Some(Kind::Cleared)),
            (r#"{"type":"system","subtype":7}"#, Some(Kind::Link)),
            (r#"{"type":"attachment","uuid":{"x":1}}"#, Some(Kind::Link)),
            (r#"{"type":"cost-state","uuid":"a"}"#, None),
            (r#"{"type":null}"#, None),
        ];
        for (line, kind) in rows {
            assert_eq!(Line::read(line.as_bytes()).unwrap().0.kind(), kind, "{line}");
        }
        for line in ["", "[1]", "null", "{", "\0\0\0", r#"{"type":"user""#] {
            assert!(Line::read(line.as_bytes()).is_none(), "{line:?}");
        }
    }

    #[test]
    fn a_whole_line_behind_a_broken_one_is_found() {
        let torn = r#"{"parentUuid":"x","message":{"content":[{"type":"te"#;
        let whole = r#"{"parentUuid":"a\u0062","uuid":"c","type":"user"}"#;
        let both = format!("\0\0{torn}{whole}");
        let (line, at) = Line::read(both.as_bytes()).unwrap();
        assert_eq!(&both[at..], whole);
        assert_eq!((line.uuid().as_deref(), line.parent().as_deref()), (Some("c"), Some("ab")));
    }

    #[test]
    fn keys_tell_names_apart_and_uuids_alike_in_any_case() {
        assert_eq!(
            Key::of("AAAAAAAA-2222-4333-8444-555555555555"),
            Key::of("aaaaaaaa-2222-4333-8444-555555555555")
        );
        assert_ne!(Key::of("a"), Key::of("b"));
    }
}
