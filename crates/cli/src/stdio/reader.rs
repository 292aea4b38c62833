//! Lines on stdin to frames for the engine.

use std::io::Read;

use tokio::sync::mpsc;
use whimbrel_engine::link;
use whimbrel_wire::Frame;
use whimbrel_wire::codec::{MAX_LINE_IN, WireError, decode_from_host};

use super::line_reader::{InputLine, LineReader};
use super::stderr::print_note;
use crate::exit::{Shutdown, AbortReason};

/// What a malformed line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MalformedLinePolicy {
    /// The host is told, and the session goes on.
    Report,
    /// The program leaves with an error.
    Exit,
}

/// Hands every line to the engine until the input ends or the engine has. Ending is all it takes: the sender is dropped.
pub(super) fn read_frames(
    source: impl Read,
    engine: &mpsc::Sender<link::IncomingFrame>,
    on_malformed: MalformedLinePolicy,
    cut: &Shutdown,
) {
    let mut lines = LineReader::new(source, MAX_LINE_IN);
    loop {
        let frame = match lines.next() {
            Ok(InputLine::Complete(line)) if strip_bom(line).trim_ascii().is_empty() => continue,
            Ok(InputLine::Complete(line)) => parse_frame(line),
            Ok(InputLine::TooLong) => Err(WireError::TooLong),
            // Only the line end is missing of a whole frame; half a one is never valid.
            Ok(InputLine::Partial(line)) => match parse_frame(line) {
                Ok(frame) => Ok(frame),
                Err(_) => {
                    let bytes = line.len();
                    print_note(&format!("The input ended within a line; its {bytes} bytes were left out."));
                    if on_malformed == MalformedLinePolicy::Exit {
                        cut.trigger(AbortReason::MalformedInput);
                    }
                    return;
                }
            },
            Ok(InputLine::End) => return,
            Err(error) => return print_note(&format!("The input cannot be read any further: {error}.")),
        };
        if let (Err(error), MalformedLinePolicy::Exit) = (&frame, on_malformed)
            && !matches!(error, WireError::NotForEngine { .. })
        {
            print_note(&error.to_string());
            return cut.trigger(AbortReason::MalformedInput);
        }
        if engine.blocking_send(frame.map_err(Box::new)).is_err() {
            return;
        }
    }
}

/// A line without the mark that some programs set before the first one.
fn strip_bom(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn parse_frame(line: &[u8]) -> Result<Frame, WireError> {
    let line = strip_bom(line);
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
    fn read_all(input: &[u8], on_malformed: MalformedLinePolicy) -> (Vec<String>, Option<AbortReason>) {
        let (sender, mut receiver) = mpsc::channel(100);
        let cut = Shutdown::default();
        read_frames(input, &sender, on_malformed, &cut);
        drop(sender);
        let mut heard = Vec::new();
        while let Some(frame) = receiver.blocking_recv() {
            heard.push(frame.map_or_else(|error| error.to_string(), |frame| frame.kind().to_owned()));
        }
        (heard, cut.reason())
    }

    #[test]
    fn blank_lines_are_skipped_and_half_a_line_at_the_end_is_left_out() {
        let input = b"{\"type\":\"keep_alive\"}\n\n \t\r\n{\"type\":\"keep_alive\"}\r\n{\"type\":\"kee";
        assert_eq!(read_all(input, MalformedLinePolicy::Report), (vec!["keep_alive".into(), "keep_alive".into()], None));
    }

    #[test]
    fn a_byte_order_mark_costs_no_line() {
        let input = b"\xef\xbb\xbf{\"type\":\"keep_alive\"}\n\xef\xbb\xbf\n{\"type\":\"keep_alive\"}";
        assert_eq!(read_all(input, MalformedLinePolicy::Exit), (vec!["keep_alive".into(), "keep_alive".into()], None));
    }

    #[test]
    fn a_malformed_line_is_passed_on_as_an_error_and_the_next_one_is_read() {
        let (heard, why) = read_all(b"no json\n\xff\xfe\n{\"type\":\"keep_alive\"}\n", MalformedLinePolicy::Report);
        assert_eq!((heard.len(), heard[2].as_str(), why), (3, "keep_alive", None));
        assert!(heard[0].contains("no json") && heard[1].contains("utf-8"), "{heard:?}");
    }

    #[test]
    fn a_malformed_line_ends_the_program_if_the_input_is_to_be_strict() {
        let input = b"{\"type\":\"keep_alive\"}\nno json\n{\"type\":\"keep_alive\"}\n";
        assert_eq!(read_all(input, MalformedLinePolicy::Exit), (vec!["keep_alive".into()], Some(AbortReason::MalformedInput)));
    }
}
