//! What a choice of a picker does.

use whimbrel::wire::control::RewindScope;

use super::{App, SessionPhase};
use crate::app::effect::{Effect, SessionChoice};
use crate::menu::MenuOutcome;
use crate::pickers::{self, ConfigRow, NoteTarget, Purpose, SessionScope};
use crate::screen::Key;

impl App {
    pub(super) fn handle_picker_key(&mut self, key: &Key) {
        let Some(picker) = &mut self.picker else { return };
        let outcome = picker.menu.handle_key(key, &self.keys);
        self.handle_picker_outcome(outcome);
    }

    /// Handles an outcome of the open picker.
    pub(crate) fn handle_picker_outcome(&mut self, outcome: MenuOutcome) {
        match outcome {
            MenuOutcome::Open | MenuOutcome::Previous => {}
            MenuOutcome::Cancelled => {
                self.picker = None;
                if self.session == SessionPhase::NotChosen {
                    self.open_session(SessionChoice::New);
                }
            }
            MenuOutcome::Next => {
                if let Some(Purpose::Resume { scope, .. }) =
                    self.picker.as_ref().map(|picker| &picker.purpose)
                {
                    let other = match scope {
                        SessionScope::ThisFolder => SessionScope::AllFolders,
                        SessionScope::AllFolders => SessionScope::ThisFolder,
                    };
                    self.effect(Effect::ListSessions(other));
                }
            }
            MenuOutcome::Taken(index) | MenuOutcome::TakenWithText(index, _) => self.take_choice(index),
            MenuOutcome::Marked(indices) => {
                if let Some(index) = indices.first() {
                    self.take_choice(*index);
                }
            }
        }
    }

    fn take_choice(&mut self, index: usize) {
        let Some(picker) = self.picker.take() else { return };
        match picker.purpose {
            Purpose::Model(names) => {
                if let Some(name) = names.get(index) {
                    self.effect(Effect::SetModel(Some(name.clone())));
                }
            }
            Purpose::Mode(modes) => {
                if let Some(mode) = modes.get(index) {
                    self.effect(Effect::SetMode(*mode));
                }
            }
            Purpose::Effort(levels) => {
                if let Some(level) = levels.get(index) {
                    self.set_effort(*level);
                }
            }
            Purpose::Theme(names) => {
                if let Some(name) = names.get(index) {
                    self.set_theme(name);
                }
            }
            Purpose::Config(rows) => {
                if let Some(row) = rows.get(index) {
                    self.change_config(*row);
                }
            }
            Purpose::Resume { sessions, .. } => {
                if let Some(id) = sessions.get(index) {
                    self.resume(id.clone());
                }
            }
            Purpose::Rewind(prompts) => {
                if let Some(prompt) = prompts.get(index) {
                    self.effect(Effect::PlanRewind { prompt: prompt.clone() });
                }
            }
            Purpose::RewindScope { prompt, scopes } => {
                if let Some(Some(scope)) = scopes.get(index) {
                    self.effect(Effect::Rewind { prompt, scope: *scope });
                }
            }
            Purpose::Tasks(ids) => {
                if let Some((id, name)) = ids.get(index) {
                    self.picker = Some(pickers::task(id, name));
                }
            }
            Purpose::Task(id) => match index {
                0 => self.effect(Effect::ReadTask(id)),
                _ => self.effect(Effect::StopTask(id)),
            },
            Purpose::Mcp(servers) => {
                if let Some(server) = servers.get(index) {
                    self.picker = Some(pickers::mcp_server(server));
                }
            }
            Purpose::McpServer { name, is_enabled } => match index {
                0 => self.effect(Effect::ReconnectMcp(name)),
                _ => self.effect(Effect::ToggleMcp { name, enabled: !is_enabled }),
            },
            Purpose::Note(note) => {
                let target = if index == 0 { NoteTarget::Project } else { NoteTarget::User };
                self.effect(Effect::AppendNote { target, note });
            }
            Purpose::Copy(texts) => {
                if let Some(text) = texts.get(index) {
                    self.effect(Effect::Copy(text.clone()));
                }
            }
            Purpose::Leave => {
                if index == 1 {
                    self.effect(Effect::Leave(0));
                }
            }
        }
    }

    /// After the conversation went back before a prompt, it and all later ones are gone.
    pub(super) fn forget_prompts_from(&mut self, prompt: &str, scope: RewindScope) {
        if scope != RewindScope::Files
            && let Some(index) = self.sent_prompts.iter().position(|sent| sent.uuid == prompt)
        {
            self.sent_prompts.truncate(index);
        }
    }

    fn change_config(&mut self, row: ConfigRow) {
        match row {
            ConfigRow::Theme => self.picker = Some(pickers::theme(&self.preferences.theme)),
            ConfigRow::Vim => self.toggle_vim(),
            ConfigRow::Notifications => {
                self.preferences.notifications = !self.preferences.notifications;
                self.save_preferences();
            }
            ConfigRow::Plain => {
                self.preferences.plain = !self.preferences.plain;
                self.hint("the next start uses the other output");
                self.save_preferences();
            }
        }
    }
}
