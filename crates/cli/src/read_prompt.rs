//! The prompt of a run without frames: from the arguments, from stdin, or both.

use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use whimbrel_wire::codec::MAX_LINE_IN;

use crate::stdio::print_note;
use crate::terminal::Terminal;

/// Time to wait for piped text next to a prompt argument. Many programs start others with a pipe that stays open.
const STDIN_TIMEOUT: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// Reads the prompt, or says why there is none. A terminal is not read: there the prompt is an argument.
pub(crate) fn read_prompt(argument: Option<&str>, terminal: Terminal) -> Result<String, String> {
    let piped = match terminal.stdin {
        true => String::new(),
        false if argument.is_some() && is_stdin_idle() => {
            print_note(
                "No input on stdin for three seconds; continuing without it. Redirect stdin from /dev/null to avoid \
                    the wait.",
            );
            String::new()
        }
        false => read_limited(io::stdin().lock())
            .map_err(|error| format!("The prompt on stdin cannot be read: {error}."))?,
    };
    join_prompt(&piped, argument.unwrap_or_default()).ok_or_else(|| {
        "The prompt is missing. Pass it as an argument or on stdin: whimbrel -p \"what is this?\"".into()
    })
}

/// Joins the prompt argument and the piped text, each on lines of its own.
fn join_prompt(piped: &str, argument: &str) -> Option<String> {
    match (piped.trim(), argument.trim()) {
        ("", "") => None,
        ("", _) => Some(argument.to_owned()),
        (_, "") => Some(piped.trim_end().to_owned()),
        _ => Some(format!("{argument}\n{}", piped.trim_end())),
    }
}

/// Returns whether stdin has neither data nor its end until the timeout.
fn is_stdin_idle() -> bool {
    let stdin = io::stdin();
    matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&STDIN_TIMEOUT)), Ok(0))
}

fn read_limited(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_LINE_IN as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_LINE_IN {
        let limit = MAX_LINE_IN >> 20;
        return Err(io::Error::other(format!(
            "it has more than {limit} MiB. Put it into a file and name the file in the prompt"
        )));
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_text_comes_after_the_argument() {
        let rows = [
            ("", "", None),
            (" \n", "\t", None),
            ("", "typed", Some("typed")),
            ("piped\n", "", Some("piped")),
            ("piped\n\n", "typed", Some("typed\npiped")),
            ("  indented\n", "typed", Some("typed\n  indented")),
        ];
        for (piped, argument, expected) in rows {
            assert_eq!(join_prompt(piped, argument).as_deref(), expected, "{piped:?} {argument:?}");
        }
    }

    #[test]
    fn overlong_prompt_is_rejected() {
        let error = read_limited(io::repeat(b'x')).unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB") && error.contains("file"), "{error}");
    }

    #[test]
    fn invalid_utf_8_is_read_lossily() {
        assert_eq!(read_limited(&b"a\xffb"[..]).unwrap(), "a\u{fffd}b");
    }
}
