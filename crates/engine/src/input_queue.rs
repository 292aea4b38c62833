//! Input waiting for a turn: prompts of the host and notifications for the model. The priority of a prompt decides
//! whether it waits for the end of the running turn.

use std::collections::{HashSet, VecDeque};

use whimbrel_tools::internal_events::Notification;
use whimbrel_wire::message::{Priority, User};

use crate::commands::{Commands, Invocation};

pub(crate) enum QueuedInput {
    Prompt(Box<User>),
    /// A notification, for a turn of its own or to be added to the next one.
    Notification(Notification),
}

/// The input of one turn.
pub(crate) enum TurnBatch {
    /// A prompt that invokes a command.
    Command { invocation: Invocation, prompt: Box<User> },
    /// Everything queued before the next command.
    Inputs(Vec<QueuedInput>),
}

/// Whether the host gets its prompts back when they are given to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptReplay {
    Enabled,
    Disabled,
}

/// Point of a turn at which prompts may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SteeringPoint {
    BeforeModelCall,
    /// The model has finished: only a prompt that needs a reply keeps the turn from ending.
    AtEnd,
}

/// Returns whether the model must reply to a prompt.
pub(crate) fn needs_reply(prompt: &User) -> bool {
    prompt.should_query != Some(false)
}

/// Returns whether a prompt interrupts the running turn. One that needs no reply has nothing to interrupt it for.
pub(crate) fn is_urgent(prompt: &User) -> bool {
    prompt.priority == Some(Priority::Now) && needs_reply(prompt)
}

/// Returns whether a prompt joins the running turn. A command never becomes part of a turn.
fn joins_running_turn(prompt: &User, commands: &Commands) -> bool {
    let has_priority = match prompt.priority {
        Some(Priority::Now) => !is_urgent(prompt),
        Some(Priority::Next) => true,
        Some(Priority::Later) | None => false,
    };
    has_priority && commands.parse_invocation(prompt).is_none()
}

impl TurnBatch {
    pub(crate) fn prompts_mut(&mut self) -> Vec<&mut User> {
        match self {
            Self::Command { prompt, .. } => vec![prompt],
            Self::Inputs(inputs) => {
                let prompts = inputs.iter_mut().filter_map(|input| match input {
                    QueuedInput::Prompt(user) => Some(&mut **user),
                    QueuedInput::Notification(_) => None,
                });
                prompts.collect()
            }
        }
    }
}

/// The queue, in order of arrival.
#[derive(Default)]
pub(crate) struct InputQueue(VecDeque<QueuedInput>);

impl InputQueue {
    /// Appends input; an urgent prompt goes to the front, behind earlier urgent ones. A notification equal to a queued
    /// one is dropped, except messages between agents, which may repeat.
    pub(crate) fn push(&mut self, input: QueuedInput) {
        if input.is_urgent() {
            let index = self.0.iter().take_while(|other| other.is_urgent()).count();
            return self.0.insert(index, input);
        }
        let is_queued = |notification: &Notification| {
            self.0
                .iter()
                .any(|other| matches!(other, QueuedInput::Notification(known) if known == notification))
        };
        if !matches!(&input, QueuedInput::Notification(notification) if !notification.is_from_peer() && is_queued(notification))
        {
            self.0.push_back(input);
        }
    }

    pub(crate) fn push_front(&mut self, input: QueuedInput) {
        self.0.push_front(input);
    }

    /// Returns whether anything queued starts a turn.
    pub(crate) fn has_turn_input(&self) -> bool {
        self.0.iter().any(QueuedInput::starts_turn)
    }

