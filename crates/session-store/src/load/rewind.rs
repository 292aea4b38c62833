//! Plans a rewind of the conversation: where it continues, what it is then, and what is dropped. Changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufReader, Read, Seek};

use whimbrel_wire::content::Block;

use super::{BranchPart, LoadError, LoadedConversation, READ_BUFFER_SIZE, load_branch};
use crate::entry::{EntryBranch, EntryKind, IdKey};
use crate::load::branch;
use crate::load::entry_reader::{EntryReader, LoadedMessage, TurnRole};
use crate::load::index::{Index, NodeId};
use crate::load::open_calls::LastCalls;
use crate::load::siblings;
use crate::summary::{prompt_excerpt, typed_command};

/// A rewind that can be carried out.
#[derive(Debug, Default)]
pub struct RewindPlan {
    /// The conversation after the rewind. Its `leaf` is the entry that the rewind goes back to.
    pub loaded: LoadedConversation,
    /// The prompt before which it continues; `None` if an earlier rewind is undone.
    pub prompt: Option<RewoundPrompt>,
    /// Number of messages that are dropped, also of those that a compaction had replaced by a summary.
    pub messages_dropped: usize,
    pub prompts_dropped: usize,
    /// Number of messages that come back, because they had been dropped by an earlier rewind.
    pub messages_restored: usize,
    /// Ids of the tool calls that are dropped.
    pub dropped_calls: HashSet<String>,
    /// The last message that is left.
    pub last_message: Option<String>,
    /// The last prompt that is left, shortened for lists.
    pub last_prompt: Option<String>,
}

/// The prompt before which the conversation continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewoundPrompt {
    /// The text as it was typed.
    pub text: String,
    /// Number of images and documents, which the text does not contain.
    pub attachments: usize,
    /// Permission mode at the time.
    pub permission_mode: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    #[error(
        "This session has no message {0}. Give the uuid of one of its prompts; a prompt from before /clear belongs to \
         the session that was cleared."
    )]
    UnknownMessage(String),
    #[error(
        "{0} is not a prompt that the model got. Give the uuid of such a prompt, or the undo_id of an earlier rewind."
    )]
    NotAPrompt(String),
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl From<io::Error> for RewindError {
    fn from(error: io::Error) -> Self {
        Self::Load(error.into())
    }
}

/// Plans to go back to before a prompt, or to before an earlier rewind, which undoes it. `current` is the last entry of the
/// conversation now.
pub fn plan_rewind<R: Read + Seek>(
    file: R,
    target: &str,
    current: Option<&str>,
) -> Result<RewindPlan, RewindError> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    // The target can be anywhere in the file.
    let index = Index::scan(&mut file)?;
    file.rewind()?;
    let mut reader = EntryReader::new(file);
    let RewindTarget { leaf, prompt } = find_target(&index, &mut reader, target)?;
    let old_path = branch::lineage_of(&index, current.and_then(|uuid| index.find(uuid)));
    let new_path = branch::lineage_of(&index, leaf);
    let shared = old_path.iter().zip(&new_path).take_while(|(old, new)| old == new).count();
    // The last shared entry is read too, because parts of its reply may be among the others.
    let from = shared.saturating_sub(1);
    let old = visible_messages(&index, &mut reader, &old_path[from..], None)?;
    let new = visible_messages(&index, &mut reader, &new_path[from..], leaf)?;
    let loaded = load_branch(&mut reader, &index, (leaf, BranchPart::UpToEntry), LastCalls::Answered)?;
    let dropped: Vec<&LoadedMessage> =
        old.iter().filter(|(node_id, _)| !new.contains_key(node_id)).map(|(_, message)| message).collect();
    // An engine that records modes records them with each prompt, and not with its own notifications.
    let has_modes = dropped.iter().any(|message| message.mode.is_some());
    let is_prompt =
        |message: &LoadedMessage| message.role == TurnRole::Prompt && (message.mode.is_some() || !has_modes);
    let calls = dropped.iter().flat_map(|message| &message.content.blocks).filter_map(call_id);
    let (last_message, last_prompt) = last_texts(&index, &mut reader, &new_path)?;
    Ok(RewindPlan {
        prompt,
        messages_dropped: dropped.len(),
        prompts_dropped: dropped.iter().filter(|message| is_prompt(message)).count(),
        messages_restored: new.keys().filter(|node_id| !old.contains_key(node_id)).count(),
        dropped_calls: calls.filter(|call| !loaded.call_ids.contains(*call)).map(str::to_owned).collect(),
        last_message,
        last_prompt,
        loaded,
    })
}

