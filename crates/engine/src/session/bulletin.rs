//! What the host is told about a transcript: copies of its lines, if it wants them, and at once when it cannot be written.

use nix::errno::Errno;
use whimbrel_wire::notice::TranscriptMirror;
use whimbrel_wire::system::SessionWritesLost;

use super::journal::{Journal, News};
use crate::outbox::Outbox;

/// Tells the host what it does not know yet.
pub(crate) async fn publish(journal: &Journal, outbox: &Outbox) {
    if let Some(copies) = journal.take_copies() {
        let file_path = copies.path.display().to_string();
        outbox.send(TranscriptMirror { file_path, entries: copies.lines }).await;
    }
    match journal.take_news() {
        None => {}
        Some(News::Lost(error)) => match full_disk(&error) {
            Some(code) => {
                outbox
                    .notify(SessionWritesLost {
                        error_code: code.into(),
                        lost: vec!["transcript".into()],
                        transcript_session_ids: Some(vec![outbox.session().to_owned()]),
                    })
                    .await;
            }
            None => {
                let text = format!(
                    "The transcript cannot be written ({error}). What is said from here on is lost with this process unless that changes; it is tried again with every message."
                );
                outbox.warn(text).await;
            }
        },
        Some(News::Complete) => {
            outbox.inform("The transcript can be written again, and nothing is missing in it.").await;
        }
    }
}

/// The name of the error if there is no room.
fn full_disk(error: &std::io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        code if code == Errno::ENOSPC as i32 => Some("ENOSPC"),
        code if code == Errno::EDQUOT as i32 => Some("EDQUOT"),
        _ => None,
    }
}
