//! Bytes from the terminal as keys, pastes and answers. Pure.
//!
//! An answer to a query is recognized whenever it comes, so it is never taken for typed text. Unknown sequences are
//! dropped whole.

use super::key::{Key, KeyCode, Modifiers};

/// Longest sequence that is waited for; what is longer and not a paste is no sequence.
const MAX_SEQUENCE_BYTES: usize = 4096;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// What the terminal sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Key(Key),
    Paste(String),
    FocusGained,
    FocusLost,
    Answer(Answer),
}

/// Answer to a query of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kitty keyboard protocol is supported.
    KittyKeyboard,
    /// The color of the background.
    Background(Background),
    /// Rows and columns of the terminal; some versions of tmux send them the other way round.
    Size(u16, u16),
    /// Device attributes; every terminal answers them, so they end the probe.
    DeviceAttributes,
}

/// Whether dark or light text can be read on the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

/// Splits the input into sequences. Bytes of an unfinished one are kept.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    pending: Vec<u8>,
    /// How far the end of a paste was searched.
    searched: usize,
}

/// What the beginning of the pending bytes is.
enum Token {
    /// So many bytes are an input, or nothing that we know.
    Complete(usize, Option<Input>),
    /// More bytes are needed.
    Incomplete,
}

impl Parser {
    /// Takes bytes and returns what is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.pending.extend_from_slice(bytes);
        self.take(Pause::No)
    }

    /// Nothing followed for a while: a lone escape was the key, and an unfinished sequence ends.
    pub(crate) fn flush(&mut self) -> Vec<Input> {
        if self.is_in_paste() {
            return Vec::new();
        }
        self.take(Pause::Yes)
    }

    /// True if a sequence has begun that a pause would end.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.is_in_paste()
    }

    fn is_in_paste(&self) -> bool {
        self.pending.starts_with(PASTE_START)
    }

    fn take(&mut self, pause: Pause) -> Vec<Input> {
        let mut inputs = Vec::new();
        let mut start = 0;
        while start < self.pending.len() {
            let token = match self.paste(start) {
                Some(token) => token,
                None => token(&self.pending[start..], pause),
            };
            match token {
                Token::Complete(length, input) => {
                    inputs.extend(input);
                    start += length;
                    self.searched = 0;
                }
                Token::Incomplete => break,
            }
        }
        self.pending.drain(..start);
        inputs
    }

    /// A bracketed paste at `start`. What was searched for its end is not searched again.
    fn paste(&mut self, start: usize) -> Option<Token> {
        let bytes = self.pending[start..].strip_prefix(PASTE_START)?;
        let from = self.searched.min(bytes.len());
        let Some(at) = find(&bytes[from..], PASTE_END) else {
            self.searched = bytes.len().saturating_sub(PASTE_END.len() - 1);
            return Some(Token::Incomplete);
        };
        let text = normalize_paste(&bytes[..from + at]);
        let length = PASTE_START.len() + from + at + PASTE_END.len();
        Some(Token::Complete(length, Some(Input::Paste(text))))
    }
}

