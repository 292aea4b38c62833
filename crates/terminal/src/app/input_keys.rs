//! Keys of the input line.

use super::{App, ArmedKey};
use crate::app::effect::Effect;
use crate::completion::{Completion, CompletionKind, Trigger, find_trigger};
use crate::editor::vim::{VimKey, VimMode, VimOutcome};
use crate::editor::{Attachment, Edit, Picture};
use crate::keys::{Action, KeyGroup};
use crate::menu::{LineAction, line_action, typed_text};
use crate::pager::Pager;
use crate::screen::{Key, KeyCode};
use crate::{commands, pickers};

impl App {
    /// Width of the input line without its mark.
    pub(super) fn input_width(&self) -> usize {
        usize::from(self.size.columns).saturating_sub(2).max(2)
    }

    pub(super) fn handle_input_key(&mut self, key: Key) {
        if self.input.search.is_some() {
            self.handle_search_key(&key);
            return;
        }
        if self.handle_completion_key(&key) || self.handle_vim_key(&key) {
            return;
        }
        let actions: Vec<Action> = self.keys.actions(KeyGroup::Input, &key).collect();
        for action in actions {
            if self.run_action(action) {
                return;
            }
        }
        if let Some(typed) = typed_text(&key) {
            self.type_text(&typed);
        }
    }

    /// Keys that were typed before a request could be read belong to the line; those that would do something are dropped.
    pub(super) fn handle_type_ahead(&mut self, key: Key) {
        if let Some(typed) = typed_text(&key) {
            self.input.editor.insert(&typed);
        } else if key.code == KeyCode::Backspace {
            self.input.editor.edit(Edit::DeleteLeft);
        }
    }

    fn type_text(&mut self, typed: &str) {
        if typed == "!" && self.input.is_empty() {
            self.input.is_shell = true;
            return;
        }
        self.input.history.keep_recalled();
        self.input.editor.insert(typed);
        self.update_completion();
    }

    pub(super) fn paste_into_input(&mut self, text: &str) {
        if let Some(search) = &mut self.input.search {
            search.push(text.lines().next().unwrap_or_default());
            return;
        }
        self.input.history.keep_recalled();
        self.input.close_lists();
        if let Some(path) = pickers::picture_path(text) {
            self.effect(Effect::ReadPicture { path, pasted: text.to_owned() });
            return;
        }
        self.input.editor.paste(text);
    }

    /// Adds a picture to the line.
    pub(super) fn attach_picture(&mut self, picture: Picture) {
        self.input.editor.attach(Attachment::Picture(picture));
    }

    /// Runs an action; false if it does not apply now.
    fn run_action(&mut self, action: Action) -> bool {
        if let Some(line) = line_action(action)
            && !self.is_taken_elsewhere(action)
        {
            self.run_line_action(line);
            return true;
        }
        let is_empty = self.input.is_empty();
        match action {
            Action::Submit => self.press_enter(),
            Action::Interrupt => self.press_escape(),
            Action::Cancel => self.press_cancel(),
            Action::Leave if is_empty => self.press_leave(),
            Action::Steer => self.steer(),
            Action::CycleMode => self.cycle_mode(),
            Action::ChooseModel => self.open_model_picker(),
            Action::Background if is_empty && self.can_background() => self.effect(Effect::Background),
            Action::ToggleTasks if is_empty => self.are_tasks_folded ^= true,
            Action::Transcript => self.open_transcript(),
            Action::SearchHistory => {
                self.input.close_lists();
                self.input.search = Some(self.input.history.search(&self.input.history_text()));
            }
            Action::ExternalEditor => {
                let text = self.input.editor.expanded_text();
                self.effect(Effect::EditExternally(text));
            }
            Action::PastePicture => self.effect(Effect::ReadClipboardPicture),
            Action::Complete => self.update_completion(),
            Action::Help if is_empty => self.show_help(),
            Action::Redraw => self.effect(Effect::Redraw),
            Action::Suspend => self.effect(Effect::Suspend),
            Action::MoveUp => self.press_up(),
            Action::MoveDown => self.press_down(),
            Action::DeleteLeft if self.input.is_shell => self.input.is_shell = false,
            _ => return false,
        }
        true
    }

