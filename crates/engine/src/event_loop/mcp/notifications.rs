//! Forwards notifications of MCP servers to the host. Progress is throttled.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use whimbrel_mcp::{McpCallProgress, NotifyFn, ServerNotification};
use whimbrel_os::{clock, ids};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::message::{ProgressDetails, ToolProgress};
use whimbrel_wire::system::{ElicitationComplete, System};

/// Minimum interval between progress frames of one tool call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Forwards server notifications to the host; progress at most once per `PROGRESS_INTERVAL` and call. Amount and text of
/// the progress are for hosts that read such details.
pub(super) fn notification_sink(frame_sender: FrameSender, sends_details: bool) -> NotifyFn {
    let last: Mutex<Option<(String, Instant)>> = Mutex::default();
    Arc::new(move |notification| match notification {
        ServerNotification::Progress(progress) => {
            let now = clock::monotonic();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last
                .as_ref()
                .is_some_and(|(id, at)| *id == progress.tool_use_id && now - *at < PROGRESS_INTERVAL)
            {
                return;
            }
            *last = Some((progress.tool_use_id.clone(), now));
            let details = sends_details.then(|| ProgressDetails {
                done: progress.progress,
                total: progress.total,
                message: progress.message.clone(),
            });
            let frame = progress_frame(progress, &frame_sender);
            frame_sender.try_send(ToolProgress { progress: details, ..frame });
        }
        ServerNotification::ElicitationComplete { server, id } => {
            let event = ElicitationComplete { mcp_server_name: server, elicitation_id: id }.into();
            frame_sender.send_detached(System {
                event,
                uuid: ids::new_uuid(),
                session_id: frame_sender.session_id().to_string(),
            });
        }
    })
}

fn progress_frame(progress: McpCallProgress, frame_sender: &FrameSender) -> ToolProgress {
    ToolProgress {
        tool_use_id: progress.tool_use_id,
        tool_name: progress.tool,
        parent_tool_use_id: None,
        elapsed_time_seconds: progress.elapsed.as_secs_f64(),
        task_id: None,
        heartbeat: None,
        subagent_type: None,
        subagent_retry: None,
        progress: None,
        uuid: ids::new_uuid(),
        session_id: frame_sender.session_id().to_string(),
    }
}
