//! Result of parsing: commands and words as written, before expansion.

use std::ops::Range;

use crate::shell::{CheckScope, UnanalyzableCause};

/// One simple command as written.
#[derive(Debug, Default)]
pub(crate) struct RawCommand {
    /// The command word and its arguments.
    pub(crate) words: Vec<RawWord>,
    /// Assignments before the command word.
    pub(crate) assignments: Vec<RawAssignment>,
    pub(crate) redirects: Vec<RawRedirect>,
    /// True if a redirect may fail, so that nothing runs.
    pub(crate) may_fail: bool,
    /// Text on standard input from here-documents and here-strings.
    pub(crate) stdin_texts: Vec<StdinText>,
    /// True for a test in double brackets; its one word is the whole text.
    pub(crate) is_test: bool,
    /// True if it is inside a substitution.
    pub(crate) in_substitution: bool,
    /// Depth of substitutions in its text.
    pub(crate) substitution_depth: usize,
    /// True if it reads from a pipe.
    pub(crate) after_pipe: bool,
    /// True if it writes to a pipe.
    pub(crate) before_pipe: bool,
}

impl RawCommand {
    pub(crate) fn check_scope(&self) -> CheckScope {
        if self.in_substitution { CheckScope::DenyOnly } else { CheckScope::Full }
    }
}

/// Text on the standard input of a command.
#[derive(Debug)]
pub(crate) enum StdinText {
    /// A here-document, by its index in [`ParsedScript::here_documents`].
    HereDocument(usize),
    HereString(RawWord),
}

impl StdinText {
    /// The word of a here-string.
    pub(crate) fn here_string(&self) -> Option<&RawWord> {
        match self {
            Self::HereString(word) => Some(word),
            Self::HereDocument(_) => None,
        }
    }
}

/// A word as written, split where its quoting changes.
#[derive(Debug, Default, Clone)]
pub(crate) struct RawWord {
    pub(crate) raw: String,
    pub(crate) pieces: Vec<WordPiece>,
}

/// A piece of a word.
#[derive(Debug, Clone)]
pub(crate) enum WordPiece {
    /// Unquoted text, in which globs, braces and a tilde are special.
    Plain(String),
    /// Literal text.
    Quoted(String),
    Variable {
        name: String,
        /// True inside double quotes.
        quoted: bool,
        /// True if the shell stops when it is empty.
        nonempty: bool,
    },
    /// Anything whose value is known only when the command runs.
    Unknown,
}

/// `NAME=value` before a command.
#[derive(Debug)]
pub(crate) struct RawAssignment {
    pub(crate) name: String,
    /// The assigned value; unknown for an array.
    pub(crate) value: RawWord,
    /// The whole text.
    pub(crate) raw: String,
    pub(crate) form: AssignmentForm,
}

/// Form of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AssignmentForm {
    /// `NAME=value`
    Plain,
    /// `NAME+=value`
    Appended,
    /// `NAME[subscript]=value`; the subscript is empty if it is not literal.
    Element(String),
    /// `NAME=( .. )`
    Array,
}

/// A redirect as written.
#[derive(Debug)]
pub(crate) struct RawRedirect {
    /// True if it opens for writing.
    pub(crate) writes: bool,
    pub(crate) target: RawWord,
}

/// A here-document.
#[derive(Debug, Default)]
pub(crate) struct HereDocument {
    /// The lines before the delimiter.
    pub(crate) body: String,
    /// True if nothing in it is expanded.
    pub(crate) is_literal: bool,
}

/// Everything found in a text.
#[derive(Debug, Default)]
pub(crate) struct ParsedScript {
    /// Simple commands, in the order in which they end.
    pub(crate) commands: Vec<RawCommand>,
    pub(crate) here_documents: Vec<HereDocument>,
    /// Causes that prevent an allow decision.
    pub(crate) unanalyzable: Vec<UnanalyzableCause>,
    /// True if `&` occurs.
    pub(crate) background: bool,
    /// Texts that could not be parsed and are searched at every word.
    pub(crate) unparsed_texts: Vec<String>,
    /// Bytes of nested texts parsed so far.
    pub(crate) nested_bytes: usize,
    /// Variables set by `for` loops and the like, with the words they iterate over.
    pub(crate) loop_values: Vec<(String, Vec<RawWord>)>,
    /// True if there is a loop or function, so that later commands may run before earlier ones.
    pub(crate) may_repeat: bool,
    /// Pipelines with more than one element.
    pub(crate) pipelines: Vec<Pipeline>,
    /// Compound commands with redirected input.
    pub(crate) compound_inputs: Vec<CompoundInput>,
    /// Functions, each with the range of commands in its body.
    pub(crate) functions: Vec<(String, Range<usize>)>,
    /// Commands that may not run, or that run in another shell.
    pub(crate) conditional_ranges: Vec<ConditionalCommands>,
    /// Choices of which one branch always runs.
    pub(crate) exhaustive_choices: Vec<ExhaustiveChoice>,
}

/// A choice of which one branch always runs, so that a variable set in every branch is definite.
#[derive(Debug)]
pub(crate) struct ExhaustiveChoice {
    /// The whole construct, as a range of commands.
    pub(crate) commands: Range<usize>,
    /// The branches, as indices into the conditional ranges.
    pub(crate) branches: Vec<usize>,
}

/// Commands that may not have run, so that their assignments may have no effect afterwards.
#[derive(Debug)]
pub(crate) struct ConditionalCommands {
    pub(crate) commands: Range<usize>,
    pub(crate) kind: ConditionalKind,
}

/// Construct that makes commands conditional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConditionalKind {
    /// A branch or subshell.
    Branch,
    /// A loop that sets this variable for each iteration.
    Loop(String),
    /// A function with this name.
    Function(String),
}

/// A pipeline: the index of the first command of each element, and the end of the last one.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) starts: Vec<usize>,
    /// Depth of substitutions around it.
    pub(crate) substitution_depth: usize,
}

/// Input redirects of a compound command.
#[derive(Debug)]
pub(crate) struct CompoundInput {
    /// Commands that read from them.
    pub(crate) commands: Range<usize>,
    /// Index of the command without words that holds the redirects.
    pub(crate) redirect_holder: usize,
}

impl ParsedScript {
    /// Records a cause once.
    pub(crate) fn note_unanalyzable(&mut self, cause: UnanalyzableCause) {
        if !self.unanalyzable.contains(&cause) {
            self.unanalyzable.push(cause);
        }
    }
}
