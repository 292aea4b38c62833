//! How a text lies on disk: which bytes stand for which characters. What is decoded here can be encoded again without
//! changing a byte that was not edited.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 after a byte order mark.
    Utf8Marked,
    /// UTF-16, low byte first, after a byte order mark.
    Utf16Le,
    /// UTF-16, high byte first, after a byte order mark.
    Utf16Be,
    /// One byte per character: what a file is taken for that has no UTF-8 outside ASCII.
    Windows1252,
    /// Damaged: some bytes stand for no character. Can be read but not written back.
    Broken,
}

/// A text and how it lay on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The text, without a byte order mark.
    pub(crate) text: String,
    /// How it lay on disk.
    pub(crate) encoding: Encoding,
}

const UTF8_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
const UTF16_LE_MARK: &[u8] = &[0xFF, 0xFE];
const UTF16_BE_MARK: &[u8] = &[0xFE, 0xFF];

/// Whether a file that begins like this is UTF-16.
pub(crate) fn is_utf16(head: &[u8]) -> bool {
    head.starts_with(UTF16_LE_MARK) || head.starts_with(UTF16_BE_MARK)
}

/// Reads bytes as text. None if they are not text.
pub(crate) fn decode(mut bytes: Vec<u8>) -> Option<Decoded> {
    if is_utf16(&bytes) {
        return decode_utf16(&bytes);
    }
    if bytes.contains(&0) {
        return None;
    }
    let marked = bytes.starts_with(UTF8_MARK);
    if marked {
        bytes.drain(..UTF8_MARK.len());
    }
    match String::from_utf8(bytes) {
        Ok(text) if marked => Some(Decoded { text, encoding: Encoding::Utf8Marked }),
        Ok(text) => Some(Decoded { text, encoding: Encoding::Utf8 }),
        Err(error) if marked => Some(broken(error.as_bytes())),
        Err(error) => decode_legacy(error.as_bytes()),
    }
}

fn broken(bytes: &[u8]) -> Decoded {
    Decoded { text: String::from_utf8_lossy(bytes).into_owned(), encoding: Encoding::Broken }
}

fn decode_utf16(bytes: &[u8]) -> Option<Decoded> {
    let (codec, encoding) = if bytes.starts_with(UTF16_LE_MARK) {
        (UTF_16LE, Encoding::Utf16Le)
    } else {
        (UTF_16BE, Encoding::Utf16Be)
    };
    let (text, damaged) = codec.decode_without_bom_handling(&bytes[2..]);
    let encoding = if damaged { Encoding::Broken } else { encoding };
    (!text.contains('\0')).then(|| Decoded { text: text.into_owned(), encoding })
}

fn decode_legacy(bytes: &[u8]) -> Option<Decoded> {
    let controls = bytes.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    if controls * 10 > bytes.len() {
        return None;
    }
    if bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) {
        return Some(broken(bytes));
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    Some(Decoded { text: text.into_owned(), encoding: Encoding::Windows1252 })
}

/// Writes text as bytes. None if the encoding has no bytes for one of the characters.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Utf8 => Some(text.as_bytes().to_vec()),
        Encoding::Utf8Marked => Some([UTF8_MARK, text.as_bytes()].concat()),
        Encoding::Utf16Le => Some(encode_utf16(UTF16_LE_MARK, text, u16::to_le_bytes)),
        Encoding::Utf16Be => Some(encode_utf16(UTF16_BE_MARK, text, u16::to_be_bytes)),
        Encoding::Windows1252 => {
            let (bytes, _, replaced) = WINDOWS_1252.encode(text);
            (!replaced).then(|| bytes.into_owned())
        }
        Encoding::Broken => None,
    }
}

fn encode_utf16(mark: &[u8], text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    mark.iter().copied().chain(text.encode_utf16().flat_map(order)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_encoding_is_recognised_and_written_back_the_same() {
        for (name, bytes, text, encoding) in [
            ("plain", &b"a\xC3\xA9"[..], "aé", Encoding::Utf8),
            ("marked", b"\xEF\xBB\xBFa", "a", Encoding::Utf8Marked),
            ("little", b"\xFF\xFEa\0\xE9\0", "aé", Encoding::Utf16Le),
            ("big", b"\xFE\xFF\0a\xD8\x3D\xDE\x00", "a😀", Encoding::Utf16Be),
            ("western", b"caf\xE9 \x80", "café €", Encoding::Windows1252),
        ] {
            let decoded = decode(bytes.to_vec()).unwrap();
            assert_eq!(decoded, Decoded { text: text.into(), encoding }, "{name}");
            assert_eq!(encode(&decoded.text, encoding).unwrap(), bytes, "{name}");
        }
    }

    #[test]
    fn damaged_text_can_be_read_but_not_written() {
        for bytes in [&b"\xC3\xA9 and \xFF"[..], b"\xEF\xBB\xBFa\xFF", b"\xFF\xFE\x00\xD8a\0"] {
            assert_eq!(decode(bytes.to_vec()).unwrap().encoding, Encoding::Broken);
        }
        assert_eq!(encode("x", Encoding::Broken), None);
        assert_eq!(encode("中", Encoding::Windows1252), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart() {
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
        fn whatever_is_decoded_and_not_broken_comes_back_byte_for_byte(bytes: Vec<u8>) {
            if let Some(decoded) = decode(bytes.clone()) && decoded.encoding != Encoding::Broken {
                prop_assert_eq!(encode(&decoded.text, decoded.encoding), Some(bytes));
            }
        }
    }
}
