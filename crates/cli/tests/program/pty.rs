//! A pseudo-terminal to start the program on: its output is recorded, and keys can be typed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{wait_for_exit, wait_until};

/// A program on a pseudo-terminal.
pub(crate) struct PtySession {
    pub(crate) child: Child,
    pty: File,
    /// Kept open, so that the last output can still be read and the terminal settings compared.
    tty: File,
    initial_settings: String,
    output: Arc<Mutex<Vec<u8>>>,
}

impl PtySession {
    /// Starts a command with all standard streams on a terminal of a given width.
    pub(crate) fn start(command: Command, columns: u16) -> Self {
        Self::start_with_stdout(command, columns, None)
    }

    /// Starts a command on a terminal; its standard output may be a file.
    pub(crate) fn start_with_stdout(mut command: Command, columns: u16, stdout: Option<File>) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let tty = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&tty, size).unwrap();
        let end = || tty.try_clone().unwrap();
        let initial_settings = terminal_settings(&tty);
        let stdout = stdout.unwrap_or_else(end);
        let child = command.stdin(end()).stdout(stdout).stderr(end()).spawn().unwrap();
        drop(command);
        let pty = File::from(keys);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut source, sink) = (pty.try_clone().unwrap(), Arc::clone(&output));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count) = source.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { child, pty, tty, initial_settings, output }
    }

    /// Everything that was shown so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// Waits until a text is shown.
    pub(crate) fn wait_for_text(&self, text: &str) {
        wait_until(text, || self.output().contains(text).then_some(()));
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit; checks that the terminal settings are restored and that all output was read.
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let status = wait_for_exit(&mut self.child);
        assert_eq!(terminal_settings(&self.tty), self.initial_settings, "the terminal is as it was");
        self.tty.write_all(b"<end>").unwrap();
        self.wait_for_text("<end>");
        status
    }
}

/// Returns the input, output and local modes of a terminal.
fn terminal_settings(terminal: &File) -> String {
    let settings = tcgetattr(terminal).unwrap();
    format!("{:?} {:?} {:?}", settings.input_modes, settings.output_modes, settings.local_modes)
}
