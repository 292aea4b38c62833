//! Result of the analysis of a command: its simple commands.

use super::{RuleSuggestion, Word, WordValue};

/// Analysis of a whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// The text without outer blanks, matched against rules that name the whole command.
    pub text: String,
    /// Simple commands at every depth, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    /// Simple commands as they would be if unknown parts were empty. Only rules about their text and files apply to
    /// them.
    pub commands_if_empty: Vec<SimpleCommand>,
    /// Causes that prevent an allow decision; empty if everything was understood. Each cause once.
    pub unanalyzable: Vec<UnanalyzableCause>,
    /// True if a limit ended the analysis early. The rest may be anything.
    pub truncated: bool,
    /// True if a variable or name had more values than were tracked.
    pub has_untracked_values: bool,
    /// True if commands may run more than once.
    pub may_repeat: bool,
    /// True if `&` starts a background process.
    pub background: bool,
    /// Targets of `cd`, in order, at every depth. `None` for `cd` without operand, `cd -`, or with options.
    pub cd_targets: Vec<Option<WordValue>>,
    /// Directories that later commands may run in besides the shell's: all operands of `cd` and its like, at every
    /// depth and in every form.
    pub cd_directories: Vec<WordValue>,
    /// Directories selected by options, such as `env -C`.
    pub option_directories: Vec<WordValue>,
    /// Values assigned to `CDPATH`.
    pub cd_path: Vec<WordValue>,
}

impl CommandAnalysis {
    /// Simple commands that must be allowed before the command may run.
    pub fn checked_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.commands.iter().filter(|simple_command| simple_command.check_scope == CheckScope::Full)
    }

    /// Returns true if a command runs something that the text does not show: a command word that is not literal or
    /// has too many values, or `eval` and the like of text that is not literal.
    pub fn is_opaque(&self) -> bool {
        self.has_untracked_values || self.commands.iter().any(|simple_command| simple_command.opaque)
    }

    /// Finds the first cause for which even an exact rule for the whole text does not allow the command.
    pub fn find_cause_despite_exact_rule(&self) -> Option<UnanalyzableCause> {
        self.unanalyzable.iter().copied().find(|cause| !cause.is_allowed_by_exact_rule())
    }
}

/// Reason why a command cannot be analyzed completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnanalyzableCause {
    /// More than [`super::MAX_ANALYZED_LENGTH`] characters.
    TooLong,
    /// Nested too deep, or a limit of the analysis was reached.
    TooDeep,
    /// Invisible characters, unusual blanks or control characters.
    HiddenCharacter,
    /// A command word with non-ASCII characters.
    NonAsciiCommand,
    /// Invalid syntax, or a construct that the parser does not support.
    Syntax,
    /// A test that evaluates its operands.
    Test,
    /// An unquoted glob whose matches could be taken for options or change more files than shown. Never in
    /// [`CommandAnalysis::unanalyzable`]: see [`SimpleCommand::has_risky_glob`].
    Glob,
    /// A here-document with expansions.
    Heredoc,
    /// `$(..)`, backquotes, `<(..)`, `>(..)`.
    Substitution,
    /// A variable or parameter, arithmetic with names, or another user's home directory.
    Variable,
    /// `{a,b}` or `{1..3}`.
    Braces,
    /// `$'..'`, `$".."`, or a backslash before a blank or a line end.
    Quoting,
    /// Groups, `case`, functions, arrays and the like.
    CompoundSyntax,
    /// An assignment without a command.
    Assignment,
    /// A redirect to something that is not a plain name.
    RedirectTarget,
}

impl UnanalyzableCause {
    /// Short description that completes "the command has ..".
    pub fn text(self) -> &'static str {
        match self {
            Self::TooLong => "more than 10,000 characters",
            Self::TooDeep => "nesting or repetition beyond the analysis limits",
            Self::HiddenCharacter => "hidden or control characters",
            Self::NonAsciiCommand => "a command name with non-ASCII characters",
            Self::Syntax => "invalid or unsupported syntax",
            Self::Test => "a test that evaluates its operands",
            Self::Glob => "a glob where a plain name is needed",
            Self::Heredoc => "a here-document with expansions",
            Self::Substitution => "a command substitution",
            Self::Variable => "a variable with an unknown value",
            Self::Braces => "a brace expansion",
            Self::Quoting => "unusual quoting",
            Self::CompoundSyntax => "a group, function or array",
            Self::Assignment => "an assignment without a command",
            Self::RedirectTarget => "a redirect whose target is not a plain name",
        }
    }

    /// Returns true if an exact rule for the whole command allows it in spite of this cause.
    pub fn is_allowed_by_exact_rule(self) -> bool {
        !matches!(
            self,
            Self::CompoundSyntax
                | Self::RedirectTarget
                | Self::HiddenCharacter
                | Self::Syntax
                | Self::TooDeep
        )
    }
}

