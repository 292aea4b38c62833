//! Texts that could not be parsed: deny rules are matched at every word.

use std::collections::HashSet;

use crate::shell::programs::effects::extract_program_name;
use crate::shell::{
    CheckScope, CommandClass, DenyText, MatchStart, RuleSuggestion, SimpleCommand, Word, WordValue,
};

/// Builds a simple command for the whole text: each word may be a command, or a file that is read, written or removed.
pub(crate) fn build_unparsed_command(text: &str, home: &str) -> SimpleCommand {
    let separators = |c: char| matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' | '\n' | '\t');
    let spaced = |text: &str| {
        let blanked: String = text.chars().map(|c| if separators(c) { ' ' } else { c }).collect();
        blanked.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let raw = text.split([' ', '\t', '\n']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let separated = spaced(text);
    let bare = spaced(&text.replace("\\\n", "").replace(['\'', '"', '\\'], "").replace("$", " "));
    let mut deny_texts = Vec::new();
    for text in [&raw, &separated, &bare] {
        if !deny_texts.iter().any(|known: &DenyText| known.text == **text) {
            deny_texts.push(DenyText {
                text: (*text).clone(),
                match_start: MatchStart::EveryWord,
                deny_only: false,
            });
        }
    }
    let mut named = Vec::new();
    for word in bare.split(' ') {
        let plain = extract_program_name(word);
        if plain != word && !plain.is_empty() {
            named.push(plain);
        } else {
            named.push(word.to_owned());
        }
    }
    let named = named.join(" ");
    if named != bare {
        deny_texts.push(DenyText { text: named, match_start: MatchStart::EveryWord, deny_only: true });
    }
    let mut files = list_possible_files(&bare, home);
    if let Some(starred) = replace_extglobs(text) {
        files.extend(list_possible_files(&spaced(&starred.replace(['\'', '"', '\\'], "")), home));
    }
    let removes =
        bare.split(' ').any(|word| matches!(extract_program_name(word).as_str(), "rm" | "rmdir" | "find"));
    SimpleCommand {
        check_scope: CheckScope::DenyOnly,
        words: vec![Word { raw: raw.clone(), value: WordValue::FULLY_UNKNOWN }],
        raw,
        assignments: Vec::new(),
        redirects: Vec::new(),
        allow_texts: Vec::new(),
        deny_texts,
        class: CommandClass::Other,
        program: None,
        removals: if removes { files.clone() } else { Vec::new() },
        writes: files.clone(),
        reads: files,
        dir_targets: Vec::new(),
        recursive: false,
        writes_recursively: false,
        bulk_write_dirs: Vec::new(),
        restricts_paths: false,
        has_risky_glob: false,
        opaque: true,
        suggestion: RuleSuggestion { suppressed: true, ..RuleSuggestion::default() },
    }
}

/// Builds a simple command for a text that may not be a command: only its words are matched.
pub(crate) fn build_possible_command(text: &str) -> SimpleCommand {
    SimpleCommand {
        check_scope: CheckScope::Possible,
        deny_texts: list_word_texts(text),
        opaque: false,
        ..build_unparsed_command("", "")
    }
}

/// Lists texts that rules match at every word of a text in another language.
pub(crate) fn list_word_texts(text: &str) -> Vec<DenyText> {
    // Such code writes word lists with punctuation, and line ends and tabs as escapes.
    let is_punctuation = |c: char| " \"'()[],;|`\t\n".contains(c);
    let plain = text.replace("\\n", " ").replace("\\t", " ");
    let joined = |words: &mut dyn Iterator<Item = &str>| {
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let mut texts =
        vec![joined(&mut text.split([' ', '\t', '\n'])), joined(&mut plain.split(is_punctuation))];
    texts.dedup();
    let deny_text = |text| DenyText { text, match_start: MatchStart::EveryWord, deny_only: false };
    texts.into_iter().map(deny_text).collect()
}

/// Replaces each extended glob like `@(a|b)` by a star; `None` if the text has none.
fn replace_extglobs(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut depth, mut operator) = (0_usize, None);
    let mut found = false;
    for character in text.chars() {
        match (depth, character) {
            (0, '(') if operator.is_some() => {
                out.pop();
                out.push('*');
                found = true;
                depth = 1;
            }
            (0, _) => out.push(character),
            (_, '(') => depth += 1,
            (_, ')') => depth -= 1,
            _ => {}
        }
        operator = Some(character).filter(|operator| depth == 0 && "?*+@!".contains(*operator));
    }
    found.then_some(out)
}

fn list_possible_files(text: &str, home: &str) -> Vec<WordValue> {
    let mut seen = HashSet::new();
    text.split([' ', '=', '{', '}', ','])
        .filter(|word| !word.is_empty() && !word.starts_with('-') && seen.insert(*word))
        .map(|word| {
            let path = match word.strip_prefix('~').or_else(|| word.strip_prefix("HOME")) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
                _ => word.to_owned(),
            };
            if path.contains(['*', '?', '[']) { WordValue::Glob(path) } else { WordValue::Literal(path) }
        })
        .collect()
}
