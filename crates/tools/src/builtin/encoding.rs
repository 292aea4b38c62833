//! Text encodings of files. Decoding and encoding round-trips: bytes that were not edited do not change.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8,
    /// UTF-8 with byte order mark.
    Utf8Bom,
    /// UTF-16 little endian with byte order mark.
    Utf16Le,
    /// UTF-16 big endian with byte order mark.
    Utf16Be,
    /// Windows-1252: assumed for a file that is not UTF-8 and has no valid non-ASCII UTF-8 sequence.
    Windows1252,
    /// Some bytes are invalid: the text can be read but not written back.
    Invalid,
}

/// Decoded text and its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodedText {
    /// The text without byte order mark.
    pub(crate) text: String,
    pub(crate) encoding: TextEncoding,
}

const UTF8_BOM: &[u8] = &[0xEF, 0xBB, 0xBF];
const UTF16_LE_BOM: &[u8] = &[0xFF, 0xFE];
const UTF16_BE_BOM: &[u8] = &[0xFE, 0xFF];

pub(crate) fn has_utf16_bom(head: &[u8]) -> bool {
    head.starts_with(UTF16_LE_BOM) || head.starts_with(UTF16_BE_BOM)
}

/// Decodes bytes. Returns `None` if they are not text.
pub(crate) fn decode(mut bytes: Vec<u8>) -> Option<DecodedText> {
    if has_utf16_bom(&bytes) {
        return decode_utf16(&bytes);
    }
    if bytes.contains(&0) {
        return None;
    }
    let has_bom = bytes.starts_with(UTF8_BOM);
    if has_bom {
        bytes.drain(..UTF8_BOM.len());
    }
    match String::from_utf8(bytes) {
        Ok(text) if has_bom => Some(DecodedText { text, encoding: TextEncoding::Utf8Bom }),
        Ok(text) => Some(DecodedText { text, encoding: TextEncoding::Utf8 }),
        Err(error) if has_bom => Some(decode_lossy(error.as_bytes())),
        Err(error) => decode_legacy(error.as_bytes()),
    }
}

fn decode_lossy(bytes: &[u8]) -> DecodedText {
    DecodedText { text: String::from_utf8_lossy(bytes).into_owned(), encoding: TextEncoding::Invalid }
}

fn decode_utf16(bytes: &[u8]) -> Option<DecodedText> {
    let (codec, encoding) = if bytes.starts_with(UTF16_LE_BOM) {
        (UTF_16LE, TextEncoding::Utf16Le)
    } else {
        (UTF_16BE, TextEncoding::Utf16Be)
    };
    let (text, damaged) = codec.decode_without_bom_handling(&bytes[2..]);
    let encoding = if damaged { TextEncoding::Invalid } else { encoding };
    (!text.contains('\0')).then(|| DecodedText { text: text.into_owned(), encoding })
}

fn decode_legacy(bytes: &[u8]) -> Option<DecodedText> {
    let controls = bytes.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    if controls * 10 > bytes.len() {
        return None;
    }
    if bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) {
        return Some(decode_lossy(bytes));
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    Some(DecodedText { text: text.into_owned(), encoding: TextEncoding::Windows1252 })
}

/// Encodes text. Returns `None` if the encoding lacks one of the characters.
pub(crate) fn encode(text: &str, encoding: TextEncoding) -> Option<Vec<u8>> {
    match encoding {
        TextEncoding::Utf8 => Some(text.as_bytes().to_vec()),
        TextEncoding::Utf8Bom => Some([UTF8_BOM, text.as_bytes()].concat()),
        TextEncoding::Utf16Le => Some(encode_utf16(UTF16_LE_BOM, text, u16::to_le_bytes)),
        TextEncoding::Utf16Be => Some(encode_utf16(UTF16_BE_BOM, text, u16::to_be_bytes)),
        TextEncoding::Windows1252 => {
            let (bytes, _, replaced) = WINDOWS_1252.encode(text);
            (!replaced).then(|| bytes.into_owned())
        }
        TextEncoding::Invalid => None,
    }
}

fn encode_utf16(bom: &[u8], text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    bom.iter().copied().chain(text.encode_utf16().flat_map(to_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_encoding_is_detected_and_round_trips() {
        for (name, bytes, text, encoding) in [
            ("utf-8", &b"a\xC3\xA9"[..], "aé", TextEncoding::Utf8),
            ("utf-8 with BOM", b"\xEF\xBB\xBFa", "a", TextEncoding::Utf8Bom),
            ("utf-16 LE", b"\xFF\xFEa\0\xE9\0", "aé", TextEncoding::Utf16Le),
            ("utf-16 BE", b"\xFE\xFF\0a\xD8\x3D\xDE\x00", "a😀", TextEncoding::Utf16Be),
            ("windows-1252", b"caf\xE9 \x80", "café €", TextEncoding::Windows1252),
        ] {
            let decoded = decode(bytes.to_vec()).unwrap();
            assert_eq!(decoded, DecodedText { text: text.into(), encoding }, "{name}");
            assert_eq!(encode(&decoded.text, encoding).unwrap(), bytes, "{name}");
        }
    }

    #[test]
    fn invalid_text_can_be_read_but_not_written() {
        for bytes in [&b"\xC3\xA9 and \xFF"[..], b"\xEF\xBB\xBFa\xFF", b"\xFF\xFE\x00\xD8a\0"] {
            assert_eq!(decode(bytes.to_vec()).unwrap().encoding, TextEncoding::Invalid);
        }
        assert_eq!(encode("x", TextEncoding::Invalid), None);
        assert_eq!(encode("中", TextEncoding::Windows1252), None);
    }

    #[test]
    fn binary_data_is_not_text() {
        for bytes in [
            &b"ab\0c"[..],
            b"\x7FELF\x02\x01\x01\0",
            b"\x1F\x8B\x08\x01\x02\x03\xFF\x04",
            b"\xFF\xFE\0\0a\0\0\0",
        ] {
            assert_eq!(decode(bytes.to_vec()), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn decoded_text_round_trips_byte_for_byte(bytes: Vec<u8>) {
            if let Some(decoded) = decode(bytes.clone()) && decoded.encoding != TextEncoding::Invalid {
                prop_assert_eq!(encode(&decoded.text, decoded.encoding), Some(bytes));
            }
        }
    }
}