    pub(crate) fn prompt_count(&self) -> usize {
        self.0.iter().filter(|input| matches!(input, QueuedInput::Prompt(_))).count()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Uuids of the queued prompts.
    pub(crate) fn prompt_ids(&self) -> Vec<String> {
        let prompts = self.0.iter().filter_map(|input| match input {
            QueuedInput::Prompt(user) => user.uuid.clone(),
            QueuedInput::Notification(_) => None,
        });
        prompts.collect()
    }

    /// Removes the queued prompts and returns their uuids. Notifications stay.
    pub(crate) fn drop_prompts(&mut self) -> Vec<String> {
        let dropped = self.prompt_ids();
        self.0.retain(|input| matches!(input, QueuedInput::Notification(_)));
        dropped
    }

    /// Stops queued notifications from starting a turn; they are added to the next one.
    pub(crate) fn defer_notifications(&mut self) {
        for input in &mut self.0 {
            if let QueuedInput::Notification(notification) = input {
                notification.starts_turn = false;
            }
        }
    }

    /// Removes one queued prompt; `None` if there is none with this uuid.
    pub(crate) fn take_prompt(&mut self, id: &str) -> Option<Box<User>> {
        let has_id = |input: &QueuedInput| matches!(input, QueuedInput::Prompt(user) if user.uuid.as_deref() == Some(id));
        match self.0.iter().position(has_id).and_then(|index| self.0.remove(index)) {
            Some(QueuedInput::Prompt(user)) => Some(user),
            Some(QueuedInput::Notification(_)) | None => None,
        }
    }

    /// Removes the notifications about tasks that the model no longer knows.
    pub(crate) fn drop_notifications(&mut self, tasks: &HashSet<String>) {
        self.0.retain(
            |input| !matches!(input, QueuedInput::Notification(notification) if notification.is_about(tasks)),
        );
    }

    /// Takes the prompts that may come into the running turn at this point, in order.
    pub(crate) fn take_for_running_turn(&mut self, commands: &Commands, point: SteeringPoint) -> Vec<User> {
        let joins = |prompt: &User| joins_running_turn(prompt, commands);
        let keeps_turn = |input: &QueuedInput| match input {
            QueuedInput::Prompt(prompt) => joins(prompt) && needs_reply(prompt),
            QueuedInput::Notification(_) => false,
        };
        if point == SteeringPoint::AtEnd && !self.0.iter().any(keeps_turn) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for input in std::mem::take(&mut self.0) {
            match input {
                QueuedInput::Prompt(prompt) if joins(&prompt) => taken.push(*prompt),
                other => self.0.push_back(other),
            }
        }
        taken
    }

    /// Takes the input of the next turn: a command alone, or everything before the next command. `None` if nothing
    /// starts a turn. Notifications that do not start a turn are not added to a command; they stay queued.
    pub(crate) fn take_batch(&mut self, commands: &Commands) -> Option<TurnBatch> {
        let first = self.0.iter().position(QueuedInput::starts_turn)?;
        if let QueuedInput::Prompt(prompt) = &self.0[first]
            && let Some(invocation) = commands.parse_invocation(prompt)
            && let Some(QueuedInput::Prompt(prompt)) = self.0.remove(first)
        {
            return Some(TurnBatch::Command { invocation, prompt });
        }
        let count = self.0.iter().take_while(|input| !input.is_command(commands)).count();
        Some(TurnBatch::Inputs(self.0.drain(..count).collect()))
    }
}

impl QueuedInput {
    /// Returns whether the model must reply to it.
    pub(crate) fn needs_reply(&self) -> bool {
        match self {
            Self::Prompt(user) => needs_reply(user),
            Self::Notification(notification) => notification.starts_turn,
        }
    }

    /// Returns whether it starts a turn.
    fn starts_turn(&self) -> bool {
        match self {
            Self::Prompt(_) => true,
            Self::Notification(notification) => notification.starts_turn,
        }
    }

    fn is_urgent(&self) -> bool {
        matches!(self, Self::Prompt(user) if is_urgent(user))
    }

