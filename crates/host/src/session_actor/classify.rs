//! What becomes of a frame of the engine: an event, live only, or nothing. Pure.

use whimbrel::Frame;
use whimbrel::wire::system::SystemEvent;

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameClass {
    /// It is stored and numbered.
    Durable,
    /// It is shown to those who look now.
    Live,
    /// It is for the host alone.
    Hidden,
}

pub(crate) fn classify(frame: &Frame) -> FrameClass {
    match frame {
        Frame::Assistant(_) | Frame::User(_) | Frame::Result(_) | Frame::ConversationReset(_) => {
            FrameClass::Durable
        }
        Frame::System(system) => match system.event {
            SystemEvent::Init(_)
            | SystemEvent::CompactBoundary(_)
            | SystemEvent::TaskStarted(_)
            | SystemEvent::TaskUpdated(_)
            | SystemEvent::TaskNotification(_)
            | SystemEvent::PermissionDenied(_)
            | SystemEvent::ModelFallback(_)
            | SystemEvent::ModelRefusalFallback(_)
            | SystemEvent::SessionWritesLost(_)
            | SystemEvent::LocalCommandOutput(_)
            | SystemEvent::Informational(_) => FrameClass::Durable,
            SystemEvent::SessionStateChanged(_) => FrameClass::Hidden,
            _ => FrameClass::Live,
        },
        Frame::KeepAlive(_) | Frame::TranscriptMirror(_) | Frame::EnvironmentUpdate(_) => FrameClass::Hidden,
        _ => FrameClass::Live,
    }
}

/// The uuid of a frame that is stored.
pub(crate) fn uuid_of(frame: &Frame) -> Option<&str> {
    let uuid = match frame {
        Frame::Assistant(message) => message.uuid.as_str(),
        Frame::User(message) => message.uuid.as_deref()?,
        Frame::Result(result) => result.uuid.as_str(),
        Frame::System(system) => system.uuid.as_str(),
        _ => return None,
    };
    (!uuid.is_empty()).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_stored_live_or_hidden() {
        let rows = [
            (r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#, FrameClass::Hidden),
            (r#"{"type":"system","subtype":"status","status":null}"#, FrameClass::Live),
            (
                r#"{"type":"stream_event","event":{"type":"message_stop"},"session_id":"s","uuid":"u","parent_tool_use_id":null}"#,
                FrameClass::Live,
            ),
            (r#"{"type":"user","message":{"role":"user","content":"hello"}}"#, FrameClass::Durable),
            (r#"{"type":"keep_alive"}"#, FrameClass::Hidden),
        ];
        for (line, class) in rows {
            assert_eq!(classify(&whimbrel::wire::decode(line).unwrap()), class, "{line}");
        }
    }
}
