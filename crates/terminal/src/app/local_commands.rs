//! The commands that the terminal itself runs.

use std::str::FromStr;

use whimbrel::PermissionMode;
use whimbrel::wire::options::Effort;

use super::App;
use crate::app::effect::{Effect, SessionChoice};
use crate::commands::{self, LocalCommand};
use crate::keys;
use crate::markdown;
use crate::pickers;
use crate::pickers::SessionScope;
use crate::theme::Theme;
use crate::transcript::{Item, NoteLevel};

impl App {
    pub(super) fn run_local_command(&mut self, command: LocalCommand, argument: &str) {
        match command {
            LocalCommand::Clear => self.start_anew(),
            LocalCommand::Config => self.picker = Some(pickers::config(&self.preferences)),
            LocalCommand::Context => self.effect(Effect::ShowContext),
            LocalCommand::Copy => self.copy(argument),
            LocalCommand::Cost => self.effect(Effect::ShowCost),
            LocalCommand::Diff => self.effect(Effect::ShowDiff),
            LocalCommand::Effort if argument.is_empty() => {
                self.picker = Some(pickers::effort(self.conversation.effort.as_deref()));
            }
            LocalCommand::Effort => match Effort::from_str(argument) {
                Ok(effort) => self.set_effort(effort),
                Err(error) => self.note(NoteLevel::Warning, error.to_string()),
            },
            LocalCommand::Exit => self.effect(Effect::Leave(0)),
            LocalCommand::Export => self.export(argument),
            LocalCommand::Help => self.show_help(),
            LocalCommand::Mcp => self.effect(Effect::ListMcpServers),
            LocalCommand::Mode if argument.is_empty() => {
                self.picker = Some(pickers::mode(self.conversation.mode));
            }
            LocalCommand::Mode => match PermissionMode::from_str(argument) {
                Ok(mode) => self.effect(Effect::SetMode(mode)),
                Err(error) => self.note(NoteLevel::Warning, error.to_string()),
            },
            LocalCommand::Model if argument.is_empty() => self.open_model_picker(),
            LocalCommand::Model => self.effect(Effect::SetModel(Some(argument.to_owned()))),
            LocalCommand::Permissions => self.effect(Effect::ShowPermissions),
            LocalCommand::Resume if argument.is_empty() => {
                self.effect(Effect::ListSessions(SessionScope::ThisFolder));
            }
            LocalCommand::Resume => self.resume(argument.to_owned()),
            LocalCommand::Rewind => self.open_rewind_picker(),
            LocalCommand::Setup => self.show(Item::Page(pickers::SETUP_PAGE.into())),
            LocalCommand::Tasks => self.picker = Some(pickers::tasks(&self.conversation)),
            LocalCommand::Theme if argument.is_empty() => {
                self.picker = Some(pickers::theme(&self.preferences.theme));
            }
            LocalCommand::Theme => self.set_theme(argument),
            LocalCommand::Transcript => self.open_transcript(),
            LocalCommand::Vim => self.toggle_vim(),
        }
    }

    /// Begins a new conversation in a new session; the scrollback stays.
    fn start_anew(&mut self) {
        self.open_session(SessionChoice::New);
        self.show(Item::Mark("a new conversation".into()));
    }

    pub(super) fn resume(&mut self, session: String) {
        self.open_session(SessionChoice::Resume(session));
    }

    pub(super) fn open_session(&mut self, choice: SessionChoice) {
        let changes = self.conversation.end_session(self.now);
        drop(changes);
        self.effect(Effect::TextEnd);
        self.prompts.clear();
        self.queue.steered.clear();
        self.sent_prompts.clear();
        self.title = None;
        self.conversation = std::mem::take(&mut self.conversation).into_next();
        self.session = super::SessionPhase::Opening;
        self.effect(Effect::OpenSession(choice, Box::new(self.chosen.clone())));
    }

    pub(super) fn show_help(&mut self) {
        let mut page = String::from("**Commands**\n\n");
        for command in commands::list(&self.slash_commands) {
            let usage = format!("/{} {}", command.name, command.argument);
            page += &format!("- `{}` {}\n", usage.trim_end(), command.description);
        }
        page += "\n`@` names a file, `!` runs a command line, `#` keeps a note.\n\n**Keys**\n\n```\n";
        page += &keys::render_help(&self.keys).join("\n");
        page += "\n```\n";
        self.show(Item::Page(page));
    }

    fn copy(&mut self, argument: &str) {
        let Some(answer) = self.conversation.transcript.last_answer().map(str::to_owned) else {
            self.hint("there is no answer to copy");
            return;
        };
        let blocks = markdown::code_blocks(&answer);
        match argument.parse::<usize>() {
            Ok(number) if (1..=blocks.len()).contains(&number) => {
                self.effect(Effect::Copy(blocks[number - 1].1.clone()));
            }
            Ok(number) => self.hint(format!("the answer has no code block {number}")),
            Err(_) if blocks.is_empty() => self.effect(Effect::Copy(answer)),
            Err(_) => self.picker = Some(pickers::copy(answer, blocks)),
        }
    }

    fn export(&mut self, argument: &str) {
        let name = match argument {
            "" => "conversation.md",
            name => name,
        };
        let path = self.start.cwd.join(name);
        let text = pickers::export_markdown(self.conversation.transcript.items());
        self.effect(Effect::WriteFile { path, text });
    }

    pub(super) fn set_effort(&mut self, effort: Effort) {
        self.conversation.effort = Some(effort.to_string());
        self.chosen.effort = Some(effort);
        self.effect(Effect::SetEffort(effort));
    }

    pub(super) fn set_theme(&mut self, name: &str) {
        if !Theme::NAMES.contains(&name) {
            let names = Theme::NAMES.join(", ");
            self.note(NoteLevel::Warning, format!("there is no theme {name:?}; there are {names}"));
            return;
        }
        name.clone_into(&mut self.preferences.theme);
        self.effect(Effect::SetTheme(name.to_owned()));
        self.save_preferences();
    }

    pub(super) fn toggle_vim(&mut self) {
        self.preferences.vim = !self.preferences.vim;
        self.input.vim = self.preferences.vim.then(Default::default);
        self.hint(if self.preferences.vim { "the vi keys are on" } else { "the vi keys are off" });
        self.save_preferences();
    }

    pub(super) fn save_preferences(&mut self) {
        self.effect(Effect::SavePreferences(Box::new(self.preferences.clone())));
    }

    pub(super) fn open_model_picker(&mut self) {
        self.picker = Some(pickers::model(&self.models, self.conversation.model.as_deref()));
    }

    pub(super) fn open_rewind_picker(&mut self) {
        if self.conversation.is_running() {
            self.hint("a turn runs: interrupt it before you go back");
        } else if self.sent_prompts.is_empty() {
            self.hint("there is no prompt to go back to");
        } else {
            self.picker = Some(pickers::rewind(&self.sent_prompts));
        }
    }
}
