//! Text that a shell reads from its input: by a pipe, a here-document, a here-string, its own or one of the compound
//! command, function or `exec` around it.
//!
//! If a shell reads at all, every text that the command makes is taken apart, wherever it goes; so it is if a shell runs
//! what a substitution makes (`eval "$(..)"`, `bash <(..)`). If what gets to that shell is not literal, the shell is as
//! opaque as `sh -c "$(..)"`. Programs of other languages read scripts.

use std::collections::HashSet;
use std::ops::Range;

use super::effects::program_name;
use super::analyzer::Analyzer;
use super::stdout::{StdoutContent, stdout_content};
use super::shells::{self, CommandSource};
use super::syntax::{StdinText, ParsedScript, Pipeline, RawWord, RawCommand};
use super::{RedirectDirection, Word, interpreters, foreign_code, expand};

/// How often functions are looked at for others that read through them.
const MAX_ROUNDS: usize = 4;

/// How many words of a command are looked at for the name of a shell.
const MAX_NAME_WORDS: usize = 64;

/// The harvest with the parts that came of each of its commands.
struct InputAnalysis<'a> {
    parsed: &'a ParsedScript,
    command_ranges: &'a [Range<usize>],
    /// Whether each command reads commands from its input.
    readers: Vec<bool>,
}

impl InputAnalysis<'_> {
    fn any_reads(&self, commands: Range<usize>) -> bool {
        self.readers.get(commands).is_some_and(|reads| reads.contains(&true))
    }
}

