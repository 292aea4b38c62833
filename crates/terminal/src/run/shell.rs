//! Command lines of the user: run by the user's shell under the user's own authority, outside the engine.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use whimbrel::Environment;

use super::edge::ReplySender;
use crate::app::event::Reply;
use crate::transcript::ShellExit;

/// Output that is kept for the transcript and the model: its beginning and its end.
const MAX_OUTPUT: usize = 64 * 1024;

/// Runs a command line and sends its output and its end.
pub(super) async fn run(
    command: String,
    cwd: PathBuf,
    environment: Environment,
    stop: CancellationToken,
    replies: ReplySender,
) {
    let (output, exit) = match start(&command, cwd, &environment) {
        Ok(child) => follow(child, stop, &replies).await,
        Err(error) => (format!("the shell could not be started: {error}"), ShellExit::Code(127)),
    };
    let _ = replies.send(Reply::ShellEnded { command, output: limit(output), exit });
}

#[expect(clippy::disallowed_methods, reason = "the user's own command line is not a tool call")]
fn start(command: &str, cwd: PathBuf, environment: &Environment) -> std::io::Result<tokio::process::Child> {
    Command::new(environment.get("SHELL").unwrap_or("/bin/sh"))
        .arg("-c")
        // Both streams in the order printed.
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(cwd)
        .env_clear()
        .envs(environment.iter())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn follow(
    mut child: tokio::process::Child,
    stop: CancellationToken,
    replies: &ReplySender,
) -> (String, ShellExit) {
    let group = child.id();
    let stdout = child.stdout.take();
    let mut output = String::new();
    tokio::select! {
        () = read(stdout, &mut output, replies) => {}
        () = stop.cancelled() => {
            kill_group(group);
            let _ = child.wait().await;
            return (output, ShellExit::Stopped);
        }
    }
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = stop.cancelled() => {
            kill_group(group);
            let _ = child.wait().await;
            return (output, ShellExit::Stopped);
        }
    };
    (output, ended.map_or(ShellExit::Code(1), to_exit))
}

async fn read(stdout: Option<impl AsyncRead + Unpin>, output: &mut String, replies: &ReplySender) {
    let Some(mut stdout) = stdout else { return };
    let mut bytes = [0; 8192];
    let mut rest = Vec::new();
    while let Ok(count @ 1..) = stdout.read(&mut bytes).await {
        rest.extend_from_slice(&bytes[..count]);
        let text = take_text(&mut rest);
        output.push_str(&text);
        let excess = output.len().saturating_sub(4 * MAX_OUTPUT);
        if excess > 0 {
            let end = output.ceil_char_boundary(MAX_OUTPUT / 2 + excess);
            output.replace_range(output.ceil_char_boundary(MAX_OUTPUT / 2)..end, "");
        }
        let _ = replies.send(Reply::ShellOutput(text));
    }
    output.push_str(&String::from_utf8_lossy(&rest));
}

/// Takes the complete characters.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let complete = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        // The last character may be cut; other errors are replaced.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => bytes.len(),
    };
    let text = String::from_utf8_lossy(&bytes[..complete]).into_owned();
    bytes.drain(..complete);
    text
}

/// The beginning and the end of a long output.
fn limit(output: String) -> String {
    if output.len() <= MAX_OUTPUT {
        return output;
    }
    let head = output.floor_char_boundary(MAX_OUTPUT / 2);
    let tail = output.ceil_char_boundary(output.len() - MAX_OUTPUT / 2);
    format!("{}\n(bytes in between are left out)\n{}", &output[..head], &output[tail..])
}

fn kill_group(group: Option<u32>) {
    let group = group.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(group) = group {
        // The group may have ended by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

fn to_exit(status: ExitStatus) -> ShellExit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => ShellExit::Code(code),
        (None, Some(signal)) => ShellExit::Signal(signal),
        (None, None) => ShellExit::Code(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_characters_wait_for_their_rest() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(take_text(&mut bytes), "a");
        bytes.extend_from_slice(&"é".as_bytes()[1..]);
        assert_eq!((take_text(&mut bytes), bytes.len()), ("é".into(), 0));
        let mut invalid = b"a\xffb".to_vec();
        assert_eq!(take_text(&mut invalid), "a\u{fffd}b");
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let limited = limit(format!("first{}last", "x".repeat(MAX_OUTPUT)));
        assert!(limited.starts_with("first") && limited.ends_with("last"));
        assert!(limited.len() < MAX_OUTPUT + 100);
    }
}