/// Keys of the messages that rewinds dropped and that did not come back.
pub(crate) fn dropped_messages<R: Read + Seek>(file: R) -> io::Result<HashSet<IdKey>> {
    let mut file = BufReader::with_capacity(READ_BUFFER_SIZE, file);
    let index = Index::scan(&mut file)?;
    file.rewind()?;
    let mut reader = EntryReader::new(file);
    let path = branch::lineage_of(&index, branch::find_resume_point(&index));
    let mut seen: HashSet<NodeId> = path.into_iter().collect();
    let mut dropped = HashSet::new();
    for node in index.nodes.iter().filter(|node| node.kind == EntryKind::Rewound) {
        for node_id in branch::lineage_of(&index, node.logical_parent) {
            if seen.insert(node_id)
                && let Some(uuid) = reader.read_uuid(index.node(node_id).span)?
            {
                dropped.insert(IdKey::new(&uuid));
            }
        }
    }
    Ok(dropped)
}

struct RewindTarget {
    /// The last entry that is left.
    leaf: Option<NodeId>,
    prompt: Option<RewoundPrompt>,
}

fn find_target<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    target: &str,
) -> Result<RewindTarget, RewindError> {
    let found = index.find(target).filter(|node_id| index.node(*node_id).branch == EntryBranch::Main);
    let node_id = found.ok_or_else(|| RewindError::UnknownMessage(target.to_owned()))?;
    let node = index.node(node_id);
    let message = match node.kind {
        EntryKind::Rewound if node.logical_parent.is_some() => {
            return Ok(RewindTarget { leaf: node.logical_parent, prompt: None });
        }
        EntryKind::User => reader.read_message(node)?.filter(|message| message.role == TurnRole::Prompt),
        EntryKind::Assistant | EntryKind::CompactBoundary | EntryKind::Rewound | EntryKind::Other => None,
    };
    let message = message.ok_or_else(|| RewindError::NotAPrompt(target.to_owned()))?;
    Ok(RewindTarget {
        leaf: entry_before(index, node_id),
        prompt: Some(RewoundPrompt::from_message(message)),
    })
}

/// The last entry before a prompt that does not belong to the prompt, as the files that it mentions do.
fn entry_before(index: &Index, prompt: NodeId) -> Option<NodeId> {
    let mut next = index.node(prompt).parent;
    while let Some(node_id) = next.filter(|node_id| index.node(*node_id).is_meta) {
        next = index.node(node_id).parent;
    }
    next
}

/// The messages of a path that the user can see. Summaries are left out, and so are prompts that were written again after
/// one.
fn visible_messages<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    path: &[NodeId],
    last: Option<NodeId>,
) -> io::Result<BTreeMap<NodeId, LoadedMessage>> {
    let entries = siblings::collect_entries(index, reader, path, last)?;
    let messages = entries.into_iter().filter(|entry| entry.is_visible).filter_map(|entry| {
        let (node_id, message) = (entry.node_id, entry.message?);
        let is_current = index.find(&message.uuid) == Some(node_id);
        (is_current && !index.node(node_id).is_summary).then_some((node_id, message))
    });
    Ok(messages.collect())
}

/// Uuid of the last message of a path, and its last prompt for lists.
fn last_texts<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    path: &[NodeId],
) -> io::Result<(Option<String>, Option<String>)> {
    let mut last_message = None;
    for node_id in path.iter().rev().filter(|node_id| index.node(**node_id).is_message()) {
        let Some(message) = reader.read_message(index.node(*node_id))? else { continue };
        let is_current = index.find(&message.uuid) == Some(*node_id);
        let prompt = listed_prompt(&message).filter(|_| is_current);
        last_message.get_or_insert(message.uuid);
        if prompt.is_some() {
            return Ok((last_message, prompt));
        }
    }
    Ok((last_message, None))
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolUse { id, .. } => Some(id),
        _ => None,
    }
}

