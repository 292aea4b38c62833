//! The clipboard of the user: the terminal's own by an escape sequence, and that of the multiplexer or of the desktop by
//! their programs, because many terminals ignore the sequence.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use whimbrel::Environment;

use super::edge::ReplySender;
use crate::app::event::Reply;

/// A program that takes the text of the clipboard from its standard input.
type Writer = &'static [&'static str];

/// `-w` hands the text to the terminal around tmux as well; versions before 3.2 do not know it.
const TMUX: [Writer; 2] = [&["tmux", "load-buffer", "-w", "-"], &["tmux", "load-buffer", "-"]];
const DESKTOP: [Writer; 3] = [&["wl-copy"], &["xclip", "-selection", "clipboard"], &["pbcopy"]];

/// Where the text is after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Tmux,
    Desktop,
    /// Only the terminal was asked, which does not answer.
    Terminal,
}

/// The programs to try, each with the place that it writes to. Through SSH the desktop is that of another machine.
fn writers(environment: &Environment) -> Vec<(Writer, Place)> {
    let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let mut writers = Vec::new();
    if is_set("TMUX") {
        writers.extend(TMUX.map(|writer| (writer, Place::Tmux)));
    }
    if !is_set("SSH_CONNECTION") {
        writers.extend(DESKTOP.map(|writer| (writer, Place::Desktop)));
    }
    writers
}

/// Copies a text and says where it is.
pub(super) fn copy(text: String, environment: &Environment, replies: ReplySender) {
    let writers = writers(environment);
    tokio::spawn(async move {
        let count = text.chars().count();
        let mut place = Place::Terminal;
        for (words, of_writer) in writers {
            if place == of_writer {
                continue;
            }
            if write_to(words, &text).await.is_ok() {
                place = of_writer;
                if place == Place::Desktop {
                    break;
                }
            }
        }
        let _ = replies.send(Reply::Done(describe(count, place)));
    });
}

fn describe(count: usize, place: Place) -> String {
    match place {
        Place::Desktop => format!("copied {count} characters"),
        Place::Tmux => format!("copied {count} characters to the buffer of tmux (prefix and ] pastes it)"),
        Place::Terminal => format!(
            "sent {count} characters to the clipboard of the terminal; if they are not there, the terminal does not allow it"
        ),
    }
}

#[expect(clippy::disallowed_methods, reason = "a program of the user, not a tool call")]
async fn write_to(words: Writer, text: &str) -> std::io::Result<()> {
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        // A program that stays to serve the clipboard must not hold our streams.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).await?;
    }
    let status = child.wait().await?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_fit_where_the_terminal_runs() {
        let places = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            let mut places: Vec<Place> = writers(&environment).into_iter().map(|(_, place)| place).collect();
            places.dedup();
            places
        };
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [Place]);
        let rows: [Row<'_>; 4] = [
            (&[], &[Place::Desktop]),
            (&[("TMUX", "/tmp/t")], &[Place::Tmux, Place::Desktop]),
            (&[("TMUX", "/tmp/t"), ("SSH_CONNECTION", "a")], &[Place::Tmux]),
            (&[("SSH_CONNECTION", "a")], &[]),
        ];
        for (variables, expected) in rows {
            assert_eq!(places(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn only_what_is_known_is_claimed() {
        assert_eq!(describe(3, Place::Desktop), "copied 3 characters");
        assert!(describe(3, Place::Tmux).contains("buffer of tmux"));
        assert!(describe(3, Place::Terminal).starts_with("sent 3 characters"));
    }
}
