//! One layer of settings: what one source says, checked, with what does not count taken out.

use std::path::PathBuf;

use serde_json::{Map, Value};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::PermissionBehavior;

use super::error::{Problem, plain};
use super::hooks::{Flaw, Handler};
use super::http_hooks::Rank;
use super::nearby;
use super::read::Document;
use super::schema::{self, dotted};
use super::sources::{Origin, Source};
use super::trust::{self, Trust};

/// A permission rule, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says about the calls that it matches.
    pub behavior: PermissionBehavior,
    /// Its text.
    pub text: String,
    /// Who wrote it.
    pub source: Source,
    /// What a path in it that begins with one `/` starts from.
    pub base: PathBuf,
    /// The file that it stands in.
    pub file: Option<PathBuf>,
    /// The line there.
    pub line: Option<u32>,
}

/// A hook, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// When it runs.
    pub event: HookEvent,
    /// Which of these events, as it is written; none means all.
    pub matcher: Option<String>,
    /// What it does.
    pub handler: Handler,
    /// Who wrote it.
    pub source: Source,
    /// How much its writer may decide.
    pub rank: Rank,
    /// The file that it stands in.
    pub file: Option<PathBuf>,
    /// The line there.
    pub line: Option<u32>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Where it comes from.
    pub origin: Origin,
    /// All that it says, as it was written.
    pub given: Map<String, Value>,
    /// What counts of it.
    pub values: Map<String, Value>,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Its hooks.
    pub hooks: Vec<Hook>,
}

/// A layer, and what is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The layer.
    pub layer: Layer,
    /// What may have cost a guard.
    pub grave: Vec<Problem>,
    /// What else is wrong.
    pub slight: Vec<Problem>,
    /// What is held back because it came with the project.
    pub held: Option<String>,
}

/// Makes a layer of what a source says.
pub fn judge(origin: Origin, document: Document, trust: Trust) -> Judged {
    let (values, held) = trust::filter(document.values.clone(), origin.scope, trust);
    let held = trust::warning(&origin.shown(), &held);
    let checked = schema::check(values);
    let flaws = checked.flaws.into_iter().chain(nearby::misses(&document.values));
    let (grave, slight): (Vec<Flaw>, Vec<Flaw>) = flaws.partition(|flaw| flaw.grave);
    let problems = |flaws: &[Flaw]| flaws.iter().map(|flaw| problem(flaw, &origin, &document)).collect();
    let (grave, slight) = (problems(&grave), problems(&slight));
    let rules = checked.rules.into_iter().map(|rule| Rule {
        behavior: rule.behavior,
        text: rule.text,
        source: origin.source,
        base: origin.base.clone(),
        file: origin.file.clone(),
        line: document.line(&rule.pointer),
    });
    let hooks = checked.hooks.into_iter().map(|hook| Hook {
        event: hook.event,
        matcher: hook.matcher,
        handler: hook.handler,
        source: origin.source,
        rank: Rank::of(&origin),
        file: origin.file.clone(),
        line: document.line(&hook.pointer),
    });
    let (rules, hooks) = (rules.collect(), hooks.collect());
    let layer = Layer { origin, values: checked.values, rules, hooks, given: document.values };
    Judged { layer, grave, slight, held }
}

fn problem(flaw: &Flaw, origin: &Origin, document: &Document) -> Problem {
    let line = document.line(&flaw.pointer);
    Problem { name: origin.shown(), line, key: plain(&dotted(&flaw.pointer)), cause: plain(&flaw.cause) }
}
