//! Warnings: what is wrong although the work goes on. They are frames, and also events of the crate `tracing`, and calls of
//! [`Agent::on_warning`](crate::Agent::on_warning).

use std::borrow::Cow;
use std::sync::Arc;

use whimbrel_wire::Frame;
use whimbrel_wire::system::{InformationLevel, SystemEvent};

/// Gets the text of every warning.
pub(crate) type WarningFn = Arc<dyn Fn(&str) + Send + Sync>;

/// Reports the warning in a frame, if it is one.
pub(crate) fn report(frame: &Frame, callback: Option<&WarningFn>) {
    if callback.is_none() && !cfg!(feature = "tracing") {
        return;
    }
    let Frame::System(system) = frame else { return };
    let Some(text) = warning_text(&system.event) else { return };
    if let Some(callback) = callback {
        callback(&text);
    }
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "whimbrel::warning", session = system.session_id.as_str(), "{text}");
}

/// The text of a warning.
pub(crate) fn warning_text(event: &SystemEvent) -> Option<Cow<'_, str>> {
    Some(match event {
        SystemEvent::Informational(notice) if notice.level == InformationLevel::Warning => {
            notice.content.as_str().into()
        }
        SystemEvent::ModelFallback(fallback) => fallback.content.as_str().into(),
        SystemEvent::ApiRetry(retry) => {
            let status =
                retry.error_status.map(|status| format!(" with status {status}")).unwrap_or_default();
            format!(
                "A model call failed{status} and is repeated ({} of {}).",
                retry.attempt, retry.max_retries
            )
            .into()
        }
        SystemEvent::WireErrorNotice(error) => error.message.as_str().into(),
        _ => return None,
    })
}
