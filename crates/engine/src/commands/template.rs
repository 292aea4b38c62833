//! Templates in command files: placeholders for arguments, and shell commands. Pure.
//!
//! A template is split before arguments are filled in, so that an argument cannot become a command.

/// Placeholder name, after `$`.
const ARGUMENTS: &str = "ARGUMENTS";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    Text(String),
    /// Shell command, replaced by its output.
    Command(String),
}

/// Splits a template and fills in the arguments: `$ARGUMENTS` is all of them, `$0` or `$ARGUMENTS[0]` the first word. A
/// placeholder without a matching word stays, since it may be a price or meant for a shell; an escaped one stays
/// without its backslash. Without any placeholder the arguments are appended.
pub fn fill(template: &str, arguments: &str) -> Vec<TemplatePiece> {
    let words = split_words(arguments);
    let mut used = false;
    let mut pieces: Vec<TemplatePiece> = split_pieces(template)
        .into_iter()
        .map(|piece| match piece {
            TemplatePiece::Text(text) => TemplatePiece::Text(fill_text(&text, arguments, &words, &mut used)),
            TemplatePiece::Command(command) => {
                TemplatePiece::Command(fill_text(&command, arguments, &words, &mut used))
            }
        })
        .collect();
    if !used && !arguments.is_empty() {
        pieces.push(TemplatePiece::Text(format!("\n\nARGUMENTS: {arguments}")));
    }
    pieces
}

/// Splits text and commands: `` !`command` `` after whitespace or at the start of a line, or a fence that begins with
/// `` ```! ``.
fn split_pieces(template: &str) -> Vec<TemplatePiece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('!') {
        // Text right after a command is not at the start of a line.
        let earlier = text.chars().next_back().or((!pieces.is_empty()).then_some('`'));
        let before = |at: usize| rest[..at].chars().next_back().or(earlier);
        let fence = rest[..at].ends_with("```") && before(at - 3).is_none_or(|c| c == '\n');
        let found =
            if fence { parse_fence(&rest[at + 1..]) } else { parse_inline(&rest[at + 1..], before(at)) };
        let Some((command, after)) = found else {
            text.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        text.push_str(&rest[..if fence { at - 3 } else { at }]);
        if !text.is_empty() {
            pieces.push(TemplatePiece::Text(std::mem::take(&mut text)));
        }
        pieces.push(TemplatePiece::Command(command.trim().to_owned()));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(TemplatePiece::Text(text));
    }
    pieces
}

/// Command between backticks after `!`, and the rest.
fn parse_inline(rest: &str, before: Option<char>) -> Option<(&str, &str)> {
    if !before.is_none_or(char::is_whitespace) {
        return None;
    }
    let (command, after) = rest.strip_prefix('`')?.split_once('`')?;
    (!command.trim().is_empty()).then_some((command, after))
}

/// Commands in a fence, and the rest.
fn parse_fence(rest: &str) -> Option<(&str, &str)> {
    let (first, body) = rest.split_once('\n')?;
    let (command, after) = body.split_once("\n```")?;
    (first.trim().is_empty() && !command.trim().is_empty()).then_some((command, after))
}

/// Splits arguments into words; quotes group words. The text is not shell syntax: `#` and backslash are literal, and an
/// unclosed quote is an apostrophe.
fn split_words(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in arguments.chars() {
        match quote {
            None if c.is_whitespace() => words.extend(word.take()),
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            Some(open) if c == open => quote = None,
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return arguments.split_whitespace().map(str::to_owned).collect();
    }
    words.extend(word);
    words
}

/// Index of a placeholder, counted from zero, and the rest: `0` or `ARGUMENTS[0]`.
fn parse_index(rest: &str) -> Option<(usize, &str)> {
    let bracket = rest.strip_prefix(ARGUMENTS).and_then(|rest| rest.strip_prefix('['));
    let digits = bracket.unwrap_or(rest);
    let end = digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = digits.split_at(end);
    let after = match bracket {
        Some(_) => after.strip_prefix(']')?,
        None => after,
    };
    let is_number = !number.is_empty();
    is_number.then(|| (number.parse().unwrap_or(usize::MAX), after))
}

/// Value of a placeholder, if there is one, and the rest.
fn resolve_placeholder<'a>(
    rest: &'a str,
    all: &'a str,
    words: &'a [String],
) -> Option<(Option<&'a str>, &'a str)> {
    match parse_index(rest) {
        Some((number, after)) => Some((words.get(number).map(String::as_str), after)),
        None => rest.strip_prefix(ARGUMENTS).map(|after| (Some(all), after)),
    }
}