/// Whether the input paused after the pending bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Yes,
    No,
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == pattern[0]) {
        if bytes[from + at..].starts_with(pattern) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Terminals send a carriage return for each line break of a paste.
fn normalize_paste(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n")
}

fn token(bytes: &[u8], pause: Pause) -> Token {
    if bytes[0] != 0x1b {
        return character(bytes, pause);
    }
    let ended =
        |input| if pause == Pause::Yes { Token::Complete(bytes.len(), input) } else { Token::Incomplete };
    match bytes.get(1) {
        None => ended(Some(key(KeyCode::Escape))),
        Some(b'[') if bytes.len() == 2 => ended(Some(Input::Key(Key::alt('[')))),
        Some(b'[') => csi(bytes).unwrap_or_else(|| ended(None)),
        Some(b'O') if bytes.len() == 2 => ended(Some(Input::Key(Key::alt('o')))),
        Some(b'O') => Token::Complete(3, final_key(bytes[2]).map(key)),
        Some(b']' | b'P' | b'_' | b'^' | b'X') => string(bytes).unwrap_or_else(|| match bytes.len() {
            2 => ended(Some(Input::Key(Key::alt(char::from(bytes[1]).to_ascii_lowercase())))),
            _ => ended(None),
        }),
        Some(0x1b) => Token::Complete(1, Some(key(KeyCode::Escape))),
        Some(_) => match character(&bytes[1..], pause) {
            Token::Complete(length, input) => Token::Complete(length + 1, input.map(with_alt)),
            Token::Incomplete => Token::Incomplete,
        },
    }
}

fn with_alt(input: Input) -> Input {
    match input {
        Input::Key(key) => {
            let modifiers = Modifiers { alt: true, ..key.modifiers };
            let code = match key.code {
                KeyCode::Char(letter) if letter.is_ascii_uppercase() => {
                    KeyCode::Char(letter.to_ascii_lowercase())
                }
                code => code,
            };
            Input::Key(Key { code, modifiers, ..key })
        }
        other => other,
    }
}

fn key(code: KeyCode) -> Input {
    Input::Key(Key::plain(code))
}

/// A character or a control key.
fn character(bytes: &[u8], pause: Pause) -> Token {
    let control = |letter: u8| Input::Key(Key::ctrl(char::from(letter)));
    let input = match bytes[0] {
        b'\r' => key(KeyCode::Enter),
        b'\t' => key(KeyCode::Tab),
        0x7f => key(KeyCode::Backspace),
        0 => control(b' '),
        byte @ 1..=26 => control(byte - 1 + b'a'),
        0x1f => control(b'_'),
        byte @ 0x1b..=0x1e => control(byte + 0x40),
        byte if byte < 0x80 => key(KeyCode::Char(char::from(byte))),
        _ => return utf8(bytes, pause),
    };
    Token::Complete(1, Some(input))
}

fn utf8(bytes: &[u8], pause: Pause) -> Token {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Token::Complete(1, None),
    };
    let available = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(available) {
        Ok(text) => {
            Token::Complete(length, text.chars().next().map(|character| key(KeyCode::Char(character))))
        }
        Err(error) if error.error_len().is_none() && pause == Pause::No => Token::Incomplete,
        Err(error) => Token::Complete(error.error_len().unwrap_or(available.len()), None),
    }
}

/// A control sequence; none if its end has not come.
fn csi(bytes: &[u8]) -> Option<Token> {
    // The Linux console sends its first function keys with a second bracket.
    if bytes[2] == b'[' {
        return bytes.get(3).map(|letter| {
            let number = letter.wrapping_sub(b'A').wrapping_add(1);
            Token::Complete(4, (1..=5).contains(&number).then(|| key(KeyCode::F(number))))
        });
    }
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return (bytes.len() > MAX_SEQUENCE_BYTES).then_some(Token::Complete(bytes.len(), None));
    };
    if !(0x40..=0x7e).contains(&body[end]) {
        // Not a sequence: what came so far is dropped.
        return Some(Token::Complete(2 + end, None));
    }
    let parameters = std::str::from_utf8(&body[..end]).unwrap_or_default();
    Some(Token::Complete(2 + end + 1, csi_input(parameters, body[end])))
}

fn csi_input(parameters: &str, last: u8) -> Option<Input> {
    match (parameters, last) {
        ("", b'I') => Some(Input::FocusGained),
        ("", b'O') => Some(Input::FocusLost),
        (private, b'u') if private.starts_with('?') => Some(Input::Answer(Answer::KittyKeyboard)),
        (private, b'c') if private.starts_with('?') => Some(Input::Answer(Answer::DeviceAttributes)),
        (private, _) if private.starts_with(['?', '<', '>', '=']) => None,
        (report, b't') => parse_size(report),
        _ => csi_key(parameters, last).map(Input::Key),
    }
}

fn csi_key(parameters: &str, last: u8) -> Option<Key> {
    let mut fields = parameters.split(';');
    let number = |field: Option<&str>| field.and_then(|field| field.split(':').next()?.parse::<u32>().ok());
    let first = number(fields.next());
    let modifiers_field = fields.next().unwrap_or_default();
    // An event type after the colon: 3 is the release of a key.
    if modifiers_field.split(':').nth(1) == Some("3") {
        return None;
    }
    let modifiers = decode_modifiers(number(Some(modifiers_field)).unwrap_or(1));
    let with = |code| Some(normalized(code, modifiers));
    match last {
        b'~' if first == Some(27) => with(unicode_key(number(fields.next())?)?),
        b'~' => with(tilde_key(first?)?),
        b'u' => with(unicode_key(first?)?),
        b'Z' => Some(Key::new(KeyCode::Tab, Modifiers::SHIFT)),
        // Other numbers come with reports, such as the position of the cursor.
        _ if matches!(first, None | Some(1)) => with(final_key(last)?),
        _ => None,
    }
}

