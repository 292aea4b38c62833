//! What waits for a turn: messages of the host and news for the model.

use std::collections::VecDeque;

use whimbrel_wire::message::User;

use crate::commands::{Invocation, Commands};
use crate::internal_events::Notification;

/// Something that is due for a turn.
pub(crate) enum QueuedInput {
    /// The host said something.
    Prompt(Box<User>),
    /// Something happened that the model should know of, in a turn of its own or with what comes next.
    Notification(Notification),
}

/// What one turn is about.
pub(crate) enum TurnBatch {
    /// A prompt that calls a command.
    Command {
        /// What it calls.
        invocation: Invocation,
        /// The prompt.
        prompt: Box<User>,
    },
    /// Everything that waited before the next command.
    Inputs(Vec<QueuedInput>),
}

impl TurnBatch {
    /// The messages of the host in it.
    pub(crate) fn prompts_mut(&mut self) -> Vec<&mut User> {
        match self {
            Self::Command { prompt, .. } => vec![prompt],
            Self::Inputs(dues) => {
                let prompts = dues.iter_mut().filter_map(|due| match due {
                    QueuedInput::Prompt(user) => Some(&mut **user),
                    QueuedInput::Notification(_) => None,
                });
                prompts.collect()
            }
        }
    }
}

/// What waits, in order.
#[derive(Default)]
pub(crate) struct InputQueue(VecDeque<QueuedInput>);

impl InputQueue {
    /// Puts something at the end. News that waits already in the same words is no news; a letter is one, though, each
    /// time that somebody writes it.
    pub(crate) fn push(&mut self, due: QueuedInput) {
        let waits =
            |news: &Notification| self.0.iter().any(|other| matches!(other, QueuedInput::Notification(known) if known == news));
        if !matches!(&due, QueuedInput::Notification(news) if !news.is_from_peer() && waits(news)) {
            self.0.push_back(due);
        }
    }

    /// Puts something at the beginning.
    pub(crate) fn push_front(&mut self, due: QueuedInput) {
        self.0.push_front(due);
    }

    /// Whether something waits that is worth a turn.
    pub(crate) fn has_turn_input(&self) -> bool {
        self.0.iter().any(QueuedInput::starts_turn)
    }

    /// How many messages of the host wait.
    pub(crate) fn prompt_count(&self) -> usize {
        self.0.iter().filter(|due| matches!(due, QueuedInput::Prompt(_))).count()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The ids of the messages that wait.
    pub(crate) fn prompt_ids(&self) -> Vec<String> {
        let prompts = self.0.iter().filter_map(|due| match due {
            QueuedInput::Prompt(user) => user.uuid.clone(),
            QueuedInput::Notification(_) => None,
        });
        prompts.collect()
    }

    /// Drops the messages that wait and gives their ids. News for the model stays.
    pub(crate) fn drop_prompts(&mut self) -> Vec<String> {
        let dropped = self.prompt_ids();
        self.0.retain(|due| matches!(due, QueuedInput::Notification(_)));
        dropped
    }

    /// The news that wait are no longer worth a turn: they are told with what comes next.
    pub(crate) fn defer_notifications(&mut self) {
        for due in &mut self.0 {
            if let QueuedInput::Notification(news) = due {
                news.starts_turn = false;
            }
        }
    }

    /// Drops one message that waits; false if there is none with this id.
    pub(crate) fn drop_prompt(&mut self, id: &str) -> bool {
        let is_it = |due: &QueuedInput| matches!(due, QueuedInput::Prompt(user) if user.uuid.as_deref() == Some(id));
        self.0.iter().position(is_it).and_then(|at| self.0.remove(at)).is_some()
    }

    /// What the next turn is about: a command alone, or everything that waits before one. There is none if nothing is worth
    /// one; what only waits for a turn is not told with a command, but stays.
    pub(crate) fn take_batch(&mut self, commands: &Commands) -> Option<TurnBatch> {
        let first = self.0.iter().position(QueuedInput::starts_turn)?;
        if let QueuedInput::Prompt(prompt) = &self.0[first]
            && let Some(called) = commands.parse_invocation(prompt)
            && let Some(QueuedInput::Prompt(prompt)) = self.0.remove(first)
        {
            return Some(TurnBatch::Command { invocation: called, prompt });
        }
        let said = self.0.iter().take_while(|due| !due.is_command(commands)).count();
        Some(TurnBatch::Inputs(self.0.drain(..said).collect()))
    }
}

impl QueuedInput {
    /// Whether the model is to answer it.
    pub(crate) fn needs_reply(&self) -> bool {
        match self {
            Self::Prompt(user) => user.should_query != Some(false),
            Self::Notification(news) => news.starts_turn,
        }
    }

    /// Whether it is not left to wait for something else.
    fn starts_turn(&self) -> bool {
        match self {
            Self::Prompt(_) => true,
            Self::Notification(news) => news.starts_turn,
        }
    }

