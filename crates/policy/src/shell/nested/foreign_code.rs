//! Code of other languages that may contain commands. The code is not parsed: its quoted texts count as possible
//! commands, and rules are matched at every word of the whole.

use crate::shell::Word;
use crate::shell::programs::sed::{is_harmless_substitution, only_prints_lines};
use crate::shell::words::expand::render_value;

/// Bytes by which fragments may exceed the length of the code; the rest is only matched at every word.
const EXTRA_FRAGMENT_BYTES: usize = 2_000;

/// Code of another language.
#[derive(Debug)]
pub(crate) struct ForeignCode {
    /// The whole text.
    pub(crate) text: String,
    /// Fragments that may be commands.
    pub(crate) fragments: Vec<String>,
    /// True if it runs a text that is partly unknown.
    pub(crate) opaque: bool,
}

/// Finds code among the arguments of a program that can run commands.
pub(crate) fn find_code(name: &str, arguments: &[Word]) -> Vec<ForeignCode> {
    let code: fn(&str, bool) -> Option<ForeignCode> = match strip_version(name) {
        "awk" | "gawk" | "mawk" | "nawk" => parse_awk,
        "sed" | "gsed" => parse_sed,
        name if reads_code_from_stdin(name) => parse_other,
        _ => return Vec::new(),
    };
    let words = arguments.iter().map(|word| (render_value(&word.value), word.value.is_unknown()));
    words.filter_map(|(text, unknown)| code(&text, unknown)).collect()
}

/// Program name without version number.
fn strip_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns true if a program reads code from standard input that can run commands.
pub(crate) fn reads_code_from_stdin(name: &str) -> bool {
    matches!(
        strip_version(name),
        "perl"
            | "python"
            | "pypy"
            | "ruby"
            | "node"
            | "nodejs"
            | "bun"
            | "deno"
            | "php"
            | "lua"
            | "tclsh"
            | "osascript"
    )
}

/// Parses the code that a program reads from standard input.
pub(crate) fn parse_stdin_code(name: &str, text: &str) -> Vec<ForeignCode> {
    // Other programs read data.
    if reads_code_from_stdin(name) { parse_other(text, false).into_iter().collect() } else { Vec::new() }
}

fn parse_awk(text: &str, unknown: bool) -> Option<ForeignCode> {
    let call_words = ["system", "|", "getline"];
    if !call_words.iter().any(|word| text.contains(word)) {
        return None;
    }
    // Patterns contain bars too; these forms run the quoted text beside them.
    let opaque =
        unknown && ["system", "getline", "| \"", "|\"", "\" |"].iter().any(|word| text.contains(word));
    Some(ForeignCode { fragments: extract_quoted_texts(text, "\""), text: text.to_owned(), opaque })
}

fn parse_other(text: &str, _: bool) -> Option<ForeignCode> {
    let call_words =
        ["system", "exec", "spawn", "popen", "open", "process", "`", "qx", "%x", "|", "passthru"];
    let found = call_words.iter().any(|word| text.contains(word));
    found.then(|| ForeignCode {
        fragments: extract_quoted_texts(text, "\"'`"),
        text: text.to_owned(),
        opaque: false,
    })
}

/// Extracts texts in quotes.
fn extract_quoted_texts(script: &str, quotes: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text: Option<(char, String)> = None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (&mut text, letter) {
            (None, delimiter) if quotes.contains(delimiter) => text = Some((delimiter, String::new())),
            (None, _) => {}
            (Some((delimiter, _)), letter) if *delimiter == letter => {
                texts.extend(text.take().map(|(_, text)| text));
            }
            (Some((_, text)), '\\') => text.extend(letters.next().map(|letter| match letter {
                'n' | 'r' => '\n',
                't' => ' ',
                letter => letter,
            })),
            (Some((_, text)), letter) => text.push(letter),
        }
    }
    texts
}