/// One way to write each key: letters with control or alt are lower case, and shift is only kept where it is not
/// in the character.
fn normalized(code: KeyCode, modifiers: Modifiers) -> Key {
    let Modifiers { control, alt, shift } = modifiers;
    match code {
        KeyCode::Char('-' | '_' | '/' | '7') if control && (shift || code != KeyCode::Char('-')) => {
            Key::ctrl('_')
        }
        KeyCode::Char(letter) if control || alt => {
            Key::new(KeyCode::Char(letter.to_ascii_lowercase()), Modifiers { shift: false, ..modifiers })
        }
        KeyCode::Char(letter) if shift => {
            Key::plain(KeyCode::Char(letter.to_uppercase().next().unwrap_or(letter)))
        }
        code => Key::new(code, modifiers),
    }
}

fn decode_modifiers(field: u32) -> Modifiers {
    let bits = field.saturating_sub(1);
    // Meta counts as alt.
    Modifiers { shift: bits & 1 != 0, alt: bits & (2 | 32) != 0, control: bits & 4 != 0 }
}

fn unicode_key(code: u32) -> Option<KeyCode> {
    match code {
        9 => Some(KeyCode::Tab),
        13 | 57414 => Some(KeyCode::Enter),
        27 => Some(KeyCode::Escape),
        8 | 127 => Some(KeyCode::Backspace),
        57399..=57408 => char::from_digit(code - 57399, 10).map(KeyCode::Char),
        57417 => Some(KeyCode::Left),
        57418 => Some(KeyCode::Right),
        57419 => Some(KeyCode::Up),
        57420 => Some(KeyCode::Down),
        57344..=63743 => None,
        _ => char::from_u32(code).filter(|character| !character.is_control()).map(KeyCode::Char),
    }
}

fn tilde_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => function_key(number - 10)?,
        17..=21 => function_key(number - 11)?,
        23 | 24 => function_key(number - 12)?,
        _ => return None,
    })
}

fn function_key(number: u32) -> Option<KeyCode> {
    u8::try_from(number).ok().map(KeyCode::F)
}

fn final_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        letter @ b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// A string such as the answer with a color; none if its end has not come.
fn string(bytes: &[u8]) -> Option<Token> {
    let body = &bytes[2..];
    let bell = body.iter().position(|byte| *byte == 7).map(|at| (at, 1));
    let terminator = find(body, b"\x1b\\").map(|at| (at, 2));
    let (end, length) = match (bell, terminator) {
        (Some(bell), Some(terminator)) => bell.min(terminator),
        (bell, terminator) => bell.or(terminator)?,
    };
    let input =
        std::str::from_utf8(&body[..end]).ok().filter(|_| bytes[1] == b']').and_then(parse_background);
    Some(Token::Complete(2 + end + length, input))
}

/// Reads the color of the background: `11;rgb:ffff/ffff/ffff`, with one to four digits for each part.
fn parse_background(report: &str) -> Option<Input> {
    let parts = report.strip_prefix("11;rgb:")?.split('/').map(|part| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let largest = 16_u32.checked_pow(u32::try_from(part.len()).ok()?)? - 1;
        (value * 1000).checked_div(largest)
    });
    let [red, green, blue] = parts.collect::<Option<Vec<u32>>>()?.try_into().ok()?;
    // How bright the parts look, in thousandths.
    let brightness = (red * 299 + green * 587 + blue * 114) / 1000;
    let background = if brightness < 500 { Background::Dark } else { Background::Light };
    Some(Input::Answer(Answer::Background(background)))
}

/// Reads the parameters of a report of the size: `8;rows;columns`.
fn parse_size(report: &str) -> Option<Input> {
    let (rows, columns) = report.strip_prefix("8;")?.split_once(';')?;
    let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
    (rows > 0 && columns > 0).then_some(Input::Answer(Answer::Size(rows, columns)))
}

#[cfg(test)]
mod tests;
