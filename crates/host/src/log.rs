//! The log of the host: stderr, for the person who runs it.

/// Writes a line. It has no prompt, no output and no secret.
#[expect(clippy::print_stderr, reason = "stderr is the log of the host")]
pub(crate) fn report(text: &str) {
    eprintln!("whimbrel serve: {text}");
}
