//! Converts the body of a page to text. Pure.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::html;

/// Maximum characters of a page.
const MAX_PAGE_CHARS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// HTML, converted to Markdown.
    Html,
    /// Used unchanged.
    Plain,
    /// No media type given; may be binary.
    Unknown,
}

impl TextKind {
    /// The kind for a media type. `None` if it is not text.
    pub(super) fn from_media_type(media_type: Option<&str>) -> Option<Self> {
        let Some(media_type) = media_type.filter(|media_type| !media_type.is_empty()) else {
            return Some(Self::Unknown);
        };
        let (family, rest) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (family, rest) {
            ("text", "html") | ("application", "xhtml+xml") => Some(Self::Html),
            ("text", _) => Some(Self::Plain),
            ("application", "json" | "xml" | "javascript" | "x-ndjson" | "yaml" | "x-yaml" | "toml") => {
                Some(Self::Plain)
            }
            (_, rest) if rest.ends_with("+json") || rest.ends_with("+xml") => Some(Self::Plain),
            _ => None,
        }
    }
}

/// The charset parameter of a content type.
pub(super) fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

/// Decodes a body, truncated if very long. `None` if it is binary.
pub(super) fn decode_body(kind: TextKind, charset: Option<&str>, body: &[u8]) -> Option<String> {
    let kind = match kind {
        TextKind::Unknown if body.contains(&0) => return None,
        TextKind::Unknown if is_html(body) => TextKind::Html,
        known => known,
    };
    let label = charset.map(str::as_bytes).or_else(|| meta_charset(body).filter(|_| kind == TextKind::Html));
    let (text, ..) = label.and_then(Encoding::for_label).unwrap_or_else(|| guess_encoding(body)).decode(body);
    Some(truncate_page(match kind {
        TextKind::Html => html::to_markdown(&text),
        TextKind::Plain | TextKind::Unknown => text.into_owned(),
    }))
}

/// The encoding if none is declared.
fn guess_encoding(body: &[u8]) -> &'static Encoding {
    if str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 }
}

fn is_html(body: &[u8]) -> bool {
    let head = body.trim_ascii_start();
    ["<!doctype html", "<html"].iter().any(|opening| {
        head.get(..opening.len()).is_some_and(|head| head.eq_ignore_ascii_case(opening.as_bytes()))
    })
}

/// The charset declared in the page itself: `<meta charset=…>` in either form.
fn meta_charset(body: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset=";
    let head = &body[..body.len().min(1024)];
    let start = head.windows(NAME.len()).position(|word| word.eq_ignore_ascii_case(NAME))?;
    let value = head[start + NAME.len()..].trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_:.".contains(byte)));
    Some(&value[..end.unwrap_or(value.len())])
}

fn truncate_page(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_PAGE_CHARS) {
        text.truncate(end);
        text.push_str("\n\n[Page truncated here.]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_map_to_text_kinds() {
        let table = [
            (None, Some(TextKind::Unknown)),
            (Some("text/html"), Some(TextKind::Html)),
            (Some("application/xhtml+xml"), Some(TextKind::Html)),
            (Some("text/markdown"), Some(TextKind::Plain)),
            (Some("application/json"), Some(TextKind::Plain)),
            (Some("application/ld+json"), Some(TextKind::Plain)),
            (Some("application/rss+xml"), Some(TextKind::Plain)),
            (Some("image/svg+xml"), Some(TextKind::Plain)),
            (Some("image/png"), None),
            (Some("application/pdf"), None),
            (Some("application/octet-stream"), None),
            (Some("nonsense"), None),
        ];
        for (media_type, expected) in table {
            assert_eq!(TextKind::from_media_type(media_type), expected, "{media_type:?}");
        }
    }

    #[test]
    fn the_charset_is_taken_from_header_or_page() {
        type Row = (&'static str, TextKind, Option<&'static str>, &'static [u8], &'static str);
        let table: &[Row] = &[
            ("utf-8 by default", TextKind::Plain, None, "é".as_bytes(), "é"),
            ("not utf-8", TextKind::Plain, None, b"\xe9", "é"),
            ("named in the header", TextKind::Plain, Some("koi8-r"), b"\xc4\xc1", "да"),
            ("an unknown name", TextKind::Plain, Some("klingon"), "é".as_bytes(), "é"),
            ("a byte order mark wins", TextKind::Plain, Some("koi8-r"), b"\xff\xfee\0", "e"),
            ("in the page", TextKind::Html, None, b"<meta charset='koi8-r'><p>\xc4\xc1", "да"),
            (
                "in the page, http-equiv",
                TextKind::Html,
                None,
                b"<meta http-equiv=content-type content=\"text/html; charset=koi8-r\"><p>\xc4\xc1",
                "да",
            ),
            ("html without a content type", TextKind::Unknown, None, b" <!DOCTYPE html><b>x</b>", "**x**"),
            ("text without a content type", TextKind::Unknown, None, b"<b>x", "<b>x"),
        ];
        for (name, kind, charset, body, expected) in table {
            assert_eq!(decode_body(*kind, *charset, body).as_deref(), Some(*expected), "{name}");
        }
        assert_eq!(decode_body(TextKind::Unknown, None, b"\0\x01"), None);
        assert_eq!(charset("text/html; x=y; Charset=\"utf-8\""), Some("utf-8"));
        assert_eq!(charset("text/html"), None);
    }

    #[test]
    fn a_long_page_is_truncated() {
        let long = decode_body(TextKind::Plain, None, "é".repeat(MAX_PAGE_CHARS + 1).as_bytes()).unwrap();
        assert!(long.starts_with("éé") && long.ends_with("truncated here.]"));
        assert!(long.chars().count() < MAX_PAGE_CHARS + 50);
        let fits = "é".repeat(MAX_PAGE_CHARS);
        assert_eq!(decode_body(TextKind::Plain, None, fits.as_bytes()), Some(fits));
    }
}
