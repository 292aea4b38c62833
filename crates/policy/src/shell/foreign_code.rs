//! Scripts of other languages, in which commands stand as text. They are not understood: their texts are taken for
//! commands that may run, and the whole is searched at every word.

use super::Word;
use super::sed::{is_harmless_substitution, only_prints_lines};
use super::expand::value_text;

/// How much longer than a script the pieces of it may be that are taken apart. The rest is searched at every word.
const EXTRA_FRAGMENT_BYTES: usize = 2_000;

/// What a script may run.
#[derive(Debug)]
pub(super) struct ForeignCode {
    /// The whole text.
    pub(super) text: String,
    /// Stretches of it that may be commands.
    pub(super) fragments: Vec<String>,
    /// Whether it runs a text in which something is not known.
    pub(super) opaque: bool,
}

/// The scripts among the arguments of a program that can run commands.
pub(super) fn find_code(name: &str, arguments: &[Word]) -> Vec<ForeignCode> {
    let code: fn(&str, bool) -> Option<ForeignCode> = match strip_version(name) {
        "awk" | "gawk" | "mawk" | "nawk" => parse_awk,
        "sed" | "gsed" => parse_sed,
        name if reads_code_from_stdin(name) => parse_other,
        _ => return Vec::new(),
    };
    let words = arguments.iter().map(|word| (value_text(&word.value), word.value.is_unknown()));
    words.filter_map(|(text, unknown)| code(&text, unknown)).collect()
}

/// The name of a program without its version.
fn strip_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Whether a program reads a script from its input that can run commands.
pub(super) fn reads_code_from_stdin(name: &str) -> bool {
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

/// The script that a program reads from its input, if it is one that does so and can run commands.
pub(super) fn parse_stdin_code(name: &str, text: &str) -> Vec<ForeignCode> {
    // Others read what they work on.
    if reads_code_from_stdin(name) { parse_other(text, false).into_iter().collect() } else { Vec::new() }
}

fn parse_awk(text: &str, unknown: bool) -> Option<ForeignCode> {
    let ways = ["system", "|", "getline"];
    if !ways.iter().any(|way| text.contains(way)) {
        return None;
    }
    // Patterns have bars too; these run what is in quotes beside them.
    let opaque = unknown && ["system", "getline", "| \"", "|\"", "\" |"].iter().any(|way| text.contains(way));
    Some(ForeignCode { fragments: quoted_texts(text, "\""), text: text.to_owned(), opaque })
}

fn parse_other(text: &str, _: bool) -> Option<ForeignCode> {
    let ways = ["system", "exec", "spawn", "popen", "open", "process", "`", "qx", "%x", "|", "passthru"];
    let found = ways.iter().any(|way| text.contains(way));
    found.then(|| ForeignCode { fragments: quoted_texts(text, "\"'`"), text: text.to_owned(), opaque: false })
}

/// The texts in quotes.
fn quoted_texts(script: &str, marks: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text: Option<(char, String)> = None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (&mut text, letter) {
            (None, mark) if marks.contains(mark) => text = Some((mark, String::new())),
            (None, _) => {}
            (Some((mark, _)), letter) if *mark == letter => texts.extend(text.take().map(|(_, text)| text)),
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

/// `e COMMAND`, and `s/a/COMMAND/e`.
fn parse_sed(script: &str, _: bool) -> Option<ForeignCode> {
    if is_harmless_substitution(script) || only_prints_lines(script) {
        return None;
    }
    let mut pieces = Vec::new();
    let mut length = 0;
    // The letter may stand at the start, behind an address, a mark, or other flags. What it runs needs no blank before
    // it, but is found only behind one.
    let mut text = String::with_capacity(script.len());
    let mut before = None;
    for (at, letter) in script.char_indices() {
        text.push(letter);
        let begins =
            before.replace(letter).is_none_or(|before: char| !before.is_alphabetic() || is_substitution_flag(before));
        if letter != 'e' || !begins {
            continue;
        }
        text.push(' ');
        if length <= script.len() {
            let found =
                sed_commands(script.get(..at).unwrap_or_default(), script.get(at + 1..).unwrap_or_default());
            length += found.iter().map(String::len).sum::<usize>();
            pieces.extend(found.into_iter().filter(|_| length <= script.len() + EXTRA_FRAGMENT_BYTES));
        }
    }
    (text.len() > script.len()).then_some(ForeignCode { text, fragments: pieces, opaque: false })
}

/// Whether a letter may stand between the end of a substitution and `e`.
fn is_substitution_flag(letter: char) -> bool {
    "gpiImM0123456789".contains(letter)
}

/// What the letter `e` would run: what follows it on its line, or what a substitution before it makes.
fn sed_commands(before: &str, behind: &str) -> Vec<String> {
    let line = behind.lines().next().unwrap_or_default().trim_start();
    let body = before.rsplit('\n').next().unwrap_or_default();
    let body = body.trim_end_matches(is_substitution_flag);
    let mark = body.chars().next_back().filter(char::is_ascii_punctuation);
    let made = mark.and_then(|mark| Some(body.strip_suffix(mark)?.rsplit_once(mark)?.1));
    [Some(line), made].into_iter().flatten().filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ShellContext, analyze};

    #[test]
    fn what_is_only_printed_is_no_command() {
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
    fn what_may_be_a_command_makes_nothing_opaque() {
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
