//! Lines on stdin to frames for the engine.

use std::io::Read;

use tokio::sync::mpsc;
use whimbrel_engine::link;
use whimbrel_wire::Frame;
use whimbrel_wire::codec::{MAX_LINE_IN, WireError, decode_from_host};

use super::lines::{Line, Lines};
use super::note;
use crate::exit::{Cut, Why};

/// What a malformed line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMalformed {
    /// The host is told, and the session goes on.
    Report,
    /// The program leaves with an error.
    Leave,
}

/// Hands every line to the engine until the input ends or the engine has. Ending is all it takes: the sender is dropped.
pub(super) fn read(
    source: impl Read,
    engine: &mpsc::Sender<link::Line>,
    on_malformed: OnMalformed,
    cut: &Cut,
) {
    let mut lines = Lines::new(source, MAX_LINE_IN);
    loop {
        let frame = match lines.next() {
            Ok(Line::Whole(line)) if unmarked(line).trim_ascii().is_empty() => continue,
            Ok(Line::Whole(line)) => frame(line),
            Ok(Line::TooLong) => Err(WireError::TooLong),
            // Only the line end is missing of a whole frame; half a one is never valid.
            Ok(Line::Half(line)) => match frame(line) {
                Ok(frame) => Ok(frame),
                Err(_) => {
                    let bytes = line.len();
                    note(&format!("The input ended within a line; its {bytes} bytes were left out."));
                    if on_malformed == OnMalformed::Leave {
                        cut.fire(Why::BadInput);
                    }
                    return;
                }
            },
            Ok(Line::End) => return,
            Err(error) => return note(&format!("The input cannot be read any further: {error}.")),
        };
        if let (Err(error), OnMalformed::Leave) = (&frame, on_malformed)
            && !matches!(error, WireError::NotForEngine { .. })
        {
            note(&error.to_string());
            return cut.fire(Why::BadInput);
        }
        if engine.blocking_send(frame.map_err(Box::new)).is_err() {
            return;
        }
    }
}

/// A line without the mark that some programs set before the first one.
fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn frame(line: &[u8]) -> Result<Frame, WireError> {
    let line = unmarked(line);
    match std::str::from_utf8(line) {
        Ok(line) => decode_from_host(line),
        Err(error) => {
            let beginning = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            Err(WireError::NotJson { reason: error.to_string(), line: beginning })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the engine hears of an input, and why the program leaves.
    fn heard(input: &[u8], on_malformed: OnMalformed) -> (Vec<String>, Option<Why>) {
        let (sender, mut receiver) = mpsc::channel(100);
        let cut = Cut::default();
        read(input, &sender, on_malformed, &cut);
        drop(sender);
        let mut heard = Vec::new();
        while let Some(frame) = receiver.blocking_recv() {
            heard.push(frame.map_or_else(|error| error.to_string(), |frame| frame.kind().to_owned()));
        }
        (heard, cut.why())
    }

    #[test]
    fn blank_lines_are_skipped_and_half_a_line_at_the_end_is_left_out() {
        let input = b"{\"type\":\"keep_alive\"}\n\n \t\r\n{\"type\":\"keep_alive\"}\r\n{\"type\":\"kee";
        assert_eq!(heard(input, OnMalformed::Report), (vec!["keep_alive".into(), "keep_alive".into()], None));
    }

    #[test]
    fn a_byte_order_mark_costs_no_line() {
        let input = b"\xef\xbb\xbf{\"type\":\"keep_alive\"}\n\xef\xbb\xbf\n{\"type\":\"keep_alive\"}";
        assert_eq!(heard(input, OnMalformed::Leave), (vec!["keep_alive".into(), "keep_alive".into()], None));
    }

    #[test]
    fn a_malformed_line_is_passed_on_as_an_error_and_the_next_one_is_read() {
        let (heard, why) = heard(b"no json\n\xff\xfe\n{\"type\":\"keep_alive\"}\n", OnMalformed::Report);
        assert_eq!((heard.len(), heard[2].as_str(), why), (3, "keep_alive", None));
        assert!(heard[0].contains("no json") && heard[1].contains("utf-8"), "{heard:?}");
    }

    #[test]
    fn a_malformed_line_ends_the_program_if_the_input_is_to_be_strict() {
        let input = b"{\"type\":\"keep_alive\"}\nno json\n{\"type\":\"keep_alive\"}\n";
        assert_eq!(heard(input, OnMalformed::Leave), (vec!["keep_alive".into()], Some(Why::BadInput)));
    }
}
