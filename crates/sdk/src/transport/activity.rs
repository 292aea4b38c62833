//! Tracks from its frames whether an engine process may still be busy. Pure.
//!
//! The engine's input must stay open as long as a turn may send requests. Frames are read later than they were written,
//! so an engine that reports idle may not have read the latest prompt yet.

use whimbrel_wire::Frame;
use whimbrel_wire::system::{SessionState, SystemEvent};

/// Activity of the engine, derived from prompts and frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ActivityTracker {
    activity: Activity,
    /// A prompt was written after the last turn had started.
    has_unstarted_prompt: bool,
    /// Prompts that have no result yet; some engines join several into one turn.
    unanswered_prompts: usize,
    /// The engine reports its state, so that results need not be counted.
    reports_state: bool,
}

/// Activity of an engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing runs.
    #[default]
    Idle,
    /// A turn runs, or a prompt is on its way.
    Busy,
    /// A turn has ended, but an earlier prompt has not visibly started: the engine has not read it yet, or the turn has
    /// consumed it.
    Unknown,
}

impl ActivityTracker {
    pub(super) fn activity(&self) -> Activity {
        self.activity
    }

    /// Records that a prompt is being written.
    pub(super) fn record_prompt(&mut self) {
        self.activity = Activity::Busy;
        self.has_unstarted_prompt = true;
        self.unanswered_prompts += 1;
    }

    /// Records a frame. A reported state decides; without one, results are counted.
    pub(super) fn record_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::System(system) if let SystemEvent::SessionStateChanged(changed) = &system.event => {
                self.reports_state = true;
                match changed.state {
                    SessionState::Idle => {
                        self.activity =
                            if self.has_unstarted_prompt { Activity::Unknown } else { Activity::Idle }
                    }
                    SessionState::Running => {
                        self.activity = Activity::Busy;
                        self.has_unstarted_prompt = false;
                    }
                    _ => self.activity = Activity::Busy,
                }
            }
            _ if self.reports_state => {}
            Frame::Result(_) => {
                self.unanswered_prompts = self.unanswered_prompts.saturating_sub(1);
                self.activity = if self.unanswered_prompts > 0 { Activity::Unknown } else { Activity::Idle };
            }
            Frame::KeepAlive(_) | Frame::ControlResponse(_) => {}
            // Any other frame after a result belongs to the next turn.
            _ if self.activity == Activity::Unknown => self.activity = Activity::Busy,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::decode;

    use super::*;

    fn frame(word: &str) -> Frame {
        let line = match word {
            "idle" | "running" | "requires_action" => {
                format!(r#"{{"type":"system","subtype":"session_state_changed","state":"{word}"}}"#)
            }
            "result" => r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"session_id":"s","total_cost_usd":0,"usage":{}}"#.to_owned(),
            other => format!(r#"{{"type":"{other}"}}"#),
        };
        decode(&line).unwrap()
    }

    #[test]
    fn engine_is_idle_when_every_prompt_had_its_turn() {
        let table = [
            ("nothing was asked", "", Activity::Idle),
            ("a prompt is on its way", "prompt", Activity::Busy),
            ("a turn with state", "prompt running result idle", Activity::Idle),
            ("a result alone is not the end", "prompt running result", Activity::Busy),
            ("a question", "prompt running requires_action", Activity::Busy),
            (
                "idle was said before the prompt was seen",
                "prompt running result prompt idle",
                Activity::Unknown,
            ),
            ("then it is seen", "prompt running result prompt idle running", Activity::Busy),
            ("and done", "prompt running result prompt idle running result idle", Activity::Idle),
            ("two joined before they begin", "prompt prompt running result idle", Activity::Idle),
            ("one taken in by a turn that runs", "prompt running prompt result idle", Activity::Unknown),
            ("a turn of the engine's own", "prompt running result idle running", Activity::Busy),
            ("no state: a result", "prompt result", Activity::Idle),
            ("no state: one of two", "prompt prompt result", Activity::Unknown),
            ("no state: a frame of the next turn", "prompt prompt result word", Activity::Busy),
            ("no state: a sign of life is no word", "prompt prompt result keep_alive", Activity::Unknown),
            ("no state: both", "prompt prompt result word result", Activity::Idle),
            ("no state: the prompt follows the result", "prompt result prompt", Activity::Busy),
        ];
        for (name, words, expected) in table {
            let mut turns = ActivityTracker::default();
            for word in words.split_whitespace() {
                match word {
                    "prompt" => turns.record_prompt(),
                    word => turns.record_frame(&frame(word)),
                }
            }
            assert_eq!(turns.activity(), expected, "{name}");
        }
    }
}
