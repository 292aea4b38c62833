//! Whether an engine process may still be at something, as far as its frames tell: pure.
//!
//! Its input must stay open as long as a turn may ask. What it writes is read later than it was written, so an engine
//! that says it is idle may just not have seen the prompt that was sent meanwhile.

use whimbrel_wire::Frame;
use whimbrel_wire::system::{SessionState, SystemEvent};

/// What is known of the engine's turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turns {
    at: At,
    /// Whether a prompt was written since a turn last began.
    unbegun: bool,
    /// Prompts that were written and have no result yet; some engines join several into one turn.
    owed: usize,
    /// Whether the engine tells its state. If it does, it is believed.
    tells_state: bool,
}

/// Where the engine is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum At {
    /// Nothing runs.
    #[default]
    Rest,
    /// A turn runs, or a prompt is on its way.
    Work,
    /// A turn has ended, but a prompt that was written before is not known to have begun: it has not been seen yet, or
    /// the turn has taken it in.
    Doubt,
}

impl Turns {
    pub(super) fn at(&self) -> At {
        self.at
    }

    /// A prompt is being written.
    pub(super) fn prompted(&mut self) {
        self.at = At::Work;
        self.unbegun = true;
        self.owed += 1;
    }

    /// The engine has said something. An engine that tells its state is believed; of any other, results are counted.
    pub(super) fn heard(&mut self, frame: &Frame) {
        match frame {
            Frame::System(system) if let SystemEvent::SessionStateChanged(changed) = &system.event => {
                self.tells_state = true;
                match changed.state {
                    SessionState::Idle => self.at = if self.unbegun { At::Doubt } else { At::Rest },
                    SessionState::Running => {
                        self.at = At::Work;
                        self.unbegun = false;
                    }
                    _ => self.at = At::Work,
                }
            }
            _ if self.tells_state => {}
            Frame::Result(_) => {
                self.owed = self.owed.saturating_sub(1);
                self.at = if self.owed > 0 { At::Doubt } else { At::Rest };
            }
            Frame::KeepAlive(_) | Frame::ControlResponse(_) => {}
            // Whatever else is said after a result belongs to the next turn.
            _ if self.at == At::Doubt => self.at = At::Work,
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
    fn the_engine_is_at_rest_when_every_prompt_has_had_its_turn() {
        let table = [
            ("nothing was asked", "", At::Rest),
            ("a prompt is on its way", "prompt", At::Work),
            ("a turn with state", "prompt running result idle", At::Rest),
            ("a result alone is not the end", "prompt running result", At::Work),
            ("a question", "prompt running requires_action", At::Work),
            ("idle was said before the prompt was seen", "prompt running result prompt idle", At::Doubt),
            ("then it is seen", "prompt running result prompt idle running", At::Work),
            ("and done", "prompt running result prompt idle running result idle", At::Rest),
            ("two joined before they begin", "prompt prompt running result idle", At::Rest),
            ("one taken in by a turn that runs", "prompt running prompt result idle", At::Doubt),
            ("a turn of the engine's own", "prompt running result idle running", At::Work),
            ("no state: a result", "prompt result", At::Rest),
            ("no state: one of two", "prompt prompt result", At::Doubt),
            ("no state: the next turn speaks", "prompt prompt result word", At::Work),
            ("no state: a sign of life is no word", "prompt prompt result keep_alive", At::Doubt),
            ("no state: both", "prompt prompt result word result", At::Rest),
            ("no state: the prompt follows the result", "prompt result prompt", At::Work),
        ];
        for (name, words, expected) in table {
            let mut turns = Turns::default();
            for word in words.split_whitespace() {
                match word {
                    "prompt" => turns.prompted(),
                    word => turns.heard(&frame(word)),
                }
            }
            assert_eq!(turns.at(), expected, "{name}");
        }
    }
}