impl Analyzer<'_> {
    /// Judges what shells read.
    pub(super) fn analyze_shell_input(&mut self, harvest: &ParsedScript, parts: &[Range<usize>]) {
        let given = |command: &RawCommand| !(command.stdin_texts.is_empty() && command.redirects.is_empty());
        let runs_made = harvest.commands.iter().any(runs_substitution_output);
        if harvest.pipelines.is_empty() && !runs_made && !harvest.commands.iter().any(given) {
            return;
        }
        self.analyze_redirected_code(harvest, parts);
        self.analyze_piped_code(harvest, parts);
        let reads = parts.iter().map(|parts| self.reads_commands_from_stdin(parts.clone())).collect();
        let mut field = InputAnalysis { parsed: harvest, command_ranges: parts, readers: reads };
        self.mark_named_readers(&mut field);
        let named = |command: &RawCommand| {
            (command.after_pipe || given(command)) && command.words.iter().take(MAX_NAME_WORDS).any(may_name_shell)
        };
        if runs_made || field.readers.contains(&true) || harvest.commands.iter().any(named) {
            self.analyze_all_texts(&field);
            self.mark_opaque_readers(&field);
        }
    }

    /// Searches what programs of other languages are given to read by their own redirects.
    fn analyze_redirected_code(&mut self, harvest: &ParsedScript, parts: &[Range<usize>]) {
        let commands = harvest.commands.iter().zip(parts);
        for (command, parts) in commands.filter(|(command, _)| !command.stdin_texts.is_empty()) {
            let texts = self.redirected_texts(harvest, command, parts.start);
            self.analyze_code_read(parts, &texts);
        }
    }

    /// Searches what is piped into programs of other languages.
    fn analyze_piped_code(&mut self, harvest: &ParsedScript, parts: &[Range<usize>]) {
        for pipeline in &harvest.pipelines {
            let (Some(start), Some(end)) = (pipeline.starts.first(), pipeline.starts.last()) else {
                continue;
            };
            let mut texts: Vec<String> = Vec::new();
            for (command, parts) in harvest.commands.iter().zip(parts).take(*end).skip(*start) {
                if self.analyze_code_read(parts, &texts) {
                    // What comes out of it is something else.
                    texts.clear();
                    continue;
                }
                texts.extend(self.redirected_texts(harvest, command, parts.start));
                if let StdoutContent::Text(readings) = stdout_content(&self.words_at(parts.start)) {
                    texts.extend(readings);
                }
            }
        }
    }

    /// The texts that a command, which is the part at some place, is given to read by its own redirects.
    fn redirected_texts(&self, harvest: &ParsedScript, command: &RawCommand, at: usize) -> Vec<String> {
        let document = |fed: &StdinText| match fed {
            StdinText::Document(number) => harvest.here_documents.get(*number).map(|document| document.body.clone()),
            StdinText::HereString(_) => None,
        };
        command.stdin_texts.iter().filter_map(document).chain(self.recorded_texts(at)).collect()
    }

    /// What a part is given to read by here-strings, or prints by other readings.
    fn recorded_texts(&self, at: usize) -> impl Iterator<Item = String> {
        self.command_texts.get(&at).into_iter().flat_map(|texts| texts.texts.iter().cloned())
    }

    /// Searches the texts if a program of another language is among these parts; answers whether there is one.
    fn analyze_code_read(&mut self, parts: &Range<usize>, texts: &[String]) -> bool {
        let names = parts.clone().filter_map(|at| Some((at, program_name(self.name_at(at)?))));
        let Some((at, name)) = names.into_iter().find(|(_, name)| foreign_code::reads_code_from_stdin(name)) else { return false };
        for text in texts {
            self.analyze_foreign_code(at, foreign_code::parse_stdin_code(&name, text));
        }
        true
    }

    /// Whether some of these parts is a shell that reads commands from its input.
    fn reads_commands_from_stdin(&self, parts: Range<usize>) -> bool {
        let parts = self.script.commands.get(parts).unwrap_or_default();
        parts.iter().any(|part| shells::command_source(&part.words) == Some(CommandSource::Input))
    }

    /// A function or another name for a shell reads as the shell does.
    fn mark_named_readers(&self, field: &mut InputAnalysis<'_>) {
        let names: Vec<Option<&str>> = field.command_ranges.iter().map(|parts| self.name_at(parts.start)).collect();
        if self.variables.has_aliases() {
            for (reads, name) in field.readers.iter_mut().zip(&names) {
                let meanings = self.variables.aliases(name.unwrap_or_default());
                let shell =
                    |text: &String| interpreters::SHELLS.contains(&program_name(first_word(text)).as_str());
                *reads |= meanings.iter().any(shell);
            }
        }
        for _ in 0..MAX_ROUNDS {
            let functions = field.parsed.functions.iter();
            let reading: HashSet<&str> = functions
                .filter(|(_, body)| field.any_reads(body.clone()))
                .map(|(name, _)| name.as_str())
                .collect();
            if reading.is_empty() {
                return;
            }
            let calls = |name: &Option<&str>| name.is_some_and(|name| reading.contains(name));
            for (reads, name) in field.readers.iter_mut().zip(&names) {
                *reads |= calls(name);
            }
        }
    }

    fn name_at(&self, part: usize) -> Option<&str> {
        self.script.commands.get(part)?.words.first()?.value.as_literal()
    }

    fn words_at(&self, part: usize) -> Vec<Word> {
        self.script.commands.get(part).map(|part| part.words.clone()).unwrap_or_default()
    }

    /// Takes every text apart that the commands make.
    fn analyze_all_texts(&mut self, field: &InputAnalysis<'_>) {
        let mut all: Vec<String> = Vec::new();
        all.extend(field.parsed.here_documents.iter().map(|document| document.body.clone()));
        for (command, parts) in field.parsed.commands.iter().zip(field.command_ranges) {
            all.extend(self.recorded_texts(parts.start));
            let words = self.words_at(parts.start);
            match stdout_content(&words) {
                StdoutContent::Text(texts) => all.extend(texts),
                StdoutContent::Unknown if command.before_pipe => {
                    let texts: Vec<String> =
                        words.iter().skip(1).map(|word| expand::value_text(&word.value)).collect();
                    self.analyze_guess(&texts.join(" ").replace("\\n", "\n"));
                }
                StdoutContent::Nothing | StdoutContent::Input | StdoutContent::Files | StdoutContent::Unknown => {}
            }
        }
        let filled = self.placeholder_commands(field.command_ranges);
        let mut seen = HashSet::new();
        for text in all.iter().filter(|text| seen.insert(text.as_str())) {
            self.analyze_text(text);
            self.search_filled_commands(&filled, text);
        }
    }

    /// Text that is hardly a command: it is searched, but what it would hide counts for nothing.
    fn analyze_guess(&mut self, text: &str) {
        let before = self.script.commands.len();
        let paused = std::mem::replace(&mut self.memo.paused, true);
        self.analyze_text(text);
        self.memo.paused = paused;
        for part in self.script.commands.iter_mut().skip(before) {
            part.opaque = false;
        }
    }

    /// Marks the shells that read what is not literal.
    fn mark_opaque_readers(&mut self, field: &InputAnalysis<'_>) {
        let mut opaque: Vec<Range<usize>> = Vec::new();
        for pipeline in &field.parsed.pipelines {
            opaque.extend(self.opaque_pipeline_readers(field, pipeline));
        }
        for feed in &field.parsed.compound_inputs {
            if field.any_reads(feed.commands.clone()) && !self.has_literal_input(field, feed.redirect_holder) {
                opaque.push(feed.commands.clone());
            }
        }
        for at in 0..field.readers.len() {
            if self.has_literal_input(field, at) {
                continue;
            }
            if self.name_at(field.command_ranges.get(at).map_or(usize::MAX, |parts| parts.start)) == Some("exec") {
                // It lasts, so every shell may read it.
                opaque.push(0..field.readers.len());
                break;
            }
            opaque.push(at..at + 1);
        }
        let mut marked = vec![false; field.readers.len()];
        for commands in opaque {
            let commands = marked.get_mut(commands).unwrap_or_default();
            commands.fill(true);
        }
        for ((marked, reads), parts) in marked.into_iter().zip(&field.readers).zip(field.command_ranges) {
            if marked && *reads {
                self.mark_opaque(parts.start);
            }
        }
    }

    /// The commands of a pipeline that read what is not literal.
    fn opaque_pipeline_readers(&mut self, field: &InputAnalysis<'_>, pipeline: &Pipeline) -> Option<Range<usize>> {
        let mut elements = pipeline.starts.windows(2).skip(1).rev();
        let last = elements.find_map(|element| match element {
            [start, end] if field.any_reads(*start..*end) => Some(*start..*end),
            _ => None,
        })?;
        let start = pipeline.starts.first().copied()?;
        let mut texts: Vec<String> = Vec::new();
        let mut literal = true;
        for at in start..last.start {
            let (Some(command), Some(parts)) = (field.parsed.commands.get(at), field.command_ranges.get(at)) else {
                continue;
            };
            if command.substitution_depth != pipeline.substitution_depth {
                continue;
            }
            let varies = field.parsed.may_repeat && command.words.iter().any(|word| word.raw.contains('$'))
                || self.may_vary(parts.start);
            match stdout_content(&self.words_at(parts.start)) {
                StdoutContent::Nothing | StdoutContent::Files => {}
                StdoutContent::Input => literal &= self.has_literal_input(field, at),
                StdoutContent::Unknown => literal = false,
                StdoutContent::Text(readings) => {
                    literal &= !varies;
                    texts.extend(readings.into_iter().next_back());
                }
            }
        }
        if texts.len() > 1 {
            // What they make together depends on which of them run, and how often.
            self.analyze_text(&texts.concat());
            self.analyze_text(&texts.join("\n"));
            literal = false;
        }
        (!literal).then_some(start..last.end)
    }

    /// Whether what a command is given to read by its own redirects is literal text or a file.
    fn has_literal_input(&self, field: &InputAnalysis<'_>, at: usize) -> bool {
        let (Some(command), Some(parts)) = (field.parsed.commands.get(at), field.command_ranges.get(at)) else {
            return true;
        };
        let texts = command.stdin_texts.iter().all(|text| match text {
            StdinText::Document(number) => {
                field.parsed.here_documents.get(*number).is_some_and(|document| document.is_literal)
            }
            StdinText::HereString(text) => {
                !self.may_vary(parts.start)
                    && expand::expand_single(text, &self.variables, &mut Vec::new()).as_literal().is_some()
            }
        });
        let redirects = self.script.commands.get(parts.start).map(|part| part.redirects.as_slice());
        texts
            && redirects
                .unwrap_or_default()
                .iter()
                .all(|redirect| redirect.direction == RedirectDirection::Write || !redirect.target.is_unknown())
    }
}

/// Whether a command may be a shell that runs what a substitution in its words makes.
fn runs_substitution_output(command: &RawCommand) -> bool {
    let makes = |word: &RawWord| ["$(", "`", "<("].iter().any(|mark| word.raw.contains(mark));
    let runs = |word: &RawWord| may_name_shell(word) || word.raw == "eval";
    command.words.iter().any(makes) && command.words.iter().take(MAX_NAME_WORDS).any(runs)
}

/// Whether a word may be the name of a shell, or of what hands its input on to one.
fn may_name_shell(word: &RawWord) -> bool {
    let plain = program_name(word.raw.trim_matches(['\'', '"', '\\']));
    interpreters::SHELLS.contains(&plain.as_str())
        || matches!(plain.as_str(), "source" | "." | "parallel" | "xargs")
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
