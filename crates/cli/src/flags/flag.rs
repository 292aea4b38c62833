//! What a row of the flag table is.

use super::raw::RawArgs;

/// A flag: its names, what it takes, what it is for, and what it does.
pub(super) struct Flag {
    /// The long name, without dashes.
    pub(super) name: &'static str,
    /// Other long names.
    pub(super) aliases: &'static [&'static str],
    /// The short name.
    pub(super) short: Option<char>,
    /// What it takes, and what it does with it.
    pub(super) kind: FlagKind,
    /// Where `--help` shows it.
    pub(super) group: FlagGroup,
    /// What it is for.
    pub(super) help: &'static str,
}

/// What applying a value comes to; the text says what is wrong with the value.
pub(super) type ApplyResult = Result<(), String>;

/// What a flag takes.
#[derive(Clone, Copy)]
pub(super) enum FlagKind {
    /// Nothing.
    Switch(fn(&mut RawArgs)),
    /// One value, always.
    Value(&'static str, fn(&mut RawArgs, &str) -> ApplyResult),
    /// One value, or none.
    Optional(&'static str, fn(&mut RawArgs, Option<&str>) -> ApplyResult),
    /// One value, and those behind it that `more` takes for further ones.
    List {
        /// What a value is called.
        value: &'static str,
        /// Applied to each value.
        apply: fn(&mut RawArgs, &str) -> ApplyResult,
        /// Whether a further argument can only be a value.
        takes_further: fn(&str) -> bool,
    },
}

/// The groups of the help page, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagGroup {
    Conversation,
    Model,
    Permissions,
    Session,
    Configuration,
    Integration,
}

impl FlagGroup {
    /// All of them, with their headings.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Conversation, "Talking"),
        (Self::Model, "The model"),
        (Self::Permissions, "Tools and permissions"),
        (Self::Session, "Sessions"),
        (Self::Configuration, "Settings and extensions"),
        (Self::Integration, "For programs that start Whimbrel"),
    ];
}

impl Flag {
    /// A flag without a short name or aliases.
    pub(super) const fn new(name: &'static str, group: FlagGroup, kind: FlagKind, help: &'static str) -> Self {
        Self { name, aliases: &[], short: None, kind, group, help }
    }

    /// The same with a short name.
    pub(super) const fn with_short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    /// The same with other names.
    pub(super) const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// All long names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether an argument names this flag: `--name`, or `-n`.
    pub(super) fn matches(&self, spelled: &str) -> bool {
        match spelled.strip_prefix("--") {
            Some(name) => self.names().any(|known| known == name),
            None => self
                .short
                .is_some_and(|short| spelled.strip_prefix('-').is_some_and(|name| name.chars().eq([short]))),
        }
    }
}
