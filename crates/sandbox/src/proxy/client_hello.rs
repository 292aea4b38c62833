//! The server name in the first message of a TLS connection. Pure; nothing is decrypted.

/// What the bytes so far say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    /// More bytes are needed.
    Incomplete,
    /// No TLS connection, or one without a name.
    NoName,
    Name(String),
    /// It begins like TLS and is not.
    Malformed,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Reads the first bytes of a connection.
pub(crate) fn read_hello(data: &[u8]) -> Hello {
    match data.first() {
        None => Hello::Incomplete,
        Some(&HANDSHAKE) => read_records(data),
        Some(_) => Hello::NoName,
    }
}

/// Joins the records of the first message, which may come in pieces.
fn read_records(data: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = Reader(data);
    loop {
        let Some((header, after)) = rest.0.split_at_checked(5) else { return Hello::Incomplete };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE || header[1] != 3 || length == 0 {
            return Hello::Malformed;
        }
        message.extend_from_slice(&after[..length.min(after.len())]);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Hello::Malformed;
        }
        if let Some(&[_, a, b, c]) = message.first_chunk::<4>() {
            let body = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if let Some(body) = message[4..].get(..body) {
                return read_body(body).unwrap_or(Hello::Malformed);
            }
        }
        if after.len() < length {
            return Hello::Incomplete;
        }
        rest = Reader(&after[length..]);
    }
}

/// Reads the message; `None` if a length does not fit.
fn read_body(body: &[u8]) -> Option<Hello> {
    let mut reader = Reader(body);
    // Version and random bytes, session, cipher suites, compression.
    reader.take(34)?;
    reader.take_vector8()?;
    reader.take_vector16()?;
    reader.take_vector8()?;
    if reader.0.is_empty() {
        return Some(Hello::NoName);
    }
    let mut extensions = Reader(reader.take_vector16()?);
    let mut found = Hello::NoName;
    while !extensions.0.is_empty() {
        let kind = extensions.take_u16()?;
        let content = extensions.take_vector16()?;
        if kind == SERVER_NAME {
            // A second name would leave open which one the server takes.
            if found != Hello::NoName {
                return None;
            }
            found = Hello::Name(read_name(content)?);
        }
    }
    Some(found)
}

fn read_name(content: &[u8]) -> Option<String> {
    let mut list = Reader(Reader(content).take_vector16()?);
    let kind = list.take(1)?;
    let name = list.take_vector16()?;
    if kind != [HOST_NAME] || !list.0.is_empty() {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn take_vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(length.into())
    }

    fn take_vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.take_u16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with the server names, in records of at most `piece` bytes.
    pub(crate) fn hello(names: &[&str], piece: usize) -> Vec<u8> {
        let vector16 = |data: &[u8]| [&(data.len() as u16).to_be_bytes(), data].concat();
        let mut extensions = Vec::new();
        for name in names {
            let list = [&[HOST_NAME][..], &vector16(name.as_bytes())].concat();
            extensions.extend([&[0, 0][..], &vector16(&vector16(&list))].concat());
        }
        extensions.extend([0, 43, 0, 3, 2, 3, 4]);
        let body =
            [&[3, 3][..], &[7; 32], &[0], &vector16(&[0x13, 1]), &[1, 0], &vector16(&extensions)].concat();
        let message = [&[CLIENT_HELLO][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat();
        let record = |piece: &[u8]| [&[HANDSHAKE, 3, 1][..], &vector16(piece)].concat();
        message.chunks(piece).flat_map(record).collect()
    }

    #[test]
    fn server_names_are_found_in_whole_and_split_messages() {
        for piece in [1, 7, 4096] {
            assert_eq!(read_hello(&hello(&["good.test"], piece)), Hello::Name("good.test".into()));
            assert_eq!(read_hello(&hello(&[], piece)), Hello::NoName);
            assert_eq!(read_hello(&hello(&["good.test", "evil.test"], piece)), Hello::Malformed);
        }
        let whole = hello(&["good.test"], 4096);
        for length in 0..whole.len() {
            assert_eq!(read_hello(&whole[..length]), Hello::Incomplete, "{length}");
        }
        assert_eq!(read_hello(b"SSH-2.0-x"), Hello::NoName);
        assert_eq!(read_hello(&[22, 9, 9, 9, 9, 9]), Hello::Malformed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// S-21.
        #[test]
        fn hostile_bytes_never_panic(mut data in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..100, byte: u8) {
            read_hello(&data);
            data.insert(0, HANDSHAKE);
            read_hello(&data);
            let mut changed = hello(&["good.test"], 50);
            let at = at % changed.len();
            changed[at] = byte;
            read_hello(&changed);
        }
    }
}
