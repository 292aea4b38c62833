//! Frames for the host about a transcript: mirrored lines, and warnings when it cannot be written.

use std::io;
use std::time::Duration;

use whimbrel_session_store::mirror::{MirrorFrames, split_into_frames};
use whimbrel_session_store::store_writer::FlushMode;
use whimbrel_session_store::transcript_writer::{
    CONFLICT_TEXT, Persistence, TranscriptNotice, TranscriptWriter,
};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::notice::TranscriptMirror;
use whimbrel_wire::system::SessionWritesLost;

/// Flushes the transcript to its store, then sends mirrored lines and the pending notice to the host.
pub(crate) async fn publish_notices(writer: &TranscriptWriter, frame_sender: &FrameSender) {
    writer.flush().await;
    if let Some(mirrored) = writer.take_mirrored() {
        let file_path = mirrored.path.display().to_string();
        let MirrorFrames { frames, shortened } = split_into_frames(mirrored.lines, mirrored.mirror);
        for entries in frames {
            frame_sender.send(TranscriptMirror { file_path: file_path.clone(), entries }).await;
        }
        if shortened > 0 {
            let lines =
                if shortened == 1 { "line of the transcript is" } else { "lines of the transcript are" };
            let text = format!(
                "{shortened} {lines} too long for this host: the copy in its session store is truncated. {file_path} is complete."
            );
            frame_sender.warn(text).await;
        }
    }
    match writer.take_notice() {
        None => {}
        Some(TranscriptNotice::WriteFailed(error)) => {
            let code = disk_error_code(&error);
            if let Some(code) = code {
                frame_sender
                    .notify(SessionWritesLost {
                        error_code: code.into(),
                        lost: vec!["transcript".into()],
                        transcript_session_ids: Some(vec![frame_sender.session_id().to_string()]),
                    })
                    .await;
            }
            // Hosts render these two codes themselves.
            if !matches!(code, Some("ENOSPC" | "EDQUOT")) {
                let text = format!(
                    "The transcript cannot be written ({error}). Writing is retried with every message; until it succeeds, new messages are lost if this process ends."
                );
                frame_sender.warn(text).await;
            }
        }
        Some(TranscriptNotice::Rewritten) => {
            let text = "The transcript of this session was removed or replaced by another program. The missing lines have been written again.";
            frame_sender.warn(text).await;
        }
        Some(TranscriptNotice::Unlocked(error)) => {
            let text = format!(
                "The transcript of this session cannot be locked ({error}). Make sure that no other engine uses this session."
            );
            frame_sender.warn(text).await;
        }
        Some(TranscriptNotice::Recovered) => {
            frame_sender.info("The transcript can be written again and is complete.").await;
        }
        Some(TranscriptNotice::Conflict) => frame_sender.warn(CONFLICT_TEXT).await,
        Some(TranscriptNotice::RecoveredWithGap(count)) => {
            let text = format!("The transcript can be written again, but {count} of its lines are missing.");
            frame_sender.warn(text).await;
        }
    }
}

/// Flushes the store writer at the end of a session and warns about lines that were not delivered.
pub(crate) async fn close_store(persistence: &Persistence, timeout: Duration, frame_sender: &FrameSender) {
    let Some(store_writer) = &persistence.store_writer else { return };
    // A timeout shows in the number of undelivered lines.
    let _ = tokio::time::timeout(timeout, store_writer.flush(FlushMode::WithRetries)).await;
    let count = store_writer.undelivered_count();
    if count > 0 {
        let text = format!(
            "{count} lines of the transcript could not be written to the session store and are lost."
        );
        frame_sender.warn(text).await;
    }
}

/// Error code of a disk to which nothing can be written.
fn disk_error_code(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("ENOSPC"),
        io::ErrorKind::QuotaExceeded => Some("EDQUOT"),
        io::ErrorKind::ReadOnlyFilesystem => Some("EROFS"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use crate::transcript_notices::*;

    #[test]
    fn disk_errors_have_codes() {
        let rows = [
            (Errno::ENOSPC, Some("ENOSPC")),
            (Errno::EDQUOT, Some("EDQUOT")),
            (Errno::EROFS, Some("EROFS")),
            (Errno::EACCES, None),
            (Errno::EIO, None),
        ];
        for (errno, expected) in rows {
            assert_eq!(disk_error_code(&io::Error::from_raw_os_error(errno as i32)), expected, "{errno}");
        }
    }
}
