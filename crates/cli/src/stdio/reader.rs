//! Parses lines on stdin into frames for the engine.

use std::io::Read;

use tokio::sync::mpsc;
use whimbrel_transport::line_reader::{Line, LineReader};
use whimbrel_transport::link;
use whimbrel_wire::Frame;
use whimbrel_wire::codec::{MAX_LINE_IN, WireError, decode_from_host};

use super::print_note;
use crate::shutdown::{AbortReason, Shutdown};

/// Handling of a malformed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MalformedLinePolicy {
    /// It is reported to the host, and the session goes on.
    Report,
    /// The program exits with an error.
    Exit,
}

/// Sends every frame to the engine until the input or the engine ends. The caller then drops the sender.
pub(super) fn read_frames(
    source: impl Read,
    engine: &mpsc::Sender<link::IncomingFrame>,
    on_malformed: MalformedLinePolicy,
    shutdown: &Shutdown,
) {
    let mut lines = LineReader::new(source, MAX_LINE_IN);
    loop {
        let frame = match lines.next_line() {
            Ok(Line::Complete(line)) if strip_bom(line).trim_ascii().is_empty() => continue,
            Ok(Line::Complete(line)) => parse_frame(line),
            Ok(Line::TooLong) => Err(WireError::TooLong),
            // A complete frame may lack its line end; half a frame is never valid.
            Ok(Line::Partial(line)) => match parse_frame(line) {
                Ok(frame) => Ok(frame),
                Err(_) => {
                    let bytes = line.len();
                    print_note(&format!("The input ended within a line; its {bytes} bytes were ignored."));
                    if on_malformed == MalformedLinePolicy::Exit {
                        shutdown.trigger(AbortReason::MalformedInput);
                    }
                    return;
                }
            },
            Ok(Line::End) => return,
            Err(error) => return print_note(&format!("Cannot read stdin: {error}.")),
        };
        if let (Err(error), MalformedLinePolicy::Exit) = (&frame, on_malformed)
            && !matches!(error, WireError::NotForEngine { .. })
        {
            print_note(&error.to_string());
            return shutdown.trigger(AbortReason::MalformedInput);
        }
        if engine.blocking_send(frame.map_err(Box::new)).is_err() {
            return;
        }
    }
}

/// Strips the byte order mark that some programs write first.
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

    /// Returns the frames that the engine receives for an input, and the reason for an early end.
    fn read_all(input: &[u8], on_malformed: MalformedLinePolicy) -> (Vec<String>, Option<AbortReason>) {
        let (sender, mut receiver) = mpsc::channel(100);
        let shutdown = Shutdown::default();
        read_frames(input, &sender, on_malformed, &shutdown);
        drop(sender);
        let mut received = Vec::new();
        while let Some(frame) = receiver.blocking_recv() {
            received.push(frame.map_or_else(|error| error.to_string(), |frame| frame.kind().to_owned()));
        }
        (received, shutdown.reason())
    }

    #[test]
    fn blank_lines_and_a_partial_last_line_are_skipped() {
        let input = b"{\"type\":\"keep_alive\"}\n\n \t\r\n{\"type\":\"keep_alive\"}\r\n{\"type\":\"kee";
        assert_eq!(
            read_all(input, MalformedLinePolicy::Report),
            (vec!["keep_alive".into(), "keep_alive".into()], None)
        );
    }

    #[test]
    fn byte_order_mark_is_ignored() {
        let input = b"\xef\xbb\xbf{\"type\":\"keep_alive\"}\n\xef\xbb\xbf\n{\"type\":\"keep_alive\"}";
        assert_eq!(
            read_all(input, MalformedLinePolicy::Exit),
            (vec!["keep_alive".into(), "keep_alive".into()], None)
        );
    }

    #[test]
    fn malformed_line_is_reported_and_reading_goes_on() {
        let (received, reason) =
            read_all(b"no json\n\xff\xfe\n{\"type\":\"keep_alive\"}\n", MalformedLinePolicy::Report);
        assert_eq!((received.len(), received[2].as_str(), reason), (3, "keep_alive", None));
        assert!(received[0].contains("no json") && received[1].contains("utf-8"), "{received:?}");
    }

    #[test]
    fn malformed_line_ends_a_strict_session() {
        let input = b"{\"type\":\"keep_alive\"}\nno json\n{\"type\":\"keep_alive\"}\n";
        assert_eq!(
            read_all(input, MalformedLinePolicy::Exit),
            (vec!["keep_alive".into()], Some(AbortReason::MalformedInput))
        );
    }
}