    fn is_command(&self, commands: &Commands) -> bool {
        matches!(self, Self::Prompt(user) if commands.parse_invocation(user).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_locations::ConfigLocations;
    use crate::plugins::Plugins;

    fn prompt(text: &str) -> QueuedInput {
        QueuedInput::Prompt(Box::new(User { uuid: Some(text.into()), ..User::prompt(text) }))
    }

    fn queue(dues: impl IntoIterator<Item = QueuedInput>) -> InputQueue {
        InputQueue(dues.into_iter().collect())
    }

    #[test]
    fn what_waits_is_one_turn_and_a_command_is_a_turn_of_its_own() {
        let mut queue = queue([
            prompt("a"),
            QueuedInput::Notification(Notification::from_task("n")),
            prompt("b"),
            prompt("/compact x"),
            prompt("c"),
        ]);
        let mut turns = Vec::new();
        let (commands, _) = Commands::discover(&ConfigLocations::default(), &Plugins::default());
        while let Some(batch) = queue.take_batch(&commands) {
            turns.push(match batch {
                TurnBatch::Inputs(dues) => dues.len().to_string(),
                TurnBatch::Command { invocation: called, .. } => called.arguments,
            });
        }
        assert_eq!(turns, ["3", "x", "1"]);
    }

    #[test]
    fn dropping_the_prompts_keeps_the_news() {
        let mut queue = queue([prompt("a"), QueuedInput::Notification(Notification::from_task("n"))]);
        assert_eq!(queue.drop_prompts(), ["a"]);
        assert!(matches!(queue.take_batch(&Commands::none()), Some(TurnBatch::Inputs(dues)) if dues.len() == 1));
        assert!(!queue.has_turn_input());
    }

    fn deferred_notification(text: &str) -> QueuedInput {
        QueuedInput::Notification(Notification { starts_turn: false, ..Notification::from_peer(text) })
    }

    fn texts(batch: Option<TurnBatch>) -> Vec<String> {
        let text = |due: QueuedInput| match due {
            QueuedInput::Prompt(user) => user.uuid.unwrap(),
            QueuedInput::Notification(news) => news.text,
        };
        match batch {
            Some(TurnBatch::Inputs(dues)) => dues.into_iter().map(text).collect(),
            Some(TurnBatch::Command { invocation: called, .. }) => vec![called.arguments],
            None => Vec::new(),
        }
    }

    #[test]
    fn what_is_not_worth_a_turn_keeps_its_place_and_waits_for_one() {
        let (commands, _) = Commands::discover(&ConfigLocations::default(), &Plugins::default());
        let letter = || QueuedInput::Notification(Notification::from_peer("letter"));
        type Turns = &'static [&'static [&'static str]];
        let rows: [(&str, Vec<QueuedInput>, Turns); 5] = [
            ("alone", vec![deferred_notification("rests")], &[]),
            ("behind a letter", vec![letter(), deferred_notification("rests")], &[&["letter", "rests"]]),
            ("before a prompt", vec![deferred_notification("rests"), prompt("a")], &[&["rests", "a"]]),
            ("before a command", vec![deferred_notification("rests"), prompt("/compact x")], &[&["x"]]),
            (
                "over a command",
                vec![deferred_notification("rests"), prompt("/compact x"), letter()],
                &[&["x"], &["rests", "letter"]],
            ),
        ];
        for (name, dues, expected) in rows {
            let mut queue = queue(dues);
            let mut turns = Vec::new();
            while queue.has_turn_input() {
                turns.push(texts(queue.take_batch(&commands)));
            }
            assert_eq!(turns, expected, "{name}");
        }
    }

    #[test]
    fn news_that_are_lulled_wait_for_the_next_prompt() {
        let mut queue = queue([QueuedInput::Notification(Notification::from_task("n"))]);
        queue.defer_notifications();
        assert!(!queue.has_turn_input());
        queue.push(prompt("a"));
        assert_eq!(texts(queue.take_batch(&Commands::none())), ["n", "a"]);
    }

    #[test]
    fn one_prompt_can_be_taken_back() {
        let mut queue = queue([prompt("a"), QueuedInput::Notification(Notification::from_task("b")), prompt("b")]);
        assert!(queue.drop_prompt("b") && !queue.drop_prompt("b"));
        assert_eq!((queue.prompt_ids(), queue.0.len()), (vec!["a".to_owned()], 2));
    }

    #[test]
    fn the_same_news_waits_once() {
        let mut queue = queue([QueuedInput::Notification(Notification::from_task("n"))]);
        queue.push(QueuedInput::Notification(Notification::from_task("n")));
        queue.push(prompt("a"));
        queue.push(prompt("a"));
        assert_eq!(queue.0.len(), 3);
        for _ in 0..2 {
            queue.push(QueuedInput::Notification(Notification::from_peer("done")));
        }
        assert_eq!(queue.0.len(), 5, "who writes twice is heard twice");
    }

    #[test]
    fn a_remark_asks_for_nothing() {
        let remark = User { should_query: Some(false), ..User::prompt("by the way") };
        assert!(!QueuedInput::Prompt(Box::new(remark)).needs_reply());
        assert!(prompt("a").needs_reply());
    }
}
