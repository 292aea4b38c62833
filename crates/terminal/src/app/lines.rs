//! Lines of linear input: answers to an open menu, or messages.

use super::App;
use crate::app::effect::Effect;
use crate::menu::{Menu, MenuOutcome};
use crate::transcript::NoteLevel;
use whimbrel::PermissionResult;

impl App {
    /// The menu that waits for an answer.
    pub(crate) fn open_menu(&self) -> Option<&Menu> {
        self.prompts
            .front()
            .map(super::Prompt::menu)
            .or_else(|| self.picker.as_ref().map(|picker| &picker.menu))
    }

    /// Returns whether a turn or a command line runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.conversation.is_running() || self.shell.is_some() || self.queue.has_waiting()
    }

    /// Goes on with linear input: what the line held is shown, and an open request is shown again.
    pub(crate) fn switch_to_lines(&mut self) -> Vec<Effect> {
        self.pager = None;
        self.note(NoteLevel::Info, "the screen is too small to draw on: linear output from here on");
        if !self.input.is_empty() {
            let draft = self.input.history_text();
            self.note(NoteLevel::Info, format!("the line held: {draft}"));
            self.input.history.add(&draft);
            self.input.clear();
        }
        if let Some(prompt) = self.prompts.front() {
            let id = prompt.id;
            self.effect(Effect::ShowRequest(id));
        }
        std::mem::take(&mut self.effects)
    }

    /// Handles a line.
    pub(super) fn handle_line(&mut self, line: &str) {
        if let Some(prompt) = self.prompts.front_mut() {
            let outcome = prompt.menu_mut().answer_line(line);
            if let Some(answer) = prompt.answer(outcome) {
                self.answer_prompt(answer);
            }
        } else if let Some(picker) = &mut self.picker {
            let outcome = picker.menu.answer_line(line);
            self.handle_picker_outcome(outcome);
        } else {
            self.input.set_text(line);
            self.submit();
            self.input.clear();
        }
    }

    /// The input has ended: what runs is finished first.
    pub(super) fn handle_input_end(&mut self) {
        self.has_input_ended = true;
        if self.picker.is_some() {
            self.handle_picker_outcome(MenuOutcome::Cancelled);
        }
    }

    /// Requests that come after the end of the input are refused: an answer cannot come any more.
    pub(super) fn refuse_after_input(&mut self) {
        if !self.has_input_ended {
            return;
        }
        while let Some(prompt) = self.prompts.pop_front() {
            let answer =
                PermissionResult::deny("The input of the user has ended, so nothing can allow the call.");
            self.note(
                NoteLevel::Warning,
                format!("{} was refused: the input has ended", prompt.request.tool_name),
            );
            self.effect(Effect::Answer { id: prompt.id, answer });
        }
    }

    /// Leaves when the input has ended and nothing runs.
    pub(super) fn leave_after_input(&mut self) {
        if self.has_input_ended && !self.is_busy() && !self.queue.has_waiting() {
            self.effect(Effect::Leave(0));
        }
    }

    /// Ctrl+C with linear input: interrupts, or leaves.
    pub(super) fn handle_interrupt_signal(&mut self) {
        if self.is_busy() {
            self.interrupt();
        } else {
            self.effect(Effect::Leave(0));
        }
    }
}
