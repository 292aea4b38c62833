//! How long a hook may run: the default of each event, the maximum, and the configured timeout.

use std::time::Duration;

use whimbrel_wire::hook::HookEvent;

/// Timeout of a command, for events without another default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout of a callback without its own.
pub(super) const CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum timeouts; shorter at the end of a session, where the program waits for the hook.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_SESSION_END_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a hook that goes async without naming one.
pub(super) const DEFAULT_ASYNC_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout of a command without its own.
pub(super) fn default_timeout(event: HookEvent) -> Duration {
    use HookEvent as On;
    match event {
        On::UserPromptSubmit | On::PreModelSwitch | On::PostModelSwitch => Duration::from_secs(30),
        On::MessageDisplay => Duration::from_secs(10),
        On::SessionEnd => Duration::from_secs(5),
        _ => DEFAULT_TIMEOUT,
    }
}

/// Configured timeout in seconds, at most the maximum; `None` without a positive number.
pub(super) fn parse_timeout(event: HookEvent, seconds: Option<f64>) -> Option<Duration> {
    let max_timeout = if event == HookEvent::SessionEnd { MAX_SESSION_END_TIMEOUT } else { MAX_TIMEOUT };
    let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(max_timeout).min(max_timeout))
}
