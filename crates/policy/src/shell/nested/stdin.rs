//! Commands that a shell reads from standard input: from a pipe, a here-document or a here-string, also one of an
//! enclosing compound command, function or `exec`.
//!
//! If any shell reads its input, every text that the command produces is analyzed, wherever it goes. The same applies
//! if a shell runs the output of a substitution (`eval "$(..)"`, `bash <(..)`). If the input of such a shell is not
//! literal, the shell is opaque like `sh -c "$(..)"`. Interpreters of other languages read code.

use std::collections::HashSet;
use std::ops::Range;

use super::foreign_code;
use super::shells::{self, CommandSource};
use super::stdout::{StdoutContent, derive_stdout_content};
use crate::shell::analyzer::Analyzer;
use crate::shell::parser::syntax::{ParsedScript, Pipeline, RawCommand, RawWord, StdinText};
use crate::shell::programs::effects::extract_program_name;
use crate::shell::words::expand;
use crate::shell::{RedirectDirection, Word};

/// Rounds of propagating through functions that call other functions.
const MAX_ROUNDS: usize = 4;

/// Words of a command that are checked for the name of a shell.
const MAX_NAME_WORDS: usize = 64;

/// A parsed script, with the range of simple commands that each of its commands produced.
struct InputAnalysis<'a> {
    parsed: &'a ParsedScript,
    command_ranges: &'a [Range<usize>],
    /// For each command, whether it reads commands from standard input.
    readers: Vec<bool>,
}

impl InputAnalysis<'_> {
    fn has_reader(&self, commands: Range<usize>) -> bool {
        self.readers.get(commands).is_some_and(|reads| reads.contains(&true))
    }
}

