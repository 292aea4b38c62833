//! What waits for a turn: messages of the host and news for the model.

use std::collections::VecDeque;

use whimbrel_wire::message::User;

use crate::commands::{Called, Commands};
use crate::inbox::News;

/// Something that is due for a turn.
pub(crate) enum Due {
    /// The host said something.
    Prompt(Box<User>),
    /// Something happened that the model should know of.
    News(News),
}

/// What one turn is about.
pub(crate) enum Batch {
    /// A prompt that calls a command.
    Command {
        /// What it calls.
        called: Called,
        /// The prompt.
        prompt: Box<User>,
    },
    /// Everything that waited before the next command.
    Said(Vec<Due>),
}

/// What waits, in order.
#[derive(Default)]
pub(crate) struct Queue(VecDeque<Due>);

impl Queue {
    /// Puts something at the end. News that waits already in the same words is no news; a letter is one, though, each
    /// time that somebody writes it.
    pub(crate) fn push(&mut self, due: Due) {
        let waits =
            |news: &News| self.0.iter().any(|other| matches!(other, Due::News(known) if known == news));
        if !matches!(&due, Due::News(news) if !news.is_mail() && waits(news)) {
            self.0.push_back(due);
        }
    }

    /// Puts something at the beginning.
    pub(crate) fn push_first(&mut self, due: Due) {
        self.0.push_front(due);
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many messages of the host wait.
    pub(crate) fn prompts(&self) -> usize {
        self.0.iter().filter(|due| matches!(due, Due::Prompt(_))).count()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The ids of the messages that wait.
    pub(crate) fn ids(&self) -> Vec<String> {
        let prompts = self.0.iter().filter_map(|due| match due {
            Due::Prompt(user) => user.uuid.clone(),
            Due::News(_) => None,
        });
        prompts.collect()
    }

    /// Drops the messages that wait and gives their ids. News for the model stays.
    pub(crate) fn drop_prompts(&mut self) -> Vec<String> {
        let dropped = self.ids();
        self.0.retain(|due| matches!(due, Due::News(_)));
        dropped
    }

    /// Takes out the news that wait. Messages stay.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for due in std::mem::take(&mut self.0) {
            match due {
                Due::News(told) => news.push(told),
                Due::Prompt(_) => self.0.push_back(due),
            }
        }
        news
    }

    /// Drops one message that waits; false if there is none with this id.
    pub(crate) fn drop_prompt(&mut self, id: &str) -> bool {
        let is_it = |due: &Due| matches!(due, Due::Prompt(user) if user.uuid.as_deref() == Some(id));
        self.0.iter().position(is_it).and_then(|at| self.0.remove(at)).is_some()
    }

    /// What the next turn is about: a command alone, or everything that waits before one.
    pub(crate) fn take(&mut self, commands: &Commands) -> Option<Batch> {
        match self.0.pop_front()? {
            Due::Prompt(prompt) if let Some(called) = commands.called(&prompt) => {
                Some(Batch::Command { called, prompt })
            }
            first => {
                let more = self.0.iter().take_while(|due| !due.is_command(commands)).count();
                Some(Batch::Said(std::iter::once(first).chain(self.0.drain(..more)).collect()))
            }
        }
    }
}

impl Due {
    /// Whether the model is to answer it.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self, Self::Prompt(user) if user.should_query == Some(false))
    }

    fn is_command(&self, commands: &Commands) -> bool {
        matches!(self, Self::Prompt(user) if commands.called(user).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;
    use crate::plugins::Plugins;

    fn prompt(text: &str) -> Due {
        Due::Prompt(Box::new(User { uuid: Some(text.into()), ..User::prompt(text) }))
    }

    fn queue(dues: impl IntoIterator<Item = Due>) -> Queue {
        Queue(dues.into_iter().collect())
    }

    #[test]
    fn what_waits_is_one_turn_and_a_command_is_a_turn_of_its_own() {
        let mut queue = queue([
            prompt("a"),
            Due::News(News::of_task("n")),
            prompt("b"),
            prompt("/compact x"),
            prompt("c"),
        ]);
        let mut turns = Vec::new();
        let (commands, _) = Commands::find(&Ground::default(), &Plugins::default());
        while let Some(batch) = queue.take(&commands) {
            turns.push(match batch {
                Batch::Said(dues) => dues.len().to_string(),
                Batch::Command { called, .. } => called.rest,
            });
        }
        assert_eq!(turns, ["3", "x", "1"]);
    }

    #[test]
    fn dropping_the_prompts_keeps_the_news() {
        let mut queue = queue([prompt("a"), Due::News(News::of_task("n"))]);
        assert_eq!(queue.drop_prompts(), ["a"]);
        assert!(matches!(queue.take(&Commands::none()), Some(Batch::Said(dues)) if dues.len() == 1));
        assert!(queue.is_empty());
    }

    #[test]
    fn taking_the_news_keeps_the_prompts_in_order() {
        let mut queue = queue([prompt("a"), Due::News(News::of_task("n")), prompt("b")]);
        assert_eq!(queue.take_news(), [News::of_task("n")]);
        assert_eq!(queue.ids(), ["a", "b"]);
    }

    #[test]
    fn one_prompt_can_be_taken_back() {
        let mut queue = queue([prompt("a"), Due::News(News::of_task("b")), prompt("b")]);
        assert!(queue.drop_prompt("b") && !queue.drop_prompt("b"));
        assert_eq!((queue.ids(), queue.0.len()), (vec!["a".to_owned()], 2));
    }

    #[test]
    fn the_same_news_waits_once() {
        let mut queue = queue([Due::News(News::of_task("n"))]);
        queue.push(Due::News(News::of_task("n")));
        queue.push(prompt("a"));
        queue.push(prompt("a"));
        assert_eq!(queue.0.len(), 3);
        for _ in 0..2 {
            queue.push(Due::News(News::of_mail("done")));
        }
        assert_eq!(queue.0.len(), 5, "who writes twice is heard twice");
    }

    #[test]
    fn a_remark_asks_for_nothing() {
        let remark = User { should_query: Some(false), ..User::prompt("by the way") };
        assert!(!Due::Prompt(Box::new(remark)).asks());
        assert!(prompt("a").asks());
    }
}
