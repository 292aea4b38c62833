//! Background agents that were running when an earlier run of the session ended: on resume, a notice tells the model
//! that they will never report.

use std::collections::BTreeSet;

use whimbrel_models::History;
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;

use super::tools::agent::{LAUNCHED_PREFIX, NOTIFIED_WHEN_DONE};
use super::tools::send_message::SENT_TO_PREFIX;
use whimbrel_tools::builtin::STOPPED_PREFIX;

/// Beginning of the notice; used to recognise it in the history.
const NOTICE_PREFIX: &str = "<system-reminder>\nBackground agents stopped when the previous run ended";

/// The notice for the main agent of a resumed session, if background agents are missing.
pub(super) fn lost_agents_notice(history: &History) -> Option<String> {
    // A cheap search first: most histories have no background agents.
    history.find_last_text(&[LAUNCHED_PREFIX])?;
    let mut awaited = BTreeSet::new();
    for block in history.messages().iter().flat_map(|message| &message.content) {
        track_block(block, &mut awaited);
    }
    (!awaited.is_empty()).then(|| {
        let names = awaited.into_iter().collect::<Vec<_>>().join(", ");
        format!(
            "{NOTICE_PREFIX}, before they reported: {names}. They will not report any more. Continue one (Agent with `resume`), or do its work yourself.\n</system-reminder>"
        )
    })
}

/// Updates the set of awaited agents from one block of the history.
fn track_block(block: &Block, awaited: &mut BTreeSet<String>) {
    match block {
        Block::ToolResult { content: Some(ResultContent::Blocks(blocks)), .. } => {
            blocks.iter().filter_map(block_text).for_each(|text| track_tool_result(text, awaited));
        }
        Block::ToolResult { content: Some(ResultContent::Text(text)), .. } => {
            track_tool_result(text, awaited);
        }
        Block::Text { text, .. } if text.starts_with(NOTICE_PREFIX) => awaited.clear(),
        Block::Text { text, .. } => {
            for notification in text.split("<task-notification>").skip(1) {
                if let Some((_, rest)) = notification.split_once("<task-id>") {
                    awaited.retain(|id| !rest.starts_with(&format!("{id}<")));
                }
            }
        }
        _ => {}
    }
}

/// Updates the set of awaited agents from the text of a tool result.
fn track_tool_result(text: &str, awaited: &mut BTreeSet<String>) {
    let started = [LAUNCHED_PREFIX, SENT_TO_PREFIX].into_iter().find_map(|prefix| id_after(text, prefix));
    if let Some(id) = started.filter(|_| text.contains(NOTIFIED_WHEN_DONE)) {
        awaited.insert(id.to_owned());
    } else if let Some(id) = id_after(text, STOPPED_PREFIX) {
        awaited.remove(id);
    }
}

fn block_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// The id that follows a prefix at the beginning of a text.
fn id_after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(prefix)?;
    rest.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::Role;

    use super::*;

    fn launched_block(id: &str) -> Block {
        let text = Block::text(format!("{LAUNCHED_PREFIX}{id}. {NOTIFIED_WHEN_DONE}."));
        Block::ToolResult {
            tool_use_id: "call".into(),
            content: Some(ResultContent::Blocks(vec![text])),
            is_error: None,
        }
    }

    fn result_block(text: &str) -> Block {
        Block::ToolResult {
            tool_use_id: "call".into(),
            content: Some(ResultContent::Text(text.into())),
            is_error: None,
        }
    }

    fn notification_block(id: &str) -> Block {
        Block::text(format!("<task-notification>\n<task-id>{id}</task-id>\n</task-notification>"))
    }

    #[test]
    fn awaited_agents_are_reported_once() {
        let rows: [(&str, Vec<Block>, &[&str]); 9] = [
            ("no agents", vec![Block::text("hello")], &[]),
            ("one", vec![launched_block("a1")], &["a1"]),
            ("already reported", vec![launched_block("a1"), notification_block("a1")], &[]),
            (
                "one of two",
                vec![launched_block("a1"), launched_block("a11"), notification_block("a1")],
                &["a11"],
            ),
            (
                "continued after its report",
                vec![launched_block("a1"), notification_block("a1"), launched_block("a1")],
                &["a1"],
            ),
            (
                "one that the model stopped",
                vec![launched_block("a1"), result_block("Stopped a1 (nap).")],
                &[],
            ),
            (
                "one that went on by a message",
                vec![
                    launched_block("a1"),
                    notification_block("a1"),
                    result_block(&format!("{SENT_TO_PREFIX}a1. {NOTIFIED_WHEN_DONE}.")),
                ],
                &["a1"],
            ),
            (
                "a letter",
                vec![launched_block("a1"), notification_block("a1"), result_block("Sent to ann.")],
                &[],
            ),
            ("words about it", vec![Block::text(format!("{LAUNCHED_PREFIX}a1"))], &[]),
        ];
        for (name, blocks, expected) in rows {
            let mut history = History::new();
            blocks.iter().for_each(|block| history.push(Role::User, block));
            let notice = lost_agents_notice(&history);
            assert_eq!(notice.is_some(), !expected.is_empty(), "{name}: {notice:?}");
            let Some(text) = notice else { continue };
            assert!(
                text.contains(&format!("before they reported: {}. They", expected.join(", "))),
                "{name}: {text}"
            );
            history.push(Role::User, &Block::text(text));
            assert_eq!(lost_agents_notice(&history), None, "{name}: not again");
        }
    }
}