    fn is_command(&self, commands: &Commands) -> bool {
        matches!(self, Self::Prompt(user) if commands.parse_invocation(user).is_some())
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_config::locations::ConfigLocations;
    use whimbrel_config::plugins::Plugins;

    use super::*;

    fn prompt(text: &str) -> QueuedInput {
        QueuedInput::Prompt(Box::new(User { uuid: Some(text.into()), ..User::prompt(text) }))
    }

    fn queue(inputs: impl IntoIterator<Item = QueuedInput>) -> InputQueue {
        InputQueue(inputs.into_iter().collect())
    }

    #[test]
    fn queued_input_is_one_turn_and_each_command_its_own() {
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
                TurnBatch::Inputs(inputs) => inputs.len().to_string(),
                TurnBatch::Command { invocation, .. } => invocation.arguments,
            });
        }
        assert_eq!(turns, ["3", "x", "1"]);
    }

    fn prompt_with(text: &str, priority: Option<Priority>, should_query: Option<bool>) -> QueuedInput {
        let user = User { uuid: Some(text.into()), priority, should_query, ..User::prompt(text) };
        QueuedInput::Prompt(Box::new(user))
    }

    #[test]
    fn priority_decides_whether_a_prompt_interrupts_or_joins() {
        use Priority::{Later, Next, Now};
        const WAITS: (bool, bool) = (false, false);
        const INTERRUPTS: (bool, bool) = (true, false);
        const JOINS: (bool, bool) = (false, true);
        let (commands, _) = Commands::discover(&ConfigLocations::default(), &Plugins::default());
        let rows = [
            ("no priority", "a", None, None, WAITS),
            ("later", "a", Some(Later), None, WAITS),
            ("next", "a", Some(Next), None, JOINS),
            ("next, explicitly with a query", "a", Some(Next), Some(true), JOINS),
            ("next without a query", "a", Some(Next), Some(false), JOINS),
            ("a command next", "/compact", Some(Next), None, WAITS),
            ("an unknown command next", "/nosuch", Some(Next), None, JOINS),
            ("now", "a", Some(Now), None, INTERRUPTS),
            ("a command now", "/compact", Some(Now), None, INTERRUPTS),
            ("now without a query", "a", Some(Now), Some(false), JOINS),
            ("a command now without a query", "/compact", Some(Now), Some(false), WAITS),
        ];
        for (name, text, priority, should_query, expected) in rows {
            let QueuedInput::Prompt(prompt) = prompt_with(text, priority, should_query) else { panic!() };
            let decided = (is_urgent(&prompt), joins_running_turn(&prompt, &commands));
            assert_eq!(decided, expected, "{name}");
        }
    }

    #[test]
    fn running_turn_takes_next_prompts_in_order() {
        use Priority::{Later, Next};
        use SteeringPoint::{AtEnd, BeforeModelCall};
        let (commands, _) = Commands::discover(&ConfigLocations::default(), &Plugins::default());
        let next = |text| prompt_with(text, Some(Next), None);
        let silent = |text| prompt_with(text, Some(Next), Some(false));
        let notification = || QueuedInput::Notification(Notification::from_task("n"));
        type Texts = &'static [&'static str];
        let rows: [(&str, SteeringPoint, Vec<QueuedInput>, Texts, Texts); 7] = [
            ("empty", BeforeModelCall, vec![], &[], &[]),
            ("others only", BeforeModelCall, vec![prompt("a"), notification()], &[], &["a", "n"]),
            (
                "between others",
                BeforeModelCall,
                vec![prompt_with("a", Some(Later), None), next("b"), notification(), next("c")],
                &["b", "c"],
                &["a", "n"],
            ),
            ("behind a command", AtEnd, vec![next("/compact x"), next("b")], &["b"], &["x"]),
            ("without a query", BeforeModelCall, vec![silent("a")], &["a"], &[]),
            ("without a query at the end", AtEnd, vec![silent("a")], &[], &["a"]),
            ("with and without at the end", AtEnd, vec![silent("a"), next("b")], &["a", "b"], &[]),
        ];
        for (name, point, inputs, expected, left) in rows {
            let mut queue = queue(inputs);
            let taken = queue.take_for_running_turn(&commands, point);
            let taken: Vec<String> = taken.into_iter().filter_map(|prompt| prompt.uuid).collect();
            assert_eq!(taken, expected, "{name}");
            assert_eq!(texts(queue.take_batch(&commands)), left, "{name}");
        }
    }

    #[test]
    fn urgent_prompts_come_first_in_order() {
        let now = |text| prompt_with(text, Some(Priority::Now), None);
        let mut queue = queue([]);
        let silent = prompt_with("b", Some(Priority::Now), Some(false));
        for input in [prompt("a"), silent, now("first"), prompt("c"), now("second")] {
            queue.push(input);
        }
        assert_eq!(texts(queue.take_batch(&Commands::none())), ["first", "second", "a", "b", "c"]);
    }

    #[test]
    fn dropping_prompts_keeps_notifications() {
        let mut queue = queue([prompt("a"), QueuedInput::Notification(Notification::from_task("n"))]);
        assert_eq!(queue.drop_prompts(), ["a"]);
        assert!(
            matches!(queue.take_batch(&Commands::none()), Some(TurnBatch::Inputs(inputs)) if inputs.len() == 1)
        );
        assert!(!queue.has_turn_input());
    }

    fn deferred_notification(text: &str) -> QueuedInput {
        QueuedInput::Notification(Notification { starts_turn: false, ..Notification::from_peer(text) })
    }

    fn texts(batch: Option<TurnBatch>) -> Vec<String> {
        let text = |input: QueuedInput| match input {
            QueuedInput::Prompt(user) => user.uuid.unwrap(),
            QueuedInput::Notification(notification) => notification.text,
        };
        match batch {
            Some(TurnBatch::Inputs(inputs)) => inputs.into_iter().map(text).collect(),
            Some(TurnBatch::Command { invocation, .. }) => vec![invocation.arguments],
            None => Vec::new(),
        }
    }

    #[test]
    fn deferred_notifications_wait_for_a_turn_in_order() {
        let (commands, _) = Commands::discover(&ConfigLocations::default(), &Plugins::default());
        let message = || QueuedInput::Notification(Notification::from_peer("message"));
        type Turns = &'static [&'static [&'static str]];
        let rows: [(&str, Vec<QueuedInput>, Turns); 5] = [
            ("alone", vec![deferred_notification("deferred")], &[]),
            (
                "after a message",
                vec![message(), deferred_notification("deferred")],
                &[&["message", "deferred"]],
            ),
            ("before a prompt", vec![deferred_notification("deferred"), prompt("a")], &[&["deferred", "a"]]),
            ("before a command", vec![deferred_notification("deferred"), prompt("/compact x")], &[&["x"]]),
            (
                "around a command",
                vec![deferred_notification("deferred"), prompt("/compact x"), message()],
                &[&["x"], &["deferred", "message"]],
            ),
        ];
        for (name, inputs, expected) in rows {
            let mut queue = queue(inputs);
            let mut turns = Vec::new();
            while queue.has_turn_input() {
                turns.push(texts(queue.take_batch(&commands)));
            }
            assert_eq!(turns, expected, "{name}");
        }
    }

    #[test]
    fn deferred_notifications_wait_for_the_next_prompt() {
        let mut queue = queue([QueuedInput::Notification(Notification::from_task("n"))]);
        queue.defer_notifications();
        assert!(!queue.has_turn_input());
        queue.push(prompt("a"));
        assert_eq!(texts(queue.take_batch(&Commands::none())), ["n", "a"]);
    }

    #[test]
    fn single_prompt_can_be_dropped() {
        let mut queue =
            queue([prompt("a"), QueuedInput::Notification(Notification::from_task("b")), prompt("b")]);
        assert_eq!(queue.take_prompt("b").and_then(|user| user.uuid).as_deref(), Some("b"));
        assert!(queue.take_prompt("b").is_none());
        assert_eq!((queue.prompt_ids(), queue.0.len()), (vec!["a".to_owned()], 2));
    }

    #[test]
    fn equal_notifications_are_queued_once() {
        let mut queue = queue([QueuedInput::Notification(Notification::from_task("n"))]);
        queue.push(QueuedInput::Notification(Notification::from_task("n")));
        queue.push(prompt("a"));
        queue.push(prompt("a"));
        assert_eq!(queue.0.len(), 3);
        for _ in 0..2 {
            queue.push(QueuedInput::Notification(Notification::from_peer("done")));
        }
        assert_eq!(queue.0.len(), 5, "two messages give two inputs");
    }

    #[test]
    fn prompt_without_query_needs_no_reply() {
        let prompt_only = User { should_query: Some(false), ..User::prompt("by the way") };
        assert!(!QueuedInput::Prompt(Box::new(prompt_only)).needs_reply());
        assert!(prompt("a").needs_reply());
    }
}
