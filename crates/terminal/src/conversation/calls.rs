//! Tool calls that run, and the last lines of what their commands print.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::time::Instant;
use whimbrel::wire::content::{Block, ResultContent};
use whimbrel::wire::message::ToolOutputChunk;

use super::{Change, Conversation};
use crate::transcript::{FinishedCall, Item};

/// Lines of live output that are shown.
pub(crate) const MAX_LIVE_LINES: usize = 5;
/// Longest line of live output that is kept.
const MAX_LIVE_LINE: usize = 4000;

/// A call without a result.
#[derive(Debug, Clone)]
pub(crate) struct RunningCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) started: Instant,
    /// Last lines of live output; the last one may be incomplete.
    pub(crate) live: VecDeque<String>,
}

impl RunningCall {
    /// Adds live output.
    fn add_output(&mut self, text: &str) {
        let mut parts = text.split('\n');
        if let Some(first) = parts.next() {
            match self.live.back_mut() {
                Some(last) if last.len() < MAX_LIVE_LINE => last.push_str(first),
                Some(_) => {}
                None => self.live.push_back(first.to_owned()),
            }
        }
        for part in parts {
            self.live.push_back(part.to_owned());
            // One more, because the last one is empty after a newline.
            if self.live.len() > MAX_LIVE_LINES + 1 {
                self.live.pop_front();
            }
        }
    }

    /// The lines to show.
    pub(crate) fn live_lines(&self) -> Vec<String> {
        let shown = self.live.iter().filter(|line| !line.is_empty());
        let skipped = shown.clone().count().saturating_sub(MAX_LIVE_LINES);
        // A carriage return overwrites a line, as progress bars do.
        shown
            .skip(skipped)
            .map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Conversation {
    pub(super) fn start_call(&mut self, id: &str, name: &str, input: &Value, now: Instant) {
        if self.calls.iter().any(|call| call.id == id) {
            return;
        }
        self.calls.push(RunningCall {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.clone(),
            started: now,
            live: VecDeque::new(),
        });
    }

    /// Records a result on the main line.
    pub(super) fn finish_call(
        &mut self,
        id: &str,
        result: CallResult,
        now: Instant,
        changes: &mut Vec<Change>,
    ) {
        let Some(index) = self.calls.iter().position(|call| call.id == id) else { return };
        let RunningCall { id, name, input, started, .. } = self.calls.remove(index);
        self.finish_agent(&id, result.is_error);
        self.record_todos(&name, &input, result.structured.as_ref(), result.is_error);
        let call = FinishedCall {
            id,
            name,
            input,
            text: result.text,
            is_error: result.is_error,
            structured: result.structured,
            elapsed: now.saturating_duration_since(started),
        };
        if is_shown(&call) {
            self.show(Item::Call(Box::new(call.limited())), changes);
        }
    }

    pub(super) fn add_output(&mut self, chunk: &ToolOutputChunk) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == chunk.tool_use_id) {
            call.add_output(&chunk.text);
        }
    }

    /// Ends calls that will not get a result.
    pub(super) fn abandon_calls(&mut self, now: Instant, changes: &mut Vec<Change>) {
        let ids: Vec<String> = self.calls.iter().map(|call| call.id.clone()).collect();
        for id in ids {
            let result = CallResult { text: "interrupted".into(), is_error: true, structured: None };
            self.finish_call(&id, result, now, changes);
        }
    }
}

/// Calls that only change what is shown elsewhere have no entry of their own, unless they fail.
fn is_shown(call: &FinishedCall) -> bool {
    call.is_error || !matches!(call.name.as_str(), "TodoWrite" | "ToolSearch")
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(crate) struct CallResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) structured: Option<Value>,
}

/// The text of a result, with a word for each block that is no text.
pub(super) fn result_text(content: Option<&ResultContent>) -> String {
    match content {
        None => String::new(),
        Some(ResultContent::Text(text)) => text.clone(),
        Some(ResultContent::Blocks(blocks)) => {
            let texts = blocks.iter().map(|block| match block {
                Block::Text { text, .. } => text.as_str(),
                Block::Image { .. } => "(a picture)",
                Block::Document { .. } => "(a document)",
                _ => "(other content)",
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
