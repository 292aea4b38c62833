//! File checkpoints of prompts: creating them, restoring them, and the `rewind_files` control request.

use whimbrel_os::files;
use whimbrel_session_store::checkpoint::{RewindMode, RewindReport};
use whimbrel_tools::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::control::{ControlResponse, RewindFiles, RewindFilesReply};

/// Begins a checkpoint for a prompt.
pub(crate) async fn begin_checkpoint(workspace: &Workspace, prompt: Option<&str>) {
    if let (Some(checkpoints), Some(prompt)) = (workspace.checkpoints(), prompt) {
        let prompt = prompt.to_owned();
        // Fails only during shutdown of the runtime.
        let _ = files::run_blocking(move || checkpoints.record_prompt(&prompt)).await;
    }
}

/// Warns the host about files that could not be saved.
pub(crate) async fn warn_about_losses(workspace: &Workspace, frame_sender: &FrameSender) {
    let Some(content) = workspace.checkpoints().and_then(|checkpoints| checkpoints.take_loss_report()) else {
        return;
    };
    frame_sender.warn(content).await;
}

/// Handles `rewind_files`. A failure is an error response, but a field of the reply for a dry run, as hosts expect.
pub(crate) async fn handle_rewind(
    workspace: &Workspace,
    id: String,
    request: RewindFiles,
) -> ControlResponse {
    let dry_run = request.dry_run.unwrap_or(false);
    let mode = if dry_run { RewindMode::DryRun } else { RewindMode::Restore };
    match rewind_files(workspace, request.user_message_id, mode).await {
        Ok(reply) => ControlResponse::success(id, &reply),
        Err(error) if dry_run => {
            ControlResponse::success(id, &RewindFilesReply { error: Some(error), ..Default::default() })
        }
        Err(error) => ControlResponse::error(id, error),
    }
}

/// Restores the files to their state at a prompt or at an earlier rewind, or reports what that would change.
pub(crate) async fn rewind_files(
    workspace: &Workspace,
    prompt: String,
    mode: RewindMode,
) -> Result<RewindFilesReply, String> {
    let checkpoints = workspace.checkpoints().ok_or("File rewinding is not enabled.")?;
    let report = files::run_blocking(move || checkpoints.rewind(&prompt, mode)).await;
    let report = report.map_err(|error| format!("Rewinding failed: {error}."))?;
    to_reply(report.ok_or("No file checkpoint found for this message.")?)
}

/// Builds the reply. Partial failures are reported in it; if no file could be restored, that is an error.
fn to_reply(report: RewindReport) -> Result<RewindFilesReply, String> {
    let RewindReport { changed, insertions, deletions, skipped_links, failures } = report;
    let error =
        (!failures.is_empty()).then(|| format!("Files that cannot be restored: {}.", failures.join("; ")));
    match error {
        Some(error) if changed.is_empty() => Err(error),
        error => Ok(RewindFilesReply {
            can_rewind: true,
            error,
            files_changed: Some(changed.iter().map(|path| path.display().to_string()).collect()),
            insertions: Some(insertions as u64),
            deletions: Some(deletions as u64),
            skipped_links: Some(skipped_links.into()),
        }),
    }
}
