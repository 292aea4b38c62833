//! Prompts that wait for the end of the turn, and prompts that were handed to the running turn.

use crate::editor::Piece;

/// A prompt that was typed while a turn ran.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueuedPrompt {
    pub(crate) pieces: Vec<Piece>,
    /// Its text as it is shown.
    pub(crate) text: String,
}

/// A prompt that the engine has, but has not taken up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentPrompt {
    pub(crate) uuid: String,
    pub(crate) text: String,
}

/// The prompts that wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct PromptQueue {
    waiting: Vec<QueuedPrompt>,
    /// Handed to the running turn.
    pub(crate) steered: Vec<SentPrompt>,
}

impl PromptQueue {
    pub(crate) fn push(&mut self, prompt: QueuedPrompt) {
        self.waiting.push(prompt);
    }

    pub(crate) fn waiting(&self) -> &[QueuedPrompt] {
        &self.waiting
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the last prompt back.
    pub(crate) fn take_last(&mut self) -> Option<QueuedPrompt> {
        self.waiting.pop()
    }

    /// Takes what is sent as one message: all prompts, or up to a command of the engine, which is sent alone.
    pub(crate) fn take_next(&mut self) -> Option<Vec<QueuedPrompt>> {
        let is_command = |prompt: &QueuedPrompt| prompt.text.starts_with('/');
        let first = self.waiting.first()?;
        let count = if is_command(first) {
            1
        } else {
            self.waiting.iter().position(is_command).unwrap_or(self.waiting.len())
        };
        Some(self.waiting.drain(..count).collect())
    }

    /// Removes a prompt that the engine has taken up.
    pub(crate) fn take_steered(&mut self, uuid: &str) -> Option<SentPrompt> {
        let index = self.steered.iter().position(|prompt| prompt.uuid == uuid)?;
        Some(self.steered.remove(index))
    }
}

/// Joins prompts to the content of one message, with an empty line between them.
pub(crate) fn join(prompts: &[QueuedPrompt]) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for (index, prompt) in prompts.iter().enumerate() {
        for (place, piece) in prompt.pieces.iter().enumerate() {
            let gap = if index > 0 && place == 0 { "\n\n" } else { "" };
            match (joined.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => {
                    before.push_str(gap);
                    before.push_str(text);
                }
                (_, Piece::Text(text)) => joined.push(Piece::Text(format!("{gap}{text}"))),
                (_, picture @ Piece::Picture(..)) => joined.push(picture.clone()),
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(text: &str) -> QueuedPrompt {
        QueuedPrompt { pieces: vec![Piece::Text(text.into())], text: text.into() }
    }

    fn texts(prompts: Option<Vec<QueuedPrompt>>) -> Vec<String> {
        prompts.into_iter().flatten().map(|prompt| prompt.text).collect()
    }

    #[test]
    fn prompts_are_sent_together_and_commands_alone() {
        let mut queue = PromptQueue::default();
        ["one", "two", "/compact", "three"].into_iter().for_each(|text| queue.push(queued(text)));
        assert_eq!(texts(queue.take_next()), ["one", "two"]);
        assert_eq!(texts(queue.take_next()), ["/compact"]);
        assert_eq!(texts(queue.take_next()), ["three"]);
        assert_eq!(queue.take_next(), None);
    }

    #[test]
    fn joined_prompts_have_an_empty_line_between_them() {
        assert_eq!(join(&[queued("one"), queued("two")]), [Piece::Text("one\n\ntwo".into())]);
    }
}
