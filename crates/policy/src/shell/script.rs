//! The facts about a command: the script, its parts, and what each part is.

use super::{WordValue, Word};

/// A whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The text without outer blanks: what a rule that names the whole command is compared with.
    pub text: String,
    /// Every simple command at every depth, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    /// The parts as they would be if what is not known were nothing. Only rules about what they name are compared with them.
    pub commands_if_empty: Vec<SimpleCommand>,
    /// What stands in the way of allowing; empty if everything was understood. Each kind once.
    pub unanalyzable: Vec<UnanalyzableCause>,
    /// Whether more came of the text than was followed. What was not followed may be anything.
    pub truncated: bool,
    /// Whether a variable or a name was given more than was followed.
    pub has_untracked_values: bool,
    /// Whether parts may run more than once.
    pub may_repeat: bool,
    /// Whether `&` starts something in the background.
    pub background: bool,
    /// Where `cd` goes, in order, at every depth. `None` for `cd` without an operand, `cd -`, or options.
    pub cd_targets: Vec<Option<WordValue>>,
    /// Where a later part may run besides where the shell is: everything that `cd` and its like are given, at every depth
    /// and in every form.
    pub cd_directories: Vec<WordValue>,
    /// Where a command is told to work, by `env -C` and its like.
    pub option_directories: Vec<WordValue>,
    /// What `CDPATH` was set to.
    pub cd_path: Vec<WordValue>,
}

impl Script {
    /// The parts that must be allowed before the command may run.
    pub fn checked_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.commands.iter().filter(|part| part.check_scope == CheckScope::Full)
    }

    /// Whether some part runs what cannot be known from the text: a command word that is not literal or may be one more than
    /// was followed, or `eval` and the like of text that is not literal.
    pub fn is_opaque(&self) -> bool {
        self.has_untracked_values || self.commands.iter().any(|part| part.opaque)
    }

    /// Whether something stands in the way of allowing that not even a rule with the whole text lifts.
    pub fn first_unliftable_cause(&self) -> Option<UnanalyzableCause> {
        self.unanalyzable.iter().copied().find(|kind| !kind.is_lifted_by_exact_rule())
    }
}

/// Why a command cannot be understood completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnanalyzableCause {
    /// More than [`super::LONGEST`] characters.
    TooLong,
    /// Nested too deep, or more comes of it than is followed.
    TooDeep,
    /// Blanks or marks that are not seen, or control characters.
    HiddenCharacter,
    /// A command word with other characters than ASCII.
    NonAsciiCommand,
    /// Not a command that bash would take, or a construct that is not known here.
    Syntax,
    /// A test that evaluates its operands.
    Test,
    /// An unquoted glob where its matches could be taken for options or change more than is shown. Not found in
    /// [`Script::unanalysable`]: see [`Part::glob_asks`].
    Glob,
    /// A here-document whose text is expanded.
    Heredoc,
    /// `$(..)`, backquotes, `<(..)`, `>(..)`.
    Substitution,
    /// A variable or parameter, arithmetic with names, or a home other than one's own.
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
    /// A few words for people, to stand after "the command has".
    pub fn text(self) -> &'static str {
        match self {
            Self::TooLong => "more than 10,000 characters",
            Self::TooDeep => "more nested or repeated in it than is followed",
            Self::HiddenCharacter => "hidden or control characters",
            Self::NonAsciiCommand => "a command name with unusual characters",
            Self::Syntax => "a syntax that is not understood",
            Self::Test => "a test that evaluates its operands",
            Self::Glob => "a glob where a plain name is needed",
            Self::Heredoc => "a here-document with expansions",
            Self::Substitution => "a command substitution",
            Self::Variable => "a variable whose value is not known",
            Self::Braces => "a brace expansion",
            Self::Quoting => "unusual quoting",
            Self::CompoundSyntax => "a group, function or array",
            Self::Assignment => "an assignment that lasts",
            Self::RedirectTarget => "a redirect whose target is not a plain name",
        }
    }

    /// Whether a rule that names the whole command says enough in spite of it.
    pub fn is_lifted_by_exact_rule(self) -> bool {
        !matches!(
            self,
            Self::CompoundSyntax | Self::RedirectTarget | Self::HiddenCharacter | Self::Syntax | Self::TooDeep
        )
    }
}

