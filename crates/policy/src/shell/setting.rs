//! Builtins that give variables values: `declare`, `read`, `printf -v` and their like.

use super::inspect::Inspector;
use super::lexer::leading_name;
use super::{Word, builtins, word};

impl Inspector<'_> {
    /// Variables that a builtin sets.
    pub(super) fn note_values(&mut self, words: &[Word]) {
        let words = words.get(words.iter().take_while(|word| is_prefix(word)).count()..).unwrap_or_default();
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.value.literal().filter(|name| builtins::sets_variables(name)) else { return };
        match name {
            "source" | "." | "enable" => self.scope.unsure = true,
            // They may run before any command, and after any.
            "trap" => self.scope.repeats = true,
            "alias" => {
                self.scope.repeats = true;
                self.scope.unsure |= arguments.iter().any(gives_builtin_a_meaning);
            }
            "eval" => self.scope.unsure |= arguments.iter().any(|word| word.value.literal().is_none()),
            "set" => {
                let mut options = arguments.iter().take_while(|word| word.value.literal() != Some("--"));
                self.scope.unsure |= options.any(takes_all_assignments);
            }
            _ if builtins::declares(name) => self.declared(name, arguments),
            "printf" if !sets_by_printf(arguments) => {}
            _ => self.overwritten(arguments),
        }
    }

    /// `declare NAME=value` and its like.
    fn declared(&mut self, name: &str, arguments: &[Word]) {
        let refers = |word: &Word| option_letters(word).contains('n');
        if matches!(name, "declare" | "typeset" | "local") && arguments.iter().any(refers) {
            // One name for another: from now on any name may mean any variable.
            self.scope.unsure = true;
        }
        let plain = arguments.iter().all(|word| is_plain_option(name, word));
        let fixes = name == "readonly" || arguments.iter().any(|word| option_letters(word).contains('r'));
        for word in arguments {
            let text = word.value.literal().unwrap_or(&word.raw);
            let variable = leading_name(text);
            let Some((target, value)) = text.split_once('=') else {
                // A name alone may hide its value in a function, or keep it; if it is not known which, that of any.
                self.scope.unsure |= word.value.literal().is_none();
                if fixes {
                    self.scope.keep_earlier(variable);
                    self.scope.keep_standing(variable);
                } else if name != "export" {
                    self.scope.forget(variable);
                }
                continue;
            };
            if variable.is_empty() {
                self.scope.unsure = true;
                continue;
            }
            let value = word.value.literal().map(|_| value);
            if target.ends_with('+') {
                self.scope.append(variable, &[value.map(str::to_owned)]);
            } else {
                self.scope.give(variable, value.map(str::to_owned));
                // Outside of functions nothing is local, and nothing is set; nor by options that say something else.
                if plain && target == variable && (name != "local" || self.in_function) {
                    self.scope.settle(variable);
                } else if !plain {
                    self.scope.give(variable, None);
                }
                if fixes {
                    self.scope.keep_earlier(variable);
                }
            }
            if target.contains('[') {
                self.scope.give(variable, None);
            }
            if let Some(value) = value {
                self.search_value(value);
                self.search_command(variable, value);
            }
        }
    }

    /// `read NAME` and its like: every argument may be the name, also one joined to an option.
    fn overwritten(&mut self, arguments: &[Word]) {
        for name in ["REPLY", "MAPFILE", "OPTARG", "OPTIND"] {
            self.scope.forget(name);
        }
        for word in arguments {
            let Some(text) = word.value.literal() else {
                self.scope.unsure = true;
                continue;
            };
            self.scope.forget(leading_name(text));
            if text.starts_with('-') {
                for (at, _) in text.char_indices().skip(2).take(6) {
                    self.scope.forget(text.get(at..).unwrap_or_default());
                }
            }
        }
    }
}

/// Whether a word may stand before a builtin.
fn is_prefix(word: &Word) -> bool {
    matches!(word.value.literal(), Some("builtin" | "command" | "time" | "-p" | "--" | "!"))
}

/// Whether `printf` sets a variable.
fn sets_by_printf(arguments: &[Word]) -> bool {
    match arguments.split_first() {
        // One word in quotes is the text to print.
        Some((first, [])) if first.raw.starts_with('"') => false,
        Some((first, _)) => first.value.literal().is_none_or(|text| text.starts_with("-v")),
        None => false,
    }
}

/// Whether an alias is called like a builtin that sets variables.
fn gives_builtin_a_meaning(word: &Word) -> bool {
    let text = word::text_of(&word.value);
    word.value.literal().is_none() || builtins::sets_variables(text.split('=').next().unwrap_or_default())
}

/// Whether an option of `set` makes every assignment among the arguments one in front.
fn takes_all_assignments(word: &Word) -> bool {
    word.value.literal().is_none_or(|text| text == "keyword" || text.starts_with('-') && text.contains('k'))
}

/// Whether a word is no option of a declaring builtin, or one that leaves the value as it is.
fn is_plain_option(builtin: &str, word: &Word) -> bool {
    let Some(text) = word.value.literal() else { return !word.raw.starts_with(['-', '$']) };
    let letters = if matches!(builtin, "export" | "readonly") { "" } else { "grtx" };
    match text.strip_prefix('-') {
        Some(given) => {
            text == "--" || !given.is_empty() && given.chars().all(|letter| letters.contains(letter))
        }
        None => !text.starts_with('+'),
    }
}

/// The letters of an option.
fn option_letters(word: &Word) -> &str {
    let text = word.value.literal().unwrap_or_default();
    text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default()
}
