//! Standard output of a command, as far as its text shows it: the commands commonly used to write text for a shell.

use super::wrappers;
use crate::shell::Word;
use crate::shell::parser::ansi_quotes::decode_escapes;
use crate::shell::programs::effects::extract_program_name;

/// Wrappers that are looked through, and passes over a format string.
const MAX_ROUNDS: usize = 64;

/// Content that a command writes to standard output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StdoutContent {
    Nothing,
    /// This text, or one of several where shells differ.
    Text(Vec<String>),
    /// A copy of standard input.
    Input,
    /// Files named in the arguments.
    Files,
    /// Known only when the command runs.
    Unknown,
}

/// Determines the standard output of a command.
pub(crate) fn derive_stdout_content(words: &[Word]) -> StdoutContent {
    let mut words = words;
    for _ in 0..MAX_ROUNDS {
        let Some((first, arguments)) = words.split_first() else { return StdoutContent::Nothing };
        let Some(name) = first.value.as_literal().map(extract_program_name) else {
            return StdoutContent::Unknown;
        };
        let inner = wrappers::find_wrapped(&name, words)
            .filter(|wrapped| !wrapped.may_start_anywhere && name != "xargs");
        if let Some(start) = inner.and_then(|wrapped| wrapped.start) {
            words = words.get(start..).unwrap_or_default();
            continue;
        }
        return derive_content_by_name(&name, arguments);
    }
    StdoutContent::Unknown
}

fn derive_content_by_name(name: &str, arguments: &[Word]) -> StdoutContent {
    let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.value.as_literal()).collect();
    match (name, texts) {
        (
            ":" | "true" | "false" | "cd" | "sleep" | "test" | "[" | "export" | "read" | "shift" | "exit",
            _,
        ) => StdoutContent::Nothing,
        (_, None) => StdoutContent::Unknown,
        ("echo", Some(texts)) => StdoutContent::Text(derive_echo_texts(&texts)),
        ("printf", Some(texts)) => derive_printf_content(&texts),
        ("tee", Some(_)) => StdoutContent::Input,
        ("cat", Some(texts)) => {
            let file = |text: &&&str| !text.starts_with('-');
            if texts.iter().any(|text| file(&text)) { StdoutContent::Files } else { StdoutContent::Input }
        }
        (_, Some(_)) => StdoutContent::Unknown,
    }
}

fn derive_echo_texts(texts: &[&str]) -> Vec<String> {
    let option = |text: &&&str| {
        text.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|letter| b"neE".contains(&letter))
        })
    };
    let options = texts.iter().take_while(option).count();
    let text = texts.get(options..).unwrap_or_default().join(" ");
    let mut printed = vec![text.clone()];
    if text.contains('\\') {
        // Some shells decode escapes without `-e`, and octal numbers may have an extra leading zero.
        let until_end = text.split_once("\\c").map_or(text.as_str(), |(before, _)| before);
        printed.push(decode_escapes(until_end));
        printed.push(decode_escapes(&until_end.replace("\\0", "\\")));
    }
    printed
}

fn derive_printf_content(texts: &[&str]) -> StdoutContent {
    let texts = texts.strip_prefix(&["--"]).unwrap_or(texts);
    let Some((format, arguments)) = texts.split_first() else { return StdoutContent::Nothing };
    if format.starts_with("-v") {
        return StdoutContent::Nothing;
    }
    format_printf(&decode_escapes(format), arguments)
        .map_or(StdoutContent::Unknown, |text| StdoutContent::Text(vec![text]))
}

/// Formats arguments like `printf`; `None` if the format does more than insert strings.
fn format_printf(format: &str, arguments: &[&str]) -> Option<String> {
    let mut out = String::new();
    let mut rest = arguments.iter();
    for _ in 0..MAX_ROUNDS {
        let before = rest.len();
        let mut pieces = format.split('%');
        out.push_str(pieces.next().unwrap_or_default());
        while let Some(piece) = pieces.next() {
            let mut letters = piece.chars();
            match letters.next() {
                Some('s') => out.push_str(rest.next().unwrap_or(&"")),
                Some('b') => out.push_str(&decode_escapes(rest.next().unwrap_or(&""))),
                Some(_) => return None,
                // `%%`: the text after it is the next piece.
                None => {
                    out.push('%');
                    letters = pieces.next()?.chars();
                }
            }
            out.push_str(letters.as_str());
        }
        if rest.len() == 0 || rest.len() == before {
            return Some(out);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::WordValue;

    #[test]
    fn stdout_of_commands() {
        let text = |text: &str| StdoutContent::Text(vec![text.to_owned()]);
        let rows = [
            ("echo zap x", text("zap x")),
            ("echo -n -e zap", text("zap")),
            ("time -p echo zap", text("zap")),
            ("env A=1 command echo zap", text("zap")),
            ("printf zap", text("zap")),
            (r"printf z\x61p", text("zap")),
            ("printf z%sp a", text("zap")),
            (r"printf %b z\141p", text("zap")),
            ("printf -- %s, z a p", text("z,a,p,")),
            ("printf 100%%", text("100%")),
            ("printf %d 5", StdoutContent::Unknown),
            ("printf -v x zap", StdoutContent::Nothing),
            ("cat", StdoutContent::Input),
            ("tee x", StdoutContent::Input),
            ("cat f", StdoutContent::Files),
            ("rev", StdoutContent::Unknown),
            ("cd x", StdoutContent::Nothing),
        ];
        for (line, expected) in rows {
            let word = |text: &str| Word { raw: text.to_owned(), value: WordValue::Literal(text.to_owned()) };
            let words: Vec<Word> = line.split(' ').map(word).collect();
            assert_eq!(derive_stdout_content(&words), expected, "{line}");
        }
        let StdoutContent::Text(texts) = derive_content_by_name(
            "echo",
            &[Word { raw: String::new(), value: WordValue::Literal(r"z\0141p\c".into()) }],
        ) else {
            panic!("echo prints text");
        };
        assert!(texts.contains(&"zap".to_owned()), "{texts:?}");
    }
}
