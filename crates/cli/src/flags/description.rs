//! The flags as completions and the man page describe them.

use super::flag::{Flag, FlagGroup, FlagKind};
use super::table::FLAGS;
use crate::value_hint::ValueHint;

/// A flag, without its action.
#[derive(Debug, Clone)]
pub(crate) struct FlagDescription {
    /// Long names, without dashes.
    pub(crate) names: Vec<&'static str>,
    /// Short name, without its dash.
    pub(crate) short: Option<&'static str>,
    pub(crate) value: FlagValue,
    /// Suggestions for the value.
    pub(crate) hint: ValueHint,
    /// The value as the help page shows it, with the sign before it.
    pub(crate) value_suffix: String,
    pub(crate) help: &'static str,
}

/// The value that a flag takes, with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagValue {
    None,
    Required(&'static str),
    /// After `=` only.
    Optional(&'static str),
    /// The flag can be repeated.
    List(&'static str),
}

impl FlagDescription {
    fn from_row(flag: &Flag) -> Self {
        let value = match flag.kind {
            FlagKind::Switch(_) => FlagValue::None,
            FlagKind::Value(name, _) => FlagValue::Required(name),
            FlagKind::Optional { value, .. } => FlagValue::Optional(value),
            FlagKind::List { value, .. } => FlagValue::List(value),
        };
        Self {
            names: flag.names().collect(),
            short: flag.short,
            value,
            hint: flag.hint(),
            value_suffix: flag.value_suffix(),
            help: flag.help,
        }
    }

    /// All spellings with their dashes, the short one first.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain(self.names.iter().map(|name| format!("--{name}"))).collect()
    }

    /// The first sentence of the help text, without its period.
    pub(crate) fn summary(&self) -> &'static str {
        let sentence = self.help.split_once(". ").map_or(self.help, |(first, _)| first);
        sentence.trim_end_matches('.')
    }
}

/// Describes all flags, by section of the help page.
pub(crate) fn describe_flags() -> Vec<(&'static str, Vec<FlagDescription>)> {
    let describe = |group: FlagGroup| {
        FLAGS.iter().filter(|flag| flag.group == group).map(FlagDescription::from_row).collect()
    };
    FlagGroup::ALL.into_iter().map(|(group, heading)| (heading, describe(group))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::raw_args::RawArgs;
    use super::*;

    #[test]
    fn flag_has_spellings_and_summary() {
        let all = describe_flags();
        let flags = || all.iter().flat_map(|(_, flags)| flags);
        let mode = flags().find(|flag| flag.names == ["permission-mode"]).unwrap();
        assert_eq!(mode.value, FlagValue::Required("MODE"));
        let skip = flags().find(|flag| flag.names == ["dangerously-skip-permissions"]).unwrap();
        assert_eq!(skip.summary(), "Never ask: same as --permission-mode bypassPermissions");
        let debug = flags().find(|flag| flag.short == Some("d2e")).unwrap();
        assert_eq!(debug.spellings(), ["-d2e", "--debug-to-stderr", "--mcp-debug"]);
        assert_eq!(flags().count(), FLAGS.len());
    }

    #[test]
    fn every_suggested_word_is_accepted() {
        for flag in FLAGS {
            let (ValueHint::Words(words) | ValueHint::WordList(words)) = flag.hint() else { continue };
            for word in words {
                let raw = &mut RawArgs::default();
                let result = match flag.kind {
                    FlagKind::Switch(_) => panic!("--{} takes no value", flag.name),
                    FlagKind::Value(_, apply) | FlagKind::List { apply, .. } => apply(raw, word),
                    FlagKind::Optional { apply, .. } => apply(raw, Some(word)),
                };
                assert_eq!(result, Ok(()), "--{} {word}", flag.name);
                let is_explained = flag.help.contains(word)
                    || matches!(flag.value_suffix().as_str(), "[=ON]" | " NAME" | " auto|TOKENS");
                assert!(is_explained, "the help of --{} does not name {word}", flag.name);
            }
        }
    }
}
