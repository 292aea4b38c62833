//! Modes of the terminal: what we switch on, and its restoration on every way out.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Bracketed paste and focus reports.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
/// Everything that may be on: keyboard protocols, focus reports, bracketed paste; automatic wrapping and the cursor
/// are switched on again. Ends a synchronized update, which a panic may have left open.
const LEAVE: &str = "\x1b[?2026l\x1b[m\x1b[?7h\x1b[?1004l\x1b[?2004l\x1b[?25h";
const PUSH_KITTY_KEYBOARD: &str = "\x1b[>1u";
const POP_KITTY_KEYBOARD: &str = "\x1b[<u";
const MODIFY_OTHER_KEYS: &str = "\x1b[>4;1m";
const RESET_OTHER_KEYS: &str = "\x1b[>4m";
const LEAVE_OVERLAY: &str = "\x1b[?1049l";

/// What must be undone. One for the process, because a panic hook has to reach it.
static ACTIVE: Mutex<Option<Active>> = Mutex::new(None);
static PANIC_HOOK: Once = Once::new();

struct Active {
    saved: Termios,
    /// The standard error stream, which goes to a log while we draw.
    stderr: Option<OwnedFd>,
    has_kitty_keyboard: bool,
    has_modified_keys: bool,
    is_overlay_open: bool,
}

/// Switches to raw mode. What others write to the standard error stream goes to `log` from now on.
pub(super) fn enter(log: Option<&Path>) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let saved = tcgetattr(stdin)?;
    let mut raw = saved.clone();
    raw.make_raw();
    tcsetattr(stdin, OptionalActions::Now, &raw)?;
    let active = Active {
        saved,
        stderr: redirect_stderr(log),
        has_kitty_keyboard: false,
        has_modified_keys: false,
        is_overlay_open: false,
    };
    *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(active);
    PANIC_HOOK.call_once(|| {
        let print_message = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            print_message(panic);
        }));
    });
    write(ENTER.as_bytes())
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
}

/// Switches raw mode on again after another process changed it, as a shell does when it resumes us.
pub(super) fn enter_again() -> io::Result<()> {
    let mut raw = tcgetattr(rustix::stdio::stdin())?;
    raw.make_raw();
    tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
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
    with_active(|active| active.is_overlay_open = is_open);
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
    let open = |path: &Path| std::fs::OpenOptions::new().append(true).create(true).open(path).ok();
    let target = log.and_then(open).or_else(|| open(Path::new("/dev/null")))?;
    rustix::stdio::dup2_stderr(&target).ok()?;
    Some(saved)
}