    /// Some keys edit the line only where nothing else has a use for them.
    fn is_taken_elsewhere(&self, action: Action) -> bool {
        self.input.is_shell && self.input.editor.is_empty() && matches!(action, Action::DeleteLeft)
    }

    fn run_line_action(&mut self, action: LineAction) {
        let editor = &mut self.input.editor;
        match action {
            LineAction::Move(movement) => {
                editor.move_caret(movement);
                self.input.close_lists();
                return;
            }
            LineAction::Newline => editor.insert("\n"),
            LineAction::Edit(edit) => editor.edit(edit),
        }
        self.input.history.keep_recalled();
        if self.input.completion.is_some() || self.input.file_query.is_some() {
            self.update_completion();
        }
    }

    fn press_enter(&mut self) {
        if self.input.editor.continue_line() {
            return;
        }
        if self.input.is_empty() && self.queue.has_waiting() && self.conversation.is_running() {
            if self.is_second_press(ArmedKey::Steer) {
                self.steer();
            } else {
                self.hint_second_press("press Enter again to hand the queued messages to the running turn");
            }
            return;
        }
        self.submit();
    }

    fn press_escape(&mut self) {
        if self.input.is_shell && self.input.editor.is_empty() {
            self.input.is_shell = false;
        } else if self.conversation.is_running() || self.shell.is_some() {
            self.interrupt();
        } else if self.input.is_empty() {
            if self.is_second_press(ArmedKey::Rewind) {
                self.open_rewind_picker();
            } else if !self.sent_prompts.is_empty() {
                self.hint_second_press("press Esc again to go back to an earlier prompt");
            }
        }
    }

    fn press_cancel(&mut self) {
        if !self.input.is_empty() {
            let text = self.input.history_text();
            self.input.history.add(&text);
            self.input.clear();
        } else if self.conversation.is_running() || self.shell.is_some() {
            self.interrupt();
        } else if self.is_second_press(ArmedKey::Leave) {
            self.effect(Effect::Leave(0));
        } else {
            self.hint_second_press("press Ctrl+C again to leave");
        }
    }

    fn press_leave(&mut self) {
        if self.conversation.is_running() || self.shell.is_some() || !self.conversation.background.is_empty()
        {
            self.picker = Some(pickers::leave());
        } else {
            self.effect(Effect::Leave(0));
        }
    }

    fn press_up(&mut self) {
        let width = self.input_width();
        if self.input.editor.move_up(width) {
            return;
        }
        if self.input.is_empty()
            && let Some(last) = self.queue.take_last()
        {
            self.input.set_pieces(last.pieces);
            return;
        }
        let current = self.input.history_text();
        if let Some(previous) = self.input.history.previous(&current) {
            self.input.set_text(&previous);
        }
    }

    fn press_down(&mut self) {
        let width = self.input_width();
        if !self.input.editor.move_down(width)
            && let Some(next) = self.input.history.next()
        {
            self.input.set_text(&next);
        }
    }

    fn can_background(&self) -> bool {
        !self.conversation.calls.is_empty()
    }

    pub(super) fn open_transcript(&mut self) {
        self.pager = Some(Pager::transcript());
        self.effect(Effect::OpenOverlay);
    }

    fn handle_search_key(&mut self, key: &Key) {
        let Some(search) = &mut self.input.search else { return };
        let input = self.keys.actions(KeyGroup::Input, key).next();
        match self.keys.actions(KeyGroup::Menu, key).next() {
            Some(Action::MenuAccept) => {
                let taken = search.selected().unwrap_or(search.draft()).to_owned();
                self.input.search = None;
                self.input.set_text(&taken);
            }
            Some(Action::MenuCancel) => {
                let draft = search.draft().to_owned();
                self.input.search = None;
                self.input.set_text(&draft);
            }
            Some(Action::MenuUp) => search.newer(),
            Some(Action::MenuDown) => search.older(),
            _ if input == Some(Action::SearchHistory) => search.older(),
            _ if input == Some(Action::DeleteLeft) => search.pop(),
            _ => {
                if let Some(typed) = typed_text(key) {
                    search.push(&typed);
                }
            }
        }
    }

