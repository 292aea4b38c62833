//! Text that a shell reads from its input: by a pipe, a here-document, a here-string, its own or one of the compound
//! command, function or `exec` around it.
//!
//! If a shell reads at all, every text that the command makes is taken apart, wherever it goes; so it is if a shell runs
//! what a substitution makes (`eval "$(..)"`, `bash <(..)`). If what gets to that shell is not literal, the shell is as
//! opaque as `sh -c "$(..)"`. Programs of other languages read scripts.

use std::collections::HashSet;
use std::ops::Range;

use super::facts::plain_name;
use super::inspect::Inspector;
use super::printed::{Printed, printed};
use super::shells::{self, Source};
use super::syntax::{Fed, Harvest, Pipeline, RawWord, Simple};
use super::{Way, Word, interpreters, scripts, word};

/// How often functions are looked at for others that read through them.
const MOST_ROUNDS: usize = 4;

/// How many words of a command are looked at for the name of a shell.
const MOST_WORDS: usize = 64;

/// The harvest with the parts that came of each of its commands.
struct Field<'a> {
    harvest: &'a Harvest,
    parts: &'a [Range<usize>],
    /// Whether each command reads commands from its input.
    reads: Vec<bool>,
}

impl Field<'_> {
    fn any_reads(&self, commands: Range<usize>) -> bool {
        self.reads.get(commands).is_some_and(|reads| reads.contains(&true))
    }
}

