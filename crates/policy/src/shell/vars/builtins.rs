//! Builtins that set variables: `declare`, `read`, `printf -v` and their like.

use crate::shell::Word;
use crate::shell::analyzer::Analyzer;
use crate::shell::parser::words::extract_leading_name;
use crate::shell::programs::builtins;
use crate::shell::words::expand;

impl Analyzer<'_> {
    /// Records the variables that a builtin sets.
    pub(crate) fn record_builtin(&mut self, words: &[Word]) {
        let words =
            words.get(words.iter().take_while(|word| is_builtin_prefix(word)).count()..).unwrap_or_default();
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.as_literal().filter(|name| builtins::sets_variables(name)) else {
            return;
        };
        match name {
            "source" | "." | "enable" => self.variables.has_untracked_changes = true,
            // A trap may run before and after any command.
            "trap" => self.variables.may_repeat = true,
            "alias" => {
                self.variables.may_repeat = true;
                self.variables.has_untracked_changes |= arguments.iter().any(aliases_variable_builtin);
            }
            "eval" => {
                self.variables.has_untracked_changes |=
                    arguments.iter().any(|word| word.value.as_literal().is_none());
            }
            "set" => {
                let mut options = arguments.iter().take_while(|word| word.value.as_literal() != Some("--"));
                self.variables.has_untracked_changes |= options.any(enables_keyword_assignments);
            }
            _ if builtins::declares_variables(name) => self.record_declaration(name, arguments),
            "printf" if !printf_sets_variable(arguments) => {}
            _ => self.record_overwritten(arguments),
        }
    }

    /// Records `declare NAME=value` and its like.
    fn record_declaration(&mut self, name: &str, arguments: &[Word]) {
        let is_name_reference = |word: &Word| extract_option_letters(word).contains('n');
        if matches!(name, "declare" | "typeset" | "local") && arguments.iter().any(is_name_reference) {
            // A name reference: from now on any name may refer to any variable.
            self.variables.has_untracked_changes = true;
        }
        let plain = arguments.iter().all(|word| is_value_preserving(name, word));
        let makes_readonly =
            name == "readonly" || arguments.iter().any(|word| extract_option_letters(word).contains('r'));
        for word in arguments {
            let text = word.value.as_literal().unwrap_or(&word.raw);
            let variable = extract_leading_name(text);
            let Some((target, value)) = text.split_once('=') else {
                // A name alone may hide or keep its value in a function; if the name is unknown, any variable may be
                // affected.
                self.variables.has_untracked_changes |= word.value.as_literal().is_none();
                if makes_readonly {
                    self.variables.mark_multi_valued(variable);
                    self.variables.may_keep_inherited(variable);
                } else if name != "export" {
                    self.variables.set_unknown(variable);
                }
                continue;
            };
            if variable.is_empty() {
                self.variables.has_untracked_changes = true;
                continue;
            }
            let value = word.value.as_literal().map(|_| value);
            if target.ends_with('+') {
                self.variables.append(variable, &[value.map(str::to_owned)]);
            } else {
                self.variables.add_value(variable, value.map(str::to_owned));
                // Outside a function `local` fails; other options may change the value.
                if plain && target == variable && (name != "local" || self.text.in_function) {
                    self.variables.mark_definite(variable);
                } else if !plain {
                    self.variables.add_value(variable, None);
                }
                if makes_readonly {
                    self.variables.mark_multi_valued(variable);
                }
            }
            if target.contains('[') {
                self.variables.add_value(variable, None);
            }
            if let Some(value) = value {
                self.analyze_value(value);
                self.analyze_command_value(variable, value);
            }
        }
    }

    /// Records `read NAME` and its like: every argument may be a name, also one joined to an option.
    fn record_overwritten(&mut self, arguments: &[Word]) {
        for name in ["REPLY", "MAPFILE", "OPTARG", "OPTIND"] {
            self.variables.set_unknown(name);
        }
        for word in arguments {
            let Some(text) = word.value.as_literal() else {
                self.variables.has_untracked_changes = true;
                continue;
            };
            self.variables.set_unknown(extract_leading_name(text));
            if text.starts_with('-') {
                for (at, _) in text.char_indices().skip(2).take(6) {
                    self.variables.set_unknown(text.get(at..).unwrap_or_default());
                }
            }
        }
    }
}

/// Returns true if a word may precede a builtin.
fn is_builtin_prefix(word: &Word) -> bool {
    matches!(word.value.as_literal(), Some("builtin" | "command" | "time" | "-p" | "--" | "!"))
}

/// Returns true if `printf` sets a variable.
fn printf_sets_variable(arguments: &[Word]) -> bool {
    match arguments.split_first() {
        // A single quoted word is the text to print.
        Some((first, [])) if first.raw.starts_with('"') => false,
        Some((first, _)) => first.value.as_literal().is_none_or(|text| text.starts_with("-v")),
        None => false,
    }
}

/// Returns true if an alias has the name of a builtin that sets variables.
fn aliases_variable_builtin(word: &Word) -> bool {
    let text = expand::render_value(&word.value);
    word.value.as_literal().is_none() || builtins::sets_variables(text.split('=').next().unwrap_or_default())
}

/// Returns true if an option of `set` turns assignments among arguments into real ones (`set -k`).
fn enables_keyword_assignments(word: &Word) -> bool {
    word.value
        .as_literal()
        .is_none_or(|text| text == "keyword" || text.starts_with('-') && text.contains('k'))
}

/// Returns true if a word is not an option of a declaring builtin, or one that leaves the value unchanged.
fn is_value_preserving(builtin: &str, word: &Word) -> bool {
    let Some(text) = word.value.as_literal() else { return !word.raw.starts_with(['-', '$']) };
    let letters = if matches!(builtin, "export" | "readonly") { "" } else { "grtx" };
    match text.strip_prefix('-') {
        Some(given) => {
            text == "--" || !given.is_empty() && given.chars().all(|letter| letters.contains(letter))
        }
        None => !text.starts_with('+'),
    }
}

/// Extracts the letters of a short option.
fn extract_option_letters(word: &Word) -> &str {
    let text = word.value.as_literal().unwrap_or_default();
    text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default()
}