/// What a part counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScope {
    /// It must be allowed, and is searched too.
    Full,
    /// It is only searched for what is denied, asked about or critical: something inside a substitution, or the command
    /// behind a wrapper whose outer form is judged.
    DenyOnly,
    /// As searched, but it may be no command at all: text in a script of another language.
    Guess,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// What it counts for.
    pub check_scope: CheckScope,
    /// As it is written, without redirects and comments, with single blanks.
    pub raw: String,
    /// The words: the command word and its arguments, braces expanded. Empty for an assignment or a redirect alone.
    pub words: Vec<Word>,
    /// Assignments in front.
    pub assignments: Vec<Assignment>,
    /// Redirects that open something; `2>&1` is not among them.
    pub redirects: Vec<Redirect>,
    /// What allow rules are compared with. Empty if no rule short of bare `Bash` can allow the part.
    pub allow_spellings: Vec<AllowSpelling>,
    /// What deny and ask rules are compared with.
    pub deny_spellings: Vec<DenySpelling>,
    /// What kind of command it is, looking through the wrappers that an allow rule looks through.
    pub class: CommandClass,
    /// The command word of the command that `class`, `reads` and `writes` speak of, if literal and as written.
    pub program: Option<String>,
    /// The files and directories it reads.
    pub reads: Vec<WordValue>,
    /// The files and directories it changes, makes or removes.
    pub writes: Vec<WordValue>,
    /// What it writes under the name that it has elsewhere, if it is told a directory to write to.
    pub dir_targets: Vec<DirTarget>,
    /// Whether it also reads what lies below its directories.
    pub recursive: bool,
    /// Whether it changes, removes or moves what it writes with all that lies below.
    pub writes_recursively: bool,
    /// Directories in which it may change anything, without naming what. For refusing only.
    pub bulk_write_dirs: Vec<WordValue>,
    /// What it removes, for the search for critical removals.
    pub removals: Vec<WordValue>,
    /// Whether `reads` and `writes` must lie in the working directories even if a rule with a specifier allows the
    /// command.
    pub restricts_paths: bool,
    /// Whether it has an unquoted glob and is a command for which that asks under every rule with a `*`.
    pub has_risky_glob: bool,
    /// Whether it runs something that cannot be known from the text.
    pub opaque: bool,
    /// What a suggested rule is made from.
    pub suggestion: RuleSuggestion,
}

/// A file that a command puts into a directory, if that is what its target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirTarget {
    /// The target.
    pub directory: WordValue,
    /// What is put there; its last component is the name that it has there.
    pub source: WordValue,
}

/// `NAME=value` in front of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: WordValue,
    /// Whether it is on the list of variables that change no program's deeds.
    pub safe: bool,
}

/// A redirect that opens a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// In which direction.
    pub direction: RedirectDirection,
    /// What it opens.
    pub target: WordValue,
    /// What sort of thing the target is, by its name.
    pub target_kind: RedirectTargetKind,
}

/// The direction of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectDirection {
    /// `<`
    Read,
    /// Everything that opens for writing, `<>` included.
    Write,
}

/// What a redirect's target is, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectTargetKind {
    /// A file, judged by its path.
    File,
    /// `/dev/null`: no harm.
    Null,
    /// `/dev/stdout`, `/dev/fd/3` and the like: asks.
    Stream,
    /// `/dev/tcp/..` or `/dev/udp/..`, which bash opens as a connection: asks.
    Network,
}

/// A text that allow rules are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowSpelling {
    /// The command, single blanks between words; blanks inside quotes are [`super::QUOTED_BLANK`].
    pub text: String,
    /// Which rules may match it.
    pub required_rule: RequiredRule,
}

/// Which allow rules may match a spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredRule {
    /// Any.
    AnyRule,
    /// One that names the command word before its first `*`.
    NamingRule,
    /// One without `*`.
    ExactRule,
}

/// A text that deny and ask rules are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenySpelling {
    /// The command, single blanks between words.
    pub text: String,
    /// Where a rule may begin to match.
    pub match_start: MatchStart,
    /// Whether it counts for deny rules only (command word in lower case).
    pub deny_only: bool,
}

/// Where in a spelling a rule may begin to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchStart {
    /// At its start.
    Beginning,
    /// At every word: where the text could not be taken apart, each word may be a command.
    EveryWord,
}

/// What kind of command a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandClass {
    /// No command word: only redirects or assignments, which are judged by themselves.
    NoCommand,
    /// It only reads: `reads` must lie in the working directories. `git` needs a trustworthy repository besides;
    /// `cd` has its own conditions, see [`Script::changes_dir`].
    ReadOnly,
    /// One of the file commands of the mode that accepts edits: `reads` and `writes` must lie in the working directories.
    AcceptEdits,
    /// Never allowed by a rule with `*`.
    ExactRuleOnly,
    /// Anything else.
    Other,
}

/// What a suggested rule is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSuggestion {
    /// The exact text: without safe assignments and redirects.
    pub exact: String,
    /// Two words that may stand before ` *`, if a rule of that form may be suggested.
    pub prefix: Option<String>,
    /// Whether no rule may be suggested at all.
    pub suppressed: bool,
}
