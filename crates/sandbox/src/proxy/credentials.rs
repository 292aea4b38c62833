//! The token without which nothing is connected. Its user name tells which command a connection belongs to.

use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A secret of one session.
pub(crate) struct Token(String);

impl Token {
    /// Makes a token of 128 random bits.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{:032x}", u128::from_ne_bytes(bytes))))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the difference is.
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let difference = own.iter().zip(other).fold(0, |difference, (own, other)| difference | (own ^ other));
        own.len() == other.len() && difference == 0
    }

    /// Checks the value of a `Proxy-Authorization` header and returns the name of the command.
    pub(crate) fn check_header(&self, value: &[u8]) -> Option<String> {
        let value = std::str::from_utf8(value).ok()?;
        let (scheme, encoded) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = STANDARD.decode(encoded.trim()).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, token) = (&decoded[..colon], &decoded[colon + 1..]);
        self.is(token).then(|| String::from_utf8_lossy(user).into_owned())
    }
}

/// Returns a command's name as it can be part of a URL and of a header.
pub(crate) fn user_name(command: &str) -> String {
    command.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-22.
    #[test]
    fn only_the_token_is_accepted() {
        let token = Token::random().unwrap();
        let header = |text: String| format!("Basic {}", STANDARD.encode(text)).into_bytes();
        assert_eq!(token.check_header(&header(format!("call:{}", token.as_str()))).as_deref(), Some("call"));
        let other = Token::random().unwrap();
        for text in [
            String::new(),
            "call:".into(),
            format!("call:{}", other.as_str()),
            format!("call:{}x", token.as_str()),
        ] {
            assert_eq!(token.check_header(&header(text)), None);
        }
        assert_eq!(token.check_header(b"Bearer x"), None);
        assert_eq!(token.check_header(b"Basic !"), None);
    }
}
