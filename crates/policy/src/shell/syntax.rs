//! What the parser finds in a text, before anyone asks what it means.

use std::ops::Range;

use super::{UnanalyzableCause, CheckScope};

/// One simple command as it is written.
#[derive(Debug, Default)]
pub(super) struct RawCommand {
    /// The command word and its arguments.
    pub(super) words: Vec<RawWord>,
    /// Assignments in front.
    pub(super) assignments: Vec<RawAssignment>,
    /// Redirects, in order.
    pub(super) redirects: Vec<RawRedirect>,
    /// Whether one of them, or one that opens nothing, may fail, so that nothing is run.
    pub(super) may_fail: bool,
    /// Text that it gets on its input by here-documents and here-strings.
    pub(super) stdin_texts: Vec<StdinText>,
    /// Whether it is a test in double brackets, whose one word is its whole text.
    pub(super) is_test: bool,
    /// Whether it is inside a substitution.
    pub(super) in_substitution: bool,
    /// How many substitutions of its text it is in.
    pub(super) substitution_depth: usize,
    /// Whether it reads from a pipe.
    pub(super) after_pipe: bool,
    /// Whether it writes to a pipe.
    pub(super) before_pipe: bool,
}

impl RawCommand {
    /// What the part counts for.
    pub(super) fn check_scope(&self) -> CheckScope {
        if self.in_substitution { CheckScope::DenyOnly } else { CheckScope::Full }
    }
}

/// Text on the input of a command.
#[derive(Debug)]
pub(super) enum StdinText {
    /// A here-document, by its number in the harvest.
    Document(usize),
    /// A here-string.
    HereString(RawWord),
}

impl StdinText {
    /// The word of a here-string.
    pub(super) fn here_string(&self) -> Option<&RawWord> {
        match self {
            Self::HereString(word) => Some(word),
            Self::Document(_) => None,
        }
    }
}

/// A word as it is written, cut where its quoting changes.
#[derive(Debug, Default, Clone)]
pub(super) struct RawWord {
    /// The text of the word.
    pub(super) raw: String,
    /// Its pieces.
    pub(super) pieces: Vec<WordPiece>,
}

/// A stretch of a word.
#[derive(Debug, Clone)]
pub(super) enum WordPiece {
    /// Text outside quotes, in which globs, braces and a tilde count.
    Plain(String),
    /// Text that stands for itself.
    Quoted(String),
    /// A variable by name.
    Variable {
        /// Its name.
        name: String,
        /// Whether it stands inside double quotes.
        quoted: bool,
        /// Whether the shell stops if it is empty.
        nonempty: bool,
    },
    /// Anything whose value is not known before it runs.
    Unknown,
}

/// `NAME=value` in front of a command.
#[derive(Debug)]
pub(super) struct RawAssignment {
    /// The variable.
    pub(super) name: String,
    /// What it is given; an array has an unknown value.
    pub(super) value: RawWord,
    /// The whole text.
    pub(super) raw: String,
    /// How it is given.
    pub(super) form: AssignmentForm,
}

/// In which way a variable is given a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AssignmentForm {
    /// `NAME=value`
    Plain,
    /// `NAME+=value`
    Appended,
    /// `NAME[subscript]=value`; the subscript is empty if it is not literal.
    Element(String),
    /// `NAME=( .. )`
    Array,
}

/// A redirect as it is written.
#[derive(Debug)]
pub(super) struct RawRedirect {
    /// Whether it opens for writing.
    pub(super) writes: bool,
    /// What it opens.
    pub(super) target: RawWord,
}

/// The text of a here-document.
#[derive(Debug, Default)]
pub(super) struct HereDocument {
    /// The lines between the start and the end mark.
    pub(super) body: String,
    /// Whether nothing in it is expanded.
    pub(super) is_literal: bool,
}

/// All that was found in a text.
#[derive(Debug, Default)]
pub(super) struct ParsedScript {
    /// Every simple command, in the order in which each ends.
    pub(super) commands: Vec<RawCommand>,
    /// The here-documents.
    pub(super) here_documents: Vec<HereDocument>,
    /// What stands in the way of allowing.
    pub(super) unanalyzable: Vec<UnanalyzableCause>,
    /// Whether `&` was seen.
    pub(super) background: bool,
    /// Texts that could not be taken apart and are searched at every word.
    pub(super) unparsed_texts: Vec<String>,
    /// How many bytes of text inside text were taken apart.
    pub(super) nested_bytes: usize,
    /// Names that `for` loops and the like set, with the words they go through.
    pub(super) loop_values: Vec<(String, Vec<RawWord>)>,
    /// Whether a loop or a function is there, so that what stands later may run before what stands first.
    pub(super) may_repeat: bool,
    /// Pipelines of more than one element.
    pub(super) pipelines: Vec<Pipeline>,
    /// Compound commands that are given something to read.
    pub(super) compound_inputs: Vec<CompoundInput>,
    /// Functions, each with the commands of its body.
    pub(super) functions: Vec<(String, Range<usize>)>,
    /// Commands that may not run, or that run in another shell.
    pub(super) conditional_ranges: Vec<ConditionalCommands>,
    /// Choices of which one is always taken.
    pub(super) exhaustive_choices: Vec<ExhaustiveChoice>,
}

/// A choice of which one way is always taken, so that what each of them assigns is assigned.
#[derive(Debug)]
pub(super) struct ExhaustiveChoice {
    /// The whole, in the harvest.
    pub(super) commands: Range<usize>,
    /// The ways, among those that are apart.
    pub(super) branches: Vec<usize>,
}

/// Commands of which the rest of the text cannot say whether they have run, so that what they assign may not last.
#[derive(Debug)]
pub(super) struct ConditionalCommands {
    /// Where they are in the harvest.
    pub(super) commands: Range<usize>,
    /// What they are.
    pub(super) kind: ConditionalKind,
}

/// What commands are apart in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConditionalKind {
    /// Something that may not run, or runs in another shell.
    Branch,
    /// A loop that sets this variable whenever they run.
    Loop(String),
    /// A function of this name.
    Function(String),
}

/// A pipeline: where each element's commands begin in the harvest, and at last where the last one's end.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) starts: Vec<usize>,
    /// How many substitutions it is in.
    pub(super) substitution_depth: usize,
}

/// Redirects of a compound command.
#[derive(Debug)]
pub(super) struct CompoundInput {
    /// The commands that read from them.
    pub(super) commands: Range<usize>,
    /// The command without words that holds them.
    pub(super) redirect_holder: usize,
}

impl ParsedScript {
    /// Notes an obstacle, once.
    pub(super) fn note_unanalyzable(&mut self, kind: UnanalyzableCause) {
        if !self.unanalyzable.contains(&kind) {
            self.unanalyzable.push(kind);
        }
    }
}
