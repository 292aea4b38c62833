//! From what the parser found to parts: each command is looked at, then what it would run in turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::cursor::Parser;
use super::limits::Limits;
use super::part::{self, Written};
use super::readings::Texts;
use super::repeats::Repeats;
use super::scope::{LAST, Reading, Scope};
use super::syntax::{Form, Harvest, RawWord, Simple};
use super::{
    Assignment, Kind, LONGEST, Part, Place, Reach, Redirect, Script, Surroundings, Value, Way, Word,
};
use super::{assignment, builtins, facts, fallback, hidden, overlong, places, redirects, values, word};

/// How deep texts of commands inside texts are followed.
pub(super) const DEEPEST_TEXT: usize = 10;

/// Looks at a whole command.
pub(super) struct Inspector<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) script: Script,
    pub(super) limits: Limits,
    pub(super) level: usize,
    /// Whether the text at hand may be no command at all.
    pub(super) guessing: bool,
    /// Whether the words at hand are already searched as text.
    pub(super) covered: bool,
    /// Whether the command at hand is in the body of a function.
    pub(super) in_function: bool,
    /// What parts are given to read by here-strings, and print by other readings than the first.
    pub(super) texts: BTreeMap<usize, Texts>,
    /// Which variables functions set whenever they are called; none if that is not certain.
    pub(super) functions: HashMap<String, Option<HashSet<String>>>,
    /// Texts that may run when variables have other values.
    pub(super) later: Vec<String>,
    pub(super) repeats: Repeats,
}

impl<'a> Inspector<'a> {
    /// Analyses a text.
    pub(super) fn run(text: &str, surroundings: &'a Surroundings<'a>) -> Script {
        let mut inspector = Self {
            scope: Scope::new(surroundings.home, text),
            script: Script { text: text.trim().to_owned(), ..Script::default() },
            limits: Limits::of(text),
            level: 0,
            guessing: false,
            covered: false,
            in_function: false,
            texts: BTreeMap::new(),
            functions: HashMap::new(),
            later: Vec::new(),
            repeats: Repeats::default(),
        };
        if text.len() > LONGEST && text.chars().count() > LONGEST {
            inspector.note(Kind::TooLong);
        }
        if hidden::found(text) {
            inspector.note(Kind::HiddenCharacter);
        }
        inspector.text(text);
        for text in std::mem::take(&mut inspector.later) {
            inspector.nested(&text);
        }
        if text.contains("\\\n") {
            // Once more with continued lines joined, wherever they are.
            inspector.nested(&text.replace("\\\n", ""));
        }
        if inspector.script.parts.is_empty() {
            inspector.note(Kind::Syntax);
        }
        if inspector.scope.is_full() {
            inspector.cut_short();
        }
        overlong::shorten(&mut inspector.script);
        inspector.script
    }

    /// Notes an obstacle, once. Those of a text inside a text are no obstacle to the command that carries it.
    pub(super) fn note(&mut self, kind: Kind) {
        if self.level == 0 && !self.script.unanalysable.contains(&kind) {
            self.script.unanalysable.push(kind);
        }
    }

    /// Takes a text apart that a command would run.
    pub(super) fn nested(&mut self, text: &str) {
        let key = self.key_of_text(text);
        if self.repeated(&key).is_some() {
            return;
        }
        let (before, start) = (self.standing(), self.script.parts.len());
        self.nested_anew(text);
        self.remember(key, before, start);
    }

    fn nested_anew(&mut self, text: &str) {
        if self.level >= DEEPEST_TEXT || !self.limits.take_text(text) {
            if !self.guessing {
                self.unfollowed(text);
            }
            return;
        }
        self.level += 1;
        let covered = std::mem::take(&mut self.covered);
        let in_function = std::mem::take(&mut self.in_function);
        // Who knows whether the text is run, and in which shell: what is certain here is not in it, nor the other way round.
        let settled = self.scope.settled();
        let floor = self.scope.count_from(settled);
        self.text(text);
        self.scope.unsettle(settled);
        self.scope.count_from(floor);
        self.in_function = in_function;
        self.covered = covered;
        self.level -= 1;
    }

    /// Takes a text apart that may be a command. If it is none, nothing is the worse for it.
    pub(super) fn perhaps(&mut self, text: &str) {
        let (start, places) = (self.script.parts.len(), self.script.changes_dir.len());
        let guessing = std::mem::replace(&mut self.guessing, true);
        self.nested(text);
        self.guessing = guessing;
        self.script.changes_dir.truncate(places);
        for part in self.script.parts.iter_mut().skip(start) {
            part.opaque = false;
            part.reach = Reach::Guessed;
        }
    }

    /// Leaves a text to be searched as it is.
    pub(super) fn unfollowed(&mut self, text: &str) {
        if !self.limits.take_unfollowed(text) {
            self.cut_short();
            return;
        }
        let home = self.scope.home;
        self.script.parts.push(if self.guessing {
            fallback::doubtful(text)
        } else {
            fallback::part(text, home)
        });
    }

    fn text(&mut self, text: &str) {
        let mut harvest = Harvest::default();
        if let Err(stop) = Parser::new(text, 0, self.level > 0, &mut harvest).program() {
            harvest.note(stop.0);
            harvest.leftovers.push(text.to_owned());
        }
        for kind in std::mem::take(&mut harvest.kinds) {
            self.note(kind);
        }
        self.script.background |= harvest.background && self.level == 0;
        self.give_loops(&harvest);
        if harvest.repeats {
            self.script.repeats = true;
            self.scope.repeats = true;
            self.foresee(&harvest);
        }
        // A function may stand in for a builtin.
        self.scope.unsure |= harvest.functions.iter().any(|(name, _)| builtins::sets_variables(name));
        let parts = self.commands(&harvest);
        self.other_meanings(&harvest);
        self.input_of_shells(&harvest, &parts);
        for leftover in &harvest.leftovers {
            self.unfollowed(leftover);
        }
    }

