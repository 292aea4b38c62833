//! Events of the session: frames, requests, its beginning and its end.

use whimbrel::wire::control::SlashCommand;
use whimbrel::{CanUseTool, Frame};

use super::queue::{self, QueuedPrompt};
use super::{App, SessionPhase};
use crate::app::effect::Effect;
use crate::conversation::{Change, TurnEnd};
use crate::prompts::{Prompt, RequestId};
use crate::transcript::{Item, NoteLevel, PromptEntry};

/// A turn of this length notifies the user when it ends.
const LONG_TURN_SECONDS: u64 = 10;

impl App {
    pub(super) fn handle_session_opened(&mut self) {
        self.session = SessionPhase::Open;
        self.send_queued();
    }

    pub(super) fn handle_session_failed(&mut self, error: String) {
        self.session = SessionPhase::Closed;
        self.note(NoteLevel::Error, error);
        self.return_queued();
    }

    pub(super) fn handle_session_ended(&mut self) {
        self.session = SessionPhase::Closed;
        let changes = self.conversation.end_session(self.now);
        self.apply(changes);
        self.prompts.clear();
        self.note(NoteLevel::Error, "the session has ended; /resume or /clear opens another one");
        self.return_queued();
    }

    /// Puts what waits back into the line, so that nothing typed is lost.
    fn return_queued(&mut self) {
        let mut prompts = Vec::new();
        while let Some(prompt) = self.queue.take_last() {
            prompts.insert(0, prompt);
        }
        if prompts.is_empty() {
            return;
        }
        if !self.input.editor.is_empty() {
            prompts.push(QueuedPrompt { pieces: self.input.editor.pieces(), text: String::new() });
        }
        self.input.set_pieces(queue::join(&prompts));
    }

    pub(super) fn handle_frame(&mut self, frame: &Frame) {
        let changes = self.conversation.handle_frame(frame, self.now);
        self.apply(changes);
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Text(text) => self.effect(Effect::Text(text)),
                Change::TextEnd => self.effect(Effect::TextEnd),
                Change::Show(item) => self.effect(Effect::Show(item)),
                Change::PromptTaken { uuid } => self.handle_prompt_taken(&uuid),
                Change::TurnEnded(end) => self.handle_turn_end(&end),
                Change::SessionInfo => {}
                Change::Commands(commands) => self.slash_commands = commands,
                Change::CommandNames(names) => self.add_commands(names),
                Change::ConversationReset => {
                    self.sent_prompts.clear();
                    self.show(Item::Mark("a new conversation".into()));
                }
            }
        }
    }

    /// Adds commands that were not known before; only their names are known now.
    fn add_commands(&mut self, names: Vec<String>) {
        for name in names {
            if !self.slash_commands.iter().any(|known| known.name == name) {
                self.slash_commands.push(SlashCommand { name, ..SlashCommand::default() });
            }
        }
    }

    /// A prompt that was handed to the running turn has come in.
    fn handle_prompt_taken(&mut self, uuid: &str) {
        if let Some(prompt) = self.queue.take_steered(uuid) {
            let entry = match self.conversation.is_running() {
                true => PromptEntry::Steered,
                false => PromptEntry::Turn,
            };
            self.show(Item::User { text: prompt.text, entry });
        }
    }

    fn handle_turn_end(&mut self, end: &TurnEnd) {
        if !end.is_interrupted && end.elapsed.as_secs() >= LONG_TURN_SECONDS {
            self.notify(if end.is_error { "the turn failed" } else { "done" });
        }
        self.send_queued();
    }

    pub(super) fn handle_permission(&mut self, id: RequestId, request: CanUseTool) {
        let agent = request.agent_id.as_deref().map_or_else(String::new, |agent_id| {
            let agent =
                self.conversation.agents.iter().find(|agent| agent.task_id.as_deref() == Some(agent_id));
            agent.map_or_else(
                || format!("subagent {agent_id}"),
                |agent| format!("{}: {}", agent.definition, agent.description),
            )
        });
        self.prompts.push_back(Prompt::new(id, request, agent));
    }

    pub(super) fn handle_withdrawn(&mut self, id: RequestId) {
        self.prompts.retain(|prompt| prompt.id != id);
    }
}
