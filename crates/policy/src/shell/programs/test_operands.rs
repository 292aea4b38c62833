//! Operands of `[[`, `[` and `test`: detects tests that evaluate them as arithmetic or as variable names.

const NUMERIC_OPERATORS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns true if a test does more than compare strings, integers and file properties.
pub(crate) fn evaluates_operands<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let words: Vec<&str> = words.collect();
    let number = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| is_number(word));
    words.iter().enumerate().any(|(at, word)| {
        matches!(*word, "-v" | "-R")
            || (NUMERIC_OPERATORS.contains(word) && !(number(at.checked_sub(1)) && number(Some(at + 1))))
    })
}

fn is_number(word: &str) -> bool {
    let word = match word.as_bytes() {
        [open @ (b'"' | b'\''), .., close] if open == close => {
            word.get(1..word.len() - 1).unwrap_or_default()
        }
        _ => word,
    };
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::evaluates_operands;

    #[test]
    fn tests_that_evaluate_operands() {
        let rows = [
            ("-f x", false),
            ("a == b*", false),
            ("1 -eq 2", false),
            ("\"3\" -lt -4", false),
            ("-v a[0]", true),
            ("-R a", true),
            ("x -eq 1", true),
            ("1 -gt a[$(id)]", true),
            ("-eq 1", true),
        ];
        for (text, expected) in rows {
            assert_eq!(evaluates_operands(text.split(' ')), expected, "{text}");
        }
    }
}
