//! `--init-only`: runs the hooks that prepare the project, without a turn.

use std::io;

use whimbrel_transport::link::{HostEnd, pair};

use crate::in_process_host::print_warning;
use crate::serve_session::PreparedSession;
use crate::shutdown::{RunOutcome, Shutdown, watch_signals};

/// Runs the hooks, and prints what they have to say to stderr.
pub(crate) fn run_init_only(session: PreparedSession) -> io::Result<RunOutcome> {
    let (link, HostEnd { mut receiver, stop, .. }) = pair();
    let shutdown = Shutdown::new(stop);
    watch_signals(shutdown.clone())?;
    let (session_exit, ()) = session.serve(link, |ended| async move {
        loop {
            tokio::select! {
                biased;
                Some(frame) = receiver.recv() => print_warning(&frame),
                () = ended.cancelled() => return,
            }
        }
    })?;
    Ok(RunOutcome { session_exit, result: None, abort_reason: shutdown.reason() })
}
