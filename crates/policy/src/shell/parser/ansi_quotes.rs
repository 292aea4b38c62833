//! ANSI-C quoting: text in `$'..'`, whose backslash sequences bash decodes.

/// Decodes the text after `$'`. Returns it with the number of bytes consumed, closing quote included; `None` if
/// unclosed.
pub(crate) fn decode(text: &str) -> Option<(String, usize)> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut at = 0;
    // A NUL ends the text, but not the quoted section.
    let mut ended = false;
    loop {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let (piece, length) = match first {
            '\'' => return Some((String::from_utf8_lossy(&bytes).into_owned(), at + 1)),
            '\\' => decode_escape(rest.get(1..)?)?,
            other => (other.to_string().into_bytes(), other.len_utf8()),
        };
        ended |= piece.contains(&0);
        if !ended {
            bytes.extend(piece);
        }
        at += length;
    }
}

/// Decodes a text without quotes, as `echo -e` and `printf` do.
pub(crate) fn decode_escapes(text: &str) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, sequence) = rest.split_at(at);
        bytes.extend(before.as_bytes());
        let Some((piece, length)) = sequence.get(1..).and_then(decode_escape) else {
            rest = sequence;
            break;
        };
        bytes.extend(piece);
        rest = sequence.get(length..).unwrap_or_default();
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes one sequence after its backslash. The length includes the backslash.
fn decode_escape(text: &str) -> Option<(Vec<u8>, usize)> {
    let first = text.chars().next()?;
    let single = |byte: u8| Some((vec![byte], 2));
    match first {
        'a' => single(7),
        'b' => single(8),
        'e' | 'E' => single(27),
        'f' => single(12),
        'n' => single(b'\n'),
        'r' => single(b'\r'),
        't' => single(b'\t'),
        'v' => single(11),
        '\\' | '\'' | '"' | '?' => single(first as u8),
        '0'..='7' => parse_number(text, 0, 3, 8).map(|(value, length)| (vec![(value & 0xff) as u8], length)),
        'x' => Some(
            parse_number(text, 1, 2, 16)
                .map_or((b"\\x".to_vec(), 2), |(value, length)| (vec![(value & 0xff) as u8], length)),
        ),
        'u' => Some(decode_unicode(text, 4)),
        'U' => Some(decode_unicode(text, 8)),
        'c' => {
            let next = text.chars().nth(1)?;
            Some((vec![(next as u32 & 0x1f) as u8], 2 + next.len_utf8()))
        }
        other => Some((format!("\\{other}").into_bytes(), 1 + other.len_utf8())),
    }
}

fn decode_unicode(text: &str, digits: usize) -> (Vec<u8>, usize) {
    match parse_number(text, 1, digits, 16) {
        Some((value, length)) => {
            (char::from_u32(value).unwrap_or('\u{fffd}').to_string().into_bytes(), length)
        }
        None => (
            text.chars()
                .take(1)
                .fold(String::from("\\"), |mut out, c| {
                    out.push(c);
                    out
                })
                .into_bytes(),
            2,
        ),
    }
}

/// Parses digits after `skip` bytes of a sequence. The length includes the backslash and the skipped bytes.
fn parse_number(text: &str, skip: usize, most: usize, radix: u32) -> Option<(u32, usize)> {
    let digits: String = text.get(skip..)?.chars().take(most).take_while(|c| c.is_digit(radix)).collect();
    Some((u32::from_str_radix(&digits, radix).ok()?, 1 + skip + digits.len()))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn sequences_decode_as_in_bash() {
        let rows = [
            (r"rm'", Some(("rm", 3))),
            (r"\x72m' x", Some(("rm", 6))),
            (r"\162\155'", Some(("rm", 9))),
            (r"\u0072m'", Some(("rm", 8))),
            (r"a\'b'", Some(("a'b", 5))),
            (r"a\qb'", Some(("a\\qb", 5))),
            (r"r\0x'", Some(("r", 5))),
            (r"rm", None),
            (r"\", None),
        ];
        for (text, expected) in rows {
            assert_eq!(decode(text), expected.map(|(out, length)| (out.to_owned(), length)), "{text}");
        }
    }
}
