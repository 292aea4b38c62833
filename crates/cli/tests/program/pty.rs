//! A terminal of our own to start the program at: what it shows is kept, and keys can be pressed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::rig::{ended, wait_until};

/// A program at a terminal.
pub(crate) struct Seat {
    pub(crate) child: Child,
    keys: File,
    /// Kept open, so that what was shown last can still be read, and the settings be looked at.
    screen: File,
    settings: String,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Seat {
    /// Starts a command with all its ends at a terminal of some width.
    pub(crate) fn take(mut command: Command, columns: u16) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let screen = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let end = || screen.try_clone().unwrap();
        let settings = settings(&screen);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let keys = File::from(keys);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut source, sink) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count) = source.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { child, keys, screen, settings, shown }
    }

    /// Everything that was shown so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until something is shown.
    pub(crate) fn until(&self, text: &str) {
        wait_until(text, || self.shown().contains(text).then_some(()));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, and sees to it that the terminal is as it was and everything shown was read.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = ended(&mut self.child);
        assert_eq!(settings(&self.screen), self.settings, "the terminal is as it was");
        self.screen.write_all(b"<end>").unwrap();
        self.until("<end>");
        status
    }
}

/// How a terminal treats what is typed and shown.
fn settings(terminal: &File) -> String {
    let settings = tcgetattr(terminal).unwrap();
    format!("{:?} {:?} {:?}", settings.input_modes, settings.output_modes, settings.local_modes)
}