fn fill_text(text: &str, all: &str, words: &[String], used: &mut bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let Some((value, after)) = resolve_placeholder(&rest[at + 1..], all, words) else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        let (before, placeholder) = (&rest[..at], &rest[at..rest.len() - after.len()]);
        let (before, value) = match before.strip_suffix('\\') {
            Some(before) => (before, None),
            None => (before, value),
        };
        *used |= value.is_some();
        out.push_str(before);
        out.push_str(value.unwrap_or(placeholder));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str, arguments: &str) -> String {
        let shown = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Command(command) => format!("<{command}>"),
        };
        fill(template, arguments).iter().map(shown).collect()
    }

    #[test]
    fn arguments_are_filled_in() {
        let rows = [
            ("Greet $ARGUMENTS.", "Ann and Bob", "Greet Ann and Bob."),
            ("$0/$1/$2", "a 'b c'", "a/b c/$2"),
            ("$10 $0", "a", "$10 a"),
            ("awk '{print $1}' costs $100", "", "awk '{print $1}' costs $100"),
            ("$7 and $ARGUMENTS[7]", "a", "$7 and $ARGUMENTS[7]\n\nARGUMENTS: a"),
            (r"\$0 \$ARGUMENTS \$ARGUMENTS[0] \$x \n $0", "a", r"$0 $ARGUMENTS $ARGUMENTS[0] \$x \n a"),
            (r"\$9", "a", "$9\n\nARGUMENTS: a"),
            ("$0$1", r"\ b", r"\b"),
            (
                "$99999999999999999999 $ARGUMENTS[99999999999999999999]",
                "",
                "$99999999999999999999 $ARGUMENTS[99999999999999999999]",
            ),
            ("$ARGUMENTS[1]$ARGUMENTS[0] of $ARGUMENTS", "a b", "ba of a b"),
            ("$ARGUMENTS[9]|$ARGUMENTS[x]|$ARGUMENTS[0", "a", "$ARGUMENTS[9]|a[x]|a[0"),
            ("It's $0", "don't", "It's don't"),
            ("$0, $1", "#12 #urgent", "#12, #urgent"),
            ("$0|$1|$2", r#"C:\temp "" x"y z""#, r"C:\temp||xy z"),
            ("costs $x and $", "", "costs $x and $"),
            ("No place", "for it", "No place\n\nARGUMENTS: for it"),
            ("No place", "", "No place"),
            ("$0", "$ARGUMENTS $1", "$ARGUMENTS"),
            ("größe $0 ß", "ü", "größe ü ß"),
        ];
        for (template, arguments, expected) in rows {
            assert_eq!(shown(template, arguments), expected, "{template:?} {arguments:?}");
        }
    }

    #[test]
    fn commands_are_separated_from_text() {
        let rows = [
            ("Status: !`git status` now", "", "Status: <git status> now"),
            ("!`a`\n!`b $0`", "x", "<a>\n<b x>"),
            ("!`a` !`b`!`c`", "", "<a> <b>!`c`"),
            ("wow!`a` !`` ! `b` !x !", "", "wow!`a` !`` ! `b` !x !"),
            ("!`open", "", "!`open"),
            ("x\n```!\ngit log\ngit diff\n```\ny", "", "x\n<git log\ngit diff>\ny"),
            ("```! \nopen", "", "```! \nopen"),
            ("$ARGUMENTS", "!`rm -rf /`", "!`rm -rf /`"),
            ("$ARGUMENTS!`a`", "", "!`a`"),
        ];
        for (template, arguments, expected) in rows {
            assert_eq!(shown(template, arguments), expected, "{template:?} {arguments:?}");
        }
    }
}
