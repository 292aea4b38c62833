//! Brace expansion: `{a,b}` and `{1..3}`.

use super::expand::WordChar;

/// Words that one word may expand to.
const MAX_WORDS: usize = 1_000;

/// Nesting depth of braces.
const MAX_DEPTH: usize = 16;

/// Returns true if the word may contain a brace expansion.
pub(crate) fn may_expand(chars: &[WordChar]) -> bool {
    let Some(open) = chars.iter().position(|word_char| *word_char == WordChar::Plain('{')) else {
        return false;
    };
    let rest = chars.get(open..).unwrap_or_default();
    rest.contains(&WordChar::Plain(','))
        || rest.windows(2).any(|pair| pair == [WordChar::Plain('.'), WordChar::Plain('.')])
}

/// Expands a word; `None` if there are too many results.
pub(crate) fn expand_braces(chars: &mut Vec<WordChar>) -> Option<Vec<Vec<WordChar>>> {
    expand_all(std::mem::take(chars).as_slice(), 0)
}

fn expand_all(chars: &[WordChar], depth: usize) -> Option<Vec<Vec<WordChar>>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut done: Vec<Vec<WordChar>> = vec![Vec::new()];
    let ends = find_group_ends(chars);
    let mut index = 0;
    while let Some(word_char) = chars.get(index) {
        let group = ends.get(index).copied().flatten().and_then(|(end, separated)| {
            Some((end + 1, split_group_members(chars.get(index + 1..end)?, separated)?))
        });
        let Some((end, members)) = group else {
            for word in &mut done {
                word.push(*word_char);
            }
            index += 1;
            continue;
        };
        let mut choices: Vec<Vec<WordChar>> = Vec::new();
        for member in members {
            choices.extend(expand_all(&member, depth + 1)?);
            if choices.len() * done.len() > MAX_WORDS {
                return None;
            }
        }
        let longest: usize = done.iter().chain(&choices).map(Vec::len).max().unwrap_or(0);
        if longest * done.len() * choices.len() > 100_000 {
            return None;
        }
        done = done
            .iter()
            .flat_map(|word| choices.iter().map(move |choice| word.iter().chain(choice).copied().collect()))
            .collect();
        index = end;
    }
    Some(done)
}

/// Finds the index of the closing brace of each group, and whether the group has a comma. One pass, so that many braces
/// stay cheap.
fn find_group_ends(chars: &[WordChar]) -> Vec<Option<(usize, bool)>> {
    let mut ends = vec![None; chars.len()];
    let mut open: Vec<(usize, bool)> = Vec::new();
    for (index, word_char) in chars.iter().enumerate() {
        match word_char {
            WordChar::Plain('{') => open.push((index, false)),
            WordChar::Plain(',') => {
                if let Some((_, members)) = open.last_mut() {
                    *members = true;
                }
            }
            WordChar::Plain('}') => {
                if let Some((start, members)) = open.pop()
                    && let Some(end) = ends.get_mut(start)
                {
                    *end = Some((index, members));
                }
            }
            _ => {}
        }
    }
    ends
}

/// Splits a group into its members; `None` if it is literal text.
fn split_group_members(inside: &[WordChar], separated: bool) -> Option<Vec<Vec<WordChar>>> {
    if !separated {
        return if inside.len() <= 64 { expand_sequence(inside) } else { None };
    }
    let mut level = 0;
    let separator = |word_char: &WordChar| match word_char {
        WordChar::Plain('{') => {
            level += 1;
            false
        }
        WordChar::Plain('}') => {
            level -= 1;
            false
        }
        WordChar::Plain(',') => level == 0,
        _ => false,
    };
    Some(inside.split(separator).map(<[WordChar]>::to_vec).collect())
}

/// Expands `1..3`, `a..e`, `1..9..2`.
fn expand_sequence(chars: &[WordChar]) -> Option<Vec<Vec<WordChar>>> {
    let text: String = chars
        .iter()
        .map(|word_char| match word_char {
            WordChar::Plain(c) => Some(*c),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let mut ends = text.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let word = |text: String| text.chars().map(WordChar::Quoted).collect::<Vec<_>>();
    let number = |text: &str| text.parse::<i64>().ok();
    let letter = |text: &str| match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(i64::from(*byte)),
        _ => None,
    };
    let (from, to, letters) = match (number(first), number(last)) {
        (Some(from), Some(to)) => (from, to, false),
        _ => (letter(first)?, letter(last)?, true),
    };
    let count = usize::try_from(from.abs_diff(to) / step).ok()?;
    if count >= MAX_WORDS {
        // Too many to list: one unknown member represents them.
        return Some(vec![vec![WordChar::Unknown { nonempty: false }]]);
    }
    let width =
        if [first, last].iter().any(|end| end.trim_start_matches('-').starts_with('0') && end.len() > 1) {
            first.len().max(last.len())
        } else {
            0
        };
    let step = i64::try_from(step).ok()?;
    let members = (0..=count as i64).map(|index| {
        let value = if from <= to { from + index * step } else { from - index * step };
        if letters {
            word(u8::try_from(value).map(char::from).unwrap_or_default().to_string())
        } else {
            word(format!("{value:0width$}"))
        }
    });
    Some(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Option<Vec<String>> {
        let mut chars: Vec<WordChar> = text.chars().map(WordChar::Plain).collect();
        let words = expand_braces(&mut chars)?;
        let text = |word: Vec<WordChar>| {
            word.into_iter()
                .map(|word_char| match word_char {
                    WordChar::Plain(c) | WordChar::Quoted(c) | WordChar::Expanded(c) => c,
                    WordChar::Unknown { .. } => '?',
                })
                .collect()
        };
        Some(words.into_iter().map(text).collect())
    }

    #[test]
    fn braces_expand_as_in_bash() {
        let rows: &[(&str, &[&str])] = &[
            ("{rm,-rf,x}", &["rm", "-rf", "x"]),
            ("a{b,c}d", &["abd", "acd"]),
            ("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("{1..3}", &["1", "2", "3"]),
            ("{3..1}", &["3", "2", "1"]),
            ("{01..3}", &["01", "02", "03"]),
            ("{a..c}", &["a", "b", "c"]),
            ("{1..9..4}", &["1", "5", "9"]),
            ("{}", &["{}"]),
            ("{a}", &["{a}"]),
            ("{a,b", &["{a,b"]),
            ("{,x}", &["", "x"]),
            ("{a..b..c}", &["{a..b..c}"]),
            ("{1..99999}", &["?"]),
        ];
        for (text, expected) in rows {
            assert_eq!(texts(text).unwrap(), *expected, "{text}");
        }
    }

    #[test]
    fn too_many_words_are_not_listed() {
        assert_eq!(texts(&"{a,b}".repeat(11)), None);
        assert_eq!(texts(&"{".repeat(20_000)).map(|words| words.len()), Some(1));
    }
}
