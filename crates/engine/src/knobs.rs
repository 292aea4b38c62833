//! What a host can turn while a session runs, and what an agent is lent for a turn. The knobs are written only by
//! `control` and commands; a turn reads a snapshot at each step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use whimbrel_models::{Effort, Thinking, ThinkingDisplay};

/// The settings that can change in the middle of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knobs {
    /// The model, by its full name.
    pub model: String,
    /// What was asked of thinking; none means the model's own default.
    pub thinking: Option<Thinking>,
    /// What is shown of it; none leaves that to the provider.
    pub thinking_display: Option<ThinkingDisplay>,
    /// How hard the model tries.
    pub effort: Option<Effort>,
    /// How the model is to go about a plan, in place of our own words.
    pub plan_mode_instructions: Option<Arc<str>>,
}

/// The writing end.
pub type KnobsWriter = watch::Sender<Knobs>;

/// The reading end of one agent. Clones see the same loans.
#[derive(Debug, Clone)]
pub struct KnobsReader {
    turned: watch::Receiver<Knobs>,
    /// What was lent to whoever started the agent, at that time.
    inherited: Vec<Loan>,
    /// What is lent to the agent itself.
    own: Arc<Mutex<Vec<Loan>>>,
}

/// What a skill or a command has in place of the knobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Override {
    /// The model, by its full name.
    pub model: Option<String>,
    /// How hard it is to try.
    pub effort: Option<Effort>,
}

/// Something lent.
#[derive(Debug, Clone)]
struct Loan {
    lent: Override,
    /// What the host had turned by then. What it turns afterwards counts more than what was lent before.
    over: Knobs,
}

impl Loan {
    fn lay_over(&self, knobs: &mut Knobs, turned: &Knobs) {
        let Self { lent, over } = self;
        if let Some(model) = lent.model.as_ref().filter(|_| turned.model == over.model) {
            knobs.model.clone_from(model);
            if turned.thinking == over.thinking {
                // A limit on thinking was meant for the other model.
                knobs.thinking = knobs.thinking.filter(|thinking| *thinking == Thinking::Disabled);
            }
        }
        if lent.effort.is_some() && turned.effort == over.effort {
            knobs.effort = lent.effort;
        }
    }
}

impl KnobsReader {
    /// Reads what a host turns.
    pub fn new(turned: watch::Receiver<Knobs>) -> Self {
        Self { turned, inherited: Vec::new(), own: Arc::default() }
    }

    /// Reads knobs that nobody turns.
    pub fn fixed(knobs: Knobs) -> Self {
        Self::new(watch::Sender::new(knobs).subscribe())
    }

    /// For an agent that this one starts: what is lent to this one by now counts there as long as that agent lives.
    #[must_use]
    pub fn below(&self) -> Self {
        let inherited = [self.inherited.as_slice(), &self.own()].concat();
        Self { turned: self.turned.clone(), inherited, own: Arc::default() }
    }

    /// The knobs as they stand now.
    pub fn now(&self) -> Knobs {
        let turned = self.turned.borrow();
        let mut knobs = turned.clone();
        self.inherited.iter().chain(self.own().iter()).for_each(|loan| loan.lay_over(&mut knobs, &turned));
        knobs
    }

    /// Lends something to the agent, until it is taken back.
    pub fn lend(&self, lent: Override) {
        if lent != Override::default() {
            let over = self.turned.borrow().clone();
            self.own().push(Loan { lent, over });
        }
    }

    /// Takes back what was lent to the agent.
    pub fn take_back(&self) {
        self.own().clear();
    }

    fn own(&self) -> MutexGuard<'_, Vec<Loan>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Option<Thinking> = Some(Thinking::Enabled { budget: 1000 });
    const MORE: Option<Thinking> = Some(Thinking::Enabled { budget: 9000 });

    fn knobs(model: &str, thinking: Option<Thinking>, effort: Option<Effort>) -> Knobs {
        Knobs { model: model.into(), thinking, effort, ..Knobs::default() }
    }

    fn lent(model: Option<&str>, effort: Option<Effort>) -> Override {
        Override { model: model.map(Into::into), effort }
    }

    #[test]
    fn what_is_lent_counts_until_it_is_taken_back_or_the_host_turns_the_same_knob() {
        type Turn = fn(&mut Knobs);
        let both = || lent(Some("lent"), Some(Effort::Low));
        let rows: [(&str, Override, Turn, Knobs); 6] = [
            ("all of it", both(), |_| {}, knobs("lent", None, Some(Effort::Low))),
            (
                "another model of the host's",
                both(),
                |knobs| knobs.model = "new".into(),
                knobs("new", SOME, Some(Effort::Low)),
            ),
            (
                "thinking that the host has set since",
                both(),
                |knobs| knobs.thinking = MORE,
                knobs("lent", MORE, Some(Effort::Low)),
            ),
            (
                "no thinking stays none",
                lent(Some("lent"), None),
                |knobs| knobs.thinking = Some(Thinking::Disabled),
                knobs("lent", Some(Thinking::Disabled), None),
            ),
            (
                "effort alone leaves thinking",
                lent(None, Some(Effort::High)),
                |_| {},
                knobs("own", SOME, Some(Effort::High)),
            ),
            (
                "another effort of the host's",
                both(),
                |knobs| knobs.effort = Some(Effort::Max),
                knobs("lent", None, Some(Effort::Max)),
            ),
        ];
        for (name, lent, turn, expected) in rows {
            let writer = watch::Sender::new(knobs("own", SOME, None));
            let reader = KnobsReader::new(writer.subscribe());
            reader.lend(lent);
            writer.send_modify(turn);
            assert_eq!(reader.now(), expected, "{name}");
            reader.take_back();
            assert_eq!(reader.now(), *writer.borrow(), "{name}, afterwards");
        }
    }

    #[test]
    fn of_two_loans_the_later_one_counts() {
        let reader = KnobsReader::fixed(knobs("own", SOME, None));
        reader.lend(lent(Some("one"), Some(Effort::Low)));
        reader.lend(lent(Some("two"), None));
        assert_eq!(reader.now(), knobs("two", None, Some(Effort::Low)));
    }

    #[test]
    fn an_agent_begins_with_what_was_lent_to_the_one_that_started_it() {
        let above = KnobsReader::fixed(knobs("own", None, None));
        let early = above.below();
        above.lend(lent(Some("lent"), None));
        let late = above.below();
        let models = || [&above, &early, &late].map(|reader| reader.now().model);
        assert_eq!(models(), ["lent", "own", "lent"]);
        late.lend(lent(Some("lower"), None));
        assert_eq!(models(), ["lent", "own", "lower"]);
        late.take_back();
        above.take_back();
        assert_eq!(models(), ["own", "own", "lent"]);
    }
}
