//! What Enter does: a prompt, a command, a command line, a note.

use whimbrel::PermissionMode;
use whimbrel::wire::message::Priority;

use super::queue::{QueuedPrompt, SentPrompt, join};
use super::{App, RunningShell, SessionPhase};
use crate::app::effect::Effect;
use crate::commands::{ParsedCommand, parse};
use crate::editor::Piece;
use crate::history;
use crate::pickers;
use crate::sessions::RecordedPrompt;
use crate::transcript::{Item, NoteLevel, PromptEntry};

/// Modes in the order of the key that goes through them.
const MODE_CYCLE: [PermissionMode; 3] =
    [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan];

impl App {
    /// Sends the line.
    pub(super) fn submit(&mut self) {
        let text = self.input.editor.expanded_text();
        if text.trim().is_empty()
            && !matches!(self.input.editor.pieces().as_slice(), [Piece::Picture(..), ..])
        {
            return;
        }
        if self.input.is_shell {
            self.submit_shell(text.trim());
            return;
        }
        if let Some(note) =
            text.strip_prefix('#').filter(|note| !note.starts_with('#') && !text.contains('\n'))
        {
            let note = note.trim().to_owned();
            self.remember();
            self.input.clear();
            self.picker = Some(pickers::note_target(note));
            return;
        }
        if matches!(text.trim(), "exit" | "quit") {
            self.effect(Effect::Leave(0));
            return;
        }
        match parse(text.trim_end(), &self.slash_commands) {
            ParsedCommand::Local(command, argument) => {
                self.remember();
                self.input.clear();
                self.run_local_command(command, &argument);
            }
            ParsedCommand::Unknown(name) => {
                self.input.close_lists();
                self.note(NoteLevel::Warning, format!("there is no command /{name}; / lists all commands"));
            }
            ParsedCommand::Engine | ParsedCommand::None => {
                self.remember();
                let pieces = self.input.editor.pieces();
                self.input.clear();
                self.submit_prompt(QueuedPrompt { pieces, text });
            }
        }
    }

    /// Keeps the line in the history.
    fn remember(&mut self) {
        let text = self.input.history_text();
        self.input.history.add(&text);
        if history::file::is_kept(&text) {
            self.effect(Effect::AppendHistory(text));
        }
    }

    /// Sends a prompt now, or queues it.
    pub(super) fn submit_prompt(&mut self, prompt: QueuedPrompt) {
        match self.session {
            SessionPhase::Open if !self.conversation.is_running() && !self.queue.has_waiting() => {
                self.send_turn(&[prompt]);
            }
            SessionPhase::NotChosen | SessionPhase::Open | SessionPhase::Opening => self.queue.push(prompt),
            SessionPhase::Closed => {
                self.input.set_pieces(prompt.pieces);
                self.note(NoteLevel::Error, "the session has ended; /resume or /clear opens another one");
            }
        }
    }

    /// Starts a turn with these prompts.
    fn send_turn(&mut self, prompts: &[QueuedPrompt]) {
        let uuid = (self.start.new_uuid)();
        for prompt in prompts {
            self.show(Item::User { text: prompt.text.clone(), entry: PromptEntry::Turn });
        }
        let text = prompts.iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>().join("\n\n");
        if self.title.is_none() && !text.starts_with('/') {
            let title: String = text.lines().next().unwrap_or_default().chars().take(50).collect();
            self.title = Some(title);
        }
        self.sent_prompts.push(RecordedPrompt { uuid: uuid.clone(), text });
        self.effect(Effect::Send { uuid, content: join(prompts), priority: None });
        self.conversation.begin_turn(self.now);
    }

    /// Sends what waits, if no turn runs.
    pub(super) fn send_queued(&mut self) {
        if self.session == SessionPhase::Open
            && !self.conversation.is_running()
            && let Some(prompts) = self.queue.take_next()
        {
            self.send_turn(&prompts);
        }
    }

    /// Hands the queued prompts, and what is in the line, to the running turn.
    pub(super) fn steer(&mut self) {
        if !self.conversation.is_running() {
            self.submit();
            return;
        }
        if !self.input.is_empty() {
            self.submit();
        }
        let Some(prompts) = self.queue.take_next() else {
            self.hint("nothing is queued");
            return;
        };
        let uuid = (self.start.new_uuid)();
        let text = prompts.iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>().join("\n\n");
        self.effect(Effect::Send {
            uuid: uuid.clone(),
            content: join(&prompts),
            priority: Some(Priority::Next),
        });
        self.queue.steered.push(SentPrompt { uuid, text });
    }

    fn submit_shell(&mut self, command: &str) {
        if self.shell.is_some() {
            self.hint("a command line runs already; Esc stops it");
            return;
        }
        let command = command.to_owned();
        self.remember();
        self.input.clear();
        self.shell =
            Some(RunningShell { command: command.clone(), output: String::new(), started: self.now });
        self.effect(Effect::RunShell(command));
    }

    /// Takes the next permission mode.
    pub(super) fn cycle_mode(&mut self) {
        let current = MODE_CYCLE.iter().position(|mode| *mode == self.conversation.mode);
        let next = MODE_CYCLE[current.map_or(0, |index| (index + 1) % MODE_CYCLE.len())];
        self.conversation.mode = next;
        self.effect(Effect::SetMode(next));
    }
}
