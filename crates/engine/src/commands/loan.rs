//! What a command file lends to its turn: rules and a model. All of it is taken back when the turn is over, however it
//! ends.

use whimbrel_models::Thinking;

use super::CommandFile;
use crate::knobs::{Knobs, KnobsWriter};
use crate::permission::Rights;
use crate::settings::Trust;

/// The rules of a command file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it allows.
    pub allow: Vec<String>,
    /// What it denies.
    pub deny: Vec<String>,
}

impl Terms {
    /// Puts the rules in force until they are taken back, and gives what is wrong with them. What came with a project
    /// grants nothing unless the project is trusted; what it denies is denied, and if that cannot be read, the error says
    /// so: the file is not to be followed then.
    pub fn lend(self, rights: &Rights, file: &CommandFile, trust: Trust) -> Result<Vec<String>, String> {
        let Self { mut allow, deny } = self;
        let mut problems = Vec::new();
        if !allow.is_empty() && !file.may_grant(trust) {
            let rules = std::mem::take(&mut allow).join(", ");
            problems.push(format!(
                "its allowed-tools do not count, because the project is not trusted: {rules}."
            ));
        }
        if !(allow.is_empty() && deny.is_empty()) {
            let lent = rights.lend(&file.path, allow, deny);
            problems.extend(lent.map_err(|why| {
                format!("{}: {why}. Correct the rule in its disallowed-tools first.", file.path.display())
            })?);
        }
        Ok(problems.iter().map(|problem| format!("{}: {problem}", file.path.display())).collect())
    }
}

/// Something lent. Dropped, it is taken back.
#[must_use]
pub struct Loan {
    rights: Option<Rights>,
    knobs: Option<(KnobsWriter, Knobs, Knobs)>,
}

impl Loan {
    /// Nothing lent yet.
    pub fn nothing() -> Self {
        Self { rights: None, knobs: None }
    }

    /// Lends the rules of a file. Gives what is wrong with them.
    pub fn rules(
        &mut self,
        rights: &Rights,
        file: &CommandFile,
        terms: Terms,
        trust: Trust,
    ) -> Result<Vec<String>, String> {
        self.rights = Some(rights.clone());
        terms.lend(rights, file, trust)
    }

    /// Lends a model.
    pub fn model(&mut self, knobs: &KnobsWriter, model: String) {
        let before = knobs.borrow().clone();
        // A limit on thinking was meant for the other model.
        let thinking = before.thinking.filter(|thinking| *thinking == Thinking::Disabled);
        let lent = Knobs { model, thinking, ..before.clone() };
        knobs.send_replace(lent.clone());
        self.knobs = Some((knobs.clone(), lent, before));
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(rights) = self.rights.take() {
            rights.take_back();
        }
        if let Some((knobs, lent, before)) = self.knobs.take() {
            // What the host has turned meanwhile stays as it is.
            knobs.send_if_modified(|now| {
                let untouched = *now == lent;
                if untouched {
                    *now = before;
                }
                untouched
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn a_lent_model_is_taken_back_unless_the_host_chose_another() {
        let knobs = |model: &str| Knobs { model: model.into(), ..Knobs::default() };
        let writer = watch::Sender::new(knobs("a"));
        let mut loan = Loan::nothing();
        loan.model(&writer, "b".into());
        assert_eq!(writer.borrow().model, "b");
        drop(loan);
        assert_eq!(*writer.borrow(), knobs("a"));
        let mut loan = Loan::nothing();
        loan.model(&writer, "b".into());
        writer.send_modify(|knobs| knobs.model = "c".into());
        drop(loan);
        assert_eq!(writer.borrow().model, "c");
    }
}