    /// Keys of an open completion; false if the key is not about it.
    fn handle_completion_key(&mut self, key: &Key) -> bool {
        let Some(completion) = &mut self.input.completion else { return false };
        let action = self.keys.actions(KeyGroup::Menu, key).next();
        match action {
            Some(Action::MenuUp) => completion.select_previous(),
            Some(Action::MenuDown) => completion.select_next(),
            Some(Action::MenuCancel) if key.code == KeyCode::Escape => self.input.close_lists(),
            Some(Action::MenuAccept) => self.take_completion(TakeBy::Enter),
            Some(Action::MenuNext) if key.code == KeyCode::Tab => self.take_completion(TakeBy::Tab),
            _ => return false,
        }
        true
    }

    fn take_completion(&mut self, by: TakeBy) {
        let Some(completion) = self.input.completion.take() else { return };
        let Some((range, insert)) = completion.edit() else { return };
        let end = range.end.min(self.input.editor.text().len());
        // A blank that is there already is not added again.
        let has_blank = self.input.editor.text()[end..].starts_with(' ');
        let insert = if has_blank { insert.trim_end() } else { insert };
        self.input.editor.replace(range.start..end, insert);
        self.input.file_query = None;
        match (completion.kind, by) {
            (CompletionKind::Command, TakeBy::Enter) if !completion.takes_argument() => self.submit(),
            (CompletionKind::Command, _) => {}
            (CompletionKind::File, _) if completion.is_directory() => self.update_completion(),
            (CompletionKind::File, _) => {}
        }
    }

    /// Opens, changes or closes the completion for the text before the caret.
    pub(super) fn update_completion(&mut self) {
        self.input.completion = match &self.input.completion {
            // The list stays until the new one is there.
            Some(list) if list.kind == CompletionKind::File => self.input.completion.take(),
            _ => None,
        };
        let editor = &self.input.editor;
        if self.input.is_shell {
            self.input.close_lists();
            return;
        }
        match find_trigger(editor.text(), editor.caret()) {
            None => self.input.close_lists(),
            Some(Trigger::Command { typed, range }) => {
                self.input.file_query = None;
                let all = commands::list(&self.slash_commands);
                self.input.completion = Completion::commands(range, commands::filter(&all, &typed));
            }
            Some(Trigger::File { query, range }) => {
                let is_asked = self.input.file_query.as_ref().is_some_and(|(asked, _)| *asked == query);
                self.input.file_query = Some((query.clone(), range));
                if !is_asked {
                    self.effect(Effect::SuggestFiles(query));
                }
            }
        }
    }

    /// Keys for the vi keys; false if they are off or have no use for the key.
    fn handle_vim_key(&mut self, key: &Key) -> bool {
        let Some(vim) = &mut self.input.vim else { return false };
        let vim_key = match key.code {
            KeyCode::Escape => VimKey::Escape,
            KeyCode::Char(typed) if !key.modifiers.control && !key.modifiers.alt => VimKey::Char(typed),
            _ => return false,
        };
        // On an empty line `?` and `!` mean the same in both modes.
        if vim.mode() == VimMode::Normal
            && self.input.editor.is_empty()
            && matches!(key.code, KeyCode::Char('?' | '!'))
        {
            vim.reset();
            return false;
        }
        match vim.handle(vim_key, &mut self.input.editor) {
            VimOutcome::Used => {
                self.input.close_lists();
                true
            }
            VimOutcome::Unused => false,
            VimOutcome::Up => {
                self.press_up();
                true
            }
            VimOutcome::Down => {
                self.press_down();
                true
            }
        }
    }
}

/// Key that took an entry of the completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakeBy {
    Enter,
    Tab,
}