/// Text of a prompt for lists.
fn listed_prompt(message: &LoadedMessage) -> Option<String> {
    let is_prompt = message.role == TurnRole::Prompt;
    message.content.blocks.iter().filter(|_| is_prompt).find_map(|block| prompt_excerpt(block_text(block)?))
}

fn block_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

impl RewoundPrompt {
    fn from_message(message: LoadedMessage) -> Self {
        let blocks = &message.content.blocks;
        let texts: Vec<&str> = blocks.iter().filter_map(block_text).collect();
        // Behind the name of a command is the text that it was expanded to.
        let command =
            texts.first().filter(|text| text.starts_with("<command-")).and_then(|text| typed_command(text));
        let text = command.unwrap_or_else(|| texts.join("\n"));
        Self { text, attachments: blocks.len() - texts.len(), permission_mode: message.mode }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};

    use super::*;

    fn prompt(uuid: &str, parent: Option<&str>, text: &str) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "permissionMode": "plan",
            "message": {"role": "user", "content": text}})
    }

    fn reply(uuid: &str, parent: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
            "message": {"id": format!("m{uuid}"), "content": [{"type": "tool_use", "id": format!("t{uuid}"),
            "name": "Bash", "input": {}}]}})
    }

    fn rewind(uuid: &str, to: Option<&str>, left: &str) -> Value {
        json!({"type": "system", "subtype": "conversation_rewound", "uuid": uuid, "parentUuid": to, "leftUuid": left})
    }

    fn transcript(lines: &[Value]) -> Vec<u8> {
        lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    /// Two turns, a file that a prompt mentions, a compaction that writes the third prompt again, and a notification.
    fn long_session() -> Vec<Value> {
        vec![
            prompt("u1", None, "one"),
            reply("a1", "u1"),
            json!({"type": "user", "uuid": "file", "parentUuid": "a1", "isMeta": true, "message": {"content": "file"}}),
            prompt("u2", Some("file"), "two"),
            reply("a2", "u2"),
            prompt("u3", Some("a2"), "three"),
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "logicalParentUuid": "u3"}),
            json!({"type": "user", "uuid": "s", "parentUuid": "b", "isCompactSummary": true, "message": {"content": "sum"}}),
            json!({"type": "user", "uuid": "u3again", "parentUuid": "s", "copyOf": "u3", "permissionMode": "plan",
                "message": {"content": "three"}}),
            reply("a3", "u3again"),
            json!({"type": "user", "uuid": "n", "parentUuid": "a3", "message": {"content": "a task has ended"}}),
            reply("a4", "n"),
        ]
    }

    #[derive(Debug, PartialEq)]
    struct Expected {
        leaf: Option<&'static str>,
        last_message: Option<&'static str>,
        last_prompt: Option<&'static str>,
        /// Messages dropped, prompts dropped, messages restored.
        counts: [usize; 3],
        dropped_calls: &'static [&'static str],
    }

    fn assert_plan(name: &str, lines: &[Value], (target, current): (&str, &str), expected: &Expected) {
        let plan = plan_rewind(Cursor::new(transcript(lines)), target, Some(current)).unwrap();
        let mut dropped_calls: Vec<&str> = plan.dropped_calls.iter().map(String::as_str).collect();
        dropped_calls.sort_unstable();
        assert_eq!(plan.loaded.leaf.as_deref(), expected.leaf, "{name}");
        assert_eq!(plan.last_message.as_deref(), expected.last_message, "{name}");
        assert_eq!(plan.last_prompt.as_deref(), expected.last_prompt, "{name}");
        let counts = [plan.messages_dropped, plan.prompts_dropped, plan.messages_restored];
        assert_eq!(counts, expected.counts, "{name}");
        assert_eq!(dropped_calls, expected.dropped_calls, "{name}");
    }

    #[test]
    fn plan_counts_what_is_dropped_across_compactions() {
        let lines = long_session();
        let rows = [
            ("first prompt", "u1", None, None, None, [8, 3, 0], &["ta1", "ta2", "ta3", "ta4"][..]),
            ("with a file", "u2", Some("a1"), Some("a1"), Some("one"), [6, 2, 0], &["ta2", "ta3", "ta4"]),
            ("written again", "u3", Some("s"), Some("s"), Some("two"), [4, 1, 0], &["ta3", "ta4"]),
            ("notification", "n", Some("a3"), Some("a3"), Some("three"), [2, 1, 0], &["ta4"]),
        ];
        for (name, target, leaf, last_message, last_prompt, counts, dropped_calls) in rows {
            let expected = Expected { leaf, last_message, last_prompt, counts, dropped_calls };
            assert_plan(name, &lines, (target, "a4"), &expected);
        }
    }

    #[test]
    fn earlier_rewind_is_undone() {
        let lines = [&long_session()[..], &[rewind("m", Some("a1"), "a4")]].concat();
        let undone = Expected {
            leaf: Some("a4"),
            last_message: Some("a4"),
            last_prompt: Some("a task has ended"),
            counts: [0, 0, 6],
            dropped_calls: &[],
        };
        assert_plan("at once", &lines, ("m", "m"), &undone);
        let more = [&lines[..], &[prompt("u5", Some("m"), "five"), reply("a5", "u5")]].concat();
        let later = Expected { counts: [2, 1, 6], dropped_calls: &["ta5"], ..undone };
        assert_plan("after a new turn", &more, ("m", "a5"), &later);
        let left = Expected {
            leaf: Some("a1"),
            last_message: Some("a1"),
            last_prompt: Some("one"),
            counts: [2, 1, 0],
            dropped_calls: &["ta5"],
        };
        assert_plan("a prompt that was left", &more, ("u2", "a5"), &left);
    }

    #[test]
    fn only_prompts_and_rewinds_are_targets() {
        let foreign = [&long_session()[..], &[rewind("m", Some("a1"), "gone")]].concat();
        for (target, expected) in [
            ("none", "This session has no message none."),
            ("a1", "a1 is not a prompt"),
            ("s", "s is not a prompt"),
            ("b", "b is not a prompt"),
            ("m", "m is not a prompt"),
        ] {
            let error = plan_rewind(Cursor::new(transcript(&foreign)), target, Some("m")).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn prompt_text_is_what_was_typed() {
        let image =
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
        let text = |text: &str| json!({"type": "text", "text": text});
        let rows = [
            ("text", json!("hi\nho"), "hi\nho", 0),
            ("blocks", json!([text("hi"), image, text("ho")]), "hi\nho", 1),
            (
                "a command",
                json!([
                    text("<command-name>/review</command-name>\n<command-args>a b</command-args>"),
                    text("Long.")
                ]),
                "/review a b",
                0,
            ),
            ("a command without arguments", json!("<command-name>/x</command-name>"), "/x", 0),
            (
                "a quoted command",
                json!("What is <command-name>/x</command-name>?"),
                "What is <command-name>/x</command-name>?",
                0,
            ),
        ];
        for (name, content, expected, attachments) in rows {
            let mut line = prompt("u1", None, "");
            line["message"]["content"] = content;
            let plan = plan_rewind(Cursor::new(transcript(&[line])), "u1", Some("u1")).unwrap();
            let permission_mode = Some("plan".to_owned());
            let expected = RewoundPrompt { text: expected.to_owned(), attachments, permission_mode };
            assert_eq!(plan.prompt, Some(expected), "{name}");
        }
    }

    #[test]
    fn messages_of_an_undone_rewind_are_not_dropped() {
        let keys = |uuids: &[&str]| uuids.iter().map(|uuid| IdKey::new(uuid)).collect::<HashSet<_>>();
        let lines = [&long_session()[..6], &[rewind("m", Some("a1"), "u3")]].concat();
        let dropped = |lines: &[Value]| dropped_messages(Cursor::new(transcript(lines))).unwrap();
        assert_eq!(dropped(&lines), keys(&["file", "u2", "a2", "u3"]));
        let undone = [&lines[..], &[rewind("n", Some("u3"), "m")]].concat();
        assert_eq!(dropped(&undone), keys(&["m"]));
    }
}
