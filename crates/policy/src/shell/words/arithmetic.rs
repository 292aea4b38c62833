//! Evaluation of arithmetic with integer literals only; anything with variables is not certain.

/// Evaluates an expression of integers, `+ - * / %` and parentheses; `None` for everything else.
pub(crate) fn evaluate(text: &str) -> Option<i64> {
    if text.len() > 200 || !text.bytes().all(|byte| byte.is_ascii_digit() || b" +-*/%()".contains(&byte)) {
        return None;
    }
    let mut rest = text.as_bytes();
    let value = parse_sum(&mut rest, 0)?;
    skip_blanks(&mut rest);
    rest.is_empty().then_some(value)
}

fn skip_blanks(rest: &mut &[u8]) {
    while let [b' ', after @ ..] = rest {
        *rest = after;
    }
}

fn take_operator(rest: &mut &[u8], wanted: &[u8]) -> Option<u8> {
    skip_blanks(rest);
    match rest {
        [first, after @ ..] if wanted.contains(first) => {
            let found = *first;
            *rest = after;
            Some(found)
        }
        _ => None,
    }
}

fn parse_sum(rest: &mut &[u8], depth: usize) -> Option<i64> {
    let mut left = parse_product(rest, depth)?;
    while let Some(operator) = take_operator(rest, b"+-") {
        let right = parse_product(rest, depth)?;
        left = if operator == b'+' { left.checked_add(right)? } else { left.checked_sub(right)? };
    }
    Some(left)
}

fn parse_product(rest: &mut &[u8], depth: usize) -> Option<i64> {
    let mut left = parse_atom(rest, depth)?;
    while let Some(operator) = take_operator(rest, b"*/%") {
        let right = parse_atom(rest, depth)?;
        left = match operator {
            b'*' => left.checked_mul(right)?,
            b'/' => left.checked_div(right)?,
            _ => left.checked_rem(right)?,
        };
    }
    Some(left)
}

fn parse_atom(rest: &mut &[u8], depth: usize) -> Option<i64> {
    if depth > 20 {
        return None;
    }
    if let Some(sign) = take_operator(rest, b"+-") {
        // `--1` and `++1` are different operators.
        if matches!(rest.first(), Some(b'+' | b'-')) {
            return None;
        }
        let value = parse_atom(rest, depth + 1)?;
        return if sign == b'-' { value.checked_neg() } else { Some(value) };
    }
    if take_operator(rest, b"(").is_some() {
        let value = parse_sum(rest, depth + 1)?;
        return take_operator(rest, b")").map(|_| value);
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    // A leading zero means octal.
    if number.len() > 1 && number.starts_with(b"0") {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn only_plain_integers_have_a_value() {
        let rows = [
            ("1+2", Some(3)),
            (" (4 - 1) * 2 % 4 ", Some(2)),
            ("-7/2", Some(-3)),
            ("x+1", None),
            ("1/0", None),
            ("1**2", None),
            ("2 3", None),
            ("010", None),
            ("1<<2", None),
            ("", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in rows {
            assert_eq!(evaluate(text), expected, "{text}");
        }
    }
}