impl Inspector<'_> {
    /// Judges what shells read.
    pub(super) fn input_of_shells(&mut self, harvest: &Harvest, parts: &[Range<usize>]) {
        let given = |command: &Simple| !(command.input.is_empty() && command.redirects.is_empty());
        let runs_made = harvest.commands.iter().any(runs_what_is_made);
        if harvest.pipelines.is_empty() && !runs_made && !harvest.commands.iter().any(given) {
            return;
        }
        self.input_of_scripts(harvest, parts);
        self.piped_scripts(harvest, parts);
        let reads = parts.iter().map(|parts| self.reads_commands(parts.clone())).collect();
        let mut field = Field { harvest, parts, reads };
        self.through_names(&mut field);
        let named = |command: &Simple| {
            (command.after_pipe || given(command)) && command.words.iter().take(MOST_WORDS).any(names_shell)
        };
        if runs_made || field.reads.contains(&true) || harvest.commands.iter().any(named) {
            self.all_texts(&field);
            self.mark_fed(&field);
        }
    }

    /// Searches what programs of other languages are given to read by their own redirects.
    fn input_of_scripts(&mut self, harvest: &Harvest, parts: &[Range<usize>]) {
        let commands = harvest.commands.iter().zip(parts);
        for (command, parts) in commands.filter(|(command, _)| !command.input.is_empty()) {
            let texts = self.texts_fed(harvest, command, parts.start);
            self.scripts_read(parts, &texts);
        }
    }

    /// Searches what is piped into programs of other languages.
    fn piped_scripts(&mut self, harvest: &Harvest, parts: &[Range<usize>]) {
        for pipeline in &harvest.pipelines {
            let (Some(start), Some(end)) = (pipeline.starts.first(), pipeline.starts.last()) else {
                continue;
            };
            let mut texts: Vec<String> = Vec::new();
            for (command, parts) in harvest.commands.iter().zip(parts).take(*end).skip(*start) {
                if self.scripts_read(parts, &texts) {
                    // What comes out of it is something else.
                    texts.clear();
                    continue;
                }
                texts.extend(self.texts_fed(harvest, command, parts.start));
                if let Printed::Text(readings) = printed(&self.words_at(parts.start)) {
                    texts.extend(readings);
                }
            }
        }
    }

    /// The texts that a command, which is the part at some place, is given to read by its own redirects.
    fn texts_fed(&self, harvest: &Harvest, command: &Simple, at: usize) -> Vec<String> {
        let document = |fed: &Fed| match fed {
            Fed::Document(number) => harvest.documents.get(*number).map(|document| document.body.clone()),
            Fed::Word(_) => None,
        };
        command.input.iter().filter_map(document).chain(self.other_texts(at)).collect()
    }

    /// What a part is given to read by here-strings, or prints by other readings.
    fn other_texts(&self, at: usize) -> impl Iterator<Item = String> {
        self.texts.get(&at).into_iter().flat_map(|texts| texts.texts.iter().cloned())
    }

    /// Searches the texts if a program of another language is among these parts; answers whether there is one.
    fn scripts_read(&mut self, parts: &Range<usize>, texts: &[String]) -> bool {
        let names = parts.clone().filter_map(|at| Some((at, plain_name(self.name_at(at)?))));
        let Some((at, name)) = names.into_iter().find(|(_, name)| scripts::reads(name)) else { return false };
        for text in texts {
            self.codes(at, scripts::read(&name, text));
        }
        true
    }

    /// Whether some of these parts is a shell that reads commands from its input.
    fn reads_commands(&self, parts: Range<usize>) -> bool {
        let parts = self.script.parts.get(parts).unwrap_or_default();
        parts.iter().any(|part| shells::source(&part.words) == Some(Source::Input))
    }

    /// A function or another name for a shell reads as the shell does.
    fn through_names(&self, field: &mut Field<'_>) {
        let names: Vec<Option<&str>> = field.parts.iter().map(|parts| self.name_at(parts.start)).collect();
        if self.scope.renames() {
            for (reads, name) in field.reads.iter_mut().zip(&names) {
                let meanings = self.scope.meanings(name.unwrap_or_default());
                let shell =
                    |text: &String| interpreters::SHELLS.contains(&plain_name(first_word(text)).as_str());
                *reads |= meanings.iter().any(shell);
            }
        }
        for _ in 0..MOST_ROUNDS {
            let functions = field.harvest.functions.iter();
            let reading: HashSet<&str> = functions
                .filter(|(_, body)| field.any_reads(body.clone()))
                .map(|(name, _)| name.as_str())
                .collect();
            if reading.is_empty() {
                return;
            }
            let calls = |name: &Option<&str>| name.is_some_and(|name| reading.contains(name));
            for (reads, name) in field.reads.iter_mut().zip(&names) {
                *reads |= calls(name);
            }
        }
    }

    fn name_at(&self, part: usize) -> Option<&str> {
        self.script.parts.get(part)?.words.first()?.value.literal()
    }

    fn words_at(&self, part: usize) -> Vec<Word> {
        self.script.parts.get(part).map(|part| part.words.clone()).unwrap_or_default()
    }

    /// Takes every text apart that the commands make.
    fn all_texts(&mut self, field: &Field<'_>) {
        let mut all: Vec<String> = Vec::new();
        all.extend(field.harvest.documents.iter().map(|document| document.body.clone()));
        for (command, parts) in field.harvest.commands.iter().zip(field.parts) {
            all.extend(self.other_texts(parts.start));
            let words = self.words_at(parts.start);
            match printed(&words) {
                Printed::Text(texts) => all.extend(texts),
                Printed::Unknown if command.before_pipe => {
                    let texts: Vec<String> =
                        words.iter().skip(1).map(|word| word::text_of(&word.value)).collect();
                    self.guessed(&texts.join(" ").replace("\\n", "\n"));
                }
                Printed::Nothing | Printed::Input | Printed::Files | Printed::Unknown => {}
            }
        }
        let filled = self.filled_commands(field.parts);
        let mut seen = HashSet::new();
        for text in all.iter().filter(|text| seen.insert(text.as_str())) {
            self.nested(text);
            self.filled_by(&filled, text);
        }
    }

    /// Text that is hardly a command: it is searched, but what it would hide counts for nothing.
    fn guessed(&mut self, text: &str) {
        let before = self.script.parts.len();
        let paused = std::mem::replace(&mut self.repeats.paused, true);
        self.nested(text);
        self.repeats.paused = paused;
        for part in self.script.parts.iter_mut().skip(before) {
            part.opaque = false;
        }
    }

    /// Marks the shells that read what is not literal.
    fn mark_fed(&mut self, field: &Field<'_>) {
        let mut opaque: Vec<Range<usize>> = Vec::new();
        for pipeline in &field.harvest.pipelines {
            opaque.extend(self.fed_by_pipe(field, pipeline));
        }
        for feed in &field.harvest.feeds {
            if field.any_reads(feed.commands.clone()) && !self.is_literal(field, feed.holder) {
                opaque.push(feed.commands.clone());
            }
        }
        for at in 0..field.reads.len() {
            if self.is_literal(field, at) {
                continue;
            }
            if self.name_at(field.parts.get(at).map_or(usize::MAX, |parts| parts.start)) == Some("exec") {
                // It lasts, so every shell may read it.
                opaque.push(0..field.reads.len());
                break;
            }
            opaque.push(at..at + 1);
        }
        let mut marked = vec![false; field.reads.len()];
        for commands in opaque {
            let commands = marked.get_mut(commands).unwrap_or_default();
            commands.fill(true);
        }
        for ((marked, reads), parts) in marked.into_iter().zip(&field.reads).zip(field.parts) {
            if marked && *reads {
                self.mark_opaque(parts.start);
            }
        }
    }

    /// The commands of a pipeline that read what is not literal.
    fn fed_by_pipe(&mut self, field: &Field<'_>, pipeline: &Pipeline) -> Option<Range<usize>> {
        let mut elements = pipeline.starts.windows(2).skip(1).rev();
        let last = elements.find_map(|element| match element {
            [start, end] if field.any_reads(*start..*end) => Some(*start..*end),
            _ => None,
        })?;
        let start = pipeline.starts.first().copied()?;
        let mut texts: Vec<String> = Vec::new();
        let mut literal = true;
        for at in start..last.start {
            let (Some(command), Some(parts)) = (field.harvest.commands.get(at), field.parts.get(at)) else {
                continue;
            };
            if command.within != pipeline.within {
                continue;
            }
            let varies = field.harvest.repeats && command.words.iter().any(|word| word.raw.contains('$'))
                || self.may_vary(parts.start);
            match printed(&self.words_at(parts.start)) {
                Printed::Nothing | Printed::Files => {}
                Printed::Input => literal &= self.is_literal(field, at),
                Printed::Unknown => literal = false,
                Printed::Text(readings) => {
                    literal &= !varies;
                    texts.extend(readings.into_iter().next_back());
                }
            }
        }
        if texts.len() > 1 {
            // What they make together depends on which of them run, and how often.
            self.nested(&texts.concat());
            self.nested(&texts.join("\n"));
            literal = false;
        }
        (!literal).then_some(start..last.end)
    }

    /// Whether what a command is given to read by its own redirects is literal text or a file.
    fn is_literal(&self, field: &Field<'_>, at: usize) -> bool {
        let (Some(command), Some(parts)) = (field.harvest.commands.get(at), field.parts.get(at)) else {
            return true;
        };
        let texts = command.input.iter().all(|text| match text {
            Fed::Document(number) => {
                field.harvest.documents.get(*number).is_some_and(|document| document.literal)
            }
            Fed::Word(text) => {
                !self.may_vary(parts.start)
                    && word::single(text, &self.scope, &mut Vec::new()).literal().is_some()
            }
        });
        let redirects = self.script.parts.get(parts.start).map(|part| part.redirects.as_slice());
        texts
            && redirects
                .unwrap_or_default()
                .iter()
                .all(|redirect| redirect.way == Way::Write || !redirect.target.is_unknown())
    }
}

/// Whether a command may be a shell that runs what a substitution in its words makes.
fn runs_what_is_made(command: &Simple) -> bool {
    let makes = |word: &RawWord| ["$(", "`", "<("].iter().any(|mark| word.raw.contains(mark));
    let runs = |word: &RawWord| names_shell(word) || word.raw == "eval";
    command.words.iter().any(makes) && command.words.iter().take(MOST_WORDS).any(runs)
}

/// Whether a word may be the name of a shell, or of what hands its input on to one.
fn names_shell(word: &RawWord) -> bool {
    let plain = plain_name(word.raw.trim_matches(['\'', '"', '\\']));
    interpreters::SHELLS.contains(&plain.as_str())
        || matches!(plain.as_str(), "source" | "." | "parallel" | "xargs")
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