/// Commands of `e COMMAND` and `s/a/COMMAND/e`.
fn parse_sed(script: &str, _: bool) -> Option<ForeignCode> {
    if is_harmless_substitution(script) || only_prints_lines(script) {
        return None;
    }
    let mut pieces = Vec::new();
    let mut length = 0;
    // The letter may be at the start or follow an address, a delimiter or other flags. Its command needs no blank,
    // but is matched only after one, so a blank is inserted.
    let mut text = String::with_capacity(script.len());
    let mut before = None;
    for (at, letter) in script.char_indices() {
        text.push(letter);
        let starts_command = before
            .replace(letter)
            .is_none_or(|before: char| !before.is_alphabetic() || is_substitution_flag(before));
        if letter != 'e' || !starts_command {
            continue;
        }
        text.push(' ');
        if length <= script.len() {
            let found = extract_sed_commands(
                script.get(..at).unwrap_or_default(),
                script.get(at + 1..).unwrap_or_default(),
            );
            length += found.iter().map(String::len).sum::<usize>();
            pieces.extend(found.into_iter().filter(|_| length <= script.len() + EXTRA_FRAGMENT_BYTES));
        }
    }
    (text.len() > script.len()).then_some(ForeignCode { text, fragments: pieces, opaque: false })
}

/// Returns true for letters that may stand between a substitution and `e`.
fn is_substitution_flag(letter: char) -> bool {
    "gpiImM0123456789".contains(letter)
}

/// Extracts commands that the letter `e` would run: the rest of its line, or the replacement of the substitution before
/// it.
fn extract_sed_commands(before: &str, after: &str) -> Vec<String> {
    let line = after.lines().next().unwrap_or_default().trim_start();
    let body = before.rsplit('\n').next().unwrap_or_default();
    let body = body.trim_end_matches(is_substitution_flag);
    let delimiter = body.chars().next_back().filter(char::is_ascii_punctuation);
    let replacement =
        delimiter.and_then(|delimiter| Some(body.strip_suffix(delimiter)?.rsplit_once(delimiter)?.1));
    [Some(line), replacement]
        .into_iter()
        .flatten()
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::shell::{ShellContext, analyze};

    #[test]
    fn printed_text_is_not_a_command() {
        for (text, count) in [
            ("awk '{ print \"git clean\" }' f", 1),
            ("awk '{ print | \"sort -u\" }' f", 2),
            ("sed -n 's/the e/x/p' f", 1),
            ("sed -i 's/git clean/x/' f", 1),
            ("sed -n 1,3p f", 1),
            ("perl -ne 'print \"git clean\"' f", 1),
            ("git commit -m 'run it'", 1),
            ("git submodule update", 1),
        ] {
            assert_eq!(analyze(text, &ShellContext { home: "/home/u" }).commands.len(), count, "{text}");
        }
    }

    #[test]
    fn possible_commands_are_not_opaque() {
        for (text, opaque) in [
            ("awk '/a|b/ { print \"(\" $1 \")\" }' f", false),
            ("awk '$1 == \"x\" || $2 == \"it'\"'\"'s\"' f", false),
            ("awk \"/a|$X/ { print }\" f", false),
            ("awk \"BEGIN { system(\\\"$X\\\") }\"", true),
            ("sed -i 's/e (x/y/' f", false),
            ("sed '1e (' f", false),
            ("python3 -c 'print(\"$x | (\")'", false),
            ("vim -c ':%s/(/x/' f", false),
            ("git -c user.name=\"$NAME\" commit", false),
            ("git -c user.name='(x' commit", false),
            ("git -c core.pager=\"$X\" log", true),
            ("git -c \"$X\" log", true),
            ("git -C \"$DIR\" log", false),
            ("git switch -c \"$BRANCH\"", false),
            ("git cherry-pick -x $SHA", false),
            ("git config user.name \"$X\"", false),
            ("git config core.pager \"$X\"", true),
            ("git submodule foreach \"$X\"", true),
            ("ssh -o UserKnownHostsFile=\"$F\" h", false),
            ("ssh -o ProxyCommand=\"$F\" h", true),
            ("socat - TCP:$HOST:1", false),
            ("socat - EXEC:$X", true),
            ("make SHELL=$SHELL", false),
        ] {
            assert_eq!(analyze(text, &ShellContext { home: "/home/u" }).is_opaque(), opaque, "{text}");
        }
    }
}
