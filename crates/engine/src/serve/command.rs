//! Slash commands in a session: what each starts.

use std::sync::Arc;

use whimbrel_wire::control::ContextUsage;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational};

use super::{Session, Work};
use crate::agent::Agent;
use crate::commands::expand::Expansion;
use crate::commands::file::Recipe;
use crate::commands::loan::Loan;
use crate::commands::{Action, Called, CommandFile, Job, Order, clear, compact, context, cost, help, model};
use crate::context::memory::Memory;
use crate::context::usage::{self, Facts};
use crate::settings::{Scope, Trust};

impl Session {
    /// Starts what a prompt that calls a command asks for.
    pub(super) async fn start_command(&mut self, mut agent: Agent, called: Called, prompt: User) {
        let action = match called.order {
            Order::File(file) => return self.start_file(agent, file, called.rest, prompt).await,
            Order::Own(command) => command.action,
        };
        let text = match action {
            Action::Compact => return self.start_compact(agent, called.rest, prompt).await,
            Action::Clear => clear::clear(&mut agent),
            Action::Context => context::text(&self.context_usage()),
            Action::Cost => cost::text(&agent.ledger.read()),
            Action::Help => help::text(&self.setup.commands),
            Action::Model => model::choose(&self.engine, &self.setup, &self.knobs, &called.rest),
        };
        self.start_answer(agent, prompt, text).await;
    }

    async fn start_compact(&mut self, agent: Agent, keep: String, prompt: User) {
        self.show_turn().await;
        let prompt = self.echo(prompt).await;
        let wish = compact::Wish { keep, prompt, init: self.init() };
        let first = self.first();
        self.run(agent, Work::Command(Job::Compact(Box::new(wish)), first), None);
    }

    async fn start_answer(&mut self, agent: Agent, prompt: User, text: String) {
        self.announce().await;
        let prompt = self.echo(prompt).await;
        let first = self.first();
        self.run(agent, Work::Command(Job::Answer { prompt: Box::new(prompt), text }, first), None);
    }

    async fn start_file(&mut self, agent: Agent, file: Arc<CommandFile>, arguments: String, prompt: User) {
        let Recipe { head, body, flaw } = match file.read() {
            Ok(recipe) => recipe,
            Err(why) => return self.start_answer(agent, prompt, why).await,
        };
        let mut loan = Loan::nothing();
        let mut warnings: Vec<String> = flaw.into_iter().collect();
        let rules = head.allowed_tools.each();
        if !rules.is_empty() {
            warnings.extend(self.lend(&mut loan, &file, rules));
        }
        if let Some(name) = head.model.filter(|name| !matches!(name.trim(), "" | "inherit" | "default")) {
            let model = self.setup.model(&self.engine, Some(name.trim()));
            match self.engine.providers().resolve(&model) {
                Ok(_) => loan.model(&self.knobs, model),
                Err(fault) => warnings.push(format!(
                    "{}: its model is not used: {}",
                    file.path.display(),
                    fault.message
                )),
            }
        }
        self.announce().await;
        for content in warnings {
            let level = InformationLevel::Warning;
            self.outbox.notify(Informational { content, level, ..Informational::default() }).await;
        }
        let prompt = self.echo(prompt).await;
        let mode = self.setup.rights.mode().to_string();
        let expansion = Expansion { file, body, arguments, prompt, mode, loan };
        let first = self.first();
        self.run(agent, Work::Command(Job::Expand(Box::new(expansion)), first), None);
    }

    /// Lends a file's allow rules to its turn. What came with a project grants nothing unless the project is trusted.
    fn lend(&self, loan: &mut Loan, file: &CommandFile, rules: Vec<String>) -> Vec<String> {
        if file.scope == Scope::Project && self.setup.ground.trust != Trust::Full {
            return vec![format!(
                "{}: its allowed-tools do not count, because the project is not trusted: {}.",
                file.path.display(),
                rules.join(", ")
            )];
        }
        let problems = loan.rules(&self.setup.rights, &file.path, rules);
        problems.into_iter().map(|problem| format!("{}: {problem}", file.path.display())).collect()
    }

    /// What fills the context, as far as it is known now.
    pub(crate) fn context_usage(&self) -> ContextUsage {
        let mut reading = self.gauge.read();
        if !self.has_begun() {
            let mut memory = Memory::new(self.setup.ground.clone(), self.home().as_deref());
            reading.size = memory.begin().map_or(0, |text| text.len());
            reading.memory = memory.files().to_vec();
        }
        let model = self.knobs.borrow().model.clone();
        usage::usage(&Facts {
            window: self.engine.catalog().lookup(&model).map_or(0, |info| info.context_window),
            model: &model,
            system: &self.system(),
            tools: &self.setup.toolbox.specs(),
            commands: self.setup.commands.names().len(),
            reading: &reading,
        })
    }
}
