//! What a command writes to its output, as far as its text says it: the commands that are used to make text for a shell.

use super::ansi::unescape;
use super::facts::plain_name;
use super::{Word, wrappers};

/// How many wrappers are looked through, and how often a format is gone through.
const MOST: usize = 64;

/// What a command writes to its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// Nothing.
    Nothing,
    /// This text, or one of these where shells differ.
    Text(Vec<String>),
    /// What it reads from its input.
    Input,
    /// Files that it names.
    Files,
    /// Something that is known only when it runs.
    Unknown,
}

/// What a command writes.
pub(super) fn printed(words: &[Word]) -> Printed {
    let mut words = words;
    for _ in 0..MOST {
        let Some((first, arguments)) = words.split_first() else { return Printed::Nothing };
        let Some(name) = first.value.literal().map(plain_name) else { return Printed::Unknown };
        let inner = wrappers::behind(&name, words).filter(|behind| !behind.anywhere && name != "xargs");
        if let Some(start) = inner.and_then(|behind| behind.start) {
            words = words.get(start..).unwrap_or_default();
            continue;
        }
        return by_name(&name, arguments);
    }
    Printed::Unknown
}

fn by_name(name: &str, arguments: &[Word]) -> Printed {
    let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.value.literal()).collect();
    match (name, texts) {
        (
            ":" | "true" | "false" | "cd" | "sleep" | "test" | "[" | "export" | "read" | "shift" | "exit",
            _,
        ) => Printed::Nothing,
        (_, None) => Printed::Unknown,
        ("echo", Some(texts)) => Printed::Text(echo(&texts)),
        ("printf", Some(texts)) => printf(&texts),
        ("tee", Some(_)) => Printed::Input,
        ("cat", Some(texts)) => {
            let file = |text: &&&str| !text.starts_with('-');
            if texts.iter().any(|text| file(&text)) { Printed::Files } else { Printed::Input }
        }
        (_, Some(_)) => Printed::Unknown,
    }
}

fn echo(texts: &[&str]) -> Vec<String> {
    let option = |text: &&&str| {
        text.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|letter| b"neE".contains(&letter))
        })
    };
    let options = texts.iter().take_while(option).count();
    let text = texts.get(options..).unwrap_or_default().join(" ");
    let mut readings = vec![text.clone()];
    if text.contains('\\') {
        // Some shells decode without being told to, and octal numbers may begin with a zero of their own.
        let until_end = text.split_once("\\c").map_or(text.as_str(), |(before, _)| before);
        readings.push(unescape(until_end));
        readings.push(unescape(&until_end.replace("\\0", "\\")));
    }
    readings
}

fn printf(texts: &[&str]) -> Printed {
    let texts = texts.strip_prefix(&["--"]).unwrap_or(texts);
    let Some((format, arguments)) = texts.split_first() else { return Printed::Nothing };
    if format.starts_with("-v") {
        return Printed::Nothing;
    }
    formatted(&unescape(format), arguments).map_or(Printed::Unknown, |text| Printed::Text(vec![text]))
}

/// The text of a format with its arguments; nothing if it does more than put texts in.
fn formatted(format: &str, arguments: &[&str]) -> Option<String> {
    let mut out = String::new();
    let mut rest = arguments.iter();
    for _ in 0..MOST {
        let before = rest.len();
        let mut pieces = format.split('%');
        out.push_str(pieces.next().unwrap_or_default());
        while let Some(piece) = pieces.next() {
            let mut letters = piece.chars();
            match letters.next() {
                Some('s') => out.push_str(rest.next().unwrap_or(&"")),
                Some('b') => out.push_str(&unescape(rest.next().unwrap_or(&""))),
                Some(_) => return None,
                // `%%`: the text behind it is the next piece.
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
    use crate::shell::Value;

    #[test]
    fn what_is_printed() {
        let text = |text: &str| Printed::Text(vec![text.to_owned()]);
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
            ("printf %d 5", Printed::Unknown),
            ("printf -v x zap", Printed::Nothing),
            ("cat", Printed::Input),
            ("tee x", Printed::Input),
            ("cat f", Printed::Files),
            ("rev", Printed::Unknown),
            ("cd x", Printed::Nothing),
        ];
        for (line, expected) in rows {
            let word = |text: &str| Word { raw: text.to_owned(), value: Value::Literal(text.to_owned()) };
            let words: Vec<Word> = line.split(' ').map(word).collect();
            assert_eq!(printed(&words), expected, "{line}");
        }
        let Printed::Text(readings) =
            by_name("echo", &[Word { raw: String::new(), value: Value::Literal(r"z\0141p\c".into()) }])
        else {
            panic!("echo prints text");
        };
        assert!(readings.contains(&"zap".to_owned()), "{readings:?}");
    }
}
