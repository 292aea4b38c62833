//! Background agents that were running when an earlier run of the session ended: on resume, a notice tells the model
//! that they will never report.

use std::collections::BTreeSet;

use whimbrel_models::History;
use whimbrel_wire::Block;
use whimbrel_wire::content::ResultContent;

use crate::tools::{LAUNCHED_PREFIX, NOTIFIED_WHEN_DONE, SENT_TO_PREFIX, STOPPED_PREFIX};

/// Beginning of the notice; used to recognise it in the history.
const NOTICE_PREFIX: &str =
    "<system-reminder>\nAgents that worked in the background ended with the earlier run";

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
            "{NOTICE_PREFIX}, and you have not heard what became of them: {names}. No news of them will come. Go on with one (Agent with `resume`), or do its work yourself.\n</system-reminder>"
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
            track_tool_result(text, awaited)
        }
        Block::Text { text, .. } if text.starts_with(NOTICE_PREFIX) => awaited.clear(),
        Block::Text { text, .. } => {
            for news in text.split("<task-notification>").skip(1) {
                if let Some((_, rest)) = news.split_once("<task-id>") {
                    awaited.retain(|id| !rest.starts_with(&format!("{id}<")));
                }
            }
        }
        _ => {}
    }
}

/// Updates the set of awaited agents from the text of a tool result.
fn track_tool_result(text: &str, awaited: &mut BTreeSet<String>) {
    let begun = [LAUNCHED_PREFIX, SENT_TO_PREFIX].into_iter().find_map(|words| id_after(text, words));
    if let Some(id) = begun.filter(|_| text.contains(NOTIFIED_WHEN_DONE)) {
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
fn id_after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(words)?;
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
            ("nobody", vec![Block::text("hello")], &[]),
            ("one", vec![launched_block("a1")], &["a1"]),
            ("whose end was told", vec![launched_block("a1"), notification_block("a1")], &[]),
            (
                "one of two",
                vec![launched_block("a1"), launched_block("a11"), notification_block("a1")],
                &["a11"],
            ),
            (
                "one that went on",
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
        for (name, said, expected) in rows {
            let mut history = History::new();
            said.iter().for_each(|block| history.push(Role::User, block));
            let said = lost_agents_notice(&history);
            assert_eq!(said.is_some(), !expected.is_empty(), "{name}: {said:?}");
            let Some(text) = said else { continue };
            assert!(text.contains(&format!("of them: {}. No news", expected.join(", "))), "{name}: {text}");
            history.push(Role::User, &Block::text(text));
            assert_eq!(lost_agents_notice(&history), None, "{name}: not again");
        }
    }
}
