//! Modes of the terminal: what we switch on, and its restoration on every way out.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr};
use tokio::sync::Notify;

use super::modes_record::{ModesRecord, ScreenInUse};

/// Bracketed paste and focus reports.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
/// Everything that may be on: keyboard protocols, focus reports, bracketed paste; automatic wrapping and the cursor
/// are switched on again. Ends a synchronized update, which a panic may have left open.
const LEAVE: &str = "\x1b[?2026l\x1b[m\x1b[?7h\x1b[?1004l\x1b[?2004l\x1b[?25h";
/// Takes off what a program that was killed left on the stack of the terminal, then puts our own flags there.
const PUSH_KITTY_KEYBOARD: &str = "\x1b[<9u\x1b[>1u";
const POP_KITTY_KEYBOARD: &str = "\x1b[<u";
const MODIFY_OTHER_KEYS: &str = "\x1b[>4;1m";
const RESET_OTHER_KEYS: &str = "\x1b[>4m";
const LEAVE_OVERLAY: &str = "\x1b[?1049l";
const RESET_TITLE: &str = "\x1b]2;\x1b\\";
/// A larger log is begun anew.
const MAX_LOG_BYTES: u64 = 1024 * 1024;

/// What must be undone. One for the process, because a panic hook has to reach it.
static ACTIVE: Mutex<Option<Active>> = Mutex::new(None);
static PANIC_HOOK: Once = Once::new();
/// A task may panic while the program goes on; without its modes it must not draw any more.
static PANICKED: Notify = Notify::const_new();

struct Active {
    saved: Termios,
    /// The standard error stream, which goes to a log while we draw.
    stderr: Option<OwnedFd>,
    has_kitty_keyboard: bool,
    has_modified_keys: bool,
    is_overlay_open: bool,
    /// Rows of the live area above the cursor.
    rows_above_cursor: usize,
    record: Option<ModesRecord>,
}

/// Switches to raw mode. What others write to the standard error stream goes to `log` from now on. `records` is the
/// directory of the records for a start after a kill.
pub(super) fn enter(log: Option<&Path>, records: Option<&Path>) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let record = records.and_then(ModesRecord::for_terminal);
    if let Some(screen) = record.as_ref().and_then(ModesRecord::left_over) {
        reset_left_over(screen)?;
    }
    if let Some(record) = &record {
        record.write(ScreenInUse::Main);
    }
    let mut saved = tcgetattr(stdin)?;
    leave_raw_mode(&mut saved);
    let mut raw = saved.clone();
    raw.make_raw();
    tcsetattr(stdin, OptionalActions::Now, &raw)?;
    let active = Active {
        saved,
        stderr: redirect_stderr(log),
        has_kitty_keyboard: false,
        has_modified_keys: false,
        is_overlay_open: false,
        rows_above_cursor: 0,
        record,
    };
    *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(active);
    PANIC_HOOK.call_once(|| {
        let print_message = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            erase_live_area();
            leave();
            print_message(panic);
            PANICKED.notify_one();
        }));
    });
    write(ENTER.as_bytes())
}

/// Waits until a task has panicked.
pub(crate) async fn panicked() {
    PANICKED.notified().await;
}

/// Ends what a program that was killed left on.
fn reset_left_over(screen: ScreenInUse) -> io::Result<()> {
    let leave_overlay = if screen == ScreenInUse::Alternate { LEAVE_OVERLAY } else { "" };
    write(format!("{leave_overlay}{RESET_OTHER_KEYS}{LEAVE}{RESET_TITLE}").as_bytes())
}

/// A terminal in raw mode was left so by a program that was killed: the shell gets a usual one.
fn leave_raw_mode(modes: &mut Termios) {
    let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    if modes.local_modes.intersects(cooked) {
        return;
    }
    modes.local_modes |= cooked | LocalModes::IEXTEN | LocalModes::ECHOE | LocalModes::ECHOK;
    modes.input_modes |= InputModes::ICRNL | InputModes::IXON | InputModes::BRKINT;
    modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
}

/// Erases the live area without knowing what it shows, for the message of a panic.
fn erase_live_area() {
    with_active(|active| {
        let up = match active.rows_above_cursor {
            0 => String::new(),
            rows => format!("\x1b[{rows}A"),
        };
        let _ = write(format!("\x1b[?2026l\x1b[m\r{up}\x1b[J").as_bytes());
    });
}

/// Notes how many rows of the live area stand above the cursor.
pub(super) fn set_rows_above_cursor(rows: usize) {
    with_active(|active| active.rows_above_cursor = rows);
}

/// Restores the terminal as it was. Does nothing if that was done before.
pub(super) fn leave() {
    let Some(active) = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let mut sequence = String::new();
    if active.is_overlay_open {
        sequence.push_str(LEAVE_OVERLAY);
    }
    if active.has_kitty_keyboard {
        sequence.push_str(POP_KITTY_KEYBOARD);
    }
    if active.has_modified_keys {
        sequence.push_str(RESET_OTHER_KEYS);
    }
    sequence.push_str(LEAVE);
    // A terminal that is gone needs no restoration.
    let _ = write(sequence.as_bytes());
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &active.saved);
    if let Some(stderr) = active.stderr {
        let _ = rustix::stdio::dup2_stderr(&stderr);
    }
    if let Some(record) = active.record {
        record.remove();
    }
}

/// Switches the modes on again after a stop that we did not ask for. A shell had the terminal meanwhile.
pub(super) fn enter_again() -> io::Result<()> {
    let mut raw = tcgetattr(rustix::stdio::stdin())?;
    raw.make_raw();
    tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
    with_active(|active| {
        active.has_kitty_keyboard = false;
        active.has_modified_keys = false;
    });
    write(ENTER.as_bytes())
}

/// Asks for keys that plain terminals cannot tell apart, such as Shift+Enter, by the kitty protocol.
pub(super) fn push_kitty_keyboard() {
    with_active(|active| {
        if !std::mem::replace(&mut active.has_kitty_keyboard, true) {
            let _ = write(PUSH_KITTY_KEYBOARD.as_bytes());
        }
    });
}

/// The same by xterm's protocol.
pub(super) fn modify_other_keys() {
    with_active(|active| {
        if !std::mem::replace(&mut active.has_modified_keys, true) {
            let _ = write(MODIFY_OTHER_KEYS.as_bytes());
        }
    });
}

/// Records that the alternate screen is in use.
pub(super) fn set_overlay_open(is_open: bool) {
    with_active(|active| {
        active.is_overlay_open = is_open;
        if let Some(record) = &active.record {
            record.write(if is_open { ScreenInUse::Alternate } else { ScreenInUse::Main });
        }
    });
}

fn with_active(act: impl FnOnce(&mut Active)) {
    if let Some(active) = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(active);
    }
}

/// Writes to the terminal, all at once where the terminal takes it.
pub(super) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Sends the standard error stream to a file and returns the old one; none if it is no terminal.
fn redirect_stderr(log: Option<&Path>) -> Option<OwnedFd> {
    let stderr = rustix::stdio::stderr();
    if !rustix::termios::isatty(stderr) {
        return None;
    }
    let saved = rustix::io::fcntl_dupfd_cloexec(stderr, 3).ok()?;
    let open = |path: &Path| {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path).ok()?;
        if file.metadata().is_ok_and(|file| file.len() > MAX_LOG_BYTES) {
            let _ = file.set_len(0);
        }
        Some(file)
    };
    let target = log.and_then(open).or_else(|| open(Path::new("/dev/null")))?;
    rustix::stdio::dup2_stderr(&target).ok()?;
    Some(saved)
}
