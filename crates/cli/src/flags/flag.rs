//! Rows of the flag table.

use super::raw_args::RawArgs;
use crate::value_hint::ValueHint;

/// A flag: its names, the values it takes, its help text and its action.
pub(super) struct Flag {
    /// The long name, without dashes.
    pub(super) name: &'static str,
    /// Other long names.
    pub(super) aliases: &'static [&'static str],
    /// The short name, without its dash.
    pub(super) short: Option<&'static str>,
    /// Values that it takes, and the action on them.
    pub(super) kind: FlagKind,
    /// Section of the help page.
    pub(super) group: FlagGroup,
    /// Help text.
    pub(super) help: &'static str,
    /// Suggestions for its value; none if the name of the value says enough.
    hint: Option<ValueHint>,
}

/// Result of applying a value; the error says what is wrong with it.
pub(super) type ApplyResult = Result<(), String>;

/// Values that a flag takes.
#[derive(Clone, Copy)]
pub(super) enum FlagKind {
    /// No value.
    Switch(fn(&mut RawArgs)),
    /// One required value.
    Value(&'static str, fn(&mut RawArgs, &str) -> ApplyResult),
    /// One optional value, after `=` or as the next argument.
    Optional {
        /// Name of the value on the help page.
        value: &'static str,
        /// Applied to the value, if there is one.
        apply: fn(&mut RawArgs, Option<&str>) -> ApplyResult,
        /// Returns whether the next argument can only be the value of this flag.
        takes_next: fn(&str) -> bool,
    },
    /// One value, and further arguments that `accepts_more` accepts.
    List {
        /// Name of a value on the help page.
        value: &'static str,
        /// Applied to each value.
        apply: fn(&mut RawArgs, &str) -> ApplyResult,
        /// Returns whether a further argument can only be a value of this flag.
        accepts_more: fn(&str) -> bool,
    },
}

/// Sections of the help page, in its order.
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
    /// All sections with their headings.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Conversation, "Conversation"),
        (Self::Model, "Model"),
        (Self::Permissions, "Tools and permissions"),
        (Self::Session, "Sessions"),
        (Self::Configuration, "Settings and extensions"),
        (Self::Integration, "For programs that start Whimbrel"),
    ];
}

impl Flag {
    /// Creates a flag without a short name or aliases.
    pub(super) const fn new(
        name: &'static str,
        group: FlagGroup,
        kind: FlagKind,
        help: &'static str,
    ) -> Self {
        Self { name, aliases: &[], short: None, kind, group, help, hint: None }
    }

    /// Adds a short name.
    pub(super) const fn with_short(self, short: &'static str) -> Self {
        Self { short: Some(short), ..self }
    }

    /// Adds aliases.
    pub(super) const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Adds suggestions for its value.
    pub(super) const fn with_hint(self, hint: ValueHint) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Its value as the help page shows it, with the sign before it; empty for a switch.
    pub(super) fn value_suffix(&self) -> String {
        match self.kind {
            FlagKind::Switch(_) => String::new(),
            FlagKind::Value(value, _) => format!(" {value}"),
            FlagKind::Optional { value, .. } => format!("[={value}]"),
            FlagKind::List { value, .. } => format!(" {value}.."),
        }
    }

    /// Suggestions for its value.
    pub(super) fn hint(&self) -> ValueHint {
        let by_name = match self.kind {
            FlagKind::Switch(_) => ValueHint::Any,
            FlagKind::Value(value, _) | FlagKind::Optional { value, .. } | FlagKind::List { value, .. } => {
                ValueHint::from_value_name(value)
            }
        };
        self.hint.unwrap_or(by_name)
    }

    /// All long names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns whether an argument names this flag: `--name`, or `-n`.
    pub(super) fn matches(&self, spelled: &str) -> bool {
        match spelled.strip_prefix("--") {
            Some(name) => self.names().any(|known| known == name),
            None => self.short.is_some() && spelled.strip_prefix('-') == self.short,
        }
    }
}