impl Analyzer<'_> {
    /// Analyzes the input of shells and interpreters.
    pub(crate) fn analyze_shell_input(&mut self, parsed: &ParsedScript, command_ranges: &[Range<usize>]) {
        let has_input =
            |command: &RawCommand| !(command.stdin_texts.is_empty() && command.redirects.is_empty());
        let runs_output = parsed.commands.iter().any(runs_substitution_output);
        if parsed.pipelines.is_empty() && !runs_output && !parsed.commands.iter().any(has_input) {
            return;
        }
        self.analyze_redirected_code(parsed, command_ranges);
        self.analyze_piped_code(parsed, command_ranges);
        let reads =
            command_ranges.iter().map(|range| self.reads_commands_from_stdin(range.clone())).collect();
        let mut analysis = InputAnalysis { parsed, command_ranges, readers: reads };
        self.mark_named_readers(&mut analysis);
        let named = |command: &RawCommand| {
            (command.after_pipe || has_input(command))
                && command.words.iter().take(MAX_NAME_WORDS).any(may_name_shell)
        };
        if runs_output || analysis.readers.contains(&true) || parsed.commands.iter().any(named) {
            self.analyze_all_texts(&analysis);
            self.mark_opaque_readers(&analysis);
        }
    }

    /// Analyzes the code that interpreters read through their own redirects.
    fn analyze_redirected_code(&mut self, parsed: &ParsedScript, command_ranges: &[Range<usize>]) {
        let commands = parsed.commands.iter().zip(command_ranges);
        for (command, range) in commands.filter(|(command, _)| !command.stdin_texts.is_empty()) {
            let texts = self.collect_redirected_texts(parsed, command, range.start);
            self.analyze_code_read(range, &texts);
        }
    }

    /// Analyzes the code that is piped into interpreters.
    fn analyze_piped_code(&mut self, parsed: &ParsedScript, command_ranges: &[Range<usize>]) {
        for pipeline in &parsed.pipelines {
            let (Some(start), Some(end)) = (pipeline.starts.first(), pipeline.starts.last()) else {
                continue;
            };
            let mut texts: Vec<String> = Vec::new();
            for (command, range) in parsed.commands.iter().zip(command_ranges).take(*end).skip(*start) {
                if self.analyze_code_read(range, &texts) {
                    // The output of an interpreter is unknown.
                    texts.clear();
                    continue;
                }
                texts.extend(self.collect_redirected_texts(parsed, command, range.start));
                if let StdoutContent::Text(printed) = derive_stdout_content(&self.words_at(range.start)) {
                    texts.extend(printed);
                }
            }
        }
    }

    /// Collects texts that a command reads through its own redirects; `index` is the index of its simple command.
    fn collect_redirected_texts(
        &self,
        parsed: &ParsedScript,
        command: &RawCommand,
        index: usize,
    ) -> Vec<String> {
        let document = |text: &StdinText| match text {
            StdinText::HereDocument(number) => {
                parsed.here_documents.get(*number).map(|document| document.body.clone())
            }
            StdinText::HereString(_) => None,
        };
        command.stdin_texts.iter().filter_map(document).chain(self.recorded_texts(index)).collect()
    }

    /// Texts of here-strings, and texts that a command prints in alternative expansions.
    fn recorded_texts(&self, index: usize) -> impl Iterator<Item = String> {
        self.texts.by_command.get(&index).into_iter().flat_map(|texts| texts.texts.iter().cloned())
    }

    /// Analyzes the texts if an interpreter is among these simple commands. Returns true if there is one.
    fn analyze_code_read(&mut self, range: &Range<usize>, texts: &[String]) -> bool {
        let names =
            range.clone().filter_map(|index| Some((index, extract_program_name(self.name_at(index)?))));
        let Some((index, name)) =
            names.into_iter().find(|(_, name)| foreign_code::reads_code_from_stdin(name))
        else {
            return false;
        };
        for text in texts {
            self.analyze_foreign_code(index, foreign_code::parse_stdin_code(&name, text));
        }
        true
    }

    /// Returns true if one of these simple commands is a shell that reads commands from standard input.
    fn reads_commands_from_stdin(&self, range: Range<usize>) -> bool {
        let simple_commands = self.analysis.commands.get(range).unwrap_or_default();
        simple_commands.iter().any(|simple_command| {
            shells::find_command_source(&simple_command.words) == Some(CommandSource::Input)
        })
    }

    /// Functions and aliases of a shell read commands as the shell does.
    fn mark_named_readers(&self, analysis: &mut InputAnalysis<'_>) {
        let names: Vec<Option<&str>> =
            analysis.command_ranges.iter().map(|range| self.name_at(range.start)).collect();
        if self.variables.has_aliases() {
            for (reads, name) in analysis.readers.iter_mut().zip(&names) {
                let aliases = self.variables.aliases(name.unwrap_or_default());
                let shell = |text: &String| {
                    shells::SHELLS.contains(&extract_program_name(extract_first_word(text)).as_str())
                };
                *reads |= aliases.iter().any(shell);
            }
        }
        for _ in 0..MAX_ROUNDS {
            let functions = analysis.parsed.functions.iter();
            let reading_functions: HashSet<&str> = functions
                .filter(|(_, body)| analysis.has_reader(body.clone()))
                .map(|(name, _)| name.as_str())
                .collect();
            if reading_functions.is_empty() {
                return;
            }
            let calls = |name: &Option<&str>| name.is_some_and(|name| reading_functions.contains(name));
            for (reads, name) in analysis.readers.iter_mut().zip(&names) {
                *reads |= calls(name);
            }
        }
    }

    fn name_at(&self, index: usize) -> Option<&str> {
        self.analysis.commands.get(index)?.words.first()?.value.as_literal()
    }

    fn words_at(&self, index: usize) -> Vec<Word> {
        self.analysis
            .commands
            .get(index)
            .map(|simple_command| simple_command.words.clone())
            .unwrap_or_default()
    }

    /// Analyzes every text that the commands produce.
    fn analyze_all_texts(&mut self, analysis: &InputAnalysis<'_>) {
        let mut all: Vec<String> = Vec::new();
        all.extend(analysis.parsed.here_documents.iter().map(|document| document.body.clone()));
        for (command, range) in analysis.parsed.commands.iter().zip(analysis.command_ranges) {
            all.extend(self.recorded_texts(range.start));
            let words = self.words_at(range.start);
            match derive_stdout_content(&words) {
                StdoutContent::Text(texts) => all.extend(texts),
                StdoutContent::Unknown if command.before_pipe => {
                    let texts: Vec<String> =
                        words.iter().skip(1).map(|word| expand::render_value(&word.value)).collect();
                    self.analyze_possible_input(&texts.join(" ").replace("\\n", "\n"));
                }
                StdoutContent::Nothing
                | StdoutContent::Input
                | StdoutContent::Files
                | StdoutContent::Unknown => {}
            }
        }
        let filled = self.collect_placeholder_commands(analysis.command_ranges);
        let mut seen = HashSet::new();
        for text in all.iter().filter(|text| seen.insert(text.as_str())) {
            self.analyze_text(text);
            self.search_filled_commands(&filled, text);
        }
    }

    /// Analyzes text that is hardly a command; it makes nothing opaque.
    fn analyze_possible_input(&mut self, text: &str) {
        let before = self.analysis.commands.len();
        let paused = std::mem::replace(&mut self.memo.paused, true);
        self.analyze_text(text);
        self.memo.paused = paused;
        for simple_command in self.analysis.commands.iter_mut().skip(before) {
            simple_command.opaque = false;
        }
    }

    /// Marks shells whose input is not literal as opaque.
    fn mark_opaque_readers(&mut self, analysis: &InputAnalysis<'_>) {
        let mut opaque: Vec<Range<usize>> = Vec::new();
        for pipeline in &analysis.parsed.pipelines {
            opaque.extend(self.find_opaque_pipeline_readers(analysis, pipeline));
        }
        for input in &analysis.parsed.compound_inputs {
            if analysis.has_reader(input.commands.clone())
                && !self.has_literal_input(analysis, input.redirect_holder)
            {
                opaque.push(input.commands.clone());
            }
        }
        for index in 0..analysis.readers.len() {
            if self.has_literal_input(analysis, index) {
                continue;
            }
            if self.name_at(analysis.command_ranges.get(index).map_or(usize::MAX, |range| range.start))
                == Some("exec")
            {
                // `exec` lasts, so every later shell may read it.
                opaque.push(0..analysis.readers.len());
                break;
            }
            opaque.push(index..index + 1);
        }
        let mut marked = vec![false; analysis.readers.len()];
        for commands in opaque {
            let commands = marked.get_mut(commands).unwrap_or_default();
            commands.fill(true);
        }
        for ((marked, reads), range) in marked.into_iter().zip(&analysis.readers).zip(analysis.command_ranges)
        {
            if marked && *reads {
                self.mark_opaque(range.start);
            }
        }
    }

    /// Finds the commands of a pipeline whose shells read input that is not literal.
    fn find_opaque_pipeline_readers(
        &mut self,
        analysis: &InputAnalysis<'_>,
        pipeline: &Pipeline,
    ) -> Option<Range<usize>> {
        let mut elements = pipeline.starts.windows(2).skip(1).rev();
        let last = elements.find_map(|element| match element {
            [start, end] if analysis.has_reader(*start..*end) => Some(*start..*end),
            _ => None,
        })?;
        let start = pipeline.starts.first().copied()?;
        let mut texts: Vec<String> = Vec::new();
        let mut literal = true;
        for index in start..last.start {
            let (Some(command), Some(range)) =
                (analysis.parsed.commands.get(index), analysis.command_ranges.get(index))
            else {
                continue;
            };
            if command.substitution_depth != pipeline.substitution_depth {
                continue;
            }
            let varies = analysis.parsed.may_repeat
                && command.words.iter().any(|word| word.raw.contains('$'))
                || self.may_vary(range.start);
            match derive_stdout_content(&self.words_at(range.start)) {
                StdoutContent::Nothing | StdoutContent::Files => {}
                StdoutContent::Input => literal &= self.has_literal_input(analysis, index),
                StdoutContent::Unknown => literal = false,
                StdoutContent::Text(printed) => {
                    literal &= !varies;
                    texts.extend(printed.into_iter().next_back());
                }
            }
        }
        if texts.len() > 1 {
            // The combined text depends on which of the commands run, and how often.
            self.analyze_text(&texts.concat());
            self.analyze_text(&texts.join("\n"));
            literal = false;
        }
        (!literal).then_some(start..last.end)
    }

    /// Returns true if a command's own redirects supply only literal text or files.
    fn has_literal_input(&self, analysis: &InputAnalysis<'_>, index: usize) -> bool {
        let (Some(command), Some(range)) =
            (analysis.parsed.commands.get(index), analysis.command_ranges.get(index))
        else {
            return true;
        };
        let texts = command.stdin_texts.iter().all(|text| match text {
            StdinText::HereDocument(number) => {
                analysis.parsed.here_documents.get(*number).is_some_and(|document| document.is_literal)
            }
            StdinText::HereString(text) => {
                !self.may_vary(range.start)
                    && expand::expand_single(text, &self.variables, &mut Vec::new()).as_literal().is_some()
            }
        });
        let redirects =
            self.analysis.commands.get(range.start).map(|simple_command| simple_command.redirects.as_slice());
        texts
            && redirects.unwrap_or_default().iter().all(|redirect| {
                redirect.direction == RedirectDirection::Write || !redirect.target.is_unknown()
            })
    }
}

/// Returns true if a command may be a shell that runs the output of a substitution.
fn runs_substitution_output(command: &RawCommand) -> bool {
    let substitutes = |word: &RawWord| ["$(", "`", "<("].iter().any(|start| word.raw.contains(start));
    let runs = |word: &RawWord| may_name_shell(word) || word.raw == "eval";
    command.words.iter().any(substitutes) && command.words.iter().take(MAX_NAME_WORDS).any(runs)
}

/// Returns true if a word may name a shell, or a program that passes its input to one.
fn may_name_shell(word: &RawWord) -> bool {
    let plain = extract_program_name(word.raw.trim_matches(['\'', '"', '\\']));
    shells::SHELLS.contains(&plain.as_str())
        || matches!(plain.as_str(), "source" | "." | "parallel" | "xargs")
}

fn extract_first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
