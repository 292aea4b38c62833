//! What waits for a turn: messages of the host and news for the model.

use std::collections::VecDeque;

use whimbrel_wire::message::User;

use crate::commands::{Called, Commands};
use crate::inbox::News;

/// Something that is due for a turn.
pub(crate) enum Due {
    /// The host said something.
    Prompt(Box<User>),
    /// Something happened that the model should know of, in a turn of its own or with what comes next.
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

impl Batch {
    /// The messages of the host in it.
    pub(crate) fn prompts(&mut self) -> Vec<&mut User> {
        match self {
            Self::Command { prompt, .. } => vec![prompt],
            Self::Said(dues) => {
                let prompts = dues.iter_mut().filter_map(|due| match due {
                    Due::Prompt(user) => Some(&mut **user),
                    Due::News(_) => None,
                });
                prompts.collect()
            }
        }
    }
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

    /// Whether something waits that is worth a turn.
    pub(crate) fn wakes(&self) -> bool {
        self.0.iter().any(Due::wakes)
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

    /// The news that wait are no longer worth a turn: they are told with what comes next.
    pub(crate) fn lull(&mut self) {
        for due in &mut self.0 {
            if let Due::News(news) = due {
                news.wakes = false;
            }
        }
    }

    /// Drops one message that waits; false if there is none with this id.
    pub(crate) fn drop_prompt(&mut self, id: &str) -> bool {
        let is_it = |due: &Due| matches!(due, Due::Prompt(user) if user.uuid.as_deref() == Some(id));
        self.0.iter().position(is_it).and_then(|at| self.0.remove(at)).is_some()
    }

    /// What the next turn is about: a command alone, or everything that waits before one. There is none if nothing is worth
    /// one; what only waits for a turn is not told with a command, but stays.
    pub(crate) fn take(&mut self, commands: &Commands) -> Option<Batch> {
        let first = self.0.iter().position(Due::wakes)?;
        if let Due::Prompt(prompt) = &self.0[first]
            && let Some(called) = commands.called(prompt)
            && let Some(Due::Prompt(prompt)) = self.0.remove(first)
        {
            return Some(Batch::Command { called, prompt });
        }
        let said = self.0.iter().take_while(|due| !due.is_command(commands)).count();
        Some(Batch::Said(self.0.drain(..said).collect()))
    }
}

impl Due {
    /// Whether the model is to answer it.
    pub(crate) fn asks(&self) -> bool {
        match self {
            Self::Prompt(user) => user.should_query != Some(false),
            Self::News(news) => news.wakes,
        }
    }

    /// Whether it is not left to wait for something else.
    fn wakes(&self) -> bool {
        match self {
            Self::Prompt(_) => true,
            Self::News(news) => news.wakes,
        }
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
        assert!(!queue.wakes());
    }

    fn aside(text: &str) -> Due {
        Due::News(News { wakes: false, ..News::of_mail(text) })
    }

    fn texts(batch: Option<Batch>) -> Vec<String> {
        let text = |due: Due| match due {
            Due::Prompt(user) => user.uuid.unwrap(),
            Due::News(news) => news.text,
        };
        match batch {
            Some(Batch::Said(dues)) => dues.into_iter().map(text).collect(),
            Some(Batch::Command { called, .. }) => vec![called.rest],
            None => Vec::new(),
        }
    }

    #[test]
    fn what_is_not_worth_a_turn_keeps_its_place_and_waits_for_one() {
        let (commands, _) = Commands::find(&Ground::default(), &Plugins::default());
        let letter = || Due::News(News::of_mail("letter"));
        type Turns = &'static [&'static [&'static str]];
        let rows: [(&str, Vec<Due>, Turns); 5] = [
            ("alone", vec![aside("rests")], &[]),
            ("behind a letter", vec![letter(), aside("rests")], &[&["letter", "rests"]]),
            ("before a prompt", vec![aside("rests"), prompt("a")], &[&["rests", "a"]]),
            ("before a command", vec![aside("rests"), prompt("/compact x")], &[&["x"]]),
            (
                "over a command",
                vec![aside("rests"), prompt("/compact x"), letter()],
                &[&["x"], &["rests", "letter"]],
            ),
        ];
        for (name, dues, expected) in rows {
            let mut queue = queue(dues);
            let mut turns = Vec::new();
            while queue.wakes() {
                turns.push(texts(queue.take(&commands)));
            }
            assert_eq!(turns, expected, "{name}");
        }
    }

    #[test]
    fn news_that_are_lulled_wait_for_the_next_prompt() {
        let mut queue = queue([Due::News(News::of_task("n"))]);
        queue.lull();
        assert!(!queue.wakes());
        queue.push(prompt("a"));
        assert_eq!(texts(queue.take(&Commands::none())), ["n", "a"]);
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