    /// Looks at one command, and answers where its part is, and where the parts end of what it would run in turn.
    pub(super) fn command_once(&mut self, command: &Simple) -> Range<usize> {
        let key = self.key_of_command(command);
        if let Some(known) = key.as_ref().and_then(|key| self.repeated(key)) {
            return known;
        }
        if self.level > 0 && !self.limits.take_command() {
            self.cut_short();
            return self.script.parts.len()..self.script.parts.len();
        }
        let before = self.standing();
        let at = self.command(command);
        if let Some(key) = key {
            self.remember(key, before, at);
        }
        at..self.script.parts.len()
    }

    /// Looks at one command, and answers where its part is; what it would run in turn comes after.
    fn command(&mut self, command: &Simple) -> usize {
        let mut kinds = Vec::new();
        let settled = self.scope.settled();
        let assignments: Vec<(String, Assignment)> = command
            .assignments
            .iter()
            .map(|given| {
                let value = word::single(&given.value, &self.scope, &mut kinds);
                self.assigned(command, given, &value);
                let safe =
                    given.form == Form::Plain && assignment::is_safe(&given.name, &given.value.raw, &value);
                (given.raw.clone(), Assignment { name: given.name.clone(), value, safe })
            })
            .collect();
        let redirects = self.redirects(command, LAST, &mut kinds);
        let words = self.words(&command.words, LAST, &mut kinds);
        if let Some(Value::Literal(name)) = words.first().map(|word| &word.value)
            && !name.is_ascii()
            && !command.condition
        {
            kinds.push(Kind::ForeignCommandWord);
        }
        let others = self.other_readings(command);
        let unfollowed = others.is_none();
        self.script.uncounted |= unfollowed || self.scope.overflows;
        let others = others.unwrap_or_default();
        for kind in kinds {
            self.note(kind);
        }
        let at = self.script.parts.len();
        let mut part =
            part::judged(&Written { command, words: &words, assignments: &assignments, redirects });
        part.opaque |= unfollowed || values::renames_commands(command) || values::hides_commands(&part);
        if self.level > 0 {
            part.reach = Reach::Searched;
        }
        let places = self.script.directories.len();
        self.note_directory(&part);
        self.note_all_values(command, &words, &others);
        if command.may_fail {
            // If something cannot be opened, nothing is assigned.
            self.scope.unsettle(settled);
        }
        self.script.parts.push(part);
        self.note_texts(at, command, &others);
        if !command.condition {
            self.behind(at, &words, 0);
        }
        for reading in others {
            let known = self.script.directories.len();
            self.read_again(command, reading);
            self.keep_new_places(places, known);
        }
        at
    }

    pub(super) fn words(&self, words: &[RawWord], reading: Reading, kinds: &mut Vec<Kind>) -> Vec<Word> {
        let mut out = Vec::with_capacity(words.len());
        for raw in words {
            out.extend(word::expand(raw, &self.scope, reading, kinds));
        }
        out
    }

    pub(super) fn redirects(
        &self,
        command: &Simple,
        reading: Reading,
        kinds: &mut Vec<Kind>,
    ) -> Vec<Redirect> {
        let redirect = |redirect: &super::syntax::RawRedirect| {
            if !redirects::is_plain(&redirect.target) {
                kinds.push(Kind::RedirectTarget);
            }
            let target = word::single_by(&redirect.target, &self.scope, reading, kinds);
            let place = place(&target);
            Redirect { way: if redirect.writes { Way::Write } else { Way::Read }, target, place }
        };
        command.redirects.iter().map(redirect).collect()
    }

    /// Where `cd` goes.
    fn note_directory(&mut self, part: &Part) {
        let plain = part.program.as_deref().map(facts::plain_name).unwrap_or_default();
        if matches!(plain.as_str(), "cd" | "pushd" | "popd" | "chdir") {
            let target = match part.class {
                super::Class::ReadOnly => part.words.last().map(|word| word.value.clone()),
                _ => None,
            };
            self.script.changes_dir.push(target);
            let named = |word: &Word| word.value.literal() == part.program.as_deref();
            let start = part.words.iter().position(named).unwrap_or_default();
            self.note_places(part.words.get(start..).unwrap_or_default());
        } else {
            self.note_places(&part.words);
        }
        let set = part.assignments.iter().filter(|set| set.name == "CDPATH");
        self.script.cd_path.extend(set.map(|set| set.value.clone()));
    }

    /// Where a command goes or works, in every form.
    fn note_places(&mut self, words: &[Word]) {
        self.script.directories.extend(places::destinations(words));
        self.script.elsewhere.extend(places::chosen(words));
        self.script.cd_path.extend(places::cd_path(words));
    }

    /// A command behind another one: searched only.
    pub(super) fn searched(&mut self, words: &[Word], depth: usize) {
        if words.is_empty() {
            return;
        }
        if !self.limits.take_words(words.len()) {
            self.cut_short();
            return;
        }
        let at = self.script.parts.len();
        self.script.parts.push(part::searched(words));
        self.note_places(words);
        self.behind(at, words, depth);
    }
}

/// What a redirect's target is by its name.
fn place(target: &Value) -> Place {
    let text = match target {
        Value::Literal(text) | Value::Glob(text) => text.as_str(),
        Value::Unknown { before, .. } => before.as_str(),
    };
    match text {
        "/dev/null" if target.literal().is_some() => Place::Null,
        "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" => Place::Stream,
        _ if text.starts_with("/dev/fd/") => Place::Stream,
        _ if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") => Place::Network,
        _ => Place::File,
    }
}