/// Checks that apply to a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScope {
    /// It must be allowed, and restricting rules apply.
    Full,
    /// Only deny rules, ask rules and the check for critical removals apply: a command in a substitution, or one
    /// behind a wrapper whose outer form is checked.
    DenyOnly,
    /// Like `DenyOnly`, for text that may not be a command, such as code of another language.
    Possible,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    pub check_scope: CheckScope,
    /// Text as written, without redirects and comments, with single blanks.
    pub raw: String,
    /// The command word and its arguments, braces expanded. Empty for a mere assignment or redirect.
    pub words: Vec<Word>,
    /// Assignments before the command word.
    pub assignments: Vec<Assignment>,
    /// Redirects that open a file; `2>&1` is not included.
    pub redirects: Vec<Redirect>,
    /// Texts that allow rules are matched against. Empty if only bare `Bash` can allow the command.
    pub allow_texts: Vec<AllowText>,
    /// Texts that deny and ask rules are matched against.
    pub deny_texts: Vec<DenyText>,
    /// Class of the command behind the wrappers that an allow rule looks through.
    pub class: CommandClass,
    /// Command word, literal and as written, of the command that `class`, `reads` and `writes` describe.
    pub program: Option<String>,
    /// Files and directories it reads.
    pub reads: Vec<WordValue>,
    /// Files and directories it changes, creates or removes.
    pub writes: Vec<WordValue>,
    /// Files that it writes under their own name into a target directory.
    pub dir_targets: Vec<DirTarget>,
    /// True if it also reads everything below its directories.
    pub recursive: bool,
    /// True if it changes, removes or moves everything below what it writes.
    pub writes_recursively: bool,
    /// Directories in which it may change any file. For restricting rules only.
    pub bulk_write_dirs: Vec<WordValue>,
    /// Paths it removes, for the check for critical removals.
    pub removals: Vec<WordValue>,
    /// True if `reads` and `writes` must lie in the working directories even if a rule with a specifier allows the
    /// command.
    pub restricts_paths: bool,
    /// True if it has an unquoted glob that only an exact rule may allow.
    pub has_risky_glob: bool,
    /// True if it runs something that the text does not show.
    pub opaque: bool,
    /// Basis for a suggested rule.
    pub suggestion: RuleSuggestion,
}

/// A file that a command writes into its target, if that is a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirTarget {
    pub directory: WordValue,
    /// The source; its last component is the name in the directory.
    pub source: WordValue,
}

/// `NAME=value` before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: WordValue,
    /// True if the variable does not change what programs do.
    pub safe: bool,
}

/// A redirect that opens a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub direction: RedirectDirection,
    /// The file it opens.
    pub target: WordValue,
    /// Kind of the target, by its name.
    pub target_kind: RedirectTargetKind,
}

/// The direction of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectDirection {
    /// `<`
    Read,
    /// Any redirect that opens for writing, `<>` included.
    Write,
}

/// Kind of a redirect target, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectTargetKind {
    /// A file, checked by its path.
    File,
    /// `/dev/null`: harmless.
    Null,
    /// `/dev/stdout`, `/dev/fd/3` and the like: requires permission.
    Stream,
    /// `/dev/tcp/..` or `/dev/udp/..`, which bash opens as a connection: requires permission.
    Network,
}

/// Text that allow rules are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowText {
    /// The command with single blanks between words; quoted blanks are [`super::QUOTED_BLANK`].
    pub text: String,
    pub required_rule: RequiredRule,
}

/// Weakest kind of allow rule that may match a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredRule {
    /// Any rule.
    AnyRule,
    /// A rule that names the command word before its first `*`.
    NamingRule,
    /// A rule without `*`.
    ExactRule,
}

/// Text that deny and ask rules are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyText {
    /// The command with single blanks between words.
    pub text: String,
    pub match_start: MatchStart,
    /// True if only deny rules apply (command word in lower case).
    pub deny_only: bool,
}

/// Position in a text at which a rule may start to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchStart {
    /// Only at the start.
    Beginning,
    /// At every word: each word of an unparsed text may be a command.
    EveryWord,
}

/// Class of a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandClass {
    /// No command word: only redirects or assignments, which are checked on their own.
    NoCommand,
    /// Read-only: `reads` must lie in the working directories. `git` also needs a trusted repository; for `cd` see
    /// [`CommandAnalysis::cd_targets`].
    ReadOnly,
    /// A file command that the accept-edits mode allows: `reads` and `writes` must lie in the working directories.
    AcceptEdits,
    /// Never allowed by a rule with `*`.
    ExactRuleOnly,
    /// Anything else.
    Other,
}
